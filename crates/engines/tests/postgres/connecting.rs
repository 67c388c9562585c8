//! Which servers are taken, and how they are spoken to.

use angelia_core::error::{Kind, Result};
use angelia_core::inbox::Quota;
use angelia_core::secret::Secret;
use angelia_engines::local_bus::LocalBus;
use angelia_engines::store::postgres::{DatabaseUrl, Options, Postgres};
use angelia_services::{PgBouncer, psql};
use std::sync::Arc;

async fn open(url: &str) -> Result<Postgres> {
    Postgres::open(url, Quota::default(), Arc::new(LocalBus::default())).await
}

async fn refused(url: &str) -> String {
    let error = open(url).await.map(drop).unwrap_err();
    let told = format!("{error} {error:?}");
    assert!(!told.contains("hunter2"), "{told}");
    error.to_string()
}

#[tokio::test]
async fn a_certificate_is_verified_or_nobody_speaks() {
    let server = angelia_services::Postgres::start_tls().unwrap();
    let url = server.fresh_database().unwrap().replace("angelia@", "angelia:hunter2@");
    let certificate = server.certificate().unwrap();
    let certificate = certificate.display();
    for good in [
        format!("{url}?sslmode=verify-full&sslrootcert={certificate}"),
        format!("{url}?sslmode=prefer&sslrootcert={certificate}"),
        format!("{}?sslrootcert={certificate}", url.replace("127.0.0.1", "localhost")),
    ] {
        let store = open(&good).await.unwrap();
        let encrypted = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
            WHERE application_name LIKE 'angelia/%'";
        assert_eq!(psql(&url, encrypted).unwrap(), "t", "{good}");
        drop(store);
    }
    let told = refused(&format!("{url}?sslmode=verify-full")).await;
    assert!(told.contains("invalid peer certificate") && told.contains("sslrootcert=PATH"), "{told}");
    assert!(told.contains("sslmode=disable"), "{told}");
    // By a name that is not in the certificate.
    let other = url.replace("127.0.0.1", "db.example").replace("?", "");
    let told =
        refused(&format!("{other}?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert={certificate}")).await;
    assert!(told.contains("db.example") && told.contains("certificate"), "{told}");
    let store = open(&format!("{url}?sslmode=disable")).await.unwrap();
    drop(store);
    let store = open(&url).await.unwrap();
    drop(store);
}

#[tokio::test]
async fn a_server_without_tls_is_not_spoken_to_in_the_clear_by_accident() {
    let url = angelia_services::Postgres::shared().unwrap().fresh_database().unwrap();
    let told = refused(&format!("{url}?sslmode=require")).await;
    assert!(told.contains("does not support TLS") && told.contains("sslmode=disable"), "{told}");
    drop(open(&format!("{url}?sslmode=prefer")).await.unwrap());
}

#[tokio::test]
async fn who_cannot_be_reached_is_told_with_what_to_do() {
    let server = angelia_services::Postgres::shared().unwrap();
    let none = refused(&server.url("no_such_database")).await;
    assert!(none.contains("createdb") && none.contains("no_such_database"), "{none}");
    let nobody = server.url("postgres").replace("angelia@", "nobody:hunter2@");
    assert!(refused(&nobody).await.contains("nobody"));
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://u:hunter2@{}/x?connect_timeout=1", silent.local_addr().unwrap());
    let told = refused(&url).await;
    assert!(told.contains("does not answer within 1 second"), "{told}");
}

#[tokio::test]
async fn a_password_that_is_kept_apart_lets_in() {
    let server = angelia_services::Postgres::start().unwrap();
    let rules = server.folder().unwrap().join("data/pg_hba.conf");
    let text = std::fs::read_to_string(&rules).unwrap();
    std::fs::write(&rules, format!("host all guarded 127.0.0.1/32 scram-sha-256\n{text}")).unwrap();
    for statement in [
        "CREATE ROLE guarded LOGIN PASSWORD 'hunter2'",
        "CREATE DATABASE guarded OWNER guarded TEMPLATE template0",
        "SELECT pg_reload_conf()",
    ] {
        psql(&server.url("postgres"), statement).unwrap();
    }
    let url = server.url("guarded").replace("angelia@", "guarded@");
    // The new rules count a moment after they were asked for.
    let mut told = String::new();
    for _ in 0..100 {
        match open(&url).await {
            Ok(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            Err(error) => {
                told = error.to_string();
                break;
            }
        }
    }
    assert!(told.contains("give the password with store.password"), "{told}");
    let with = |password: &str| url.parse::<DatabaseUrl>().unwrap().with_password(&Secret::new(password));
    let open = |url| async move {
        let (options, bus) = (Options::new(url), Arc::new(LocalBus::default()));
        Postgres::open_with(&options, Quota::default(), bus).await.map(drop)
    };
    open(with("hunter2")).await.unwrap();
    let told = open(with("hunter22")).await.unwrap_err();
    assert!(told.to_string().contains("check the user \"guarded\""), "{told}");
    assert!(!format!("{told} {told:?}").contains("hunter2"), "{told:?}");
}

#[tokio::test]
async fn what_would_not_keep_its_word_is_refused() {
    let server =
        angelia_services::Postgres::start_with(&[("fsync", "off"), ("synchronous_commit", "off")]).unwrap();
    let url = server.fresh_database().unwrap();
    let told = refused(&url).await;
    assert!(told.contains("fsync = off") && told.contains("store.unsafe_fsync_off"), "{told}");
    let options = Options { unsafe_fsync_off: true, ..Options::new(url.parse().unwrap()) };
    let bus = Arc::new(LocalBus::default());
    drop(Postgres::open_with(&options, Quota::default(), bus.clone()).await.unwrap());
    psql(&server.url("postgres"), "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0").unwrap();
    let options = Options { unsafe_fsync_off: true, ..Options::new(server.url("latin").parse().unwrap()) };
    let error = Postgres::open_with(&options, Quota::default(), bus).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(error.to_string().contains("LATIN1"), "{error}");
}

#[tokio::test]
async fn a_pooler_in_between_changes_nothing() {
    let server = angelia_services::Postgres::shared().unwrap();
    let bouncer = PgBouncer::start_with(server, &[("default_pool_size", "2")]).unwrap();
    let database = server.fresh_database().unwrap();
    let name = database.rsplit('/').next().unwrap();
    drop(open(&bouncer.url(name)).await.unwrap());
    drop(open(&bouncer.url(name)).await.unwrap());
}

#[tokio::test]
async fn a_node_of_the_release_before_may_serve_where_nothing_was_taken_away() {
    let url = angelia_services::Postgres::shared().unwrap().fresh_database().unwrap();
    drop(open(&url).await.unwrap());
    // A newer node added something.
    psql(&url, "INSERT INTO schema_version VALUES (5, 1); ALTER TABLE notes ADD COLUMN newer TEXT").unwrap();
    drop(open(&url).await.unwrap());
    // A later one took something away.
    psql(&url, "INSERT INTO schema_version VALUES (6, 5)").unwrap();
    let told = refused(&url).await;
    assert!(told.contains("schema version 6") && told.contains("newer angelia"), "{told}");
}

/// What tables, columns and indexes a database has.
fn shape(url: &str) -> String {
    let columns = "SELECT table_name, ordinal_position, column_name, data_type, collation_name, is_nullable,
            column_default
        FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2";
    let indexes = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1";
    psql(url, columns).unwrap() + &psql(url, indexes).unwrap()
}

#[tokio::test]
async fn a_database_of_an_older_release_is_brought_here_while_that_serves() {
    let server = angelia_services::Postgres::shared().unwrap();
    let (old, new) = (server.fresh_database().unwrap(), server.fresh_database().unwrap());
    let version = "CREATE TABLE schema_version (version BIGINT NOT NULL, serves_from BIGINT NOT NULL);
        INSERT INTO schema_version VALUES (1, 1)";
    psql(&old, &format!("{}; {version}", include_str!("release-1.sql"))).unwrap();
    // What a node of that release writes, before and after.
    let route = |place: &str| {
        let columns = "INSERT INTO routes (place, bot, tenant, instance, allow, free, while_busy)";
        psql(&old, &format!("{columns} VALUES ('{place}', '', 'acme', NULL, NULL, 0, NULL)")).unwrap()
    };
    route("webchat:lab");
    // Nodes that start together do it once.
    let (one, other) = tokio::join!(open(&old), open(&old));
    let (_one, _other) = (one.unwrap(), other.unwrap());
    route("webchat:den");
    let options = psql(&old, "SELECT DISTINCT options FROM routes").unwrap();
    assert_eq!(options.trim(), "{}", "nothing was said of them");
    drop(open(&new).await.unwrap());
    assert_eq!(shape(&old), shape(&new), "the way there leads to the same");
    drop(open(&old).await.unwrap());
    let versions = psql(&old, "SELECT count(*) FROM schema_version").unwrap();
    assert_eq!(versions.trim(), "4");
}
