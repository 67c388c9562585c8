//! Where everything is kept.

use super::*;

#[test]
fn a_database_elsewhere_is_named_by_its_url() {
    let config = load("store", "[store]\nurl = \"postgres://u@db/x?sslmode=disable\"", &[]).unwrap();
    assert!(config.store.is_shared() && !Config::default().store.is_shared());
    let options = config.store.postgres().unwrap().unwrap();
    assert_eq!(options.url.to_string(), "postgres://u@db/x?sslmode=disable");
    assert!(!options.unsafe_fsync_off && !options.url.has_password());
    let env = [("ANGELIA_STORE__URL", "postgresql://u@db/x"), ("ANGELIA_STORE__UNSAFE_FSYNC_OFF", "true")];
    assert!(from(None, &env).unwrap().store.postgres().unwrap().unwrap().unsafe_fsync_off);
    assert_eq!(from(None, &[("ANGELIA_STORE__URL", "sqlite")]).unwrap(), Config::default());
}

#[test]
fn its_password_is_fetched_and_never_printed() {
    let password = File::new("password", "hunter2\n");
    let text =
        format!("[store]\nurl = \"postgres://u@db/x\"\npassword = {{ file = {:?} }}", password.0.display());
    let config = load("store-password", &text, &[]).unwrap();
    assert!(config.store.postgres().unwrap().unwrap().url.has_password());
    let inline = load("store-inline", "[store]\nurl = \"postgres://u:hunter2@db/x\"", &[]).unwrap();
    for config in [config, inline] {
        let printed = config.print();
        assert!(printed.contains("\nurl = \"postgres://u@db/x\"\n"), "{printed}");
        assert_eq!(load("store-printed", &printed, &[]).unwrap().print().matches("u@db").count(), 1);
        for text in [printed, format!("{config:?}"), format!("{:?}", config.store.postgres())] {
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
    let missing =
        load("store-missing", "[store]\nurl = \"postgres://u@db/x\"\npassword = { env = \"NO_SUCH\" }", &[]);
    let told = missing.unwrap().store.postgres().unwrap_err().to_string();
    assert!(told.starts_with("store.password: the environment variable NO_SUCH"), "{told}");
    // It is a secret of ours, not a setting that was misspelt.
    let named = "[store]\nurl = \"postgres://u@db/x\"\npassword = { env = \"ANGELIA_STORE_URL\" }";
    load("store-named", named, &[("ANGELIA_STORE_URL", "x")]).unwrap();
}

#[test]
fn what_is_wrong_is_told_without_the_password() {
    let one = |lines: &str| {
        let told = faults(load("store-bad", &format!("[store]\n{lines}"), &[])).join("\n");
        assert!(!told.contains("hunter2"), "{told}");
        told
    };
    for url in ["mysql://u:hunter2@db/x", "postgres", "hunter2"] {
        let told = one(&format!("url = {url:?}"));
        assert!(told.starts_with(":2: `store.url` can be \"sqlite\", which is a file"), "{told}");
    }
    let told = one("url = \"postgres://u:hunter2@x@db/x\"");
    assert!(told.starts_with(":2: `store.url` is not a URL of PostgreSQL") && told.contains("%40"), "{told}");
    let told = one("password = \"hunter2\"");
    assert!(told.contains("`store.password` is a secret and must be a reference"), "{told}");
    let told = one("url = \"postgres://u:hunter2@db/x\"\npassword = { env = \"X\" }");
    assert!(told.contains("`store.password` is given, and store.url holds a password too"), "{told}");
}
