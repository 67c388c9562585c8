//! From any older schema to this one. Nodes of the release before serve meanwhile: a step adds
//! what they do not know and takes away nothing that they use. What nobody uses any more goes
//! with a later step, which says from which version on nodes may serve.

use angelia_core::error::{Error, Kind, Result};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

/// The version of `schema.sql`.
const SCHEMA_VERSION: i64 = 4;
/// The oldest version whose nodes may serve with it.
const SERVES_FROM: i64 = 1;

/// What leads from each older version to the next, the first from 1 to 2.
const STEPS: [&str; 3] = [
    include_str!("migrations/2-prompts.sql"),
    include_str!("migrations/3-conversation.sql"),
    include_str!("migrations/4-files.sql"),
];

/// Held while the schema changes, so that nodes that start together do it once. Ends with the
/// transaction.
const TURN: &str = "SELECT pg_advisory_xact_lock(hashtextextended('angelia schema', 0))";
/// What is there already is no news.
const QUIET: &str = "SET LOCAL client_min_messages = warning";
/// Which version it is.
const VERSION: &str =
    "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL, serves_from BIGINT NOT NULL)";

/// Brings a database to the current schema; refuses one from the future.
pub(super) async fn migrate(client: &Client) -> Result<()> {
    client.batch_execute("BEGIN").await.map_err(failed)?;
    match ensure(client).await {
        Ok(()) => client.batch_execute("COMMIT").await.map_err(failed),
        Err(error) => {
            let _ = client.batch_execute("ROLLBACK").await;
            Err(error)
        }
    }
}

/// The same inside an open transaction. Nobody else's start goes on before its end.
pub(in crate::store) async fn ensure(client: &Client) -> Result<()> {
    client.batch_execute(&format!("{QUIET}; {TURN}; {VERSION}")).await.map_err(failed)?;
    let found = "SELECT version, serves_from FROM schema_version ORDER BY version DESC LIMIT 1";
    let found = client.query_typed_opt(found, &[]).await.map_err(failed)?;
    let number = |at: usize| found.as_ref().map_or(Ok(0), |row| row.try_get::<_, i64>(at)).map_err(failed);
    match (number(0)?, number(1)?) {
        (SCHEMA_VERSION, _) => Ok(()),
        (0, _) => apply(client, include_str!("schema.sql"), SCHEMA_VERSION).await,
        (older @ 1..SCHEMA_VERSION, _) => {
            for (step, to) in STEPS.into_iter().zip(2..).skip_while(|(_, to)| *to <= older) {
                tracing::info!(from = to - 1, to, "bringing the database to a newer schema");
                apply(client, step, to).await?;
            }
            Ok(())
        }
        // Another node was updated before this one, and took nothing away that this one uses.
        (newer, serves_from) if newer > SCHEMA_VERSION && serves_from <= SCHEMA_VERSION => {
            tracing::info!(
                newer,
                own = SCHEMA_VERSION,
                "the database is that of a newer angelia; this one may serve with it"
            );
            Ok(())
        }
        (newer, _) => Err(Error::new(
            Kind::Conflict,
            format!(
                "the database has schema version {newer}, this angelia knows {SCHEMA_VERSION}: \
                 run the newer angelia that wrote it, or restore a backup"
            ),
        )),
    }
}

async fn apply(client: &Client, step: &str, version: i64) -> Result<()> {
    let step = format!("{step}; INSERT INTO schema_version VALUES ({version}, {SERVES_FROM})");
    client.batch_execute(&step).await.map_err(failed)
}

fn failed(error: tokio_postgres::Error) -> Error {
    let why = error.as_db_error().map_or_else(|| error.to_string(), |said| said.message().to_owned());
    let then = match error.code() {
        // Since version 15 only its owner may make tables in a database.
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            "; let the user own its database: ALTER DATABASE name OWNER TO user"
        }
        Some(&SqlState::DUPLICATE_TABLE) => "; give angelia a database of its own",
        _ => "",
    };
    Error::unavailable(format!("the schema could not be made: {why}{then}")).caused_by(error)
}
