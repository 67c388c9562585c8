//! Seeing to it that the app can speak: WeCom posts by itself, and is quiet
//! while nobody writes, so whether all is well is asked for.

use super::Wecom;
use crate::ingress::Ingress;
use crate::kit::{ApiError, Watch};
use std::time::Duration;

/// How often WeCom is asked while all is well. A token at hand says nothing: only a
/// call shows whether WeCom takes it, and from here.
const ASK_AGAIN: Duration = Duration::from_secs(5 * 60);
/// The first and the longest pause while it is not.
const LEAST_PAUSE: Duration = Duration::from_secs(3);
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

impl Wecom {
    /// Asks now and then whether the app can speak, until the ingress says stop.
    pub(super) async fn run(&self, ingress: &Ingress) {
        let mut watch = Watch::new(&ingress.stop, ASK_AGAIN, LEAST_PAUSE, LONGEST_PAUSE);
        while watch.next(self.can_speak().await).await.is_ok() {}
    }

    async fn can_speak(&self) -> bool {
        let asked = self.profile().await;
        match &asked {
            Ok(_) => self.account.health.spoke(),
            Err(error) => self.fell_silent(error),
        }
        asked.is_ok()
    }

    /// Says once what is wrong, as long as it is the same thing.
    pub(super) fn fell_silent(&self, error: &ApiError) {
        if self.account.health.fell_silent(error) {
            tracing::warn!(bot = %self.config.name, why = %error, "a WeCom app cannot speak");
        }
    }
}
