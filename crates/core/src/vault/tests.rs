use super::*;
use std::time::Duration;

/// The kind of those that the tests are about.
const INTERACTION: &str = "discord.interaction_token";

const NOW: UnixMillis = UnixMillis(1_000_000);

fn capability(id: i64, chat: &str, user: &str) -> Capability {
    Capability {
        id: CapabilityId(id),
        kind: INTERACTION.into(),
        tenant: "acme".into(),
        instance: InstanceId(1),
        platform: "discord".into(),
        bot: "77".into(),
        chat_id: chat.into(),
        user_id: user.into(),
        interaction_id: format!("9{id}"),
        deferral: Deferral::Message,
        stage: Stage::Open,
        noticed_at: None,
        sealed: Vec::new(),
        expires_at: NOW.after(Duration::from_secs(60)),
    }
}

fn by_key(all: &[Capability], key: &str) -> Option<i64> {
    choose_for_key(all, INTERACTION, key, NOW).map(|it| it.id.0)
}

#[test]
fn every_generation_of_keys_names_its_conversation() {
    let guild = [capability(1, "111", "42")];
    for key in [
        "agent:main:relay:channel:111:42",
        "agent:main:discord:group:111:42",
        "agent:coder:discord:group:111:42",
        "agent:main:discord:group:111",
        "agent:main:discord:thread:111:111",
        "agent:main:discord:thread:111:111:42",
        "agent:main:discord:dm:111",
        "agent:main:relay:dm:111",
    ] {
        assert_eq!(by_key(&guild, key), Some(1), "{key}");
    }
    for key in [
        "",
        "agent",
        "agent:main:discord:group",
        "agent:main:discord:group:111:43",
        "agent:main:discord:group:112:42",
        "agent:main:telegram:group:111:42",
        "agent:main:discord:forum:111:42",
        "agent:main:discord:group:111:42:7",
        "agent:main:discord:group:111:111:111",
        "agent:main:discord:dm:111:42",
        "agent::discord:group:111:42",
        "user:main:discord:group:111:42",
    ] {
        assert_eq!(by_key(&guild, key), None, "{key}");
    }
}

#[test]
fn a_key_names_its_chat() {
    assert_eq!(chat_of("agent:main:relay:channel:111:42"), Some("111"));
    assert_eq!(chat_of("agent:main:discord:thread:222:222"), Some("222"));
    for key in
        ["", "k", "agent:main:discord:group", "agent:main:discord:group:", "agent:main:discord:group::42"]
    {
        assert_eq!(chat_of(key), None, "{key}");
    }
}

#[test]
fn a_key_without_a_person_is_clear_only_if_one_waits() {
    let key = "agent:main:discord:group:111";
    let mut two = [capability(1, "111", "42"), capability(2, "111", "43")];
    assert_eq!(by_key(&two, key), None);
    two[1].expires_at = NOW;
    assert_eq!(by_key(&two, key), Some(1), "the other one is over");
    let twice = [capability(1, "111", "42"), capability(2, "111", "42")];
    assert_eq!(by_key(&twice, key), None);
    assert_eq!(by_key(&twice, "agent:main:discord:group:111:42"), Some(2), "the newest");
    let private = "agent:main:discord:dm:111";
    assert_eq!(by_key(&twice, private), Some(2), "a private chat names its person");
    assert_eq!(
        by_key(&[capability(1, "111", "42"), capability(2, "111", "43")], private),
        None,
        "it is none"
    );
    assert!(choose_for_key(&twice, "discord.other", "agent:main:discord:group:111:42", NOW).is_none());
}

fn sent(all: &[Capability], answering: Answering) -> Option<(i64, Way)> {
    choose_for_send(all, &answering, NOW).map(|it| (it.capability.0, it.way))
}

#[test]
fn a_send_answers_what_it_names_or_what_waits_longest() {
    let mut all = [capability(1, "111", "42"), capability(2, "111", "43"), capability(3, "111", "42")];
    let reply = |id: &str| Answering { reply_to: Some(id.into()), ..Answering::default() };
    let notify = || Answering { notify: true, ..Answering::default() };
    let to = |user: &str| Answering { user_id: Some(user.into()), ..notify() };
    assert_eq!(sent(&all, reply("92")), Some((2, Way::Original)));
    assert_eq!(sent(&all, reply("5")), None, "another message");
    assert_eq!(sent(&all, Answering { notify: true, ..reply("5") }), None);
    assert_eq!(sent(&all, Answering::default()), None, "a remark of the gateway's own");
    assert_eq!(sent(&all, notify()), Some((1, Way::Original)));
    assert_eq!(sent(&all, to("43")), Some((2, Way::Original)));
    assert_eq!(sent(&all, to("44")), None);
    all[0].stage = Stage::Claimed;
    assert_eq!(sent(&all, notify()), Some((2, Way::Original)), "each is answered once");
    assert_eq!(sent(&all, reply("91")), Some((1, Way::Further)));
    all[1].stage = Stage::Answered;
    assert_eq!(sent(&all, reply("92")), Some((2, Way::Further)));
    all[2].deferral = Deferral::Update;
    assert_eq!(sent(&all, to("42")), Some((3, Way::Further)), "what was pressed stays as it is");
    all[2].stage = Stage::Noticed;
    assert_eq!(sent(&all, reply("93")), None, "after the notice it is a message like any other");
    all[1].expires_at = NOW;
    assert_eq!(sent(&all, reply("92")), None);
    all[0].stage = Stage::Open;
    let named = Answering { named: Some(CapabilityId(1)), ..Answering::default() };
    assert_eq!(sent(&all, named), Some((1, Way::Original)));
}

#[test]
fn a_stage_follows_the_action_that_claimed_it() {
    use crate::egress::ActionState::{Ambiguous, Failed, Sent, Superseded};
    assert_eq!(Stage::Open.claim(), Some(Stage::Claimed));
    for stage in [Stage::Claimed, Stage::Answered, Stage::Noticed] {
        assert_eq!(stage.claim(), None, "each is claimed once");
    }
    for heard in [Sent, Ambiguous] {
        assert_eq!(Stage::Claimed.release(true, heard), Some(Stage::Answered));
        assert_eq!(Stage::Claimed.release(false, heard), None, "another answers it");
        assert_eq!(Stage::Open.release(false, heard), Some(Stage::Answered), "that one failed");
    }
    for unheard in [Failed, Superseded] {
        assert_eq!(Stage::Claimed.release(true, unheard), Some(Stage::Open));
        assert_eq!(Stage::Open.release(false, unheard), None);
    }
    for (stage, claimed) in
        [Stage::Answered, Stage::Noticed].into_iter().flat_map(|it| [(it, true), (it, false)])
    {
        assert_eq!(stage.release(claimed, Sent), None);
    }
}
