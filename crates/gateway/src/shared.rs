//! `Shared`: the state that the parts of a gateway share, and its statistics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use angelia_contract::line::MAX_GATEWAY_LINE;
use angelia_contract::{Action, ActionResult, Descriptor, GatewayFrame, Outbound};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::builder::Settings;
use crate::calls::Calls;
use crate::connection::{Link, Outgoing, Want, Wire};
use crate::error::CallError;
use crate::question::Questions;

/// What a gateway has counted since it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Dials that were tried.
    pub dials: u64,
    /// Handshakes that were completed.
    pub handshakes: u64,
    /// Lines that could not be read.
    pub malformed: u64,
    /// Events delivered again and not handled again.
    pub repeated: u64,
    /// Events and requests not taken in because too many were waiting. Those
    /// with a `bufferId` come again, the others are lost.
    pub shed: u64,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) dials: AtomicU64,
    pub(crate) handshakes: AtomicU64,
    pub(crate) malformed: AtomicU64,
    pub(crate) repeated: AtomicU64,
    pub(crate) shed: AtomicU64,
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// What connectors announced.
#[derive(Default)]
struct Announced {
    primary: Option<Arc<Descriptor>>,
    by_platform: BTreeMap<String, Arc<Descriptor>>,
}

pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) link: watch::Sender<Link>,
    pub(crate) want: watch::Sender<Want>,
    pub(crate) calls: Calls,
    pub(crate) questions: Questions,
    pub(crate) counters: Counters,
    announced: Mutex<Announced>,
}

impl Shared {
    pub(crate) fn new(settings: Settings) -> Arc<Self> {
        Arc::new(Self {
            settings,
            link: watch::Sender::new(Link::Down),
            want: watch::Sender::new(Want::Run),
            calls: Calls::new(),
            questions: Questions::new(),
            counters: Counters::default(),
            announced: Mutex::default(),
        })
    }

    /// Sends an action and waits for what came of it.
    pub(crate) async fn call(
        &self,
        action: Action,
        platform: Option<String>,
        bot_id: Option<String>,
    ) -> Result<ActionResult, CallError> {
        let deadline = Instant::now() + self.settings.connect_wait;
        let ticket = timeout_at(deadline, self.calls.open()).await.map_err(|_| CallError::NotSent)??;
        let frame =
            GatewayFrame::Outbound(Outbound { request_id: ticket.id.clone(), action, platform, bot_id });
        let line = Utf8Bytes::from(frame.to_line());
        if line.len() > MAX_GATEWAY_LINE {
            return Err(CallError::TooLarge { size: line.len() });
        }
        loop {
            let wire = self.wire(deadline).await?;
            let mut attempt = ticket.attempt();
            let outgoing = Outgoing::Line { line: line.clone(), written: Some(Arc::clone(&attempt.written)) };
            match timeout_at(deadline, wire.send(outgoing)).await {
                Ok(Ok(())) => {}
                // The connection went away first; the next one will do.
                Ok(Err(_)) => continue,
                Err(_) => return Err(CallError::NotSent),
            }
            match timeout(self.settings.call_timeout, attempt.answered()).await {
                // Lost together with the queue it stood in.
                Ok(Err(CallError::NotSent)) => {}
                Ok(answer) => return answer,
                Err(_) => return Err(attempt.unanswered()),
            }
        }
    }

    /// Sends a frame that has no answer.
    pub(crate) async fn tell(&self, frame: &GatewayFrame) -> Result<(), CallError> {
        let deadline = Instant::now() + self.settings.connect_wait;
        let wire = self.wire(deadline).await?;
        let sent = timeout_at(deadline, wire.send(Outgoing::line(frame.to_line()))).await;
        sent.map_err(|_| CallError::NotSent)?.map_err(|_| CallError::NotSent)
    }

    /// Waits until a handshake was completed.
    async fn wire(&self, deadline: Instant) -> Result<Wire, CallError> {
        let mut link = self.link.subscribe();
        let settled = link.wait_for(|link| match link {
            Link::Up(wire) => !wire.is_closed(),
            Link::Over { .. } => true,
            _ => false,
        });
        match timeout_at(deadline, settled).await {
            Ok(Ok(link)) => link.wire().cloned().ok_or(CallError::Stopped),
            Ok(Err(_)) => Err(CallError::Stopped),
            Err(_) => Err(CallError::NotSent),
        }
    }

    /// Takes in a descriptor; the first of a socket is the primary one.
    pub(crate) fn announce(&self, descriptor: Descriptor, first: bool) {
        let descriptor = Arc::new(descriptor);
        let mut announced = self.announced();
        let renewed =
            announced.primary.as_ref().is_some_and(|primary| primary.platform == descriptor.platform);
        if first || renewed {
            announced.primary = Some(Arc::clone(&descriptor));
        }
        announced.by_platform.insert(descriptor.platform.clone(), descriptor);
    }

    pub(crate) fn primary(&self) -> Option<Arc<Descriptor>> {
        self.announced().primary.clone()
    }

    pub(crate) fn descriptors(&self) -> BTreeMap<String, Arc<Descriptor>> {
        self.announced().by_platform.clone()
    }

    /// What is known about a platform: its own descriptor, else the primary.
    pub(crate) fn descriptor_for(&self, platform: &str) -> Arc<Descriptor> {
        let announced = self.announced();
        let known = announced.by_platform.get(platform);
        known.or(announced.primary.as_ref()).cloned().unwrap_or_default()
    }

    /// The bot to name for a platform: the one wanted if this gateway greeted
    /// with it, else the first it greeted with, else none.
    pub(crate) fn bot_for(&self, platform: &str, wanted: Option<&str>) -> Option<String> {
        let mut own = self
            .settings
            .hellos
            .iter()
            .filter(|hello| hello.platform == platform && !hello.bot_id.is_empty())
            .map(|hello| &hello.bot_id);
        let first = own.clone().next();
        let exact = own.find(|bot| Some(bot.as_str()) == wanted);
        exact.or(first).cloned()
    }

    pub(crate) fn stats(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            dials: read(&self.counters.dials),
            handshakes: read(&self.counters.handshakes),
            malformed: read(&self.counters.malformed),
            repeated: read(&self.counters.repeated),
            shed: read(&self.counters.shed),
        }
    }

    fn announced(&self) -> std::sync::MutexGuard<'_, Announced> {
        self.announced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
