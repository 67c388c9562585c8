//! A store of its own for each test, in a real PostgreSQL; through PgBouncer if
//! `ANGELIA_TEST_PGBOUNCER` is set.

pub(crate) use super::common::*;

use angelia_core::inbox::Quota;
use angelia_engines::store::postgres::Postgres;
use angelia_services::{PgBouncer, psql};
use std::sync::{Arc, OnceLock};

pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Engine>,
    pub(crate) witness: Arc<Witness>,
    pub(crate) database: String,
    quota: Quota,
}

impl Opened {
    /// Whether what is replaced can be made to go from the disk.
    pub(crate) const ERASES: bool = false;

    pub(crate) fn with(quota: Quota) -> Self {
        let database = angelia_services::Postgres::shared().unwrap().fresh_database().unwrap();
        let witness = Arc::new(Witness::default());
        let store: Arc<dyn Engine> = connect(&database, quota, &witness);
        Self { store, witness, database, quota }
    }

    /// A store that is there already.
    pub(crate) fn at(database: String) -> Self {
        let (witness, quota) = (Arc::new(Witness::default()), Quota::default());
        let store: Arc<dyn Engine> = connect(&database, quota, &witness);
        Self { store, witness, database, quota }
    }

    /// Where it is.
    pub(crate) fn database(&self) -> &str {
        &self.database
    }

    /// Closes the store and opens it again, as a restart does.
    pub(crate) fn reopen(self) -> Self {
        let Self { store, witness, database, quota } = self;
        drop(store);
        let store: Arc<dyn Engine> = connect(&database, quota, &witness);
        Self { store, witness, database, quota }
    }

    /// Runs statements past the store; answers the first column of what the last one finds.
    pub(crate) fn try_sql(&self, statements: &str) -> Result<Vec<String>, String> {
        let found = psql(&self.database, statements).map_err(|error| error.to_string())?;
        Ok(found.lines().map(str::to_owned).collect())
    }

    /// Has every row refused that an event would touch while a condition holds.
    pub(crate) fn refuse(&self, event: &str, table: &str, when: &str) {
        self.sql(&format!(
            "CREATE FUNCTION refuse_{table}() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN RAISE EXCEPTION 'a test'; END $$;
             CREATE TRIGGER refuse_{table} BEFORE {event} ON {table} FOR EACH ROW WHEN ({when})
             EXECUTE FUNCTION refuse_{table}()"
        ));
    }

    /// Has nothing refused any more.
    pub(crate) fn allow(&self, table: &str) {
        self.sql(&format!("DROP TRIGGER refuse_{table} ON {table}"));
    }
}

/// Another node on the same database.
pub(crate) fn another(opened: &Opened) -> (Arc<Postgres>, Arc<Witness>) {
    let witness = Arc::new(Witness::default());
    (connect(&opened.database, Quota::default(), &witness), witness)
}

/// Opened on a thread of its own: a test cannot wait where it runs.
pub(crate) fn connect(database: &str, quota: Quota, witness: &Arc<Witness>) -> Arc<Postgres> {
    let url = through(database);
    let bus = witness.bus();
    let opened = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(Postgres::open(&url, quota, bus))
    });
    Arc::new(opened.join().unwrap().unwrap())
}

/// The way to a database.
pub(crate) fn through(database: &str) -> String {
    static BOUNCER: OnceLock<PgBouncer> = OnceLock::new();
    if std::env::var_os("ANGELIA_TEST_PGBOUNCER").is_none() {
        return database.to_owned();
    }
    let server = angelia_services::Postgres::shared().unwrap();
    let name = database.rsplit('/').next().unwrap();
    if database != server.url(name) {
        // A server of a test's own has nobody before it.
        return database.to_owned();
    }
    let start = || PgBouncer::start(server).unwrap();
    BOUNCER.get_or_init(start).url(name)
}
