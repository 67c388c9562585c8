-- Whether the key before the current one is still needed is read from how values begin
-- (crates/core/src/seal/envelope.rs): the mark, the version and the name of the key.
CREATE INDEX tenants_by_head ON tenants (substr(delivery_key, 1, 9));
CREATE INDEX gateway_secrets_by_head ON gateway_secrets (substr(sealed, 1, 9));
CREATE INDEX quarantine_by_head ON quarantine (substr(sealed, 1, 9));
CREATE INDEX capabilities_by_head ON capabilities (substr(sealed, 1, 9));
