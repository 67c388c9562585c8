//! Threads: which messages open one, what it is called, and who may rename it.
//!
//! The name a thread was opened with is kept here, because gateways rename under a guard: only
//! while the name is still the one that the connector gave. What its name is now the directory
//! knows, from the provider.
//!
//! | Question | File |
//! |---|---|
//! | What is a thread called? | `name.rs` |
//! | Which message opens one, and how does it go on there? | `opening.rs` |
//! | May it be renamed? | `guard.rs` |
//! | How is the name that was given kept? | here |

mod guard;
mod name;
mod opening;

pub use guard::{Guard, NOT_A_THREAD};
pub use name::{MAX_NAME, clean, initial};
pub use opening::{KnownThread, Moved, Opened, Rekeyed, begins, follows, keep_place};

use crate::directory::{BotKey, moves};
use crate::error::Result;
use crate::inbox::InstanceId;
use crate::ports::BoxFuture;
use crate::records::rows::CreatedThreadRow;
use crate::records::{Change, Records, View, change, look};
use std::time::Duration;

angelia_contract::limits! {
    /// Far more than anybody goes on with. The oldest goes, and is not renamed by its gateway any more.
    pub const KEPT_PER_INSTANCE: usize = 1_000, count "threads of a gateway whose first name is kept";
    /// A thread is renamed in its first minutes, as a rule.
    pub const THREADS_FOR: Duration = Duration::from_secs(30 * 24 * 3_600), time "for which the first name of a thread is kept";
    /// People write faster than threads are opened. Beyond it the oldest goes on in its place without one.
    pub const MAX_OPENINGS: usize = 64, count "messages for a gateway that wait for a thread of their own";
}

const OF_INSTANCE: &[&str] = &["instance"];

/// A thread that was opened for an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedThread {
    /// The bot that opened it.
    pub bot: BotKey,
    /// The thread, as the directory knows it.
    pub chat_id: String,
    /// What it is below.
    pub parent: String,
    /// The name that was last given.
    pub name: String,
    /// For whom.
    pub instance: InstanceId,
}

/// Threads that the connector opened, asked of any records.
pub trait ThreadStore: Records {
    /// Notes a thread that was opened. One that is known stays so: it was opened once.
    fn keep_thread(&self, new: CreatedThread) -> BoxFuture<'_, Result<()>> {
        change(self, Change::to("keep a thread").of(new.instance), move |view| keep(view, &new))
    }

    /// The name that the connector last gave a thread; `None` if it did not open it.
    fn given_name(&self, bot: &BotKey, chat_id: &str) -> BoxFuture<'_, Result<Option<String>>> {
        let (bot, chat_id) = (bot.clone(), chat_id.to_owned());
        look(self, "find a thread", move |view| Ok(find(view, &bot, &chat_id)?.map(|row| row.name)))
    }

    /// Notes the name that a thread was given by a rename, if the connector opened it.
    fn rename_thread(&self, bot: &BotKey, chat_id: &str, name: &str) -> BoxFuture<'_, Result<()>> {
        let (bot, chat_id, name) = (bot.clone(), chat_id.to_owned(), name.to_owned());
        change(self, Change::to("note the name of a thread"), move |view| {
            if let Some(row) = find(view, &bot, &chat_id)? {
                view.put(&CreatedThreadRow { name: name.clone(), ..row });
            }
            Ok(())
        })
    }
}

impl<R: Records + ?Sized> ThreadStore for R {}

fn find(view: &mut View<'_>, bot: &BotKey, chat_id: &str) -> Result<Option<CreatedThreadRow>> {
    view.get::<CreatedThreadRow>((&*bot.platform, &*bot.bot, chat_id))
}

fn keep(view: &mut View<'_>, new: &CreatedThread) -> Result<()> {
    if find(view, &new.bot, &new.chat_id)?.is_some() {
        return Ok(());
    }
    let of_instance = (new.instance,);
    let kept = view.count::<CreatedThreadRow>(OF_INSTANCE, of_instance)?;
    let kept = usize::try_from(kept).unwrap_or(usize::MAX);
    if kept >= KEPT_PER_INSTANCE {
        let surplus = kept + 1 - KEPT_PER_INSTANCE;
        view.delete_first::<CreatedThreadRow>((OF_INSTANCE, of_instance), "created_at", 0, surplus)?;
    }
    view.put(&CreatedThreadRow {
        platform: new.bot.platform.as_ref().to_owned(),
        bot: new.bot.bot.as_ref().to_owned(),
        chat_id: new.chat_id.clone(),
        parent: new.parent.clone(),
        name: new.name.clone(),
        instance: new.instance,
        created_at: view.now(),
    });
    Ok(())
}

/// A chat got another id: its topics are found by the new one.
pub(crate) fn follow(view: &mut View<'_>, bot: &BotKey, from: &str, to: &str) -> Result<()> {
    let of_bot = (&["platform", "bot"] as &[_], (&*bot.platform, &*bot.bot));
    for row in moves::of_topics::<CreatedThreadRow>(view, of_bot, from, |row| &row.chat_id)? {
        let chat_id = moves::new_id(&row.chat_id, from, to);
        view.delete(&row);
        view.put(&CreatedThreadRow { chat_id, parent: to.to_owned(), ..row });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
