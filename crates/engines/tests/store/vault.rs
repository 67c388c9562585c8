//! Capabilities: how they come in, who may use them, and when they go.

use super::directory::{bot, chat, seen};
use super::identity::{by, gateway};
use super::open::{ME, Opened, entry};
use angelia_core::clock::{self, UnixMillis};
use angelia_core::egress::ActionState;
use angelia_core::inbox::{CancellableWrite, EntryKind, InstanceId};
use angelia_core::store::{
    Accepted, ActionId, ActionOutcome, Appended, Cursor, IdentityStore, Intake, JournalStore, NewAction,
    NewEntry, StreamStore, Taken, VaultStore,
};
use angelia_core::vault::{
    Answering, Capability, CapabilityId, Deferral, LIVES_FOR, NewCapability, Stage, Use, Way,
};

/// The kind of those that the tests are about.
const INTERACTION: &str = "discord.interaction_token";

/// An interaction of ann's in the lab; its capability gets the number it is given.
pub(crate) fn interaction(instance: InstanceId, n: i64) -> Intake {
    let entry = NewEntry {
        kind: EntryKind::Interaction,
        platform: "discord".into(),
        bot: "main".into(),
        chat_id: "lab".into(),
        ..entry(instance, &format!("i{n}"))
    };
    let capability = NewCapability {
        kind: INTERACTION,
        chat_id: "lab".into(),
        user_id: "ann".into(),
        interaction_id: format!("i{n}"),
        deferral: Deferral::Message,
        sealed: vec![n as u8].into(),
        expires_at: clock::wall().after(LIVES_FOR),
    };
    Intake { entry: Some(entry), capability: Some(capability), ..Intake::default() }
}

fn changed(mut intake: Intake, change: impl FnOnce(&mut NewCapability)) -> Intake {
    change(intake.capability.as_mut().unwrap());
    intake
}

/// What a gateway of the instance says in the lab.
pub(crate) fn send(instance: InstanceId, answering: Answering) -> NewAction {
    let answering = Answering { chat_id: "lab".into(), ..answering };
    NewAction {
        tenant: "acme".into(),
        gateway_id: None,
        thread_id: None,
        edits: None,
        instance,
        platform: "discord".into(),
        bot: "main".into(),
        chat_id: "lab".into(),
        op: "send".into(),
        reply_to: answering.reply_to.clone(),
        body: b"{}".to_vec(),
        answering: Some(answering),
        received_at: clock::wall(),
    }
}

pub(crate) fn notify() -> Answering {
    Answering { notify: true, ..Answering::default() }
}

fn reply(n: i64) -> Answering {
    Answering { reply_to: Some(format!("i{n}")), ..Answering::default() }
}

fn named(n: i64) -> Answering {
    Answering { named: Some(CapabilityId(n)), ..Answering::default() }
}

fn uses(n: i64, way: Way) -> Option<Use> {
    Some(Use { capability: CapabilityId(n), way })
}

impl Opened {
    /// A store whose instance `a` holds the capabilities 1 to `count`.
    async fn with_interactions(count: i64) -> (Self, InstanceId) {
        let opened = Self::new();
        let a = opened.instance("a").await;
        opened.take(a, 1..=count).await;
        (opened, a)
    }

    async fn take(&self, instance: InstanceId, numbers: impl IntoIterator<Item = i64>) {
        let intakes = numbers.into_iter().map(|n| interaction(instance, n)).collect();
        self.store.take_in(&bot(), None, intakes).await.unwrap();
    }

    async fn held(&self, instance: InstanceId) -> Vec<Capability> {
        self.store.capabilities(instance, clock::wall()).await.unwrap()
    }

    async fn accept(&self, action: NewAction) -> Accepted {
        self.store.accept(ME, vec![action]).await.unwrap()[0]
    }

    async fn finish(&self, id: ActionId, state: ActionState) {
        let outcome = ActionOutcome { state, message_id: None, error: None };
        self.store.finish(ME, vec![(id, outcome)]).await.unwrap();
    }

    async fn stage(&self, n: i64) -> Stage {
        self.store.capability(CapabilityId(n)).await.unwrap().unwrap().stage
    }

    /// Ends a capability now.
    fn expire(&self, n: i64) {
        let now = clock::wall().0;
        self.sql(&format!("UPDATE capabilities SET expires_at = {now} WHERE id = {n}"));
    }
}

#[tokio::test]
async fn a_capability_is_kept_with_a_new_entry_and_with_nothing_else() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    let pressed = changed(interaction(a, 1), |it| it.deferral = Deferral::Update);
    opened.store.take_in(&bot(), None, vec![pressed.clone()]).await.unwrap();
    let opened = opened.reopen();
    let NewCapability { sealed, expires_at, .. } = pressed.capability.clone().unwrap();
    let kept = opened.store.capability(CapabilityId(1)).await.unwrap().unwrap();
    assert_eq!(
        (kept.tenant.as_str(), kept.instance, kept.bot_key()),
        ("acme", a, bot()),
        "as the entry says"
    );
    assert_eq!((kept.kind.as_str(), kept.chat_id.as_str()), (INTERACTION, "lab"));
    assert_eq!((kept.user_id.as_str(), kept.interaction_id.as_str()), ("ann", "i1"));
    assert_eq!((kept.deferral, kept.stage), (Deferral::Update, Stage::Open));
    assert_eq!((kept.sealed, kept.expires_at), (sealed.to_vec(), expires_at));

    let taken = opened.store.take_in(&bot(), None, vec![pressed]).await.unwrap();
    assert!(matches!(taken[0].appended, Some(Appended::Seen(_))), "{taken:?}");
    let alone = Intake { entry: None, ..interaction(a, 2) };
    opened.store.take_in(&bot(), None, vec![alone]).await.unwrap();
    opened.store.revoke_gateway("acme", "a", &by()).await.unwrap();
    let taken = opened.store.take_in(&bot(), None, vec![interaction(a, 3)]).await.unwrap();
    assert_eq!(taken, [Taken { no_instance: true, ..Taken::default() }]);
    assert_eq!(opened.held(a).await.len(), 1);
    assert!(opened.store.capability(CapabilityId(2)).await.unwrap().is_none());
}

#[tokio::test]
async fn what_nobody_waits_for_any_more_is_read_and_not_kept() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    let patience = CancellableWrite::default();
    let intake = |n, patience: &CancellableWrite| Intake {
        chats: vec![chat("lab")],
        traffic: vec![seen("lab", &format!("i{n}"), n)],
        cursor: Some(Cursor { stream: "shard 0".into(), position: n.to_string() }),
        patience: Some(patience.clone()),
        ..interaction(a, n)
    };
    assert!(patience.give_up());
    let taken = opened.store.take_in(&bot(), None, vec![intake(1, &patience)]).await.unwrap();
    assert_eq!(taken, [Taken { given_up: true, ..Taken::default() }]);
    assert!(opened.held(a).await.is_empty() && opened.seqs(a).await.is_empty());
    assert!(opened.store.explain("i1").await.unwrap().is_empty());
    assert!(opened.witness.appended.lock().unwrap().is_empty());
    assert_eq!(opened.store.cursors(&bot()).await.unwrap()[0].position, "1", "the stream goes on");
    assert_eq!(opened.known(&bot(), "lab").await.unwrap().last_message.as_deref(), Some("i1"));

    let patient = CancellableWrite::default();
    let taken = opened.store.take_in(&bot(), None, vec![intake(1, &patient)]).await.unwrap();
    assert!(matches!(taken[0].appended, Some(Appended::New(_))), "the next try is a new one: {taken:?}");
    assert!(!patient.give_up(), "what is written is not given up");
    assert_eq!(opened.held(a).await.len(), 1);
}

#[tokio::test]
async fn an_action_claims_what_it_answers() {
    let (opened, a) = Opened::with_interactions(3).await;
    let bobs = changed(interaction(a, 4), |it| it.user_id = "bob".into());
    let pressed = changed(interaction(a, 5), |it| it.deferral = Deferral::Update);
    opened.store.take_in(&bot(), None, vec![bobs, pressed]).await.unwrap();
    let to = |user: &str| Answering { user_id: Some(user.into()), ..notify() };
    let remark = NewAction { answering: None, ..send(a, notify()) };
    assert_eq!(opened.accept(remark).await.uses, None);
    for (answering, claimed) in [
        (Answering::default(), None),
        (reply(9), None),
        (Answering { notify: true, ..reply(9) }, None),
        (to("eve"), None),
        (reply(2), uses(2, Way::Original)),
        (reply(2), uses(2, Way::Further)),
        (to("bob"), uses(4, Way::Original)),
        (to("bob"), None),
        (notify(), uses(1, Way::Original)),
        (named(1), uses(1, Way::Further)),
        (named(3), uses(3, Way::Original)),
        (notify(), uses(5, Way::Further)),
        (notify(), None),
    ] {
        let accepted = opened.accept(send(a, answering.clone())).await;
        assert_eq!(accepted.uses, claimed, "{answering:?}");
    }
    for n in 1..=5 {
        assert_eq!(opened.stage(n).await, Stage::Claimed);
    }
}

#[tokio::test]
async fn nobody_else_can_claim_it() {
    let (opened, a) = Opened::with_interactions(1).await;
    let b = opened.instance("b").await;
    let theirs = |change: fn(&mut NewAction)| {
        let mut action = send(a, notify());
        change(&mut action);
        action
    };
    let strangers = [
        theirs(|it| it.tenant = "evil".into()),
        theirs(|it| it.platform = "telegram".into()),
        theirs(|it| it.bot = "second".into()),
        theirs(|it| it.chat_id = "den".into()),
        send(b, notify()),
    ];
    for stranger in strangers {
        for answering in [notify(), reply(1), named(1)] {
            let action = NewAction { answering: Some(answering), ..stranger.clone() };
            assert_eq!(opened.accept(action.clone()).await.uses, None, "{action:?}");
        }
    }
    assert_eq!(opened.stage(1).await, Stage::Open);
}

#[tokio::test]
async fn each_is_answered_once_by_what_is_accepted_together() {
    let (opened, a) = Opened::with_interactions(3).await;
    let batch = (0..5).map(|_| send(a, notify())).collect();
    let accepted = opened.store.accept(ME, batch).await.unwrap();
    let claimed: Vec<_> = accepted.iter().map(|it| it.uses).collect();
    let original = |n| uses(n, Way::Original);
    assert_eq!(claimed, [original(1), original(2), original(3), None, None], "oldest first");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_is_answered_once_by_batches_that_race() {
    let (opened, a) = Opened::with_interactions(50).await;
    let mut racing = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let store = opened.store.clone();
        let batch = (0..4).map(|_| send(a, notify())).collect();
        racing.spawn(async move { store.accept(ME, batch).await.unwrap() });
    }
    let mut accepted: Vec<Accepted> = racing.join_all().await.into_iter().flatten().collect();
    accepted.sort_by_key(|it| it.id);
    let claimed: Vec<_> = accepted.iter().map(|it| it.uses).collect();
    let expected = (1..=80).map(|n| if n <= 50 { uses(n, Way::Original) } else { None });
    assert_eq!(claimed, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn it_is_answered_or_open_again_when_its_action_ends() {
    let (opened, a) = Opened::with_interactions(4).await;
    for (n, state, stage, way) in [
        (1, ActionState::Sent, Stage::Answered, Way::Further),
        (2, ActionState::Ambiguous, Stage::Answered, Way::Further),
        (3, ActionState::Failed, Stage::Open, Way::Original),
        (4, ActionState::Superseded, Stage::Open, Way::Original),
    ] {
        let first = opened.accept(send(a, reply(n))).await.id;
        let behind = opened.accept(send(a, reply(n))).await;
        assert_eq!(behind.uses, uses(n, Way::Further));
        opened.finish(behind.id, ActionState::Sent).await;
        assert_eq!(opened.stage(n).await, Stage::Claimed, "it waits for the first");
        opened.store.begin(ME, first).await.unwrap();
        opened.store.postpone(ME, first).await.unwrap();
        assert_eq!(opened.stage(n).await, Stage::Claimed);
        opened.finish(first, state).await;
        assert_eq!(opened.stage(n).await, stage, "{state:?}");
        let next = opened.accept(send(a, reply(n))).await;
        assert_eq!(next.uses, uses(n, way), "{state:?}");
        let before = opened.stage(n).await;
        for late in [ActionState::Failed, ActionState::Sent] {
            opened.finish(first, late).await;
            assert_eq!(opened.stage(n).await, before, "what has ended releases nothing");
        }
    }
}

#[tokio::test]
async fn a_restart_does_not_choose_again() {
    let (opened, a) = Opened::with_interactions(2).await;
    let first = opened.accept(send(a, notify())).await.id;
    let further = opened.accept(send(a, reply(1))).await.id;
    let plain = opened.accept(send(a, Answering::default())).await.id;
    let opened = opened.reopen();
    let unfinished = opened.store.unfinished(ME, ActionId(0), 1_000).await.unwrap();
    let found: Vec<_> = unfinished.iter().map(|it| (it.id, it.uses)).collect();
    let expected = [(first, uses(1, Way::Original)), (further, uses(1, Way::Further)), (plain, None)];
    assert_eq!(found, expected);
    assert_eq!(opened.accept(send(a, notify())).await.uses, uses(2, Way::Original), "the first is taken");
    opened.finish(first, ActionState::Failed).await;
    assert_eq!(opened.stage(1).await, Stage::Open);
}

#[tokio::test]
async fn what_answered_an_interaction_is_shown_with_it() {
    let (opened, a) = Opened::with_interactions(2).await;
    let answer = opened.accept(send(a, notify())).await.id;
    let elsewhere = NewAction { reply_to: Some("m7".into()), ..send(a, named(2)) };
    let follow_up = opened.accept(elsewhere).await.id;
    let plain = opened.accept(send(a, Answering::default())).await.id;
    let replies = async |message: &str| -> Vec<ActionId> {
        let stories = opened.store.explain(message).await.unwrap();
        stories[0].replies.iter().map(|action| action.id).collect()
    };
    assert_eq!(replies("i1").await, [answer]);
    assert_eq!(replies("i2").await, [], "it says itself what it answers");
    for (id, message_id) in [(answer, "s1"), (follow_up, "s2"), (plain, "s3")] {
        let outcome =
            ActionOutcome { state: ActionState::Sent, message_id: Some(message_id.into()), error: None };
        opened.store.finish(ME, vec![(id, outcome)]).await.unwrap();
    }
    let answered = async |sent: &str| opened.store.explain_action(sent).await.unwrap()[0].reply_to.clone();
    assert_eq!(answered("s1").await.as_deref(), Some("i1"));
    assert_eq!(answered("s2").await.as_deref(), Some("m7"));
    assert_eq!(answered("s3").await, None);
}

#[tokio::test]
async fn what_has_ended_is_not_used() {
    let (opened, a) = Opened::with_interactions(4).await;
    opened.expire(1);
    assert!(opened.store.begin_notice(CapabilityId(2)).await.unwrap());
    opened.sql("DELETE FROM capabilities WHERE id = 3");
    for n in 1..=3 {
        for answering in [named(n), reply(n)] {
            assert_eq!(opened.accept(send(a, answering)).await.uses, None, "{n}");
        }
    }
    assert_eq!(opened.accept(send(a, notify())).await.uses, uses(4, Way::Original), "who waits behind them");
    assert_eq!(opened.accept(send(a, notify())).await.uses, None);
    let held: Vec<_> = opened.held(a).await.iter().map(|it| it.id.0).collect();
    assert_eq!(held, [2, 4]);
    assert!(opened.store.capability(CapabilityId(1)).await.unwrap().is_some(), "over, but there");
}

#[tokio::test]
async fn who_is_being_answered_does_not_wait() {
    let (opened, a) = Opened::with_interactions(3).await;
    let far = clock::wall().after(2 * LIVES_FOR);
    let unanswered = async || -> Vec<i64> {
        let found = opened.store.unanswered(CapabilityId(0), clock::wall(), far, 10).await.unwrap();
        found.iter().map(|it| it.id.0).collect()
    };
    let answer = opened.accept(send(a, reply(2))).await.id;
    assert_eq!(unanswered().await, [1, 3], "somebody answers");
    opened.finish(answer, ActionState::Failed).await;
    assert_eq!(unanswered().await, [1, 2, 3]);
    let answer = opened.accept(send(a, reply(2))).await.id;
    opened.finish(answer, ActionState::Sent).await;
    assert_eq!(unanswered().await, [1, 3]);
}

#[tokio::test]
async fn a_notice_that_a_crash_cut_short_is_told_again() {
    let (opened, a) = Opened::with_interactions(3).await;
    let far = clock::wall().after(2 * LIVES_FOR);
    let untold = async |opened: &Opened| -> Vec<(i64, Stage)> {
        let found = opened.store.unanswered(CapabilityId(0), clock::wall(), far, 10).await.unwrap();
        found.iter().map(|it| (it.id.0, it.stage)).collect()
    };
    let (told, claimed, answered) = (CapabilityId(1), CapabilityId(2), CapabilityId(3));
    opened.accept(send(a, reply(2))).await;
    let answer = opened.accept(send(a, reply(3))).await.id;
    opened.finish(answer, ActionState::Sent).await;
    for answering in [claimed, answered, CapabilityId(9)] {
        assert!(!opened.store.begin_notice(answering).await.unwrap(), "an answer came first");
        opened.store.end_notice(answering).await.unwrap();
    }
    assert_eq!((opened.stage(2).await, opened.stage(3).await), (Stage::Claimed, Stage::Answered));
    assert_eq!(untold(&opened).await, [(1, Stage::Open)]);
    assert!(opened.store.begin_notice(told).await.unwrap());
    let opened = opened.reopen();
    assert_eq!(untold(&opened).await, [(1, Stage::Noticed)], "a crash before it was told");
    assert!(opened.store.begin_notice(told).await.unwrap(), "it is told again");
    opened.store.end_notice(told).await.unwrap();
    assert_eq!(untold(&opened).await, []);
    assert!(!opened.store.begin_notice(told).await.unwrap());
    assert_eq!(opened.stage(1).await, Stage::Noticed);
}

#[tokio::test]
async fn an_instance_sees_its_own() {
    let opened = Opened::with_tenants(&["acme", "other"]).await;
    let a = opened.instance("a").await;
    let b = opened.store.create_gateway(gateway("other", "a"), &by()).await.unwrap().instance;
    opened.take(a, [1, 3]).await;
    opened.take(b, [2]).await;
    let ids = async |instance| -> Vec<i64> { opened.held(instance).await.iter().map(|it| it.id.0).collect() };
    assert_eq!((ids(a).await, ids(b).await), (vec![1, 2], vec![3]), "oldest first");
    assert!(ids(InstanceId(99)).await.is_empty());
    opened.store.remove_tenant("acme", Vec::new(), &by()).await.unwrap();
    opened.store.finish_removals().await.unwrap();
    assert!(opened.store.capability(CapabilityId(1)).await.unwrap().is_none(), "they go with the tenant");
    assert_eq!(ids(b).await, [3]);
}

#[tokio::test]
async fn what_is_over_goes() {
    let (opened, a) = Opened::with_interactions(2).await;
    let claimed = opened.accept(send(a, reply(1))).await.id;
    opened.expire(1);
    let many = (3..=1_203).map(|n| changed(interaction(a, n), |it| it.expires_at = UnixMillis(n))).collect();
    opened.store.take_in(&bot(), None, many).await.unwrap();
    opened.store.prune().await.unwrap();
    assert_eq!(opened.sql("SELECT id FROM capabilities"), ["2"]);
    let unfinished = opened.store.unfinished(ME, ActionId(0), 1_000).await.unwrap();
    assert_eq!(unfinished[0].uses, uses(1, Way::Original), "whoever used it finds that it is gone");
    opened.finish(claimed, ActionState::Failed).await;
    opened.take(a, [2_000]).await;
    assert_eq!(opened.held(a).await.last().unwrap().id.0, 1_204, "no number is given again");
}
