//! One suite for each port, run on every engine.

/// Runs tests of records on SQLite and in memory.
macro_rules! on_every_engine {
    ($($test:ident),* $(,)?) => {
        mod on_disk {
            $(#[tokio::test]
            async fn $test() {
                let opened = crate::store::open::Opened::new();
                super::$test(&*opened.store).await;
            })*
        }

        mod in_memory {
            $(#[tokio::test]
            async fn $test() {
                let records = angelia_engines::memory::MemoryRecords::new(angelia_core::clock::wall);
                super::$test(&records).await;
            })*
        }
    };
}

mod blobs;
mod directory;
mod leases;
mod ledger;
mod log;
mod media;
pub(crate) mod moves;
mod nodes;
mod notices;
mod quarantine;
mod records;
pub(crate) mod seals;
mod vault;
mod walks;
