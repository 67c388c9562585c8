//! Published hermes-agent gateways, unchanged, against the real binary.
//!
//! Each test starts one to three Python gateways, whose start and first turn
//! are some five seconds of one core; the rest is waiting.

use std::path::{Path, PathBuf};

use angelia_testkit::hermes::Version;
use angelia_testkit::scenarios::{self, Clock, Stop};

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_angelia"))
}

/// A folder of its own for each test; a failed one leaves its logs there.
fn folder(story: &str, version: Version) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{story}-{version}"));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// A script for the browser.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser").join(name)
}

/// Tests of one module, each a story of the test kit.
macro_rules! tell {
    ($($name:ident: $story:ident($($more:expr),*);)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            let folder = folder(stringify!($name), VERSION);
            scenarios::$story(VERSION, binary(), &folder, $($more),*).await;
        }
    )*};
}

macro_rules! stories_of_every_version {
    () => {
        tell! {
            round_trip: round_trip();
            two_rooms_stay_apart: two_rooms();
            private_chat_and_group: dm_and_group();
            two_tenants_with_one_gateway_id: two_tenants();
            one_of_two_gateways_answers: two_gateways();
            nothing_is_lost_in_a_restart: restart(false);
            nothing_is_lost_in_a_crash: restart(true);
            typed_stop_ends_a_turn: stop(Stop::Typed);
            stop_button_ends_a_turn: stop(Stop::Button);
            help_in_mid_turn_is_answered_without_a_stall: help_in_mid_turn();
            enrolls_by_command: enroll();
            provisions_itself: provision(&[("webchat", "webchat")]);
            slow_clock_does_not_disable: wrong_clock(Clock::Slow);
            fast_clock_does_not_disable: wrong_clock(Clock::Fast);
        }
    };
}

/// What 0.17.0 cannot do: front several platforms, declare a policy, understand
/// a revocation, dial again.
macro_rules! stories_since_0_18 {
    () => {
        tell! {
            provisions_itself_for_three_platforms:
                provision(&[("webchat", "webchat"), ("discord", "1001"), ("telegram", "2002")]);
            declares_a_policy: policy();
            revocation_disables: revoke();
            clock_that_jumps_back_does_not_disable: clock_jumps();
            people_on_discord_are_answered: discord();
            people_on_telegram_are_answered: telegram();
            slash_commands_are_answered_in_their_place: slash_commands();
            forwarded_slash_commands_are_answered_in_their_place: slash_commands_forwarded();
            people_on_sms_and_wecom_are_answered: sms_and_wecom();
        }
    };
}

mod hermes_0_17_0 {
    use super::*;

    const VERSION: Version = Version::V0_17_0;
    stories_of_every_version!();
}

mod hermes_0_18_2 {
    use super::*;

    const VERSION: Version = Version::V0_18_2;
    stories_of_every_version!();
    stories_since_0_18!();
}

mod hermes_0_19_0 {
    use super::*;

    const VERSION: Version = Version::V0_19_0;
    stories_of_every_version!();
    stories_since_0_18!();
    tell! {
        lines_before_a_mention_and_replies_reach_the_model: context();
        a_file_is_a_link_that_works_and_then_ends: link();
        joins_a_demo_by_what_its_page_shows: join(script("join.mjs").as_path());
    }
}
