//! Settings in tables of their own, and lists of them.

use super::*;

#[test]
fn tls_is_a_table_of_two_files() {
    let tls = Some(Tls { cert: "c.pem".into(), key: "k.pem".into() });
    for text in [
        "[server]\ntls = { cert = \"c.pem\", key = \"k.pem\" }",
        "[server.tls]\ncert = \"c.pem\"\nkey = \"k.pem\"",
    ] {
        let config = load("tls", text, &[]).unwrap();
        assert_eq!(config.server.tls, tls);
        assert_eq!(load("tls-printed", &config.print(), &[]).unwrap(), {
            let public_url = Some("https://127.0.0.1:8787".into());
            Config { server: Server { public_url, ..config.server.clone() }, ..config }
        });
    }
    let env = [("ANGELIA_SERVER__TLS__CERT", "c.pem"), ("ANGELIA_SERVER__TLS__KEY", "k.pem")];
    assert_eq!(from(None, &env).unwrap().server.tls, tls);
    let told = faults(from(None, &env[..1])).join("\n");
    assert!(told.starts_with("`server.tls.key` is missing: TLS needs"), "{told}");
    let one = |text: &str| faults(load("tls-bad", text, &[])).join("\n");
    assert_eq!(one("[server]\ntls = true"), ":2: `server.tls` is a table; write { cert = …, key = … }");
    assert_eq!(
        one("[server]\ntls = { cret = \"x\" }"),
        ":2: there is no setting `server.tls.cret`; did you mean `server.tls.cert`?"
    );
    assert_eq!(
        one("[server]\ntls.cert = \"\"\ntls.key = \"k\"").lines().next().unwrap(),
        ":2: `server.tls.cert` must not be empty; write the path of a file"
    );
    let told = faults(from(None, &[("ANGELIA_SERVER_TLS_CERT", "x")])).join("\n");
    assert!(told.ends_with("did you mean `ANGELIA_SERVER__TLS__CERT`?"), "{told}");
}

#[test]
fn identities_are_read_and_printed() {
    assert!(Config::default().identity.builtin);
    let text = r#"
        [identity]
        builtin = false
        [identity.portal]
        account_url = "https://portal.example.org/account"
        [[identity.oidc]]
        issuer = "https://one.example.org/"
        jwks_url = "https://one.example.org/jwks?p=x"
        audience = "angelia"
        [[identity.oidc]]
        issuer = "http://127.0.0.1:9/two"
        jwks_url = "http://localhost:9/jwks"
        audience = "two"
        tenant_claim = "org"
    "#;
    let config = load("identity", text, &[]).unwrap();
    assert_eq!(config.identity.portal.as_deref(), Some("https://portal.example.org/account"));
    let [one, two] = config.identity.oidc.as_slice() else { panic!("{:?}", config.identity) };
    assert_eq!((one.issuer.as_str(), one.tenant_claim.as_str()), ("https://one.example.org/", "tid"));
    assert_eq!((two.audience.as_str(), two.tenant_claim.as_str()), ("two", "org"));
    let printed = config.print();
    assert_eq!(load("identity-printed", &printed, &[]).unwrap().identity, config.identity, "{printed}");
    let env = [
        ("ANGELIA_IDENTITY__PORTAL__ACCOUNT_URL", "http://[::1]:9/x"),
        ("ANGELIA_IDENTITY__BUILTIN", "true"),
    ];
    let config = load("identity-env", text, &env).unwrap();
    assert_eq!(
        (config.identity.portal.as_deref(), config.identity.builtin),
        (Some("http://[::1]:9/x"), true)
    );
}

#[test]
fn identities_that_cannot_be_trusted_are_faults() {
    let text = r#"[identity]
bulitin = true
[identity.portal]
account_url = "http://portal.example.org/account"
[[identity.oidc]]
issuer = "https://u:hunter2@one.example.org/"
jwks_url = "http://one.example.org/jwks"
audience = ""
[[identity.oidc]]
issuer = "https://two.example.org/"
jwks_uri = "https://two.example.org/jwks"
[[identity.oidc]]
issuer = "https://three.example.org/"
jwks_url = "https://three.example.org/jwks"
audience = "a"
[[identity.oidc]]
issuer = "https://three.example.org/"
jwks_url = "https://three.example.org/other"
audience = "b"
[[identity.oidc]]
issuer = "https://four.example.org/?x"
jwks_url = "ftp://four.example.org/"
audience = 4
"#;
    let told = faults(load("identity-faults", text, &[]));
    for (line, words) in [
        (2, "there is no setting `identity.bulitin`; did you mean `identity.builtin`?"),
        (
            4,
            "`identity.portal.account_url` is not a URL to rely on (plain http is good only for this machine",
        ),
        (6, "`identity.oidc.issuer` is not a URL to rely on (it must not hold a user name or password)"),
        (7, "`identity.oidc.jwks_url` is not a URL to rely on (plain http is good only"),
        (8, "`identity.oidc.audience` must not be empty"),
        (9, "`identity.oidc.jwks_url` is missing: the issuer's keys are fetched from it"),
        (9, "`identity.oidc.audience` is missing: without it"),
        (11, "there is no setting `identity.oidc.jwks_uri`; did you mean `identity.oidc.jwks_url`?"),
        (16, "`identity.oidc.issuer` names \"https://three.example.org/\" a second time"),
        (21, "`identity.oidc.issuer` must not have a query"),
        (22, "`identity.oidc.jwks_url` is not a URL to rely on (it must begin with https://)"),
        (23, "`identity.oidc.audience` needs a text in quotes, not this number"),
    ] {
        assert!(
            told.iter().any(|told| told.starts_with(&format!(":{line}: {words}"))),
            "{line} {words}\n{told:#?}"
        );
    }
    assert_eq!(told.len(), 12, "{told:#?}");
    assert!(!told.join("").contains("hunter2"), "{told:#?}");
    let one = |text: &str| faults(load("identity-one", text, &[])).join("\n");
    assert!(
        one("[identity.oidc]\nissuer = \"x\"")
            .contains("`identity.oidc` is a list of tables; write [[identity.oidc]]")
    );
    assert!(one("[identity]\noidc = [1]").contains("is a list of tables"));
    assert!(one("[identity]\nissuer = \"x\"").contains("did you mean `identity.oidc.issuer`?"));
    assert!(one("[[identity.portal]]\naccount_url = \"x\"").contains("`identity.portal` is a table"));
    let told = faults(from(None, &[("ANGELIA_IDENTITY__OIDC", "x")])).join("\n");
    assert!(
        told.contains("`identity.oidc` is a list of tables; write [[identity.oidc]] in the file"),
        "{told}"
    );
}
