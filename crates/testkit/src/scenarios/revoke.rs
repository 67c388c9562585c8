//! A gateway that is shut out.

use std::path::Path;

use tokio::time::sleep;

use super::{QUIET, SHUTDOWN, Stage};
use crate::hermes::Version;

/// The gateway understands a revocation as one: it says that its relay is
/// disabled, and does not dial again. 0.18.2 ends then, cleanly; 0.19.0 stays,
/// without anything to do.
pub async fn revoke(version: Version, binary: &Path, folder: &Path) {
    let mut stage = Stage::set(version, binary, folder).await;
    let ann = stage.person("lobby").await;
    stage.connector.command(&["gateway", "revoke", "gw-test"]).await;
    stage
        .hermes
        .wait_logged("relay ws closed 4401 (unauthorized) after a successful handshake", SHUTDOWN)
        .await;
    stage.hermes.wait_logged("Fatal relay adapter error (relay_disabled): Relay disabled", SHUTDOWN).await;
    assert_eq!(ann.try_say("too-late").await, Err("no_instance".into()));
    if version == Version::V0_18_2 {
        let ended = stage.hermes.process().wait(SHUTDOWN).await;
        assert_eq!(ended.and_then(|status| status.code()), Some(0), "{}", stage.hermes.gateway_log());
    } else {
        sleep(QUIET).await;
        assert!(stage.hermes.process().is_running(), "{}", stage.hermes.gateway_log());
    }
    let state = stage.hermes.home_file("gateway_state.json");
    assert!(state.contains("\"state\":\"disabled\",\"error_code\":\"relay_disabled\""), "{state}");
    assert_eq!(stage.connector.counter("angelia_relay_upgrades_total").await, 1, "it did not dial again");
    assert_eq!(stage.connector.counter("angelia_relay_upgrades_revoked_total").await, 0);
}
