//! Gateways, and how they are doing.

use super::clock::leap;
use super::key::size;
use super::{harmless, harmless_lines, moment, perhaps, state, table};
use angelia_connector::admin::types::{Gateway, GatewaySecret, Gateways, RevokedGateway, Status};
use angelia_core::space::Report;
use std::fmt::Write as _;

pub(crate) fn created_gateway(answer: &GatewaySecret) -> String {
    format!(
        "Gateway {} of tenant {} is ready. Give its agent these lines (the secret is not shown again):\n\n{}\n\n\
         For hermes-agent, put them into ~/.hermes/.env and run: hermes gateway run\n",
        harmless(&answer.gateway_id),
        harmless(&answer.tenant),
        harmless_lines(&answer.env)
    )
}

pub(crate) fn gateways(answer: &Gateways) -> String {
    if answer.gateways.is_empty() {
        return "There is no gateway yet. Make one with: angelia gateway create\n".into();
    }
    let cells = answer.gateways.iter().map(|gateway| {
        let (state, busy) = (state(gateway.connected, gateway.idle), gateway.while_busy.as_str().to_owned());
        let who = [harmless(&gateway.tenant), harmless(&gateway.gateway_id)];
        [who.to_vec(), vec![state, busy, perhaps(&gateway.wake_url)]].concat()
    });
    table(&["TENANT", "GATEWAY", "STATE", "WHILE BUSY", "WAKE URL"], cells)
}

pub(crate) fn gateway(answer: &Gateway) -> String {
    let fronts =
        answer.fronts.iter().map(|front| format!("{}:{}", harmless(&front.platform), harmless(&front.bot)));
    let fields = [
        ("tenant", harmless(&answer.tenant)),
        ("gateway_id", harmless(&answer.gateway_id)),
        ("display_name", perhaps(&answer.display_name)),
        ("instance", harmless(&answer.instance)),
        ("fronts", fronts.collect::<Vec<_>>().join(", ")),
        ("wake_url", perhaps(&answer.wake_url)),
        ("while_busy", answer.while_busy.as_str().to_owned()),
        ("shared_groups", answer.shared_groups.to_string()),
        ("turns", harmless(&answer.turns)),
        ("enrolled by", perhaps(&answer.subject)),
        ("state", state(answer.connected, answer.idle)),
        ("default", answer.default.to_string()),
        ("revoked", moment(answer.revoked_at)),
    ];
    let shown = fields.iter().filter(|(name, value)| *name != "revoked" || !value.is_empty());
    shown.map(|(name, value)| format!("{name:<13} {value}").trim_end().to_owned() + "\n").collect()
}

pub(crate) fn revoked_gateway(answer: &RevokedGateway) -> String {
    let mut text = format!(
        "Gateway {} of tenant {} is revoked. Its connection is closed and its secrets are void.\n",
        harmless(&answer.gateway.gateway_id),
        harmless(&answer.gateway.tenant)
    );
    if let Some(next) = &answer.next {
        let _ = writeln!(text, "{}", harmless(next));
    }
    text
}

pub(crate) fn status(answer: &Status) -> String {
    let ready = match &answer.not_ready {
        Some(why) => format!("NOT READY ({})", harmless(why)),
        None if answer.ready => "ready".to_owned(),
        None => "NOT READY".to_owned(),
    };
    let mut text = format!(
        "{ready}, {} sockets, {} pushed, {} settled\n",
        answer.sockets, answer.pushed, answer.settled
    );
    if let Some(node) = &answer.node {
        let _ = writeln!(
            text,
            "node {}: sockets and figures are its own; see: angelia cluster status",
            harmless(node)
        );
    }
    for what in &answer.degraded {
        let _ = writeln!(text, "DEGRADED: {}", harmless(what));
    }
    text.push_str(&disk(&answer.disk));
    if let Some(files) = answer.files.as_ref().filter(|files| files.count > 0) {
        let _ = writeln!(text, "{} files, {}", files.count, size(files.bytes));
    }
    let cells = answer.gateways.iter().map(|row| {
        let counts = [row.waiting, row.dead, row.lost].map(|count| count.to_string());
        let state = match row.revoked_at {
            Some(_) => "revoked".to_owned(),
            None => state(row.connected, row.idle),
        };
        let since = moment(row.revoked_at.or(row.since));
        let who = vec![harmless(&row.tenant), harmless(&row.gateway_id), state, since];
        [who, counts.to_vec(), vec![harmless(&row.turns)]].concat()
    });
    text.push_str(&table(
        &["TENANT", "GATEWAY", "STATE", "SINCE", "WAITING", "DEAD", "LOST", "TURNS"],
        cells,
    ));
    concerns_of_tenants(&mut text, answer);
    text.push_str(&leap(&answer.clock).unwrap_or_default());
    if let Some(what) = &answer.database_damage {
        let _ = writeln!(
            text,
            "THE DATABASE IS DAMAGED: {}. Stop the server, keep the files, and restore a backup.",
            harmless(what)
        );
    }
    concerns_of_messages(&mut text, answer);
    text
}

/// Whose gateways or memory need an eye.
fn concerns_of_tenants(text: &mut String, answer: &Status) {
    for row in answer.gateways.iter().filter(|row| !row.not_served.is_empty()) {
        let missing: Vec<String> = row.not_served.iter().map(|platform| harmless(platform)).collect();
        let _ = writeln!(
            text,
            "{}/{} answers for {}, which this server does not have",
            harmless(&row.tenant),
            harmless(&row.gateway_id),
            missing.join(", ")
        );
    }
    for row in &answer.gateways {
        let Some(refused) = &row.refused else { continue };
        let _ = writeln!(
            text,
            "{}/{} was turned away at {}: {}. {} Next: {}",
            harmless(&row.tenant),
            harmless(&row.gateway_id),
            moment(refused.at),
            harmless(&refused.reason),
            harmless(&refused.means),
            harmless(&refused.next)
        );
    }
    for row in &answer.awaiting_first {
        let (tenant, waits) = (harmless(&row.tenant), waits(row.waiting));
        let lost = match row.lost {
            0 => String::new(),
            lost => format!(", {lost} were lost to the quota"),
        };
        let _ = writeln!(
            text,
            "tenant {tenant} has no gateway yet: {waits} for its first one{lost}; make it with: \
             angelia gateway create --tenant {tenant}"
        );
    }
    for row in answer.files.iter().flat_map(|files| &files.heavy) {
        let _ = writeln!(
            text,
            "tenant {} has {} files with {} of the {} it may (media.tenant_bytes); when that is full, further ones \
             are refused until older ones go",
            harmless(&row.tenant),
            row.count,
            size(row.bytes),
            size(row.of)
        );
    }
    for row in &answer.memory {
        let _ = writeln!(
            text,
            "tenant {} holds {} of the {} of memory it may; if that lasts, see whose: angelia gateway list",
            harmless(&row.tenant),
            size(row.held),
            size(row.of)
        );
    }
}

/// Bots, secrets and answers that need an eye.
fn concerns_of_messages(text: &mut String, answer: &Status) {
    for bot in &answer.bots {
        let (platform, name, state) = (harmless(&bot.platform), harmless(&bot.name), bot.state.as_str());
        let why = bot.why.as_ref().map(|why| format!(": {}", harmless(why))).unwrap_or_default();
        let _ = writeln!(text, "the {platform} bot {name} is {state}{why}; see angelia bot list");
    }
    for row in &answer.damaged {
        let (tenant, id) = (harmless(&row.tenant), harmless(&row.gateway_id));
        let _ = writeln!(
            text,
            "DAMAGED: the {} {tenant}/{id}: {}; make a new one with: angelia gateway rotate --tenant {tenant} {id}",
            harmless(&row.kind),
            harmless(&row.error)
        );
    }
    for action in &answer.ambiguous {
        let (op, chat, why) = (harmless(&action.op), harmless(&action.chat_id), perhaps(&action.error));
        let at = moment(action.accepted_at);
        let _ = writeln!(text, "may or may not have been sent: a {op} to chat {chat}, {at}: {why}");
    }
}

/// `1 message waits`, `2 messages wait`.
fn waits(waiting: u64) -> String {
    match waiting {
        1 => "1 message waits".into(),
        many => format!("{many} messages wait"),
    }
}

/// What an operator should know of the disk; nothing if all is well.
fn disk(report: &Report) -> String {
    let (free, reserve, wanted) = (report.disk.free, report.disk.reserve, report.reserve_wanted);
    if report.short {
        return format!(
            "THE DISK IS FULL: {} free, {} in reserve. Nothing is taken in, and nothing new is pushed.\n\
             next: end whoever fills it (angelia gateway revoke, angelia tenant remove), purge what is not\n\
             needed (angelia inbox purge), or make the disk larger; the server goes on by itself\n",
            size(free),
            size(reserve)
        );
    }
    if wanted > 0 && reserve < wanted {
        return format!(
            "the disk is nearly full: {} free, {} of {} in reserve for the operator\n",
            size(free),
            size(reserve),
            size(wanted)
        );
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_gateway_is_shown_with_what_it_fronts_and_without_control_characters() {
        let text = gateway(&read(json!({
            "tenant": "acme", "gateway_id": "gw", "display_name": "Gus\u{1b}[2J", "instance": "gw",
            "subject": "https://id/ abc", "connected": true, "default": false, "wake_url": null, "while_busy": "collect",
            "turns": "marks its turns",
            "fronts": [{ "platform": "webchat", "bot": "webchat" }, { "platform": "sms", "bot": "+1" }],
        })));
        for line in [
            "tenant        acme\n",
            "fronts        webchat:webchat, sms:+1\n",
            "state         connected\n",
            "wake_url\n",
            "while_busy    collect\n",
            "shared_groups false\n",
            "turns         marks its turns\n",
        ] {
            assert!(text.contains(line), "{line:?} in {text}");
        }
        assert!(!text.contains('\u{1b}') && !text.contains("revoked"), "{text}");
    }

    #[test]
    fn what_needs_an_eye_is_below_the_table() {
        let text = status(&read(json!({
            "ready": true, "sockets": 0, "pushed": 0, "settled": 0,
            "gateways": [{ "tenant": "acme", "gateway_id": "gw", "not_served": ["slack\u{1b}"] }],
            "files": { "count": 3, "bytes": 5 << 20, "heavy": [
                { "tenant": "initech", "count": 2, "bytes": 4 << 20, "of": 5 << 20 },
            ] },
            "memory": [{ "tenant": "globex", "held": 30 << 20, "of": 40 << 20 }],
            "awaiting_first": [{ "tenant": "new", "waiting": 1, "lost": 0 }, { "tenant": "late", "waiting": 2, "lost": 3 }],
            "clock": { "now": 0, "leap": "402 days ahead" }, "database_damage": "page 7 is lost",
            "bots": [{ "platform": "discord", "name": "main", "state": "down", "why": "no network" }],
            "damaged": [{ "kind": "secret of a gateway", "tenant": "acme", "gateway_id": "old", "error": "moved" }],
            "ambiguous": [{ "op": "send", "chat_id": "c1", "accepted_at": 0, "error": "no answer" }],
        })));
        assert!(
            text.contains("tenant new has no gateway yet: 1 message waits for its first one; make"),
            "{text}"
        );
        assert!(text.contains("2 messages wait for its first one, 3 were lost to the quota; make"), "{text}");
        assert!(text.contains("angelia gateway create --tenant late\n"), "{text}");
        assert!(text.contains("THE CLOCK LEAPT") && text.contains("402 days ahead"), "{text}");
        assert!(text.contains("tenant globex holds 30 MiB of the 40 MiB of memory it may"), "{text}");
        assert!(text.contains("3 files, 5 MiB\n"), "{text}");
        assert!(text.contains("tenant initech has 2 files with 4 MiB of the 5 MiB it may"), "{text}");
        assert!(text.contains("THE DATABASE IS DAMAGED: page 7 is lost. Stop"), "{text}");
        assert!(!text.contains("disk"), "nothing is said of a disk that is well: {text}");
        assert!(
            text.contains("acme/gw answers for slack\\u{1b}, which this server does not have\n"),
            "{text}"
        );
        assert!(text.contains("the discord bot main is down: no network; see angelia bot list\n"), "{text}");
        assert!(text.contains("DAMAGED: the secret of a gateway acme/old: moved; make a new one"), "{text}");
        assert!(text.contains("a send to chat c1, 1970-01-01 00:00:00.000Z: no answer\n"), "{text}");
    }

    #[test]
    fn a_full_disk_is_told_with_what_to_do() {
        let report = |short: bool, free: u64, reserve: u64| {
            disk(&read(json!({
                "short": short, "free": free, "reserve": reserve, "reserve_wanted": 16 << 20,
            })))
        };
        assert_eq!(report(false, 1 << 30, 16 << 20), "");
        assert!(report(false, 5 << 20, 0).contains("nearly full: 5 MiB free, 0 KiB of 16 MiB"));
        let full = report(true, 4096, 15 << 20);
        assert!(full.contains("FULL: 4 KiB free, 15 MiB in reserve") && full.contains("next: "), "{full}");
    }
}
