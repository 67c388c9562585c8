//! What is read of a URL, and what is never shown of it.

use super::*;

fn url(text: &str) -> DatabaseUrl {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn told(text: &str) -> String {
    text.parse::<DatabaseUrl>().unwrap_err().to_string()
}

#[test]
fn a_password_is_nowhere_to_be_seen() {
    for text in [
        "postgres://u:hunter2@db.example:5433/x?sslmode=disable",
        "postgresql://u:hunter2%40%2F@db.example:5433/x",
        "postgres://u@db.example:5433/x?password=hunter2&sslmode=require",
        "postgres://u@db.example:5433/x?sslmode=require&pass%77ord=hunter2",
        "postgres://db.example:5433/x?user=u&password=hunter2",
    ] {
        let url = url(text);
        assert!(url.has_password());
        for shown in [format!("{url}"), format!("{url:?}"), url.place(), format!("{:?}", url.config())] {
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        assert_eq!(url.place(), "db.example:5433");
        assert_eq!((url.user(), url.database()), ("u", "x"));
        let again = url.to_string().parse::<DatabaseUrl>().unwrap();
        assert!(!again.has_password());
        assert_eq!(again.with_password(&Secret::new("p")).to_string(), url.to_string());
    }
    assert_eq!(
        url("postgres://u:hunter2@h/x?password=hunter2&sslmode=require").to_string(),
        "postgres://u@h/x?sslmode=require"
    );
}

#[test]
fn what_is_wrong_is_told_without_what_was_written() {
    for (text, words) in [
        ("mysql://u:hunter2@h/x", "must begin with"),
        ("postgres://u:hunter2", "port"),
        ("postgres://h/x", "names no user"),
        ("postgres://u@/x", "names no host"),
        ("postgres://u:hunter2@x@h/x", "%40"),
        ("postgres://u:x/hunter2@h/x", "%2F"),
        ("postgres://u:x?hunter2@h/x", "%3F"),
        ("postgres://u:x#hunter2@h/x", "%23"),
        ("postgres://u:p@h/x?hunter2=1", "not known"),
        ("postgres://u:p@h/x?hunter2", "no value"),
        ("postgres://u:p@h:hunter2/x", "port"),
        ("postgres://u:p@h/x?sslmode=hunter2", "sslmode is one of"),
        ("postgres://u:p@h/x?sslmode=verify-ca", "verify-full"),
        ("postgres://u:p@h/x?channel_binding=require", "channel_binding"),
        ("postgres://u:p@h/x?keepalives_idle=hunter2", "keepalives_idle"),
        ("postgres://u:p@h/x?%ff=hunter2", "UTF-8"),
    ] {
        let told = told(text);
        assert!(told.contains(words), "{text}: {told}");
        assert!(!told.contains("hunter2"), "{text}: {told}");
    }
}

#[test]
fn the_connection_is_encrypted_where_the_network_begins() {
    for (text, tls) in [
        ("postgres://u@localhost/x", Tls::Off),
        ("postgres://u@127.0.0.1:5433/x", Tls::Off),
        ("postgres://u@[::1]/x", Tls::Off),
        ("postgres://u@%2Frun%2Fpostgresql/x", Tls::Off),
        ("postgres://u@%2Frun%2Fpostgresql/x?sslmode=require", Tls::Off),
        ("postgres:///x?host=/run/postgresql&user=u", Tls::Off),
        ("postgres://u@db/x?hostaddr=127.0.0.1", Tls::Off),
        ("postgres://u@localhost/x?hostaddr=192.0.2.1", Tls::Required),
        ("postgres://u@db/x", Tls::Required),
        ("postgres://u@localhost,db/x", Tls::Required),
        ("postgres://u@localhost.example.org/x", Tls::Required),
        ("postgres://u@192.0.2.1/x", Tls::Required),
        ("postgres://u@db/x?sslmode=disable", Tls::Off),
        ("postgres://u@db/x?sslmode=prefer", Tls::Offered),
        ("postgres://u@localhost/x?sslmode=require", Tls::Required),
        ("postgres://u@localhost/x?sslmode=verify-full", Tls::Required),
        ("postgres://u@localhost/x?sslrootcert=/ca.pem", Tls::Required),
    ] {
        assert_eq!(url(text).tls(), tls, "{text}");
    }
}

#[test]
fn roots_are_a_file_or_those_of_the_system() {
    let roots = |text: &str| url(text).roots().map(Path::to_owned);
    assert_eq!(roots("postgres://u@h/x?sslrootcert=%2Fetc%2Fca.pem"), Some("/etc/ca.pem".into()));
    assert_eq!(roots("postgres://u@h/x?sslrootcert=system"), None);
    assert_eq!(roots("postgres://u@h/x"), None);
}

#[test]
fn everything_else_is_the_librarys() {
    let url = url("postgresql://u@a:1,b/x?application_name=me&connect_timeout=9");
    assert_eq!(url.config().get_application_name(), Some("me"));
    assert!(url.says("connect_timeout") && !url.says("keepalives"));
    assert_eq!((url.hosts(), url.place()), (2, "a:1,b:5432".to_owned()));
}
