//! Real PostgreSQL, Redis and PgBouncer, and a bucket, for the tests and benchmarks of this workspace.
//!
//! - [`Postgres`] is a server that keeps what it has committed, as one in production would;
//! - [`Redis`] is one node, alone, as a cluster of one, or behind TLS;
//! - [`PgBouncer`] pools the connections to a [`Postgres`], a transaction each;
//! - [`S3`] is a bucket, in moto, a server whose S3 others test against.
//!
//! The first three are the distribution's own programs; `scripts/install-services` installs
//! them. `scripts/install-oracles` installs moto. Each listens on a free loopback port and keeps its files in a folder of
//! its own below the temporary one (`TMPDIR`). It ends, and the folder goes, when
//! its value is dropped or this process ends, in whatever way it does.

mod pgbouncer;
mod postgres;
mod process;
mod program;
mod redis;
mod s3;

pub use pgbouncer::PgBouncer;
pub use postgres::{Postgres, psql};
pub use redis::Redis;
pub use s3::S3;
