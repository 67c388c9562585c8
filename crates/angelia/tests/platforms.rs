//! Discord, Telegram, SMS and WeCom, against stand-ins that real clients accept.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests: a failed expectation is a panic")]

mod platforms {
    mod albums;
    mod auto_threads;
    mod commands;
    mod context;
    mod deletes;
    mod discord;
    mod discord_client;
    mod discord_faults;
    mod discord_interactions_client;
    mod discord_loss;
    mod discord_outages;
    mod discord_people;
    mod discord_send;
    mod discord_stage;
    mod discord_talk;
    mod discord_turns;
    mod drafts;
    mod egress;
    mod egress_moves;
    mod egress_world;
    mod file_sources;
    mod files_in;
    mod files_newer;
    mod files_out;
    mod files_waiting;
    mod flood;
    mod interactions;
    mod interactions_canary;
    mod interactions_gateway;
    mod interactions_loss;
    mod interactions_rotation;
    mod interactions_stage;
    mod mms;
    mod nodes;
    mod prompts;
    mod readers;
    mod relay_hello;
    mod rich;
    mod shared_stage;
    mod sms;
    mod sms_stage;
    mod telegram;
    mod telegram_chats;
    mod telegram_client;
    mod telegram_edits;
    mod telegram_faults;
    mod telegram_links;
    mod telegram_loss;
    mod telegram_moves;
    mod telegram_notices;
    mod telegram_sends;
    mod telegram_stage;
    mod telegram_stop;
    mod telegram_trouble;
    mod telegram_turns;
    mod telegram_webhook;
    mod telegram_world;
    mod threads;
    mod wecom;
    mod wecom_edge;
    mod wecom_stage;
}
