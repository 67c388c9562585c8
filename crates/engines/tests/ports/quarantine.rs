//! What could not be read and what was missed: how much of it stays, and how it goes.

use crate::store::directory::bot;
use angelia_core::audit::Actor;
use angelia_core::clock::UnixMillis;
use angelia_core::directory::BotKey;
use angelia_core::quarantine;
use angelia_core::records::{Change, Records, change};
use angelia_core::store::{AuditStore, Missed, NewQuarantined, StreamStore};

/// Puts these into quarantine, each by a change of its own.
async fn set_aside(records: &(impl Records + ?Sized), bot: &BotKey, numbers: std::ops::Range<usize>) {
    for n in numbers {
        let new = unreadable(n, vec![7, n as u8]);
        let bot = bot.clone();
        let kept = change(records, Change::to("try"), move |view| quarantine::add(view, &bot, &new));
        kept.await.unwrap();
    }
}

fn unreadable(n: usize, sealed: Vec<u8>) -> NewQuarantined {
    let (what, why) = (format!("update {n}"), "no field of that name".into());
    NewQuarantined { what, why, sealed: sealed.into(), at: UnixMillis(n as i64) }
}

async fn listed(records: &(impl Records + ?Sized), bot: Option<&BotKey>, limit: usize) -> Vec<String> {
    let list = records.quarantine(bot, limit).await.unwrap();
    list.into_iter().map(|row| format!("{} {} {}", row.platform, row.bot, row.what)).collect()
}

async fn what_cannot_be_read_is_kept_until_it_is_purged(records: &(impl Records + ?Sized)) {
    let second = BotKey::new("telegram", "7");
    set_aside(records, &bot(), 1..3).await;
    set_aside(records, &second, 3..4).await;
    let all = ["telegram 7 update 3", "discord main update 2", "discord main update 1"];
    assert_eq!(listed(records, None, 10).await, all);
    assert_eq!(listed(records, Some(&bot()), 10).await, all[1..]);
    assert_eq!(listed(records, None, 2).await, all[..2]);
    let newest = records.quarantine(None, 1).await.unwrap().remove(0);
    assert_eq!(newest.at, UnixMillis(3));
    let (found, sealed) = records.quarantined(newest.id).await.unwrap().unwrap();
    assert_eq!((found, sealed), (newest.clone(), vec![7, 3]));

    let by = Actor::operator();
    assert_eq!(records.purge_quarantine(Some(newest.id), &by).await.unwrap(), 1);
    assert_eq!(records.purge_quarantine(Some(newest.id), &by).await.unwrap(), 0);
    assert!(records.quarantined(newest.id).await.unwrap().is_none());
    assert_eq!(records.purge_quarantine(None, &by).await.unwrap(), 2);
    assert!(listed(records, None, 10).await.is_empty());
    let lines = records.audit_lines(None, 2).await.unwrap();
    let lines: Vec<_> =
        lines.iter().map(|l| (l.action.as_str(), l.target.as_str(), l.detail.as_str())).collect();
    let id = newest.id.to_string();
    assert_eq!(lines, [("quarantine.purge", "all", "2"), ("quarantine.purge", &*id, "1")]);
}

async fn all_of_it_goes_though_it_does_not_fit_one_change(records: &(impl Records + ?Sized)) {
    const EACH: usize = 300_000;
    for n in 0..40 {
        let new = unreadable(n, vec![7; EACH]);
        let kept = change(records, Change::to("try"), move |view| quarantine::add(view, &bot(), &new));
        kept.await.unwrap();
    }
    assert_eq!(records.purge_quarantine(None, &Actor::operator()).await.unwrap(), 40);
    assert!(listed(records, None, 10).await.is_empty());
    let lines = records.audit_lines(None, 100).await.unwrap();
    let told: u64 = lines.iter().map(|line| line.detail.parse::<u64>().unwrap()).sum();
    assert_eq!(told, 40, "every step says how much went with it");
}

async fn the_newest_thousand_of_each_bot_stay_in_quarantine(records: &(impl Records + ?Sized)) {
    let second = BotKey::new("telegram", "7");
    set_aside(records, &second, 0..1).await;
    let fill = change(records, Change::to("try"), |view| {
        use angelia_core::records::rows::QuarantineRow;
        for n in 0..999 {
            let id = view.number::<QuarantineRow>()?;
            let (platform, bot) = ("discord".to_owned(), "main".to_owned());
            let (what, why) = (format!("update {n}"), String::new());
            view.put(&QuarantineRow { id, platform, bot, what, why, sealed: vec![1], at: UnixMillis(1) });
        }
        Ok(())
    });
    fill.await.unwrap();
    set_aside(records, &bot(), 999..1_003).await;
    let kept = listed(records, Some(&bot()), 5_000).await;
    assert_eq!(kept.len(), 1_000);
    assert_eq!((kept[0].as_str(), kept[999].as_str()), ("discord main update 1002", "discord main update 3"));
    assert_eq!(listed(records, Some(&second), 10).await.len(), 1, "nobody else is touched");
}

async fn the_newest_thousand_stretches_that_a_bot_missed_stay(records: &(impl Records + ?Sized)) {
    let missed = |n: i64| Missed {
        chat_id: (n % 2 == 0).then(|| "lab".to_owned()),
        after: (n % 2 == 0).then(|| "m1".to_owned()),
        since: UnixMillis(n),
        until: UnixMillis(n + 1),
        why: "the provider refused".into(),
    };
    let list = async |limit| records.missed(&bot(), limit).await.unwrap();
    records.note_missed(&bot(), Vec::new()).await.unwrap();
    records.note_missed(&bot(), vec![missed(1), missed(2), missed(3)]).await.unwrap();
    assert_eq!(list(10).await, [missed(3), missed(2), missed(1)]);
    assert_eq!(list(1).await, [missed(3)]);
    let second = BotKey::new("telegram", "7");
    assert!(records.missed(&second, 10).await.unwrap().is_empty());
    records.note_missed(&second, vec![missed(4)]).await.unwrap();
    records.note_missed(&bot(), (4..=1_002).map(missed).collect()).await.unwrap();
    let kept = list(5_000).await;
    assert_eq!((kept.len(), &kept[0], &kept[999]), (1_000, &missed(1_002), &missed(3)));
    records.note_missed(&bot(), (2_000..3_005).map(missed).collect()).await.unwrap();
    let kept = list(5_000).await;
    assert_eq!((kept.len(), &kept[0], &kept[999]), (1_000, &missed(3_004), &missed(2_005)));
    assert_eq!(records.missed(&second, 10).await.unwrap(), [missed(4)], "nobody else is touched");
}

on_every_engine!(
    what_cannot_be_read_is_kept_until_it_is_purged,
    all_of_it_goes_though_it_does_not_fit_one_change,
    the_newest_thousand_of_each_bot_stay_in_quarantine,
    the_newest_thousand_stretches_that_a_bot_missed_stay,
);
