//! The supported releases of hermes-agent.

use std::path::{Path, PathBuf};

/// A supported release of hermes-agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 0.17.0: no acknowledgements, no reconnect, no going idle, one platform.
    V0_17_0,
    /// 0.18.2: acknowledges, reconnects, goes idle, fronts several platforms.
    V0_18_2,
    /// 0.19.0: also takes channel context, and tokens of any OAuth endpoint.
    V0_19_0,
}

impl Version {
    /// Every supported release, oldest first.
    pub const ALL: [Self; 3] = [Self::V0_17_0, Self::V0_18_2, Self::V0_19_0];

    /// The version number.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V0_17_0 => "0.17.0",
            Self::V0_18_2 => "0.18.2",
            Self::V0_19_0 => "0.19.0",
        }
    }

    /// Whether it acknowledges inbound frames, so that nothing need be sent
    /// twice; it also reconnects by itself then.
    pub fn acknowledges(self) -> bool {
        self > Self::V0_17_0
    }

    /// Whether it proves its tenant at a token endpoint that the operator
    /// names; the others know the login of their maker's portal only.
    pub fn asks_token_endpoint(self) -> bool {
        self >= Self::V0_19_0
    }

    /// The `hermes` command of this version.
    ///
    /// # Panics
    ///
    /// When it is not installed: a test that cannot run must not look passed.
    pub fn command(self) -> PathBuf {
        let command = self.environment().join("bin/hermes");
        assert!(
            command.is_file(),
            "hermes-agent {} is not installed at {}: run ./test, which installs them",
            self.as_str(),
            command.display()
        );
        command
    }

    fn environment(self) -> PathBuf {
        let folder = std::env::var_os("ANGELIA_TEST_ENV")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.test-env"), PathBuf::from);
        folder.join(format!("hermes-{}", self.as_str()))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
