//! Lines and messages, cut in every way.

use angelia_contract::line::{LineBuffer, LineError, split_message};
use angelia_contract::{ConnectorFrame, Event, Inbound, Source, inbound_line, passthrough_line};
use proptest::prelude::*;

use crate::support::cases;

/// What a buffer should give for a whole stream, done the slow and plain way.
fn expected(stream: &[u8], max: usize) -> Vec<Option<Vec<u8>>> {
    let mut lines: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    let tail = lines.pop().unwrap_or_default();
    let mut out: Vec<_> = lines
        .into_iter()
        .map(|line| (line.len() <= max).then(|| line.strip_suffix(b"\r").unwrap_or(line).to_vec()))
        .filter(|line| line.as_ref().is_none_or(|line| !line.is_empty()))
        .collect();
    if tail.len() > max {
        out.push(None);
    }
    out
}

proptest! {
    #![proptest_config(cases(8_000))]

    #[test]
    fn chunking_changes_nothing(
        stream in prop::collection::vec(prop::sample::select(b"\n\n\r\"{}abc\xff".to_vec()), 0..120),
        cuts in prop::collection::vec(0..120usize, 0..8), max in 0..12usize,
    ) {
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let mut buffer = LineBuffer::new(max);
        let mut got = Vec::new();
        for chunk in cuts.windows(2) {
            for line in buffer.push(&stream[chunk[0]..chunk[1]]) {
                match line {
                    Ok(line) => got.push(Some(line.into_owned())),
                    Err(LineError::TooLong { max: limit, begins }) => {
                        prop_assert_eq!(limit, max);
                        prop_assert!(begins.len() > max, "it shows how the line begins");
                        got.push(None);
                    }
                    Err(other) => prop_assert!(false, "{}", other),
                }
            }
            // Memory grows by doubling, from a few bytes on.
            prop_assert!(buffer.held() <= 2 * max.max(8));
        }
        prop_assert_eq!(got, expected(&stream, max));
    }

    #[test]
    fn messages_join_to_their_line(line in ".{0,60}", max in 0..20usize) {
        let messages: Vec<_> = split_message(&line, max).collect();
        prop_assert!(messages.iter().all(|m| !m.is_empty() && m.len() <= max.max(4)));
        prop_assert_eq!(messages.concat(), line);
    }

    #[test]
    fn spliced_lines_equal_serialised_ones(
        text in ".{0,40}", id in ".{0,12}", platform in ".{0,8}", bot in ".{0,8}",
    ) {
        let event = Event { text, source: Source::default(), ..Event::default() };
        let json = serde_json::to_vec(&event).unwrap();
        let line = inbound_line(&id, &platform, &bot, &json);
        prop_assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let frame = ConnectorFrame::Inbound(Inbound {
            event, buffer_id: Some(id.clone()), platform: Some(platform), bot_id: Some(bot),
        });
        prop_assert_eq!(ConnectorFrame::parse(&line).unwrap(), frame.clone());
        prop_assert_eq!(ConnectorFrame::parse(frame.to_line().as_bytes()).unwrap(), frame);
    }
}

#[test]
fn a_spliced_forward_is_read_back() {
    let json = br#"{"platform":"discord","botId":"b","method":"POST","path":"/x","headers":[["a","b"]],"bodyB64":"AP8="}"#;
    let line = passthrough_line("7", "discord", "b", json);
    let ConnectorFrame::PassthroughForward { forward, buffer_id, platform, bot_id } =
        ConnectorFrame::parse(&line).unwrap()
    else {
        panic!("another frame")
    };
    assert_eq!(forward.body, [0, 255]);
    assert_eq!(forward.headers, [("a".to_owned(), "b".to_owned())]);
    assert_eq!(buffer_id.as_deref(), Some("7"));
    assert_eq!((platform.as_deref(), bot_id.as_deref()), (Some("discord"), Some("b")));
}
