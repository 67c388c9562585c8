//! Prompts: questions of agents with buttons, who may press one, and what a press says.
//!
//! A question that is shown is a row, so that its press is understood after a restart and on
//! any node. It is answered once: the press that is committed first, together with the entry that
//! carries it to the instance that asked. A button names the row and the option, nothing of the
//! gateway's: ids that gateways make up may be the same for two of them.
//!
//! | Question | File |
//! |---|---|
//! | What can be asked? | `asked.rs` |
//! | What does a press come to? | `press.rs` |
//! | How are both kept? | here |

mod asked;
mod press;

#[cfg(test)]
mod tests;

pub use asked::{
    Choice, Choices, MAX_CHOICES, MAX_LABEL, NewPrompt, PromptKind, choices, note_asked_of, numbered, usable,
};
pub use press::{Answer, Button, Press, Presser, Verdict, judge, picked};

use crate::clock::UnixMillis;
use crate::directory::BotKey;
use crate::error::Result;
use crate::inbox::InstanceId;
use crate::ports::{ActionId, BoxFuture};
use crate::records::rows::{Names, PromptRow};
use crate::records::{Change, Records, View, change, look};
use std::time::Duration;

/// How long a question can be answered, where its gateway says nothing: that is how long gateways
/// themselves wait.
pub const OPEN_FOR: Duration = Duration::from_secs(3_600);
angelia_contract::limits! {
    /// A question that waits longer is asked anew. A longer time that a gateway asks for is cut to this.
    pub const OPEN_AT_MOST: Duration = Duration::from_secs(24 * 3_600), time "in which a question with buttons can be answered";
    /// Far more than anybody has to answer. The oldest goes, and its buttons do nothing any more.
    pub const KEPT_PER_INSTANCE: usize = 200, count "questions with buttons kept for a gateway";
}

/// How long a question is remembered after it was asked, so that a late press is understood.
pub const PROMPTS_FOR: Duration = Duration::from_secs(3 * 24 * 3_600);

const OF_INSTANCE: &[&str] = &["instance"];
const OF_CHAT: &[&str] = &["platform", "bot", "chat_id"];

/// A question as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The action that asked it.
    pub number: ActionId,
    /// Whose it is.
    pub tenant: String,
    /// The one instance that waits for the answer.
    pub instance: InstanceId,
    /// The bot that showed it.
    pub bot: BotKey,
    /// The chat that was written to: a thread has an id of its own.
    pub chat_id: String,
    /// What its gateway calls it.
    pub prompt_id: String,
    /// What is asked.
    pub kind: PromptKind,
    /// The buttons, in order.
    pub choices: Vec<Choice>,
    /// Whose turn it was asked in, as far as is known.
    pub asked_of: Vec<String>,
    /// Until when it can be answered.
    pub expires_at: UnixMillis,
    /// What was answered.
    pub answered: Option<Given>,
}

/// An answer that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// What was chosen.
    pub option_id: String,
    /// By whom.
    pub by: String,
}

/// What became of an answer when it was to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// It is the answer.
    Now,
    /// The same person had chosen the same before, and whoever asked has it: nobody told them, or
    /// they press again.
    Before,
    /// The question is not open any more.
    Not,
}

impl Prompt {
    /// Whether a press can still answer it.
    pub fn is_open(&self, now: UnixMillis) -> bool {
        self.answered.is_none() && now < self.expires_at
    }
}

impl From<PromptRow> for Prompt {
    fn from(row: PromptRow) -> Self {
        Self {
            number: ActionId(row.action),
            tenant: row.tenant,
            instance: row.instance,
            bot: BotKey::new(&row.platform, &row.bot),
            chat_id: row.chat_id,
            prompt_id: row.prompt_id,
            kind: row.kind,
            choices: row.choices.0,
            asked_of: row.asked_of.0,
            expires_at: row.expires_at,
            answered: row.chosen.zip(row.chosen_by).map(|(option_id, by)| Given { option_id, by }),
        }
    }
}

/// Questions, asked of any records. They are answered with what bots receive, by
/// [`Ingest::take_in`](crate::ports::Ingest::take_in).
pub trait PromptStore: Records {
    /// Writes down a question that is about to be shown; again, if showing it is tried again.
    fn ask(&self, new: NewPrompt) -> BoxFuture<'_, Result<()>> {
        change(self, Change::to("keep a question").of(new.instance), move |view| ask(view, &new))
    }

    /// Forgets a question that was certainly not shown.
    fn unask(&self, number: ActionId) -> BoxFuture<'_, Result<()>> {
        change(self, Change::to("forget a question"), move |view| {
            if let Some(row) = view.get::<PromptRow>((number.0,))?.filter(|row| row.chosen.is_none()) {
                view.delete(&row);
            }
            Ok(())
        })
    }

    /// A question; `None` if it is forgotten.
    fn prompt(&self, number: ActionId) -> BoxFuture<'_, Result<Option<Prompt>>> {
        look(self, "find a question", move |view| Ok(view.get::<PromptRow>((number.0,))?.map(Prompt::from)))
    }

    /// The questions of a chat that can still be answered, the newest first.
    fn open_prompts(&self, bot: &BotKey, chat_id: &str) -> BoxFuture<'_, Result<Vec<Prompt>>> {
        let (bot, chat_id) = (bot.clone(), chat_id.to_owned());
        look(self, "find the questions of a chat", move |view| {
            let of_chat = (&*bot.platform, &*bot.bot, &*chat_id);
            let mut found: Vec<Prompt> =
                view.find::<PromptRow>(OF_CHAT, of_chat)?.into_iter().map(Prompt::from).collect();
            let now = view.now();
            found.retain(|prompt| prompt.is_open(now));
            found.sort_by_key(|prompt| std::cmp::Reverse(prompt.number));
            Ok(found)
        })
    }
}

impl<R: Records + ?Sized> PromptStore for R {}

/// Keeps a question. One that was answered while its showing was in doubt stays so.
fn ask(view: &mut View<'_>, new: &NewPrompt) -> Result<()> {
    if view.get::<PromptRow>((new.number.0,))?.is_some() {
        return Ok(());
    }
    let of_instance = (new.instance,);
    let kept = usize::try_from(view.count::<PromptRow>(OF_INSTANCE, of_instance)?).unwrap_or(usize::MAX);
    if kept >= KEPT_PER_INSTANCE {
        view.delete_first::<PromptRow>(
            (OF_INSTANCE, of_instance),
            "action",
            0,
            kept + 1 - KEPT_PER_INSTANCE,
        )?;
    }
    let asked_at = view.now();
    view.put(&PromptRow {
        action: new.number.0,
        tenant: new.tenant.clone(),
        instance: new.instance,
        platform: new.bot.platform.as_ref().to_owned(),
        bot: new.bot.bot.as_ref().to_owned(),
        chat_id: new.chat_id.clone(),
        prompt_id: new.prompt_id.clone(),
        kind: new.kind,
        choices: Choices(new.choices.clone()),
        asked_of: Names(new.asked_of.clone()),
        asked_at,
        expires_at: asked_at.after(new.open_for),
        chosen: None,
        chosen_by: None,
        chosen_at: None,
    });
    Ok(())
}

/// Answers a question, if it still can be.
pub fn answer(view: &mut View<'_>, press: &Press) -> Result<Answered> {
    let Some(mut row) = view.get::<PromptRow>((press.number.0,))? else { return Ok(Answered::Not) };
    let (chosen, by) = (Some(press.option_id.clone()), Some(press.by.clone()));
    if row.chosen.is_some() {
        let same = row.chosen == chosen && row.chosen_by == by;
        return Ok(if same { Answered::Before } else { Answered::Not });
    }
    let now = view.now();
    if now >= row.expires_at {
        return Ok(Answered::Not);
    }
    (row.chosen, row.chosen_by, row.chosen_at) = (chosen, by, Some(now));
    view.replace(&row);
    Ok(Answered::Now)
}
