//! Tenants, clients and enrollment.

use super::{harmless, harmless_lines, moment, perhaps, plural, table};
use angelia_connector::admin::types::{
    ClientSecret, Clients, CreatedTenant, Link, MintedToken, RemovedTenant, TenantCounts, Tenants,
};
use angelia_core::store::TenantBelongings;

pub(crate) fn created_tenant(answer: &CreatedTenant) -> String {
    let mut text = format!("Tenant {} is ready.\n", harmless(&answer.tenant));
    for identity in &answer.identities {
        text.push_str(&proves(&answer.tenant, &identity.issuer, &identity.claim));
    }
    text
}

pub(crate) fn linked(tenant: &str, link: &Link) -> String {
    proves(tenant, &link.issuer, &link.claim)
}

fn proves(tenant: &str, issuer: &str, claim: &str) -> String {
    let (issuer, claim, tenant) = (harmless(issuer), harmless(claim), harmless(tenant));
    format!("Tokens of {issuer} that say {claim} prove tenant {tenant}.\n")
}

pub(crate) fn unlinked(tenant: &str, link: &Link) -> String {
    let (issuer, claim) = (harmless(&link.issuer), harmless(&link.claim));
    format!("Tokens of {issuer} that say {claim} do not prove tenant {tenant} any more.\n")
}

pub(crate) fn tenants(answer: &Tenants) -> String {
    let cells = answer.tenants.iter().flat_map(|tenant| {
        let own = answer.identities.iter().filter(|identity| identity.tenant == *tenant);
        let mut lines: Vec<Vec<String>> =
            own.map(|row| vec![harmless(tenant), harmless(&row.issuer), harmless(&row.claim)]).collect();
        if lines.is_empty() {
            lines.push(vec![harmless(tenant), String::new(), String::new()]);
        }
        lines
    });
    table(&["TENANT", "ISSUER", "CLAIM"], cells)
}

/// What an operator sees before typing the name again.
pub(crate) fn about_to_remove(answer: &TenantCounts) -> String {
    format!(
        "This removes tenant {} for good, with {} that wait.\nType its name again to go on: ",
        harmless(&answer.tenant),
        belongings(&answer.has)
    )
}

pub(crate) fn removed_tenant(name: &str, answer: &RemovedTenant) -> String {
    let rest = if answer.deleted {
        ""
    } else {
        "What it left on the disk is still being deleted, by the server that runs or the next one.\n"
    };
    format!("Tenant {name} is removed, with {} that waited.\n{rest}", belongings(&answer.has))
}

fn belongings(has: &TenantBelongings) -> String {
    format!(
        "{}, {}, {} and {}",
        plural(has.gateways, "gateway"),
        plural(has.routes, "route"),
        plural(has.clients, "client"),
        plural(has.waiting, "message"),
    )
}

pub(crate) fn created_client(answer: &ClientSecret) -> String {
    format!(
        "Client {} of tenant {} is ready. Give these lines to its agents (the secret is not shown again):\n\n{}\n\n\
         hermes-agent reads them from version 0.19 on, in ~/.hermes/.env; it enrolls itself when it starts.\n",
        harmless(&answer.client_id),
        harmless(&answer.tenant),
        harmless_lines(&answer.env)
    )
}

pub(crate) fn rotated_client(answer: &ClientSecret) -> String {
    format!(
        "Client {} of tenant {} has a new secret; the old one is void, and so are tokens fetched with it.\n\
         Give these lines to its agents (the secret is not shown again):\n\n{}\n",
        harmless(&answer.client_id),
        harmless(&answer.tenant),
        harmless_lines(&answer.env)
    )
}

pub(crate) fn clients(answer: &Clients) -> String {
    if answer.clients.is_empty() {
        return "There is no client yet. Make one with: angelia client create --tenant NAME\n".into();
    }
    let cells = answer.clients.iter().map(|client| {
        let revoked = client.revoked_at.map(|at| format!("revoked {}", moment(at))).unwrap_or_default();
        vec![harmless(&client.tenant), harmless(&client.client_id), moment(client.created_at), revoked]
    });
    table(&["TENANT", "CLIENT", "CREATED", "STATE"], cells)
}

pub(crate) fn revoked_client(id: &str) -> String {
    format!("Client {id} is revoked: it gets no more tokens, and those it has are void.\n")
}

/// The line to run where the agent is; `url` is where it finds this server.
pub(crate) fn enroll_token(answer: &MintedToken, url: &str) -> String {
    let gateway = perhaps(&answer.gateway);
    let named = if gateway.is_empty() { String::new() } else { format!(" --gateway-id {gateway}") };
    let replaces = if answer.replaces {
        format!("Gateway {gateway} exists: it gets a new secret, and its old one stays good for 24 hours.\n")
    } else {
        String::new()
    };
    format!(
        "Run this where the agent of tenant {tenant} is, once, before {until}:\n\n  \
         hermes gateway enroll --connector-url {url}{named} --token {token}\n\n{replaces}\
         It has to prove its tenant as well: hermes-agent from 0.19 on does with the lines of `angelia client create`.\n",
        tenant = harmless(&answer.tenant),
        until = moment(answer.expires_at),
        token = harmless(&answer.token),
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn an_enrollment_is_one_line_to_copy() {
        let mut answer = json!({
            "token": "et-1", "expires_at": 0, "tenant": "acme", "gateway": "gw", "replaces": true,
        });
        let text = enroll_token(&read(answer.clone()), "https://relay.example.org");
        let line =
            "hermes gateway enroll --connector-url https://relay.example.org --gateway-id gw --token et-1\n";
        assert!(text.contains(line) && text.contains("new secret"), "{text}");
        answer["gateway"] = Value::Null;
        answer["replaces"] = false.into();
        let text = enroll_token(&read(answer), "https://x");
        assert!(text.contains("enroll --connector-url https://x --token et-1\n"), "{text}");
        assert!(!text.contains("new secret"), "{text}");
    }

    #[test]
    fn tenants_are_listed_with_their_identities() {
        let text = tenants(&read(json!({
            "tenants": ["acme", "default"],
            "identities": [
                { "tenant": "acme", "issuer": "https://a/", "claim": "1" },
                { "tenant": "acme", "issuer": "https://b/", "claim": "2" },
            ],
        })));
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            lines[1..],
            [vec!["acme", "https://a/", "1"], vec!["acme", "https://b/", "2"], vec!["default"]]
        );
    }
}
