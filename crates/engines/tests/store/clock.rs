//! Clocks that leap, and what they may not do to what is kept.

use super::identity::by;
use super::open::{Opened, entry};
use angelia_core::audit::{Actor, AuditEntry, KEPT_LINES, MOST_LINES};
use angelia_core::clock::{self, ClockState, Leap, UnixMillis};
use angelia_core::inbox::Seq;
use angelia_core::store::{AuditStore, Checked, NewEntry, Pruned};
use std::io::{Seek, SeekFrom, Write};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn ago(span: Duration) -> UnixMillis {
    clock::wall().before(span)
}

impl Opened {
    /// Opens the store again as if the clock had been so far behind when it was closed.
    fn reopen_later(self, span: Duration) -> Self {
        let state = ClockState::first(ago(span), None);
        let db = self.raw();
        db.execute("INSERT OR REPLACE INTO notes VALUES ('clock', ?)", [state.to_json()]).unwrap();
        drop(db);
        self.reopen()
    }

    /// One row of everything that is kept for its age, written so long ago, or good until then.
    async fn furnish(self, at: UnixMillis) -> Self {
        let instance = self.instance("gw").await;
        self.store.append(NewEntry { received_at: at, ..entry(instance, "waits") }).await.unwrap();
        let rows = format!(
            "INSERT INTO journal (message_id, kind, platform, bot, chat_id, tenant, instance, received_at, appended_at)
                 VALUES ('m', 'message', 'p', 'b', 'c', 't', 1, {at}, {at});
             INSERT INTO actions (tenant, instance, platform, bot, chat_id, op, state, received_at)
                 VALUES ('t', 1, 'p', 'b', 'c', 'send', 'sent', {at});
             INSERT INTO conversations VALUES ('t', 's', 1, 'c', {at});
             INSERT INTO gaps VALUES (1, 'c', 1, {at}, {at}, {at});
             INSERT INTO quarantine (platform, bot, what, why, sealed, at) VALUES ('p', 'b', 'w', 'y', x'00', {at});
             INSERT INTO missed (platform, bot, since, until, why) VALUES ('p', 'b', {at}, {at}, 'w');
             INSERT INTO pieces VALUES ('p', 'b', 'c', 'm', '[]', {at});
             INSERT INTO notices VALUES ('hint', 'p', 'b', 'c', NULL, {at});
             INSERT INTO link_tries VALUES ('w', '[]', NULL, {at});
             INSERT INTO audit (at, actor, action, outcome) VALUES ({at}, 'a', 'b', 'done');
             INSERT INTO gateways (tenant, gateway_id, instance, created_at, revoked_at) VALUES ('t', 'old', 1, {at}, {at});
             INSERT INTO enroll_tokens VALUES (x'01', 't', NULL, 0, {at});
             INSERT INTO link_codes VALUES (x'01', 't', NULL, NULL, 0, {at});
             INSERT INTO webchat_people VALUES (x'01', 'r', 'u', {at}, {at});
             INSERT INTO capabilities (kind, tenant, instance, platform, bot, chat_id, user_id, interaction_id, deferral,
                 stage, sealed, expires_at) VALUES ('k', 't', 1, 'p', 'b', 'c', 'u', 'i', 'message', 'open', x'00', {at});",
            at = at.0
        );
        // Behind the back of a store that is open, its counts would be wrong.
        self.closed(|folder| {
            let db = rusqlite::Connection::open(folder.join("angelia.db")).unwrap();
            db.execute_batch(&rows).unwrap();
        })
    }

    /// How many rows there are of each table, but of notes.
    fn rows(&self, tables: &[&str]) -> Vec<(String, i64)> {
        let db = self.raw();
        let count = |table: &str| {
            db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
        };
        tables.iter().map(|table| ((*table).to_owned(), count(table))).collect()
    }
}

const AGED: [&str; 12] = [
    "journal",
    "inbox",
    "actions",
    "conversations",
    "gaps",
    "quarantine",
    "missed",
    "pieces",
    "notices",
    "audit",
    "gateways",
    "link_tries",
];
const EXPIRING: [&str; 4] = ["enroll_tokens", "link_codes", "webchat_people", "capabilities"];

#[tokio::test]
async fn one_start_far_ahead_drops_nothing_that_is_kept() {
    let opened = Opened::new().furnish(ago(402 * DAY)).await;
    let opened = opened.reopen_later(402 * DAY);
    let all = [&AGED[..], &EXPIRING].concat();
    let before = opened.rows(&all);
    assert!(before.iter().all(|(_, rows)| *rows > 0), "{before:?}");
    let leap = opened.store.leap().unwrap();
    assert_eq!(leap.words(), "402 days ahead");
    assert_eq!(opened.store.prune().await.unwrap(), Pruned::default());
    assert_eq!(opened.rows(&all), before, "until it is confirmed");

    // A restart changes nothing of that.
    opened.store.keep_clock().await.unwrap();
    let opened = opened.reopen();
    assert!(opened.store.leap().is_some());
    opened.store.prune().await.unwrap();
    assert_eq!(opened.rows(&all), before);

    let accepted = opened.store.accept_clock(&by()).await.unwrap();
    assert_eq!(accepted.map(|leap| leap.words()).as_deref(), Some("402 days ahead"));
    assert_eq!(opened.store.leap(), None);
    let line = opened.store.audit_lines(None, 1).await.unwrap().remove(0);
    assert_eq!((line.action.as_str(), line.detail.as_str()), ("clock.accept", "402 days ahead"));
    opened.store.prune().await.unwrap();
    let mut expected = before.iter().take(AGED.len()).cloned().collect::<Vec<_>>();
    expected[9].1 += 1;
    assert_eq!(opened.rows(&AGED), expected, "a leap has made nothing older");
    assert!(
        opened.rows(&EXPIRING).iter().all(|(_, rows)| *rows == 0),
        "what says itself until when it is good"
    );
    assert_eq!(opened.store.accept_clock(&by()).await.unwrap(), None, "nothing is left to accept");
}

/// Until somebody confirms the clock, nothing is judged by it: not even what was too old before.
#[tokio::test]
async fn what_was_old_before_a_leap_waits_for_the_operator_too() {
    let opened = Opened::new().furnish(ago(804 * DAY)).await;
    let opened = opened.reopen_later(402 * DAY);
    assert!(opened.store.leap().is_some());
    fill(&opened, "operator", KEPT_LINES + 700, 804 * DAY);
    let before = opened.rows(&AGED);
    assert_eq!(opened.store.prune().await.unwrap(), Pruned::default());
    assert_eq!(opened.rows(&AGED), before);
    opened.store.accept_clock(&by()).await.unwrap();
    let pruned = opened.store.prune().await.unwrap();
    assert_eq!(pruned, Pruned { forgotten: vec![("t".into(), "old".into())], overaged: 1 });
    assert!(lines(&opened, "operator") < KEPT_LINES + 700);
}

#[tokio::test]
async fn a_store_that_remembers_no_clock_goes_by_its_newest_row() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    opened.store.append(entry(a, "waits")).await.unwrap();
    let opened = opened.closed(|folder| {
        let db = rusqlite::Connection::open(folder.join("angelia.db")).unwrap();
        db.execute("DELETE FROM notes WHERE name = 'clock'", []).unwrap();
        db.execute("UPDATE journal SET appended_at = ?", [clock::wall().after(40 * DAY).0]).unwrap();
    });
    assert_eq!(opened.store.leap().map(|leap| leap.words()).as_deref(), Some("40 days behind"));
}

/// Without a leap all of it goes, or the test before would show nothing.
#[tokio::test]
async fn what_is_past_its_time_goes() {
    let opened = Opened::new().furnish(ago(402 * DAY)).await;
    assert_eq!(opened.store.leap(), None);
    let pruned = opened.store.prune().await.unwrap();
    assert_eq!(pruned, Pruned { forgotten: vec![("t".into(), "old".into())], overaged: 1 });
    for (table, rows) in opened.rows(&[&AGED[..], &EXPIRING].concat()) {
        // The entry was written and went just now; a gateway is in use; the audit log
        // is kept by number too.
        let expected = match table.as_str() {
            "journal" | "conversations" | "gaps" | "gateways" => 1,
            "audit" => 5,
            _ => 0,
        };
        assert_eq!(rows, expected, "{table}");
    }
}

#[tokio::test]
async fn a_clock_a_week_behind_and_mended_loses_nothing() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    for id in ["one", "two"] {
        opened.store.append(NewEntry { received_at: ago(8 * DAY), ..entry(a, id) }).await.unwrap();
    }
    let opened = opened.reopen_later(8 * DAY);
    assert_eq!(opened.store.leap().map(|leap| leap.words()).as_deref(), Some("8 days ahead"));
    for accepted in [false, true] {
        opened.store.prune().await.unwrap();
        assert_eq!(opened.seqs(a).await.len(), 2, "{accepted}");
        assert!(opened.store.age(ago(8 * DAY)).at_most < Duration::from_secs(60), "{accepted}");
        let waited = Duration::from_secs(60);
        assert!(opened.store.overdue(a, Seq(0), waited, 10).await.unwrap().is_empty(), "{accepted}");
        opened.store.accept_clock(&by()).await.unwrap();
    }
    let inboxes = opened.store.inboxes().await.unwrap();
    assert!(inboxes[0].gaps.is_empty());
    // It is remembered across restarts what the stamps of that time mean.
    let opened = opened.reopen();
    assert_eq!(opened.store.leap(), None);
    opened.store.prune().await.unwrap();
    assert_eq!(opened.seqs(a).await.len(), 2);
}

#[tokio::test]
async fn a_clock_set_back_is_no_reason_to_forget_either() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    opened.store.append(entry(a, "waits")).await.unwrap();
    let ahead = ClockState::first(clock::wall().after(40 * DAY), None);
    let note = ahead.to_json();
    opened.raw().execute("INSERT OR REPLACE INTO notes VALUES ('clock', ?)", [note]).unwrap();
    let opened = opened.reopen();
    assert_eq!(opened.store.leap().map(|leap| leap.words()).as_deref(), Some("40 days behind"));
    assert!(matches!(opened.store.leap(), Some(Leap { ahead_ms: ..0 })));
    opened.store.accept_clock(&by()).await.unwrap();
    opened.store.prune().await.unwrap();
    assert_eq!(opened.seqs(a).await.len(), 1);
}

#[tokio::test]
async fn what_went_for_its_age_is_shown_for_a_month_from_then_on() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    opened.store.append(NewEntry { received_at: ago(40 * DAY), ..entry(a, "old") }).await.unwrap();
    for overaged in [1, 0] {
        assert_eq!(opened.store.prune().await.unwrap().overaged, overaged);
        let gaps = opened.store.inboxes().await.unwrap().remove(0).gaps;
        assert_eq!(gaps.iter().map(|gap| gap.lost).sum::<u64>(), 1, "it was lost just now");
    }
    let long_ago = ago(31 * DAY).0;
    opened.raw().execute("UPDATE gaps SET lost_at = ?", [long_ago]).unwrap();
    opened.store.prune().await.unwrap();
    assert!(opened.store.inboxes().await.unwrap().remove(0).gaps.is_empty());
}

/// Fills the audit log with lines of one sort, as old as said.
fn fill(opened: &Opened, sort: &str, lines: u64, age: Duration) {
    let fill = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
                INSERT INTO audit (at, actor, action, outcome, sort) SELECT ?2, 'a', 'b', 'c', ?3 FROM n";
    opened.raw().execute(fill, rusqlite::params![lines as i64, ago(age).0, sort]).unwrap();
}

fn lines(opened: &Opened, sort: &str) -> u64 {
    let db = opened.raw();
    db.query_row("SELECT count(*) FROM audit WHERE sort = ?", [sort], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn the_newest_audit_lines_stay_whatever_their_age() {
    let opened = Opened::new();
    fill(&opened, "operator", KEPT_LINES + 700, 402 * DAY);
    let db = opened.raw();
    assert!(db.execute("DELETE FROM audit WHERE id = (SELECT max(id) FROM audit)", []).is_err());
    let first_kept = "DELETE FROM audit WHERE id = (SELECT max(id) - 99999 FROM audit)";
    assert!(db.execute(first_kept, []).is_err(), "by nobody");
    drop(db);
    opened.store.prune().await.unwrap();
    assert_eq!(lines(&opened, "operator"), KEPT_LINES);
}

#[tokio::test]
async fn who_is_refused_pushes_out_no_deed() {
    let opened = Opened::new();
    let done = AuditEntry::done(&Actor::operator(), "gateway.revoke", "acme", "gw");
    opened.store.audit(done).await.unwrap();
    let refused = AuditEntry::refused(&Actor::stranger(), "gateway.dial", "", "gw", "wrong secret");
    opened.store.audit(refused).await.unwrap();
    fill(&opened, "refusal", MOST_LINES + 100, Duration::ZERO);
    opened.store.prune().await.unwrap();
    assert_eq!(lines(&opened, "refusal"), MOST_LINES, "the log has an end");
    assert_eq!(lines(&opened, "operator"), 1);
    let kept = "SELECT count(*) FROM audit WHERE action = 'gateway.dial'";
    assert_eq!(opened.raw().query_row(kept, [], |row| row.get::<_, i64>(0)).unwrap(), 0, "the oldest went");
}

#[tokio::test]
async fn a_server_that_was_killed_is_noticed_once() {
    let opened = Opened::new();
    assert!(!opened.store.begin_run().await.unwrap());
    let opened = opened.reopen();
    assert!(opened.store.begin_run().await.unwrap(), "it did not say goodbye");
    assert_eq!(opened.store.quick_check(Duration::from_secs(60)).await.unwrap(), Checked::Sound);
    opened.store.end_run().await.unwrap();
    let opened = opened.reopen();
    assert!(!opened.store.begin_run().await.unwrap());
}

#[tokio::test]
async fn a_check_has_an_end() {
    let opened = Opened::new();
    fill(&opened, "other", 100_000, Duration::ZERO);
    assert_eq!(opened.store.quick_check(Duration::ZERO).await.unwrap(), Checked::Unfinished);
    assert_eq!(opened.store.quick_check(Duration::from_secs(60)).await.unwrap(), Checked::Sound);
}

#[tokio::test]
async fn a_damaged_database_is_found() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    for n in 0..300 {
        opened.store.append(entry(a, &format!("message-{n}"))).await.unwrap();
    }
    let path = opened.folder.path().join("angelia.db");
    // Folded into the one file, which is then written over in its middle.
    opened.raw().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let mut file = std::fs::File::options().write(true).open(&path).unwrap();
    let middle = file.metadata().unwrap().len() / 2;
    file.seek(SeekFrom::Start(middle)).unwrap();
    file.write_all(&[0xab; 32 * 1024]).unwrap();
    drop(file);
    let found = opened.store.quick_check(Duration::from_secs(60)).await.unwrap();
    assert!(matches!(&found, Checked::Damaged(what) if !what.is_empty()), "{found:?}");
}
