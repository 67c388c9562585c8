//! The `Platform` trait: send, edit, typing, chat info, answers to capabilities, listening.

use crate::commands::BotCommands;
use crate::ingress::Ingress;
use crate::kit::Account;
use crate::kit::health::{Checkup, Health};
use angelia_contract::action::{Action, ActionResult};
use angelia_contract::descriptor::Descriptor;
use angelia_core::clock::UnixMillis;
use angelia_core::commands::{Plan, Shown};
use angelia_core::egress::{Bot, Dedupe, Rate, Target};
pub use angelia_core::egress::{Earlier, Outcome, Reach};
use angelia_core::error::{Error, Result};
use angelia_core::inbox::Rendering;
use angelia_core::media::{FileId, Holder, MediaKind};
use angelia_core::secret::Secret;
use angelia_core::store::ActionId;
use angelia_core::threads::{KnownThread, Moved, Opened};
use angelia_core::vault::Way;
use axum::Router;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// An authorized action that is in the ledger and has to reach the provider.
#[derive(Clone)]
pub struct Delivery {
    /// Its number in the ledger; the key under which a provider may dedupe.
    pub id: ActionId,
    /// When it was received.
    pub received_at: UnixMillis,
    /// Where to. This was checked; nothing else in the action names a place.
    pub target: Target,
    /// What to do.
    pub action: Action,
    /// What it answers with, if somebody waits for exactly this.
    pub answer: Option<Answer>,
    /// The file that it sends, if it sends one.
    pub file: Option<OutgoingFile>,
    /// What earlier attempts at it may have left there.
    pub earlier: Earlier,
    /// How the platform tells how far it is, and asks to go on.
    pub progress: Arc<dyn Progress>,
}

/// An answer that a capability is used for.
#[derive(Clone, Debug)]
pub struct Answer {
    /// How it is used.
    pub way: Way,
    /// The credential, as the platform sealed it.
    pub credential: Secret,
    /// When the credential ends.
    pub expires_at: UnixMillis,
}

/// A file on its way from a provider.
pub struct FetchedFile {
    /// What the provider calls it.
    pub name: Option<String>,
    /// What the provider says it is.
    pub media_type: Option<String>,
    /// Its bytes.
    pub bytes: BoxStream<'static, Result<Bytes>>,
}

/// A file that an agent sends.
#[derive(Clone)]
pub struct OutgoingFile {
    /// What it is called.
    pub name: String,
    /// What it is, by its bytes.
    pub media_type: String,
    /// As what it is to be shown.
    pub kind: MediaKind,
    /// Its bytes.
    pub size: u64,
    /// How long a recording is, where that is known.
    pub duration: Option<Duration>,
    /// A link to it, where the platform does not take it.
    pub link: String,
    /// How its sender refers to it.
    pub file: FileId,
    /// Whose it is: an instance, of this tenant.
    pub owner: (String, Holder),
    /// Reads it.
    pub content: Arc<dyn FileContent>,
}

impl fmt::Debug for OutgoingFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whoever has the link has the file.
        f.debug_struct("OutgoingFile")
            .field("media_type", &self.media_type)
            .field("size", &self.size)
            .finish()
    }
}

/// Reads a file, as often as it has to be sent.
pub trait FileContent: Send + Sync {
    /// Its bytes, from the beginning.
    fn open(&self) -> BoxFuture<'_, Result<BoxStream<'static, Result<Bytes>>>>;
}

/// The other end of a [`Delivery`] that takes more than one call.
pub trait Progress: Send + Sync {
    /// The provider has the first part: the gateway is answered now. A platform
    /// that does not dedupe has to see to the rest itself from here on,
    /// because the whole cannot be given to it again.
    fn first_part(&self, message_id: &str);

    /// To be asked before every provider call but the first: waits until the bot may
    /// call again. `false`: the sender may not write there any more, make no call.
    fn next_call(&self) -> BoxFuture<'_, bool>;

    /// The provider wants no such call for a while. A platform that waits for
    /// it in the middle of a delivery tells, so that nobody else makes one either.
    fn pause(&self, reach: Reach, pause: Duration);

    /// To be asked by a platform that lets calls wait for limits of its own, when
    /// that is over. `false`: the sender may not write there any more, make no call.
    fn still_allowed(&self) -> bool;
}

/// One bot on one platform.
pub trait Platform: Bot + Send + Sync {
    /// What gateways are told of it.
    fn descriptor(&self) -> Descriptor;

    /// Whether giving it the same [`Delivery`] twice says the thing once; `way` is
    /// that of its [`Answer`].
    fn dedupe(&self, action: &Action, way: Option<Way>) -> Dedupe;

    /// How interactions go to gateways.
    fn rendering(&self) -> Rendering {
        Rendering::default()
    }

    /// How often the provider lets this bot call; `None` if it does not count.
    fn budget(&self) -> Option<Rate> {
        None
    }

    /// How often the provider lets a bot write to one chat; `None` if it does not count.
    fn chat_budget(&self, _target: &Target) -> Option<Rate> {
        None
    }

    /// The id of the chat that is really written to: a thread, or where a chat
    /// moved to. Order, pace and questions to the provider go by it.
    fn chat_key(&self, target: &Target) -> String {
        target.chat_id.clone()
    }

    /// Whether the connector itself is the provider: what it refuses annoys nobody.
    fn is_own(&self) -> bool {
        false
    }

    /// Performs a `send` or `edit`.
    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Outcome>;

    /// Shows that the agent is writing. Never recorded. What the provider refuses
    /// is a failed result, what it could not be asked is an error. Where nothing of
    /// the sort can be shown, nothing is missing. `words` say what it is at, where those can
    /// be shown; empty ones take that away.
    fn typing<'a>(
        &'a self,
        _target: &'a Target,
        _words: Option<&'a str>,
    ) -> BoxFuture<'a, Result<ActionResult>> {
        Box::pin(async { Ok(ActionResult::ok()) })
    }

    /// Shows a text that the agent is still writing, in the place of what was shown under the
    /// same number; its final `send` takes that place. Never recorded. `None` where such a
    /// chat has nothing of the sort.
    fn draft<'a>(
        &'a self,
        _target: &'a Target,
        _draft_id: i64,
        _text: &'a str,
    ) -> Option<BoxFuture<'a, Result<ActionResult>>> {
        None
    }

    /// Where a message really is that is spoken of in a chat, as far as the store knows.
    fn place_of<'a>(&'a self, target: &'a Target, _message_id: &'a str) -> BoxFuture<'a, Target> {
        Box::pin(async { target.clone() })
    }

    /// Puts a reaction on a message, or takes it away. Never recorded. `None` where the
    /// platform has nothing of the sort.
    fn react<'a>(
        &'a self,
        _target: &'a Target,
        _message_id: &'a str,
        _emoji: &'a str,
        _remove: bool,
    ) -> Option<BoxFuture<'a, Result<ActionResult>>> {
        None
    }

    /// Opens a thread below a chat, from one of its messages where the platform does so, if `may`
    /// says so right before; and keeps what there is to know of it. Never recorded.
    fn open_thread<'a>(
        &'a self,
        _target: &'a Target,
        _name: &'a str,
        _message_id: Option<&'a str>,
        _may: &'a (dyn Fn() -> bool + Sync),
    ) -> BoxFuture<'a, Result<Opened, Outcome>> {
        Box::pin(async { Err(Outcome::Refused { why: "this platform opens no threads".into() }) })
    }

    /// Whether opening a thread from the same message twice opens one.
    fn reopens(&self) -> bool {
        false
    }

    /// What is known of the thread that a target is; inside, `None` if it is none. `None` where the
    /// platform itself sees to it under which condition threads are renamed.
    fn thread<'a>(&'a self, _target: &'a Target) -> Option<BoxFuture<'a, Result<Option<KnownThread>>>> {
        None
    }

    /// Where a message goes on that opened a thread in a chat; `None` if it stays.
    fn moved(&self, _chat_id: &str, _opened: &Opened) -> Option<Moved> {
        None
    }

    /// Begins to fetch a file that came with a message, by what its event says of where it is
    /// ([`Origin`](angelia_core::media::Origin)). Unavailable means that it may be tried again.
    fn fetch_file<'a>(&'a self, _at: &'a str) -> BoxFuture<'a, Result<FetchedFile>> {
        Box::pin(async { Err(Error::not_found("this platform hands out no files")) })
    }

    /// A file of an event that is here already, and who has it, if the connector itself is the provider.
    fn keeps(&self, _at: &str) -> Option<(Holder, FileId)> {
        None
    }

    /// Tells a chat's name and type.
    fn chat_info<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<ActionResult>>;

    /// Brings what the store knows of a target to hand, so that
    /// [`Bot::places`](angelia_core::egress::Bot::places) can tell where it is.
    fn recall<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match self.account() {
                Some(account) => account.directory.find_now(&target.chat_id).await.map(drop),
                None => Ok(()),
            }
        })
    }

    /// Asks the provider where a target is that nobody here knows, and keeps
    /// what it says; `false` if it will not tell. An error means that it could
    /// not be asked. Whoever calls it counts how often.
    fn look_up<'a>(&'a self, _target: &'a Target) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async { Ok(false) })
    }

    /// Says something of the connector's own in a chat. Tried once.
    fn tell<'a>(&'a self, _target: &'a Target, _text: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Err(Error::invalid("this platform has no words of its own")) })
    }

    /// Says something of the connector's own to somebody who waits for an answer.
    /// Tried once; unavailable means that it may be tried again.
    fn tell_waiting<'a>(&'a self, _answer: &'a Answer, _text: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Err(Error::invalid("nobody waits on this platform")) })
    }

    /// Another node makes this bot's calls from now on, or did until now: what is remembered of
    /// what it wrote may not be so any more.
    fn changed_hands(&self) {}

    /// Whether its streams are shared out over nodes by itself: then it listens on every node,
    /// and not only where the bot is.
    fn listens_everywhere(&self) -> bool {
        false
    }

    /// Listens until the ingress says stop, whatever happens to the connection. It may be asked to
    /// again later: another node may have listened in between.
    fn listen(self: Arc<Self>, ingress: Ingress) -> BoxFuture<'static, ()> {
        let stop = ingress.stop.clone();
        Box::pin(async move { stop.wait().await })
    }

    /// What providers push to, below the public URL.
    fn webhooks(self: Arc<Self>, _ingress: Ingress) -> Router {
        Router::new()
    }

    /// What it has as every bot at a provider; `None` if the connector itself is the provider.
    fn account(&self) -> Option<&Account> {
        None
    }

    /// The name an operator gave it.
    fn name(&self) -> &str {
        self.account().map_or(self.platform(), |account| &account.name)
    }

    /// How it is; `None` if it has nobody to listen to.
    fn health(&self) -> Option<Health> {
        self.account().map(|account| account.health.health())
    }

    /// Which commands it has; `None` where a platform shows none.
    fn commands(&self) -> Option<&BotCommands> {
        None
    }

    /// The commands that the provider shows.
    fn shown_commands(&self) -> BoxFuture<'_, Result<Vec<Shown>>> {
        Box::pin(async { Err(Error::invalid("this platform has no commands")) })
    }

    /// Has the provider show what a plan says, and nothing else.
    fn register_commands<'a>(&'a self, _plan: &'a Plan) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Err(Error::invalid("this platform has no commands")) })
    }

    /// Finds out what the credential is good for, and whether the provider knows this
    /// server by `public_url`. Safe beside a running server.
    fn check<'a>(&'a self, _public_url: &'a str) -> BoxFuture<'a, Result<Checkup>> {
        Box::pin(async { Ok(Checkup::default()) })
    }
}
