//! Tenants, clients and enrollment.

use super::{count, moment, rows, table, word, words};
use serde_json::Value;

pub(crate) fn created_tenant(answer: &Value) -> String {
    let mut text = format!("Tenant {} is ready.\n", word(answer, "tenant"));
    for identity in rows(answer, "identities") {
        text.push_str(&linked(&word(answer, "tenant"), identity));
    }
    text
}

pub(crate) fn linked(tenant: &str, identity: &Value) -> String {
    let (issuer, claim) = (word(identity, "issuer"), word(identity, "claim"));
    format!("Tokens of {issuer} that say {claim} prove tenant {tenant}.\n")
}

pub(crate) fn unlinked(tenant: &str, identity: &Value) -> String {
    let (issuer, claim) = (word(identity, "issuer"), word(identity, "claim"));
    format!("Tokens of {issuer} that say {claim} do not prove tenant {tenant} any more.\n")
}

pub(crate) fn tenants(answer: &Value) -> String {
    let identities = rows(answer, "identities");
    let cells = words(answer, "tenants").into_iter().flat_map(|tenant| {
        let own = identities.iter().filter(|identity| identity["tenant"] == tenant.as_str());
        let mut lines: Vec<Vec<String>> =
            own.map(|row| vec![tenant.clone(), word(row, "issuer"), word(row, "claim")]).collect();
        if lines.is_empty() {
            lines.push(vec![tenant, String::new(), String::new()]);
        }
        lines
    });
    table(&["TENANT", "ISSUER", "CLAIM"], cells)
}

/// What an operator sees before typing the name again.
pub(crate) fn about_to_remove(counts: &Value) -> String {
    let name = word(counts, "tenant");
    format!(
        "This removes tenant {name} for good, with {}, {}, {} and {} that wait.\n\
         Type its name again to go on: ",
        count(counts, "gateways", "gateway"),
        count(counts, "routes", "route"),
        count(counts, "clients", "client"),
        count(counts, "waiting", "message"),
    )
}

pub(crate) fn removed_tenant(name: &str, answer: &Value) -> String {
    let rest = match answer["deleted"].as_bool() {
        Some(false) => {
            "What it left on the disk is still being deleted, by the server that runs or the next one.\n"
        }
        _ => "",
    };
    format!(
        "Tenant {name} is removed, with {}, {}, {} and {} that waited.\n{rest}",
        count(answer, "gateways", "gateway"),
        count(answer, "routes", "route"),
        count(answer, "clients", "client"),
        count(answer, "waiting", "message"),
    )
}

pub(crate) fn created_client(answer: &Value) -> String {
    format!(
        "Client {} of tenant {} is ready. Give these lines to its agents (the secret is not shown again):\n\n{}\n\n\
         hermes-agent reads them from version 0.19 on, in ~/.hermes/.env; it enrolls itself when it starts.\n",
        word(answer, "client_id"),
        word(answer, "tenant"),
        words(answer, "env").join("\n")
    )
}

pub(crate) fn rotated_client(answer: &Value) -> String {
    format!(
        "Client {} of tenant {} has a new secret; the old one is void, and so are tokens fetched with it.\n\
         Give these lines to its agents (the secret is not shown again):\n\n{}\n",
        word(answer, "client_id"),
        word(answer, "tenant"),
        words(answer, "env").join("\n")
    )
}

pub(crate) fn clients(answer: &Value) -> String {
    let rows = rows(answer, "clients");
    if rows.is_empty() {
        return "There is no client yet. Make one with: angelia client create --tenant NAME\n".into();
    }
    let cells = rows.iter().map(|row| {
        let revoked = match moment(&row["revoked_at"]) {
            at if at.is_empty() => at,
            at => format!("revoked {at}"),
        };
        vec![word(row, "tenant"), word(row, "client_id"), moment(&row["created_at"]), revoked]
    });
    table(&["TENANT", "CLIENT", "CREATED", "STATE"], cells)
}

pub(crate) fn revoked_client(id: &str) -> String {
    format!("Client {id} is revoked: it gets no more tokens, and those it has are void.\n")
}

/// The line to run where the agent is; `url` is where it finds this server.
pub(crate) fn enroll_token(answer: &Value, url: &str) -> String {
    let gateway = word(answer, "gateway");
    let named = if gateway.is_empty() { String::new() } else { format!(" --gateway-id {gateway}") };
    let replaces = match answer["replaces"] == true {
        true => format!(
            "Gateway {gateway} exists: it gets a new secret, and its old one stays good for 24 hours.\n"
        ),
        false => String::new(),
    };
    format!(
        "Run this where the agent of tenant {tenant} is, once, before {until}:\n\n  \
         hermes gateway enroll --connector-url {url}{named} --token {token}\n\n{replaces}\
         It has to prove its tenant as well: hermes-agent from 0.19 on does with the lines of `angelia client create`.\n",
        tenant = word(answer, "tenant"),
        until = moment(&answer["expires_at"]),
        token = word(answer, "token"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_enrollment_is_one_line_to_copy() {
        let mut answer = json!({
            "token": "et-1", "expires_at": 0, "tenant": "acme", "gateway": "gw", "replaces": true,
        });
        let text = enroll_token(&answer, "https://relay.example.org");
        let line =
            "hermes gateway enroll --connector-url https://relay.example.org --gateway-id gw --token et-1\n";
        assert!(text.contains(line) && text.contains("new secret"), "{text}");
        answer["gateway"] = Value::Null;
        answer["replaces"] = false.into();
        let text = enroll_token(&answer, "https://x");
        assert!(text.contains("enroll --connector-url https://x --token et-1\n"), "{text}");
        assert!(!text.contains("new secret"), "{text}");
    }

    #[test]
    fn tenants_are_listed_with_their_identities() {
        let text = tenants(&json!({
            "tenants": ["acme", "default"],
            "identities": [
                { "tenant": "acme", "issuer": "https://a/", "claim": "1" },
                { "tenant": "acme", "issuer": "https://b/", "claim": "2" },
            ],
        }));
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            lines[1..],
            [vec!["acme", "https://a/", "1"], vec!["acme", "https://b/", "2"], vec!["default"]]
        );
    }
}
