//! Published hermes-agent gateways, unchanged, against the real binary.
//!
//! Each test starts a Python gateway, whose start and first turn are some five
//! seconds of one core; the rest is waiting.

use std::path::{Path, PathBuf};

use angelia_testkit::hermes::Version;
use angelia_testkit::scenarios::{self, Stop};

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_angelia"))
}

/// A folder of its own for each test; a failed one leaves its logs there.
fn folder(story: &str, version: Version) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{story}-{version}"));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

macro_rules! for_each_version {
    ($($name:ident = $version:expr;)*) => {$(
        mod $name {
            use super::*;

            const VERSION: Version = $version;

            #[tokio::test(flavor = "multi_thread")]
            async fn round_trip() {
                scenarios::round_trip(VERSION, binary(), &folder("round-trip", VERSION)).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn two_rooms_stay_apart() {
                scenarios::two_rooms(VERSION, binary(), &folder("two-rooms", VERSION)).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn nothing_is_lost_in_a_restart() {
                scenarios::restart(VERSION, binary(), &folder("restart", VERSION), false).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn nothing_is_lost_in_a_crash() {
                scenarios::restart(VERSION, binary(), &folder("crash", VERSION), true).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn typed_stop_ends_a_turn() {
                scenarios::stop(VERSION, binary(), &folder("stop", VERSION), Stop::Typed).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn stop_button_ends_a_turn() {
                scenarios::stop(VERSION, binary(), &folder("button", VERSION), Stop::Button).await;
            }
        }
    )*};
}

for_each_version! {
    hermes_0_17_0 = Version::V0_17_0;
    hermes_0_18_2 = Version::V0_18_2;
    hermes_0_19_0 = Version::V0_19_0;
}
