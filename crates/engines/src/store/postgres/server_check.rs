//! What a PostgreSQL server has to be so that what it commits is kept: asked once, at the start.

use super::connect::Options;
use angelia_core::clock;
use angelia_core::error::{Error, Result};
use tokio_postgres::Client;

/// The oldest version whose words we use.
const OLDEST: i32 = 14;
/// A clock that is further away than this is worth a word: times in answers are the server's.
const CLOCKS_APART: i64 = 5_000;
const ENCODING: &str = "UTF8";

/// One statement, so that a pooler that gives us another connection for the next cannot mix
/// the answers of two servers.
const ASK: &str = "SELECT CAST(current_setting('server_version_num') AS INT),
    current_setting('server_version'), current_setting('fsync'), current_setting('full_page_writes'),
    current_setting('synchronous_commit'), pg_is_in_recovery(),
    (SELECT CAST(pg_encoding_to_char(encoding) AS TEXT) FROM pg_database WHERE datname = current_database()),
    CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";

/// What a server says of itself.
#[derive(Clone, Debug)]
struct Said {
    version: i32,
    version_name: String,
    fsync: String,
    full_page_writes: String,
    synchronous_commit: String,
    is_standby: bool,
    encoding: String,
    now: i64,
}

/// Refuses a server that would not keep what it commits, or that speaks another language.
pub(crate) async fn check(client: &Client, options: &Options) -> Result<()> {
    let said = ask(client).await.map_err(|error| {
        let why = error.as_db_error().map_or_else(|| error.to_string(), |said| said.message().to_owned());
        Error::unavailable(format!("PostgreSQL does not say how it is set up: {why}")).caused_by(error)
    })?;
    judge(&said, options)?;
    remark(&said, clock::wall().0);
    Ok(())
}

async fn ask(client: &Client) -> std::result::Result<Said, tokio_postgres::Error> {
    let row = client.query_typed_one(ASK, &[]).await?;
    Ok(Said {
        version: row.try_get(0)?,
        version_name: row.try_get(1)?,
        fsync: row.try_get(2)?,
        full_page_writes: row.try_get(3)?,
        synchronous_commit: row.try_get(4)?,
        is_standby: row.try_get(5)?,
        encoding: row.try_get(6)?,
        now: row.try_get(7)?,
    })
}

fn judge(said: &Said, options: &Options) -> Result<()> {
    let place = options.url.place();
    if said.version / 10_000 < OLDEST {
        return Err(Error::invalid(format!(
            "PostgreSQL at {place} is version {}; angelia needs {OLDEST} or newer: upgrade the server",
            said.version_name
        )));
    }
    if said.is_standby {
        return Err(Error::unavailable(format!(
            "PostgreSQL at {place} is a standby, which takes no writes; point store.url at the primary, or name both, \
             as in postgres://user@one,two/database"
        )));
    }
    if said.encoding != ENCODING {
        let database = options.url.database();
        return Err(Error::invalid(format!(
            "the database {database} is encoded in {}, and people write everything; make one in UTF8: \
             createdb --encoding=UTF8 --template=template0 NAME",
            said.encoding
        )));
    }
    if said.fsync == "off" && !options.unsafe_fsync_off {
        return Err(Error::invalid(format!(
            "PostgreSQL at {place} runs with fsync = off: after a crash of its machine, messages that were \
             acknowledged are gone or the database is damaged. Set fsync = on there. Only if it is a service \
             whose storage keeps what is committed by other means, say so with store.unsafe_fsync_off = true"
        )));
    }
    Ok(())
}

/// What is allowed, and worth knowing.
fn remark(said: &Said, ours: i64) {
    if said.fsync == "off" {
        tracing::warn!(
            "PostgreSQL runs with fsync = off, and store.unsafe_fsync_off says that this is meant: what is \
             acknowledged is as safe as the storage of that service"
        );
    }
    if said.full_page_writes == "off" {
        tracing::warn!(
            "PostgreSQL runs with full_page_writes = off: after a crash of its machine the database may be \
             damaged, unless its file system never tears a page"
        );
    }
    if ["off", "local"].contains(&said.synchronous_commit.as_str()) {
        tracing::info!(
            synchronous_commit = said.synchronous_commit,
            "PostgreSQL's synchronous_commit is set on for our transactions"
        );
    }
    let apart = said.now - ours;
    if apart.abs() > CLOCKS_APART {
        tracing::warn!(
            seconds = apart / 1000,
            "the clock of PostgreSQL's machine and the one here differ: times are the database's; set both by a \
             time service"
        );
    }
    tracing::debug!(version = said.version_name, "PostgreSQL is as it should be");
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::error::Kind;

    fn good() -> Said {
        Said {
            version: 140_000,
            version_name: "14.0".into(),
            fsync: "on".into(),
            full_page_writes: "on".into(),
            synchronous_commit: "local".into(),
            is_standby: false,
            encoding: ENCODING.into(),
            now: 0,
        }
    }

    #[test]
    fn a_server_that_would_lose_what_it_commits_is_refused() {
        let options = Options::new("postgres://u:hunter2@h/x".parse().unwrap());
        judge(&good(), &options).unwrap();
        remark(&good(), CLOCKS_APART + 1);
        for (said, words) in [
            (Said { version: 130_011, version_name: "13.11".into(), ..good() }, "version 13.11"),
            (Said { is_standby: true, ..good() }, "standby"),
            (Said { encoding: "SQL_ASCII".into(), ..good() }, "--encoding=UTF8"),
            (Said { fsync: "off".into(), ..good() }, "store.unsafe_fsync_off"),
        ] {
            let error = judge(&said, &options).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
            let meant = Options { unsafe_fsync_off: true, ..options.clone() };
            assert_eq!(judge(&said, &meant).is_ok(), said.fsync == "off");
            assert_eq!(error.kind() == Kind::Unavailable, said.is_standby, "another one may be asked later");
        }
    }
}
