-- From version 5 to 6, the first gateway. A tenant without any instance gets one that has no
-- name and waits for its first gateway, as new tenants do. Not where gateways were revoked and
-- forgotten: what is written to such a tenant goes on reaching nobody until there is a new one.
INSERT INTO instances (tenant, name)
WITH forgotten AS (SELECT tenant, max(at) AS at FROM audit WHERE action = 'gateway.forget' GROUP BY tenant)
SELECT tenant, '' FROM tenants LEFT JOIN forgotten USING (tenant)
WHERE (at IS NULL OR at < created_at) AND tenant NOT IN (SELECT tenant FROM instances)
ORDER BY created_at, tenant;
UPDATE tenants SET default_instance = i.instance FROM instances i WHERE i.tenant = tenants.tenant AND i.name = '';
