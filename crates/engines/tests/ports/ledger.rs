//! What every ledger must do: nothing is called twice because two believe an
//! action to be theirs, and nobody's answer is taken by another.

use crate::store::directory::bot;
use crate::store::open::Opened;
use crate::store::vault::{interaction, notify, send};
use angelia_core::clock;
use angelia_core::egress::{ActionState, Owner};
use angelia_core::error::Kind;
use angelia_core::inbox::InstanceId;
use angelia_core::lease;
use angelia_core::ports::{
    Accepted, ActionId, ActionOutcome, LeaseToken, Leases, Ledger, LeftOpen, NewAction, StoredAction, Term,
};
use angelia_core::store::VaultStore;
use angelia_core::vault::{Answering, Capability, CapabilityId, Stage, Use, Way};
use angelia_engines::memory::MemoryLedger;

/// An engine, with what a test has to do and see beside the port.
trait Engine {
    fn ledger(&self) -> &dyn Ledger;

    fn instance(&self) -> InstanceId;

    /// Puts the interaction `i<n>` of ann's in the lab into the vault, with number `n`.
    async fn ask(&self, n: i64);

    async fn stage(&self, n: i64) -> Stage;

    /// Makes somebody new the holder of the bot's lease.
    async fn next_holder(&self, before: Option<LeaseToken>) -> LeaseToken;
}

struct OnDisk(Opened, InstanceId);

impl OnDisk {
    async fn new() -> Self {
        let opened = Opened::new();
        let instance = opened.instance("a").await;
        Self(opened, instance)
    }
}

impl Engine for OnDisk {
    fn ledger(&self) -> &dyn Ledger {
        &*self.0.store
    }

    fn instance(&self) -> InstanceId {
        self.1
    }

    async fn ask(&self, n: i64) {
        self.0.store.take_in(&bot(), None, vec![interaction(self.1, n)]).await.unwrap();
    }

    async fn stage(&self, n: i64) -> Stage {
        self.0.store.capability(CapabilityId(n)).await.unwrap().unwrap().stage
    }

    async fn next_holder(&self, _before: Option<LeaseToken>) -> LeaseToken {
        let taken = self.0.store.acquire(&lease::of_bot(&bot()), "node", Term::Alone).await;
        taken.unwrap().unwrap().token
    }
}

struct InMemory(MemoryLedger);

impl InMemory {
    async fn new() -> Self {
        Self(MemoryLedger::new(clock::wall))
    }
}

impl Engine for InMemory {
    fn ledger(&self) -> &dyn Ledger {
        &self.0
    }

    fn instance(&self) -> InstanceId {
        InstanceId(1)
    }

    async fn ask(&self, n: i64) {
        let new = interaction(self.instance(), n).capability.unwrap();
        self.0.keep(Capability {
            id: CapabilityId(n),
            kind: new.kind.into(),
            tenant: "acme".into(),
            instance: self.instance(),
            platform: bot().platform.to_string(),
            bot: bot().bot.to_string(),
            chat_id: new.chat_id,
            user_id: new.user_id,
            interaction_id: new.interaction_id,
            deferral: new.deferral,
            stage: Stage::Open,
            noticed_at: None,
            sealed: new.sealed.to_vec(),
            expires_at: new.expires_at,
        });
    }

    async fn stage(&self, n: i64) -> Stage {
        self.0.capability(CapabilityId(n)).unwrap().stage
    }

    async fn next_holder(&self, before: Option<LeaseToken>) -> LeaseToken {
        LeaseToken(before.map_or(1, |token| token.0 + 1))
    }
}

macro_rules! on_every_engine {
    ($($name:ident),* $(,)?) => {
        mod on_disk {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::OnDisk::new().await).await;
            })*
        }
        mod in_memory {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::InMemory::new().await).await;
            })*
        }
    };
}

on_every_engine!(
    actions_are_numbered_in_the_order_they_are_given,
    an_action_goes_to_and_fro_until_it_has_ended,
    owners_are_never_the_same,
    only_its_owner_changes_an_action,
    what_is_adopted_is_one_owners_alone,
    what_is_adopted_is_told_from_what_comes_after,
    one_who_is_replaced_accepts_and_adopts_nothing,
    many_end_in_one_commit,
    what_is_said_of_a_message_in_doubt_comes_with_its_end,
    each_interaction_is_claimed_once,
    what_failed_leaves_somebody_waiting,
    what_another_claimed_is_answered_too_if_that_failed,
    nobody_claims_what_is_not_theirs,
    crashes_are_counted,
    receipts_go_to_what_was_sent,
    who_holds_a_bot_takes_over_what_it_has_to_do,
    a_holder_that_was_replaced_takes_over_nothing,
    how_actions_ended_is_told,
);

fn remark(engine: &impl Engine, chat: &str) -> NewAction {
    NewAction { chat_id: chat.into(), answering: None, ..send(engine.instance(), Answering::default()) }
}

async fn accept(engine: &impl Engine, by: Owner, action: NewAction) -> Accepted {
    engine.ledger().accept(by, vec![action]).await.unwrap()[0]
}

async fn unfinished(engine: &impl Engine, by: Owner) -> Vec<StoredAction> {
    engine.ledger().unfinished(by, ActionId(0), 1_000).await.unwrap()
}

async fn states(engine: &impl Engine, by: Owner) -> Vec<ActionState> {
    unfinished(engine, by).await.into_iter().map(|stored| stored.state).collect()
}

fn ended(state: ActionState, message_id: &str) -> ActionOutcome {
    ActionOutcome { state, message_id: Some(message_id.into()), error: None }
}

/// Whether it was the owner's to finish.
async fn finish(engine: &impl Engine, by: Owner, id: ActionId, outcome: ActionOutcome) -> bool {
    let others = engine.ledger().finish(by, vec![(id, outcome)]).await.unwrap();
    assert!(others.is_empty() || others == [id]);
    others.is_empty()
}

/// Whether a message is known to have been sent.
async fn is_known(engine: &impl Engine, message_id: &str) -> bool {
    let note = async |before| engine.ledger().note_receipt(&bot(), message_id, before, "read").await.unwrap();
    note(None).await || note(Some("read")).await
}

async fn actions_are_numbered_in_the_order_they_are_given(engine: impl Engine) {
    let me = engine.ledger().new_owner().await.unwrap();
    assert!(engine.ledger().accept(me, Vec::new()).await.unwrap().is_empty());
    let batch = (0..20).map(|n| remark(&engine, &format!("c{n}"))).collect();
    let accepted = engine.ledger().accept(me, batch).await.unwrap();
    let later = accept(&engine, me, remark(&engine, "later")).await;
    assert!(accepted.is_sorted_by_key(|it| it.id) && accepted[19].id < later.id);
    let found = unfinished(&engine, me).await;
    let chats: Vec<_> = found.iter().map(|stored| stored.chat_id.as_str()).collect();
    assert_eq!((chats[0], chats[19], chats[20]), ("c0", "c19", "later"));
    let page = engine.ledger().unfinished(me, accepted[4].id, 3).await.unwrap();
    assert_eq!(page.iter().map(|it| it.id).collect::<Vec<_>>(), [5, 6, 7].map(|n: usize| accepted[n].id));
    assert_eq!(engine.ledger().body(later.id).await.unwrap().as_deref(), Some(&b"{}"[..]));
    assert_eq!(found[20].bytes, 2);
}

async fn an_action_goes_to_and_fro_until_it_has_ended(engine: impl Engine) {
    let me = engine.ledger().new_owner().await.unwrap();
    let id = accept(&engine, me, remark(&engine, "lab")).await.id;
    engine.ledger().postpone(me, id).await.unwrap();
    assert_eq!(states(&engine, me).await, [ActionState::Accepted]);
    let before = clock::wall();
    assert!(engine.ledger().begin(me, id).await.unwrap());
    let begun = unfinished(&engine, me).await[0].begun_at;
    assert!(begun.is_some_and(|at| before <= at && at <= clock::wall()), "{begun:?}");
    assert!(engine.ledger().begin(me, id).await.unwrap(), "it may be called again");
    assert_eq!(unfinished(&engine, me).await[0].begun_at, begun, "the first time counts");
    engine.ledger().postpone(me, id).await.unwrap();
    let found = unfinished(&engine, me).await;
    assert_eq!((found[0].state, found[0].begun_at), (ActionState::Accepted, None), "it was not begun");
    assert!(finish(&engine, me, id, ended(ActionState::Superseded, "m9")).await);
    assert!(!engine.ledger().begin(me, id).await.unwrap(), "what has ended is not called");
    assert!(finish(&engine, me, id, ended(ActionState::Sent, "m10")).await, "it is still its owner's");
    assert_eq!(states(&engine, me).await, []);
    assert_eq!(engine.ledger().body(id).await.unwrap(), None, "the text goes with the end");
    assert!(is_known(&engine, "m9").await && !is_known(&engine, "m10").await, "an end does not change");
    assert!(!engine.ledger().begin(me, ActionId(id.0 + 1)).await.unwrap(), "there is no such action");
}

/// In one commit, once, and by its owner alone.
async fn what_is_said_of_a_message_in_doubt_comes_with_its_end(engine: impl Engine) {
    let ledger = engine.ledger();
    let (me, heir) = (ledger.new_owner().await.unwrap(), ledger.new_owner().await.unwrap());
    let [first, second] = [0, 1].map(|n| remark(&engine, &format!("c{n}")));
    let first = accept(&engine, me, first).await.id;
    let second = accept(&engine, me, second).await.id;
    assert!(ledger.begin(me, first).await.unwrap());
    let said =
        || NewAction { op: "remark".into(), body: b"{\"perhaps\":1}".to_vec(), ..remark(&engine, "c0") };
    let leave_open = |by, id| ledger.leave_open(by, id, ended(ActionState::Ambiguous, "m1"), said());
    assert_eq!(leave_open(heir, first).await.unwrap(), LeftOpen::NotOurs);
    assert_eq!(states(&engine, me).await, [ActionState::Sending, ActionState::Accepted], "nothing changed");
    let LeftOpen::Remarked(number) = leave_open(me, first).await.unwrap() else { panic!("it is ours") };
    assert!(number > second && is_known(&engine, "m1").await);
    assert_eq!(ledger.body(first).await.unwrap(), None);
    assert_eq!(leave_open(me, first).await.unwrap(), LeftOpen::Before, "it is not said twice");
    assert_eq!(
        leave_open(me, ActionId(number.0 + 1)).await.unwrap(),
        LeftOpen::Before,
        "there is no such action"
    );
    ledger.adopt(heir, None).await.unwrap();
    let found = unfinished(&engine, heir).await;
    assert_eq!(
        found.iter().map(|it| it.id).collect::<Vec<_>>(),
        [second, number],
        "the next process says it"
    );
    assert_eq!((found[1].op.as_str(), found[1].bytes), ("remark", 13));
}

async fn owners_are_never_the_same(engine: impl Engine) {
    let mut owners = Vec::new();
    for _ in 0..3 {
        owners.push(engine.ledger().new_owner().await.unwrap());
    }
    assert!(owners[0] < owners[1] && owners[1] < owners[2], "{owners:?}");
    assert!(owners[0] > Owner(0), "what no owner is known of is nobody's");
}

async fn only_its_owner_changes_an_action(engine: impl Engine) {
    let me = engine.ledger().new_owner().await.unwrap();
    let other = engine.ledger().new_owner().await.unwrap();
    let id = accept(&engine, me, remark(&engine, "lab")).await.id;
    assert!(!engine.ledger().begin(other, id).await.unwrap());
    assert!(!finish(&engine, other, id, ended(ActionState::Failed, "m1")).await, "it is told so");
    assert_eq!(
        (states(&engine, me).await, states(&engine, other).await),
        (vec![ActionState::Accepted], vec![])
    );
    assert!(engine.ledger().begin(me, id).await.unwrap());
    engine.ledger().postpone(other, id).await.unwrap();
    assert_eq!(states(&engine, me).await, [ActionState::Sending]);
}

async fn what_is_adopted_is_one_owners_alone(engine: impl Engine) {
    let (gone, lives) =
        (engine.ledger().new_owner().await.unwrap(), engine.ledger().new_owner().await.unwrap());
    let left = accept(&engine, gone, remark(&engine, "lab")).await.id;
    let kept = accept(&engine, lives, remark(&engine, "lab")).await.id;
    let heir = engine.ledger().new_owner().await.unwrap();
    engine.ledger().adopt(heir, Some(gone)).await.unwrap();
    // Believed dead, it wakes up and goes on: too late.
    assert!(!engine.ledger().begin(gone, left).await.unwrap());
    assert!(!finish(&engine, gone, left, ended(ActionState::Sent, "m1")).await);
    assert!(engine.ledger().begin(heir, left).await.unwrap());
    assert!(engine.ledger().begin(lives, kept).await.unwrap(), "it was not this one's that was left");
    let all = engine.ledger().new_owner().await.unwrap();
    engine.ledger().adopt(all, None).await.unwrap();
    assert_eq!(states(&engine, all).await, [ActionState::Sending; 2], "how far it came is kept");
    for before in [gone, lives, heir] {
        assert_eq!(states(&engine, before).await, []);
    }
    assert!(!finish(&engine, heir, left, ended(ActionState::Sent, "m2")).await);
    assert!(!is_known(&engine, "m1").await && !is_known(&engine, "m2").await);
    assert!(finish(&engine, all, left, ended(ActionState::Sent, "m3")).await);
    assert!(is_known(&engine, "m3").await);
}

async fn what_is_adopted_is_told_from_what_comes_after(engine: impl Engine) {
    let (before, me) =
        (engine.ledger().new_owner().await.unwrap(), engine.ledger().new_owner().await.unwrap());
    assert_eq!(engine.ledger().adopt(before, None).await.unwrap(), ActionId(0), "there is none");
    let left = accept(&engine, before, remark(&engine, "lab")).await.id;
    let done = accept(&engine, before, remark(&engine, "lab")).await.id;
    assert!(finish(&engine, before, done, ended(ActionState::Sent, "m1")).await);
    let last = engine.ledger().adopt(me, None).await.unwrap();
    let mine = accept(&engine, me, remark(&engine, "lab")).await.id;
    assert!(left <= last && done <= last && last < mine);
    assert_eq!(unfinished(&engine, me).await.len(), 2, "what has ended stays whose it was");
}

async fn one_who_is_replaced_accepts_and_adopts_nothing(engine: impl Engine) {
    let ledger = engine.ledger();
    let mut owners = Vec::new();
    for _ in 0..4 {
        owners.push(ledger.new_owner().await.unwrap());
    }
    let [dead, slow, heir, later] = owners[..] else { panic!() };
    let left = accept(&engine, dead, remark(&engine, "lab")).await.id;
    ledger.adopt(heir, Some(slow)).await.unwrap();
    // It was about to take up what the dead one left, and stood still meanwhile.
    assert_eq!(ledger.adopt(slow, Some(dead)).await.unwrap_err().kind(), Kind::Conflict);
    let refused = ledger.accept(slow, vec![remark(&engine, "lab")]).await;
    assert_eq!(refused.unwrap_err().kind(), Kind::Conflict, "nobody would look for it");
    assert!(unfinished(&engine, slow).await.is_empty());
    ledger.adopt(heir, Some(dead)).await.unwrap();
    assert!(ledger.begin(heir, left).await.unwrap());
    accept(&engine, heir, remark(&engine, "lab")).await;
    ledger.adopt(heir, Some(heir)).await.unwrap();
    accept(&engine, heir, remark(&engine, "lab")).await;
    // Whoever came before is replaced with everybody; whoever came later is not.
    ledger.adopt(heir, None).await.unwrap();
    accept(&engine, later, remark(&engine, "lab")).await;
    ledger.adopt(later, None).await.unwrap();
    for before in [dead, slow, heir] {
        assert!(ledger.accept(before, vec![remark(&engine, "lab")]).await.is_err(), "{before:?}");
    }
    accept(&engine, later, remark(&engine, "lab")).await;
}

async fn many_end_in_one_commit(engine: impl Engine) {
    let me = engine.ledger().new_owner().await.unwrap();
    let other = engine.ledger().new_owner().await.unwrap();
    let (first, second) = (
        accept(&engine, me, remark(&engine, "lab")).await,
        accept(&engine, me, remark(&engine, "lab")).await,
    );
    let theirs = accept(&engine, other, remark(&engine, "lab")).await;
    let ends =
        [first, second, theirs].map(|it| (it.id, ended(ActionState::Superseded, &format!("m{}", it.id.0))));
    assert_eq!(engine.ledger().finish(me, ends.to_vec()).await.unwrap(), [theirs.id]);
    assert_eq!(
        (states(&engine, me).await, states(&engine, other).await),
        (vec![], vec![ActionState::Accepted])
    );
}

async fn each_interaction_is_claimed_once(engine: impl Engine) {
    let me = engine.ledger().new_owner().await.unwrap();
    engine.ask(1).await;
    engine.ask(2).await;
    let answer = || send(engine.instance(), notify());
    let accepted = engine.ledger().accept(me, vec![answer(), answer(), answer()]).await.unwrap();
    let original = |n| Some(Use { capability: CapabilityId(n), way: Way::Original });
    assert_eq!([0, 1, 2].map(|n: usize| accepted[n].uses), [original(1), original(2), None]);
    assert!(accepted[0].uses_until.is_some_and(|end| end > clock::wall()));
    assert_eq!((engine.stage(1).await, engine.stage(2).await), (Stage::Claimed, Stage::Claimed));
    let heir = engine.ledger().new_owner().await.unwrap();
    engine.ledger().adopt(heir, None).await.unwrap();
    let found = unfinished(&engine, heir).await;
    assert_eq!(found.iter().map(|it| it.uses).collect::<Vec<_>>(), [original(1), original(2), None]);
    assert_eq!(found[0].uses_until, accepted[0].uses_until);
    assert!(finish(&engine, heir, accepted[0].id, ended(ActionState::Sent, "m1")).await);
    assert!(finish(&engine, heir, accepted[1].id, ended(ActionState::Ambiguous, "m2")).await);
    assert_eq!((engine.stage(1).await, engine.stage(2).await), (Stage::Answered, Stage::Answered));
}

async fn what_failed_leaves_somebody_waiting(engine: impl Engine) {
    let me = engine.ledger().new_owner().await.unwrap();
    let other = engine.ledger().new_owner().await.unwrap();
    engine.ask(1).await;
    let first = accept(&engine, me, send(engine.instance(), notify())).await;
    assert!(!finish(&engine, other, first.id, ended(ActionState::Failed, "m1")).await);
    assert_eq!(engine.stage(1).await, Stage::Claimed, "nobody else ends it");
    assert!(finish(&engine, me, first.id, ended(ActionState::Failed, "m1")).await);
    assert_eq!(engine.stage(1).await, Stage::Open);
    let second = accept(&engine, me, send(engine.instance(), notify())).await;
    assert_eq!(second.uses, first.uses);
}

async fn what_another_claimed_is_answered_too_if_that_failed(engine: impl Engine) {
    let me = engine.ledger().new_owner().await.unwrap();
    engine.ask(1).await;
    let reply = || Answering { reply_to: Some("i1".into()), ..Answering::default() };
    let first = accept(&engine, me, send(engine.instance(), reply())).await;
    let second = accept(&engine, me, send(engine.instance(), reply())).await;
    assert_eq!((first.uses.unwrap().way, second.uses.unwrap().way), (Way::Original, Way::Further));
    assert!(finish(&engine, me, first.id, ended(ActionState::Failed, "m1")).await);
    assert!(finish(&engine, me, second.id, ended(ActionState::Sent, "m2")).await);
    assert_eq!(engine.stage(1).await, Stage::Answered);
}

async fn nobody_claims_what_is_not_theirs(engine: impl Engine) {
    let me = engine.ledger().new_owner().await.unwrap();
    engine.ask(1).await;
    let named = || Answering { named: Some(CapabilityId(1)), ..Answering::default() };
    let theirs = |change: fn(&mut NewAction)| {
        let mut action = send(engine.instance(), named());
        change(&mut action);
        action
    };
    let strangers = vec![
        theirs(|it| it.tenant = "other".into()),
        theirs(|it| it.instance = InstanceId(99)),
        theirs(|it| it.platform = "telegram".into()),
        theirs(|it| it.bot = "second".into()),
        theirs(|it| it.answering.as_mut().unwrap().chat_id = "den".into()),
    ];
    for stranger in strangers {
        assert_eq!(accept(&engine, me, stranger).await.uses, None);
    }
    assert_eq!(engine.stage(1).await, Stage::Open);
    assert!(accept(&engine, me, theirs(|_| ())).await.uses.is_some());
}

async fn crashes_are_counted(engine: impl Engine) {
    let ledger = engine.ledger();
    let first = ledger.new_owner().await.unwrap();
    let called = accept(&engine, first, remark(&engine, "lab")).await.id;
    accept(&engine, first, remark(&engine, "lab")).await;
    assert!(ledger.begin(first, called).await.unwrap());
    let mut counted = Vec::new();
    for calls in [true, false, true] {
        let next = ledger.new_owner().await.unwrap();
        ledger.adopt(next, None).await.unwrap();
        let found = unfinished(&engine, next).await;
        counted.push((found[0].crashes, found[1].crashes));
        if calls {
            assert!(ledger.begin(next, called).await.unwrap());
        }
    }
    let last = ledger.new_owner().await.unwrap();
    ledger.adopt(last, None).await.unwrap();
    counted.push((unfinished(&engine, last).await[0].crashes, 0));
    assert_eq!(counted, [(1, 0), (2, 0), (2, 0), (3, 0)], "the third only had it waiting");
}

async fn receipts_go_to_what_was_sent(engine: impl Engine) {
    let me = engine.ledger().new_owner().await.unwrap();
    let id = accept(&engine, me, remark(&engine, "lab")).await.id;
    assert!(finish(&engine, me, id, ended(ActionState::Sent, "m1")).await);
    assert!(is_known(&engine, "m1").await && !is_known(&engine, "m2").await);
    let stranger = angelia_core::directory::BotKey::new("discord", "second");
    let ledger = engine.ledger();
    assert!(!ledger.note_receipt(&stranger, "m1", Some("read"), "failed").await.unwrap());
    // Of two who read the same before, one is late.
    assert!(ledger.note_receipt(&bot(), "m1", Some("read"), "failed").await.unwrap());
    assert!(!ledger.note_receipt(&bot(), "m1", Some("read"), "sent").await.unwrap());
    assert!(!ledger.note_receipt(&bot(), "m1", None, "sent").await.unwrap());
}

async fn who_holds_a_bot_takes_over_what_it_has_to_do(engine: impl Engine) {
    let ledger = engine.ledger();
    let of_another = |action: NewAction| NewAction { bot: "second".into(), ..action };
    // A server that was alone had everything under one owner.
    let alone = ledger.new_owner().await.unwrap();
    let left = accept(&engine, alone, remark(&engine, "lab")).await.id;
    let others = accept(&engine, alone, of_another(remark(&engine, "lab"))).await.id;
    assert!(ledger.begin(alone, left).await.unwrap());
    assert_eq!(ledger.outbox(&bot()).await.unwrap(), None, "nobody held it");
    assert_eq!(ledger.owners(&bot()).await.unwrap(), [alone]);
    let token = engine.next_holder(None).await;
    let first = ledger.take_over(&bot(), token).await.unwrap();
    assert!(first > alone);
    assert_eq!(ledger.outbox(&bot()).await.unwrap(), Some(first));
    assert_eq!(ledger.owners(&bot()).await.unwrap(), [first]);
    let found = unfinished(&engine, first).await;
    assert_eq!(found.iter().map(|it| (it.id, it.crashes)).collect::<Vec<_>>(), [(left, 1)]);
    assert!(!ledger.begin(alone, left).await.unwrap() && ledger.begin(alone, others).await.unwrap());
    // Whoever has a gateway accepts for whoever has the bot.
    let waits = accept(&engine, first, remark(&engine, "lab")).await.id;
    let second = ledger.take_over(&bot(), engine.next_holder(Some(token)).await).await.unwrap();
    assert_eq!(ledger.outbox(&bot()).await.unwrap(), Some(second));
    let refused = ledger.accept(first, vec![remark(&engine, "lab")]).await;
    assert_eq!(refused.unwrap_err().kind(), Kind::Conflict, "nobody would look for it");
    assert!(!ledger.begin(first, waits).await.unwrap());
    assert!(!finish(&engine, first, left, ended(ActionState::Sent, "m1")).await);
    let found = unfinished(&engine, second).await;
    assert_eq!(
        found.iter().map(|it| (it.id, it.crashes)).collect::<Vec<_>>(),
        [(left, 1), (waits, 0)],
        "the first did not call for either"
    );
    assert!(ledger.begin(second, waits).await.unwrap());
    assert_eq!(states(&engine, alone).await, [ActionState::Sending], "another bot is not concerned");
}

async fn a_holder_that_was_replaced_takes_over_nothing(engine: impl Engine) {
    let ledger = engine.ledger();
    let slow = engine.next_holder(None).await;
    let next = engine.next_holder(Some(slow)).await;
    let owner = ledger.take_over(&bot(), next).await.unwrap();
    let id = accept(&engine, owner, remark(&engine, "lab")).await.id;
    assert_eq!(ledger.take_over(&bot(), slow).await.unwrap_err().kind(), Kind::Unavailable);
    assert_eq!(ledger.outbox(&bot()).await.unwrap(), Some(owner));
    assert!(ledger.begin(owner, id).await.unwrap(), "nothing changed");
    accept(&engine, owner, remark(&engine, "lab")).await;
    let again = ledger.take_over(&bot(), next).await.unwrap();
    assert!(again > owner && !ledger.begin(owner, id).await.unwrap(), "the same holder may begin anew");
    assert_eq!(unfinished(&engine, again).await.len(), 2);
}

async fn how_actions_ended_is_told(engine: impl Engine) {
    let ledger = engine.ledger();
    let me = ledger.new_owner().await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(accept(&engine, me, remark(&engine, "lab")).await.id);
    }
    assert!(ledger.outcomes(Vec::new()).await.unwrap().is_empty());
    assert!(ledger.outcomes(ids.clone()).await.unwrap().is_empty(), "nothing has ended");
    let failed =
        ActionOutcome { state: ActionState::Failed, message_id: None, error: Some("no such chat".into()) };
    assert!(finish(&engine, me, ids[0], ended(ActionState::Sent, "m1")).await);
    assert!(finish(&engine, me, ids[2], failed.clone()).await);
    let asked = vec![ids[2], ids[1], ids[0], ActionId(ids[2].0 + 1)];
    let mut told = ledger.outcomes(asked).await.unwrap();
    told.sort_by_key(|(id, _)| *id);
    assert_eq!(told, [(ids[0], ended(ActionState::Sent, "m1")), (ids[2], failed)]);
    assert_eq!(ledger.owners(&bot()).await.unwrap(), [me]);
    assert!(finish(&engine, me, ids[1], ended(ActionState::Sent, "m2")).await);
    assert!(ledger.owners(&bot()).await.unwrap().is_empty());
}
