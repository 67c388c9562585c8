//! What was registered at providers, so that nothing is registered twice, and what came from
//! elsewhere is told from what came from here.

use super::Command;
use crate::directory::BotKey;
use crate::error::Result;
use crate::ports::BoxFuture;
use crate::records::rows::{Names, RegisteredRow};
use crate::records::{Change, Records, change, look};
use crate::secret::{fingerprint, hex};

/// What was registered for a bot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registered {
    /// The names, as the provider shows them.
    pub names: Vec<String>,
    /// What was wanted then; see [`form_of`].
    pub form: String,
}

impl Registered {
    /// What is kept once these commands are registered.
    pub fn of(commands: &[Command], form: String) -> Self {
        Self { names: commands.iter().map(|command| command.name.clone()).collect(), form }
    }
}

/// What tells one list of commands from another.
pub fn form_of<'a>(commands: impl IntoIterator<Item = &'a Command>) -> String {
    let all: Vec<&Command> = commands.into_iter().collect();
    hex(&fingerprint(&serde_json::json!(all).to_string())[..16])
}

/// What was registered, asked of any records.
pub trait CommandStore: Records {
    /// What was registered for a bot; `None` if nothing ever was.
    fn registered(&self, bot: &BotKey) -> BoxFuture<'_, Result<Option<Registered>>> {
        let bot = bot.clone();
        look(self, "read which commands were registered", move |view| {
            let row = view.get::<RegisteredRow>((&*bot.platform, &*bot.bot))?;
            Ok(row.map(|row| Registered { names: row.names.0, form: row.form }))
        })
    }

    /// Keeps what was registered for a bot.
    fn note_registered(&self, bot: &BotKey, registered: Registered) -> BoxFuture<'_, Result<()>> {
        let bot = bot.clone();
        change(self, Change::to("keep which commands were registered"), move |view| {
            let Registered { names, form } = registered.clone();
            let registered_at = view.now();
            view.put(&RegisteredRow {
                platform: bot.platform.to_string(),
                bot: bot.bot.to_string(),
                names: Names(names),
                form,
                registered_at,
            });
            Ok(())
        })
    }
}

impl<R: Records + ?Sized> CommandStore for R {}
