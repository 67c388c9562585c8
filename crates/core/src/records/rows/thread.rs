//! Threads that the connector opened, as they are kept.

use crate::clock::UnixMillis;
use crate::inbox::InstanceId;
use crate::records::table::record;

record! {
    /// A thread that was opened, and the name it was given.
    pub struct CreatedThreadRow in "created_threads", key 3, finds [["instance"]],
        walks [["instance"] along "created_at", ["platform", "bot"] along "chat_id"]
    {
        /// The platform of the bot.
        platform: String,
        /// The bot that opened it.
        bot: String,
        /// The thread, as the directory knows it.
        chat_id: String,
        /// What it is below.
        parent: String,
        /// The name that was last given.
        name: String,
        /// For whom it was opened.
        instance: InstanceId,
        /// When.
        created_at: UnixMillis,
    }
}
