//! Clients, enrolment tokens, link codes; policies and fronts.

use super::Sqlite;
use super::audit::write as audit;
use super::identity::{
    add_route, create_gateway, find_gateway, no_tenant, parse_allow, renew_secret, settle_default,
    tenant_exists,
};
use super::txn::{Txn, now};
use angelia_core::admission::{Allow, Place, Policy, Route};
use angelia_core::audit::{Actor, Deed};
use angelia_core::clock::UnixMillis;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::inbox::InstanceId;
use angelia_core::space::Class;
use angelia_core::store::{
    AccessStore, Client, CodeAllow, EnrollToken, Fingerprint, Later, LinkCode, NewGateway, StoredGateway,
};
use rusqlite::{OptionalExtension, Row, params};

const CLIENT_COLUMNS: &str = "client_id, tenant, secret_fingerprint, created_at, revoked_at";
/// How a stored code says that everybody may speak.
const ANYBODY: &str = "\"any\"";

impl AccessStore for Sqlite {
    fn create_client(&self, client: Client, by: &Actor) -> Later<'_, ()> {
        let by = by.clone();
        self.writer.try_write("create a client", move |txn| {
            if !tenant_exists(txn, &client.tenant)? {
                return Ok(Err(no_tenant(&client.tenant)));
            }
            txn.execute(
                "INSERT INTO clients (client_id, tenant, secret_fingerprint, created_at) VALUES (?, ?, ?, ?)",
                params![client.client_id, client.tenant, client.secret, client.created_at.0],
            )?;
            audit(txn, &Deed::done(&by, "client.create", &client.tenant, &client.client_id))?;
            Ok(Ok(()))
        })
    }

    fn clients(&self) -> Later<'_, Vec<Client>> {
        self.readers.read("read the clients", |db| {
            db.prepare(&format!("SELECT {CLIENT_COLUMNS} FROM clients ORDER BY created_at, client_id"))?
                .query_map([], client)?
                .collect()
        })
    }

    fn client(&self, client_id: &str) -> Later<'_, Option<Client>> {
        let client_id = client_id.to_owned();
        self.readers.read("find a client", move |db| {
            db.prepare_cached(&format!("SELECT {CLIENT_COLUMNS} FROM clients WHERE client_id = ?"))?
                .query_row([client_id], client)
                .optional()
        })
    }

    fn revoke_client(&self, client_id: &str, by: &Actor) -> Later<'_, Client> {
        let (client_id, by) = (client_id.to_owned(), by.clone());
        self.writer.write_as(Class::of(&by), "revoke a client", move |txn| {
            let revoked = txn
                .query_row(
                    &format!(
                        "UPDATE clients SET revoked_at = coalesce(revoked_at, ?) WHERE client_id = ?
                         RETURNING {CLIENT_COLUMNS}"
                    ),
                    params![now(), client_id],
                    client,
                )
                .optional()?;
            let Some(revoked) = revoked else { return Ok(Err(no_client(&client_id))) };
            audit(txn, &Deed::done(&by, "client.revoke", &revoked.tenant, &client_id))?;
            Ok(Ok(revoked))
        })
    }

    fn rotate_client(&self, client_id: &str, secret: Fingerprint, by: &Actor) -> Later<'_, Client> {
        let (client_id, by) = (client_id.to_owned(), by.clone());
        self.writer.try_write("rotate a client", move |txn| {
            let rotated = txn
                .query_row(
                    &format!(
                        "UPDATE clients SET secret_fingerprint = ? WHERE client_id = ? AND revoked_at IS NULL
                         RETURNING {CLIENT_COLUMNS}"
                    ),
                    params![secret, client_id],
                    client,
                )
                .optional()?;
            let Some(rotated) = rotated else { return no_living_client(txn, &client_id).map(Err) };
            audit(txn, &Deed::done(&by, "client.rotate", &rotated.tenant, &client_id))?;
            Ok(Ok(rotated))
        })
    }

    fn mint_enroll_token(&self, token: EnrollToken, by: &Actor) -> Later<'_, bool> {
        let by = by.clone();
        self.writer.try_write("keep an enrolment token", move |txn| mint_enroll_token(txn, &token, &by))
    }

    fn enroll(
        &self,
        token: Fingerprint,
        gateway: NewGateway,
        old_until: UnixMillis,
        by: &Actor,
    ) -> Later<'_, StoredGateway> {
        let by = by.clone();
        self.writer.try_write("enrol a gateway", move |txn| enroll(txn, &token, gateway, old_until, &by))
    }

    fn mint_link_code(&self, code: LinkCode, by: &Actor) -> Later<'_, ()> {
        let by = by.clone();
        self.writer.try_write("keep a code", move |txn| {
            if !tenant_exists(txn, &code.tenant)? {
                return Ok(Err(no_tenant(&code.tenant)));
            }
            let allow = match &code.allow {
                CodeAllow::Typist => None,
                CodeAllow::Given(Allow::Any) => Some(ANYBODY.to_owned()),
                CodeAllow::Given(Allow::People(people)) => Some(serde_json::json!(people).to_string()),
            };
            txn.execute(
                "INSERT INTO link_codes (fingerprint, tenant, instance, allow, free, expires_at)
                 VALUES (?, ?, ?, ?, ?, ?)",
                params![
                    code.fingerprint,
                    code.tenant,
                    code.instance.map(|i| i.0),
                    allow,
                    code.free,
                    code.expires_at.0
                ],
            )?;
            audit(txn, &Deed::done(&by, "route.code", &code.tenant, ""))?;
            Ok(Ok(()))
        })
    }

    fn use_link_code(
        &self,
        code: Fingerprint,
        place: &Place,
        bot: Option<&str>,
        typist: &str,
        by: &Actor,
    ) -> Later<'_, String> {
        let (place, bot, typist) = (place.clone(), bot.map(str::to_owned), typist.to_owned());
        let by = by.clone();
        self.writer.try_write("use a code", move |txn| use_link_code(txn, &code, place, bot, typist, &by))
    }

    fn set_policy(&self, instance: InstanceId, platform: &str, policy: Policy, by: &Actor) -> Later<'_, ()> {
        let (platform, by) = (platform.to_owned(), by.clone());
        let owner = self.owners.of_instance(instance);
        self.writer.write_for(owner, 0, "keep a policy", move |txn| {
            set_policy(txn, instance, &platform, &policy, &by)
        })
    }

    fn policies(&self) -> Later<'_, Vec<(InstanceId, String, Policy)>> {
        self.readers.read("read the policies", |db| {
            db.prepare(
                "SELECT instance, platform, require_address, free_scopes, allow_other_bots FROM policies",
            )?
            .query_map([], |row| {
                let policy = Policy {
                    require_address: row.get(2)?,
                    free_scopes: parse_allow(3, &row.get::<_, String>(3)?)?,
                    allow_other_bots: row.get(4)?,
                };
                Ok((InstanceId(row.get(0)?), row.get(1)?, policy))
            })?
            .collect()
        })
    }

    fn set_fronts(&self, instance: InstanceId, fronts: Vec<(String, String)>) -> Later<'_, ()> {
        self.writer.write_for(
            self.owners.of_instance(instance),
            0,
            "keep what a gateway fronts",
            move |txn| {
                txn.execute("DELETE FROM fronts WHERE instance = ?", [instance.0])?;
                for (platform, bot) in &fronts {
                    txn.execute(
                        "INSERT INTO fronts (instance, platform, bot)
                     SELECT instance, ?2, ?3 FROM instances WHERE instance = ?1 ON CONFLICT DO NOTHING",
                        params![instance.0, platform, bot],
                    )?;
                }
                Ok(())
            },
        )
    }

    fn fronts(&self) -> Later<'_, Vec<(InstanceId, String, String)>> {
        self.readers.read("read what gateways front", |db| {
            db.prepare("SELECT instance, platform, bot FROM fronts")?
                .query_map([], |row| Ok((InstanceId(row.get(0)?), row.get(1)?, row.get(2)?)))?
                .collect()
        })
    }
}

fn mint_enroll_token(txn: &Txn<'_>, token: &EnrollToken, by: &Actor) -> rusqlite::Result<Result<bool>> {
    if !tenant_exists(txn, &token.tenant)? {
        return Ok(Err(no_tenant(&token.tenant)));
    }
    let existing = match &token.gateway_id {
        Some(id) => find_gateway(txn, &token.tenant, id)?,
        None => None,
    };
    if existing.as_ref().is_some_and(|gateway| gateway.revoked_at.is_some()) {
        return Ok(Err(Error::conflict("this gateway was revoked and stays so; choose another id")));
    }
    let replaces = existing.is_some();
    txn.execute(
        "INSERT INTO enroll_tokens (fingerprint, tenant, gateway_id, replaces, expires_at)
         VALUES (?, ?, ?, ?, ?)",
        params![token.fingerprint, token.tenant, token.gateway_id, replaces, token.expires_at.0],
    )?;
    let target = token.gateway_id.as_deref().unwrap_or_default();
    let detail = if replaces { "replaces the gateway" } else { "" };
    audit(txn, &Deed::done(by, "enroll_token.create", &token.tenant, target).with(detail))?;
    Ok(Ok(replaces))
}

fn enroll(
    txn: &Txn<'_>,
    token: &Fingerprint,
    gateway: NewGateway,
    old_until: UnixMillis,
    by: &Actor,
) -> rusqlite::Result<Result<StoredGateway>> {
    let found: Option<(String, Option<String>, bool)> = txn
        .query_row(
            "SELECT tenant, gateway_id, replaces FROM enroll_tokens WHERE fingerprint = ? AND expires_at > ?",
            params![token, now()],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .optional()?;
    // Another tenant's token and no token at all get the same answer.
    let Some((_, only, replaces)) = found.filter(|(tenant, ..)| *tenant == gateway.tenant) else {
        return Ok(Err(forbidden(
            "this enrolment token is unknown, used or expired; ask the operator for a new one (angelia enroll-token)",
        )));
    };
    if only.is_some_and(|id| id != gateway.gateway_id) {
        return Ok(Err(forbidden("this enrolment token is for another gateway id")));
    }
    let (tenant, id) = (gateway.tenant.clone(), gateway.gateway_id.clone());
    let existing = find_gateway(txn, &tenant, &id)?;
    match &existing {
        Some(known) if known.revoked_at.is_some() => {
            return Ok(Err(forbidden("this gateway was revoked; choose another id")));
        }
        Some(_) if !replaces => {
            return Ok(Err(Error::conflict(format!(
                "there is a gateway {id:?} already; choose another id, or ask the operator for a token that \
                 replaces it (angelia enroll-token --gateway {id})"
            ))));
        }
        _ => {}
    }
    let enrolled = match existing {
        None => create_gateway(txn, gateway, "gateway.enroll", by)?,
        Some(known) => replace(txn, &known, &gateway, old_until, by)?,
    };
    if enrolled.is_ok() {
        txn.execute("DELETE FROM enroll_tokens WHERE fingerprint = ?", [token])?;
    }
    Ok(enrolled)
}

/// Hands a gateway and its instance over to the subject that enrols it now.
fn replace(
    txn: &Txn<'_>,
    known: &StoredGateway,
    new: &NewGateway,
    old_until: UnixMillis,
    by: &Actor,
) -> rusqlite::Result<Result<StoredGateway>> {
    let (tenant, id) = (&known.tenant, &known.gateway_id);
    let subject = new.subject.as_ref().map(|subject| subject.as_str());
    let sharing: Option<String> = txn
        .query_row(
            "SELECT gateway_id FROM gateways
             WHERE instance = ?1 AND gateway_id <> ?2 AND revoked_at IS NULL AND subject IS NOT ?3 LIMIT 1",
            params![known.instance.0, id, subject],
            |row| row.get(0),
        )
        .optional()?;
    if let Some(other) = sharing {
        return Ok(Err(Error::conflict(format!(
            "gateway {other:?} serves the same instance and is somebody else's; ask the operator to revoke or \
             move it first"
        ))));
    }
    renew_secret(txn, tenant, id, &new.sealed_secret, Some(old_until))?;
    txn.execute(
        "UPDATE gateways SET subject = ? WHERE tenant = ? AND gateway_id = ?",
        params![subject, tenant, id],
    )?;
    txn.execute("UPDATE instances SET subject = ? WHERE instance = ?", params![subject, known.instance.0])?;
    audit(txn, &Deed::done(by, "gateway.enroll", tenant, id).with("replaced"))?;
    settle_default(txn, tenant)?;
    Ok(find_gateway(txn, tenant, id)?.ok_or_else(|| Error::internal("the gateway is gone")))
}

fn use_link_code(
    txn: &Txn<'_>,
    code: &Fingerprint,
    place: Place,
    bot: Option<String>,
    typist: String,
    by: &Actor,
) -> rusqlite::Result<Result<String>> {
    let found: Option<(String, Option<i64>, Option<String>, bool)> = txn
        .query_row(
            "SELECT tenant, instance, allow, free FROM link_codes WHERE fingerprint = ? AND expires_at > ?",
            params![code, now()],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
        )
        .optional()?;
    let Some((tenant, instance, allow, free)) = found else {
        audit(
            txn,
            &Deed::refused(by, "route.link", "", &place.to_string(), "unknown, used or expired code"),
        )?;
        return Ok(Err(forbidden("this code is unknown, used or expired")));
    };
    let allow = match allow.as_deref() {
        None => Allow::People(vec![typist]),
        Some(ANYBODY) => Allow::Any,
        Some(list) => Allow::People(parse_allow(2, list)?),
    };
    let instance = instance.map(InstanceId);
    let route = Route { place, bot, tenant: tenant.clone(), instance, allow, free };
    if let Err(taken) = add_route(txn, &route, "route.link", by)? {
        return Ok(Err(taken));
    }
    txn.execute("DELETE FROM link_codes WHERE fingerprint = ?", [code])?;
    Ok(Ok(tenant))
}

fn set_policy(
    txn: &Txn<'_>,
    instance: InstanceId,
    platform: &str,
    policy: &Policy,
    by: &Actor,
) -> rusqlite::Result<()> {
    txn.execute(
        "INSERT INTO policies (instance, platform, require_address, free_scopes, allow_other_bots)
         VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (instance, platform) DO UPDATE SET require_address = excluded.require_address,
             free_scopes = excluded.free_scopes, allow_other_bots = excluded.allow_other_bots",
        params![
            instance.0,
            platform,
            policy.require_address,
            serde_json::json!(policy.free_scopes).to_string(),
            policy.allow_other_bots
        ],
    )?;
    let named: Option<(String, String)> = txn
        .query_row("SELECT tenant, name FROM instances WHERE instance = ?", [instance.0], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let (tenant, name) = named.unwrap_or_default();
    let detail = format!(
        "{platform}: require_address {}, {} free scopes, allow_other_bots {}",
        policy.require_address,
        policy.free_scopes.len(),
        policy.allow_other_bots
    );
    audit(txn, &Deed::done(by, "policy.set", &tenant, &name).with(detail))
}

fn client(row: &Row<'_>) -> rusqlite::Result<Client> {
    Ok(Client {
        client_id: row.get(0)?,
        tenant: row.get(1)?,
        secret: row.get(2)?,
        created_at: UnixMillis(row.get(3)?),
        revoked_at: row.get::<_, Option<i64>>(4)?.map(UnixMillis),
    })
}

fn no_client(client_id: &str) -> Error {
    Error::not_found(format!("there is no client {client_id:?}"))
}

/// Why a client cannot be changed: it was revoked, or never was.
fn no_living_client(txn: &Txn<'_>, client_id: &str) -> rusqlite::Result<Error> {
    let find = "SELECT EXISTS (SELECT 1 FROM clients WHERE client_id = ?)";
    let known: bool = txn.query_row(find, [client_id], |row| row.get(0))?;
    Ok(match known {
        true => Error::conflict(format!("client {client_id:?} is revoked; make a new one")),
        false => no_client(client_id),
    })
}

fn forbidden(why: &str) -> Error {
    Error::new(Kind::Forbidden, why)
}
