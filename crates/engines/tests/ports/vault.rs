//! What every keeper of records must do with capabilities: find those of an instance, and
//! those whose end comes before an answer.

use angelia_core::clock::UnixMillis;
use angelia_core::inbox::InstanceId;
use angelia_core::records::{Change, Records, change};
use angelia_core::store::VaultStore;
use angelia_core::vault::{Capability, CapabilityId, Deferral, Stage};

/// The kind of those that the tests are about.
const INTERACTION: &str = "discord.interaction_token";

const OURS: InstanceId = InstanceId(1);
const THEIRS: InstanceId = InstanceId(2);

/// A capability of ours for ann in the lab.
pub(super) fn capability(id: i64, ends: i64) -> Capability {
    Capability {
        id: CapabilityId(id),
        kind: INTERACTION.into(),
        tenant: "acme".into(),
        instance: OURS,
        platform: "discord".into(),
        bot: "main".into(),
        chat_id: "lab".into(),
        user_id: "ann".into(),
        interaction_id: format!("i{id}"),
        deferral: Deferral::Message,
        stage: Stage::Open,
        noticed_at: None,
        sealed: vec![id as u8],
        expires_at: UnixMillis(ends),
    }
}

/// Puts capabilities into the vault.
pub(super) async fn keep(records: &(impl Records + ?Sized), rows: &[Capability]) {
    let rows = rows.to_vec();
    let kept = change(records, Change::to("keep some"), move |view| {
        rows.iter().for_each(|row| view.put(row));
        Ok(())
    });
    kept.await.unwrap();
}

fn ids(found: &[Capability]) -> Vec<i64> {
    found.iter().map(|it| it.id.0).collect()
}

async fn an_instance_holds_what_is_its_own_and_not_over(records: &(impl Records + ?Sized)) {
    let theirs = Capability { instance: THEIRS, ..capability(2, 100) };
    keep(records, &[capability(3, 100), theirs, capability(1, 50), capability(4, 99)]).await;
    let held = async |instance, now| ids(&records.capabilities(instance, UnixMillis(now)).await.unwrap());
    assert_eq!(held(OURS, 0).await, [1, 3, 4], "oldest first");
    assert_eq!(held(OURS, 50).await, [3, 4], "what ends now is over");
    assert_eq!(held(THEIRS, 99).await, [2]);
    assert!(held(InstanceId(9), 0).await.is_empty());
    let over = records.capability(CapabilityId(1)).await.unwrap().unwrap();
    assert_eq!((over.bot.as_str(), over.stage, over.sealed), ("main", Stage::Open, vec![1]));
    assert!(records.capability(CapabilityId(9)).await.unwrap().is_none());
}

async fn who_still_waits_near_the_end_is_found_oldest_first(records: &(impl Records + ?Sized)) {
    let theirs = Capability { instance: THEIRS, ..capability(2, 110) };
    let staged = |id, stage| Capability { stage, ..capability(id, 120) };
    let told = Capability { noticed_at: Some(UnixMillis(1)), ..staged(8, Stage::Noticed) };
    keep(records, &[capability(1, 130), theirs, capability(3, 120), capability(4, 140)]).await;
    keep(records, &[capability(5, 115), staged(6, Stage::Claimed), staged(7, Stage::Answered), told]).await;
    keep(records, &[staged(9, Stage::Noticed)]).await;
    let waits = async |after, now, before, limit| {
        let found = records.unanswered(CapabilityId(after), UnixMillis(now), UnixMillis(before), limit);
        ids(&found.await.unwrap())
    };
    assert_eq!(waits(0, 0, 130, 10).await, [1, 2, 3, 5, 9], "of every instance; 9 was not told in the end");
    assert_eq!(waits(0, 110, 129, 10).await, [3, 5, 9], "what is over is over");
    assert_eq!(waits(0, 0, 130, 2).await, [1, 2]);
    assert_eq!(waits(2, 0, 130, 10).await, [3, 5, 9], "the next page");
    assert!(waits(0, 0, 109, 10).await.is_empty());
}

async fn a_notice_is_begun_until_it_is_ended(records: &(impl Records + ?Sized)) {
    let claimed = Capability { stage: Stage::Claimed, ..capability(2, 100) };
    let answered = Capability { stage: Stage::Answered, ..capability(3, 100) };
    keep(records, &[capability(1, 100), claimed, answered]).await;
    let stage = async |id| records.capability(CapabilityId(id)).await.unwrap().unwrap().stage;
    for id in [2, 3, 9].map(CapabilityId) {
        assert!(!records.begin_notice(id).await.unwrap(), "an answer came first");
        records.end_notice(id).await.unwrap();
    }
    assert_eq!((stage(2).await, stage(3).await), (Stage::Claimed, Stage::Answered));
    assert!(records.capability(CapabilityId(9)).await.unwrap().is_none());
    let told = CapabilityId(1);
    assert!(records.begin_notice(told).await.unwrap());
    assert!(records.begin_notice(told).await.unwrap(), "it is told again, until that is ended");
    records.end_notice(told).await.unwrap();
    assert!(!records.begin_notice(told).await.unwrap());
    assert_eq!(stage(1).await, Stage::Noticed);
}

on_every_engine!(
    an_instance_holds_what_is_its_own_and_not_over,
    who_still_waits_near_the_end_is_found_oldest_first,
    a_notice_is_begun_until_it_is_ended,
);
