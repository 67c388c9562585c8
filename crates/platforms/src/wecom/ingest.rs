//! Seeing to it that the app can speak: WeCom posts by itself, and is quiet
//! while nobody writes, so whether all is well is asked for.

use super::Wecom;
use crate::ingress::Ingress;
use crate::kit::{ApiError, ErrorKind};
use angelia_core::limit::Backoff;
use std::sync::atomic::Ordering;
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
        let mut backoff = Backoff::new(LEAST_PAUSE, LONGEST_PAUSE);
        loop {
            let pause = match self.profile().await {
                Ok(_) => {
                    self.spoke();
                    backoff.reset();
                    ASK_AGAIN
                }
                Err(error) => {
                    self.fell_silent(&error);
                    backoff.pause()
                }
            };
            if !ingress.stop.sleep(pause).await {
                return;
            }
        }
    }

    /// WeCom did what it was asked to.
    pub(super) fn spoke(&self) {
        self.mute.store(false, Ordering::Relaxed);
        self.account.health.heard();
    }

    /// WeCom posted something that it signed. An app that hears and cannot
    /// answer is not well.
    pub(super) fn was_told(&self) {
        if self.mute.load(Ordering::Relaxed) {
            self.account.health.heard_in_part();
        } else {
            self.account.health.heard();
        }
    }

    /// Says once what is wrong, as long as it is the same thing.
    pub(super) fn fell_silent(&self, error: &ApiError) {
        let (health, why) = (&self.account.health, error.why.as_str());
        self.mute.store(true, Ordering::Relaxed);
        if health.is_news(why) {
            tracing::warn!(bot = %self.account.name, why, "a WeCom app cannot speak");
        }
        match error.kind {
            ErrorKind::Setup => health.stopped(why),
            _ => health.down(why),
        }
    }
}
