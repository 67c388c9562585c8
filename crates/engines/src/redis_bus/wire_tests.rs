//! Every hint comes out as it went in, and nothing else comes out at all.

use super::*;
use angelia_core::directory::BotKey;
use angelia_core::inbox::Epoch;
use angelia_core::media::{FileId, MediaKind};
use angelia_core::ports::{ActionId, Said};
use angelia_core::prompts::Choice;
use proptest::prelude::*;

const KEY: [u8; 32] = [7; 32];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![".{0,40}", Just("\"\\\u{0}\u{2028}{}\n".to_owned())]
}

fn instance() -> impl Strategy<Value = InstanceId> {
    any::<i64>().prop_map(InstanceId)
}

fn mark() -> impl Strategy<Value = Mark> {
    (any::<i64>(), any::<u64>()).prop_map(|(tail, redrives)| Mark { tail: Seq(tail), redrives })
}

fn entry() -> impl Strategy<Value = Entry> {
    let words = (0..EntryKind::ALL.len(), prop::option::of(0..WhileBusy::ALL.len()));
    let texts = (text(), text(), text(), text());
    let body = prop::collection::vec(any::<u8>(), 0..200);
    (any::<i64>(), words, texts, body, any::<u32>()).prop_map(|(seq, (kind, busy), texts, body, revision)| {
        Entry {
            seq: Seq(seq),
            kind: EntryKind::ALL[kind],
            platform: texts.0.into(),
            bot: texts.1.into(),
            chat_id: texts.2.into(),
            session_key: texts.3.into(),
            body: body.into(),
            revision,
            while_busy: busy.map(|at| WhileBusy::ALL[at]),
        }
    })
}

fn line() -> impl Strategy<Value = Line> {
    let what = (any::<bool>(), 0..MediaKind::ALL.len(), prop::option::of(text()));
    let file = (text(), any::<u64>(), text(), what).prop_map(|(name, size, mime, (is_kept, kind, alt))| {
        let id = is_kept.then(|| FileId::named(&[&name]));
        RoomFile { id, name, size, mime, kind: MediaKind::ALL[kind], alt }
    });
    let files = prop::collection::vec(file, 0..3);
    let numbers = (any::<i64>(), any::<i64>(), any::<i64>(), any::<bool>(), any::<bool>());
    let texts = (text(), text(), text(), text(), prop::option::of(text()), prop::option::of(text()));
    let why = prop::option::of(0..DropReason::ALL.len());
    let choice = (text(), text()).prop_map(|(id, label)| Choice { id, label, style: None });
    let buttons = (any::<i64>(), prop::collection::vec(choice, 1..3))
        .prop_map(|(prompt, choices)| Box::new(Buttons { prompt: ActionId(prompt), choices }));
    let buttons = prop::option::of(buttons);
    let marks = prop::collection::vec(text(), 0..3);
    let rich = (buttons, marks, prop::option::of(text()), prop::option::of(text()));
    (numbers, texts, files, why, rich).prop_map(|(numbers, texts, files, why, rich)| Line {
        id: numbers.0,
        place: numbers.1,
        room: texts.0,
        message_id: texts.1,
        author: texts.2,
        from_agent: numbers.3,
        text: texts.3,
        reply_to: texts.4,
        client_id: texts.5,
        files,
        undelivered: why.map(|at| DropReason::ALL[at]),
        buttons: rich.0,
        marks: rich.1,
        thread: rich.2,
        thread_name: rich.3,
        at: UnixMillis(numbers.2),
        edited: numbers.4,
    })
}

fn said() -> impl Strategy<Value = Said> {
    (text(), any::<u64>(), any::<i64>()).prop_map(|(node, number, at)| Said {
        node,
        number,
        at: UnixMillis(at),
    })
}

fn bot() -> impl Strategy<Value = BotKey> {
    (text(), text()).prop_map(|(platform, bot)| BotKey::new(&platform, &bot))
}

fn control() -> impl Strategy<Value = Control> {
    prop_oneof![
        (instance(), any::<i64>(), text()).prop_map(|(instance, epoch, node)| Control::Claimed {
            instance,
            epoch: Epoch(epoch),
            node
        }),
        (instance(), any::<i64>(), text(), text(), said()).prop_map(
            |(instance, epoch, session_key, chat_id, said)| Control::Interrupt {
                instance,
                epoch: Epoch(epoch),
                session_key,
                chat_id,
                said
            }
        ),
        (instance(), any::<i64>(), any::<i64>()).prop_map(|(instance, epoch, at)| Control::TookOver {
            instance,
            epoch: Epoch(epoch),
            at: UnixMillis(at)
        }),
        (any::<i64>(), instance(), text()).prop_map(|(action, instance, result)| Control::Done {
            action: ActionId(action),
            instance,
            result
        }),
        any::<i64>().prop_map(|id| Control::Changed { id }),
        bot().prop_map(|bot| Control::Waiting { bot }),
        text().prop_map(|lease| Control::Freed { lease }),
        (bot(), any::<u64>(), text(), text()).prop_map(|(bot, id, node, body)| Control::Call {
            bot,
            id,
            node,
            body
        }),
        (text(), any::<u64>(), text()).prop_map(|(node, id, body)| Control::Inquiry { node, id, body }),
        (text(), any::<u64>(), text()).prop_map(|(node, id, body)| Control::Answer { node, id, body }),
    ]
}

fn topic() -> impl Strategy<Value = Topic> {
    prop_oneof![
        instance().prop_map(Topic::Instance),
        text().prop_map(Topic::Room),
        bot().prop_map(Topic::Bot),
        text().prop_map(Topic::Node),
        Just(Topic::Control)
    ]
}

fn hint() -> impl Strategy<Value = Hint> {
    let kind = prop_oneof![Just(HintKind::Appended), Just(HintKind::Ahead), Just(HintKind::Redriven)];
    let seqs = prop::collection::vec(any::<i64>().prop_map(Seq), 0..50);
    prop_oneof![
        (instance(), mark(), entry(), kind).prop_map(|(instance, mark, entry, kind)| Hint::Log {
            instance,
            mark,
            entry,
            kind
        }),
        (instance(), mark()).prop_map(|(instance, mark)| Hint::Reached { instance, mark }),
        (instance(), seqs).prop_map(|(instance, seqs)| Hint::Removed { instance, seqs }),
        (instance(), entry()).prop_map(|(instance, entry)| Hint::Revised { instance, entry }),
        line().prop_map(Hint::Line),
        (text(), text()).prop_map(|(room, event)| Hint::Room { room, event }),
        control().prop_map(Hint::Control),
        prop::option::of(topic()).prop_map(Hint::Missed),
    ]
}

proptest! {
    #[test]
    fn every_hint_comes_out_as_it_went_in(hint in hint(), channel in text()) {
        let message = Wire::new("a", &KEY).write(&channel, &hint).unwrap();
        let heard = Wire::new("b", &KEY).read(channel.as_bytes(), message.clone()).unwrap().unwrap();
        prop_assert_eq!(format!("{hint:?}"), format!("{heard:?}"));
        prop_assert!(Wire::new("a", &KEY).read(channel.as_bytes(), message).unwrap().is_none(), "its own");
    }

    #[test]
    fn what_was_tampered_with_is_forged(hint in hint(), at in any::<prop::sample::Index>(), bit in 0..8) {
        let wire = Wire::new("a", &KEY);
        let message = wire.write("c", &hint).unwrap();
        let reader = Wire::new("b", &KEY);
        let mut other = message.clone();
        let at = at.index(other.len());
        other[at] ^= 1u8 << bit;
        prop_assert_eq!(reader.read(b"c", other).unwrap_err(), Refused::Forged);
        prop_assert_eq!(reader.read(b"c", message[..at].to_vec()).unwrap_err(), Refused::Forged);
        prop_assert_eq!(reader.read(b"d", message.clone()).unwrap_err(), Refused::Forged);
        prop_assert_eq!(Wire::new("b", &[8; 32]).read(b"c", message).unwrap_err(), Refused::Forged);
    }

    #[test]
    fn nothing_that_is_proven_makes_it_stumble(said in prop::collection::vec(any::<u8>(), 0..100)) {
        let wire = Wire::new("b", &KEY);
        prop_assert_eq!(wire.read(b"c", proven(&wire, &said)).unwrap_err(), Refused::Unreadable);
        let versioned: Vec<u8> = [VERSION, 0, 0, 0].into_iter().chain(said).collect();
        prop_assert_eq!(wire.read(b"c", proven(&wire, &versioned)).unwrap_err(), Refused::Unreadable);
    }
}

fn proven(wire: &Wire, said: &[u8]) -> Vec<u8> {
    let proof = wire.proof_of(b"c", said).finalize().into_bytes();
    proof[..PROOF].iter().chain(said).copied().collect()
}

#[test]
fn a_part_of_the_channel_is_no_part_of_the_message() {
    let wire = Wire::new("a", &KEY);
    let message = wire.write("cc", &Hint::Missed(None)).unwrap();
    let mut moved = message.clone();
    moved.insert(PROOF, b'c');
    assert_eq!(Wire::new("b", &KEY).read(b"c", moved).unwrap_err(), Refused::Forged);
}

#[test]
fn what_a_newer_node_says_is_unreadable_and_not_forged() {
    let wire = Wire::new("b", &KEY);
    let unknown = br#"{"n":"a","h":{"thought":1}}"#;
    let mut said = vec![VERSION, 0, 0, 0, unknown.len() as u8];
    said.extend(unknown);
    assert_eq!(wire.read(b"c", proven(&wire, &said)).unwrap_err(), Refused::Unreadable);
    assert_eq!(wire.read(b"c", proven(&wire, &[VERSION + 1, 1, 2])).unwrap_err(), Refused::Unreadable);
}

#[test]
fn what_is_too_long_is_neither_written_nor_read() {
    let event = "x".repeat(MAX_MESSAGE);
    let wire = Wire::new("a", &KEY);
    assert!(wire.write("c", &Hint::Room { room: "r".into(), event: event.clone() }).is_none());
    assert_eq!(wire.read(b"c", proven(&wire, event.as_bytes())).unwrap_err(), Refused::Forged);
}
