//! What was said in company and not to the agent: remembered by this node, in memory, for a
//! while.

use crate::identities::Identities;
use crate::supervise::Lifecycle;
use angelia_contract::event::ContextItem;
use angelia_core::admission::{Admitted, Audience, Observed};
use angelia_core::clock;
use angelia_core::context::{Asking, ChatKey, RecentLines, Said};
use angelia_core::directory::BotKey;
use angelia_core::inbox::InstanceId;
use angelia_platforms::{Overheard, Wanting, Which};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// How often what is past its time is forgotten, also where nobody speaks.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// The last lines of chats, told by the routes as they stand.
pub(crate) struct RecentTalk {
    identities: Arc<Identities>,
    lines: Mutex<RecentLines>,
}

impl RecentTalk {
    pub(crate) fn new(identities: Arc<Identities>) -> Arc<Self> {
        Arc::new(Self { identities, lines: Mutex::default() })
    }

    /// Forgets what is past its time, again and again.
    pub(crate) async fn keep_forgetting(self: Arc<Self>, life: Arc<Lifecycle>) {
        while life.pause(SWEEP_EVERY).await {
            self.lines.lock().sweep(clock::mono());
        }
    }
}

fn chat(platform: &str, bot: &str, which: Which<'_>) -> ChatKey {
    ChatKey::new(platform, bot, which.chat_id, which.thread_id)
}

/// Whether whoever listens now is whom an event was admitted to.
fn is_for(audience: &Audience<'_>, admitted: &Admitted) -> bool {
    (audience.tenant(), audience.instance) == (&*admitted.tenant, admitted.instance)
}

impl Overheard for RecentTalk {
    fn note(&self, observed: Observed<'_>, which: Which<'_>, said: Said) {
        let known = self.identities.now();
        let Some(audience) = known.audience(observed) else { return };
        if audience.may_know(&said.author, said.author_is_bot) {
            let chat = chat(observed.platform, observed.bot, which);
            let (tenant, most) = (audience.tenant(), audience.lines());
            self.lines.lock().note(&chat, tenant, most, said, clock::mono());
        }
    }

    fn before(&self, observed: Observed<'_>, which: Which<'_>, wanting: Wanting<'_>) -> Vec<ContextItem> {
        let known = self.identities.now();
        let audience = known.audience(observed);
        let Some(audience) = audience.filter(|audience| is_for(audience, wanting.admitted)) else {
            return Vec::new();
        };
        let asking = Asking {
            tenant: audience.tenant(),
            instance: audience.instance,
            message_id: which.message_id,
            at: wanting.at,
            most: audience.lines(),
        };
        let may = |said: &Said| audience.may_know(&said.author, said.author_is_bot);
        let chat = chat(observed.platform, observed.bot, which);
        let mut lines = self.lines.lock();
        if wanting.changed {
            lines.again(&chat, asking, may)
        } else {
            lines.take(&chat, asking, may, clock::mono())
        }
    }

    fn give_back(&self, bot: &BotKey, which: Which<'_>, instance: InstanceId) {
        let chat = chat(&bot.platform, &bot.bot, which);
        self.lines.lock().give_back(&chat, instance, which.message_id);
    }

    fn may_know(&self, observed: Observed<'_>, admitted: &Admitted, author: &str, is_bot: bool) -> bool {
        let known = self.identities.now();
        let audience = known.audience(observed);
        audience.is_some_and(|audience| is_for(&audience, admitted) && audience.may_know(author, is_bot))
    }

    fn reword(&self, bot: &BotKey, which: Which<'_>, text: &str) {
        self.lines.lock().reword(&chat(&bot.platform, &bot.bot, which), which.message_id, text);
    }

    fn forget(&self, bot: &BotKey, which: Which<'_>) {
        self.lines.lock().forget(&chat(&bot.platform, &bot.bot, which), which.message_id);
    }
}
