//! Bytes from someone who wishes us ill. Nothing here may panic.

use angelia_contract::{ConnectorFrame, FrameError, GatewayFrame};

use crate::examples::{connector_examples, gateway_examples, outbound_examples};
use crate::support::{Dice, rounds};

/// Fragments that parsers stumble over.
const NASTY: &[&[u8]] = &[
    b"\\ud800",
    b"\\udc00",
    b"\\ud83d\\ude00",
    b"\\u",
    b"\\",
    b"\"",
    b"NaN",
    b"-Infinity",
    b"-",
    b"1e999999",
    b"-0.0",
    b"99999999999999999999999999",
    b"0.1e-400",
    b"null",
    b"true",
    b"{}",
    b"[]",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\0",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x98\x80",
    b"\"type\":\"hello\",",
    b"\"type\":1,",
    b"\"requestId\":[],",
    b"\"action\":null,",
    b"\r\n",
    b"\"source\":null,",
    b"\"event\":{},",
    b"\"bodyB64\":\"!\",",
    b"\"draft_id\":1e30,",
];

/// One to five wounds.
fn wound(line: &mut Vec<u8>, dice: &mut Dice) {
    for _ in 0..=dice.below(5) {
        let at = dice.below(line.len() + 1);
        match dice.below(6) {
            0 => line.truncate(at),
            1 if at < line.len() => line[at] ^= 1 << dice.below(8),
            2 if at < line.len() => {
                let end = (at + dice.below(20)).min(line.len());
                line.drain(at..end);
            }
            3 => {
                let end = (at + dice.below(40)).min(line.len());
                let copy = line[at..end].to_vec();
                line.splice(at..at, copy);
            }
            _ => {
                let nasty = dice.pick(NASTY);
                line.splice(at..at, nasty.iter().copied());
            }
        }
    }
}

fn hostile_line(seed: u64, samples: &[Vec<u8>]) -> Vec<u8> {
    let mut dice = Dice::new(seed);
    match dice.below(8) {
        0 => (0..dice.below(60)).map(|_| dice.roll() as u8).collect(),
        1 => (0..dice.below(12)).flat_map(|_| dice.pick(NASTY).to_vec()).collect(),
        2 => {
            let depth = dice.below(300);
            let open: &[u8] = dice.pick(&[b"[".as_slice(), b"{\"a\":", b"{\"action\":["]);
            let mut line = b"{\"type\":\"outbound\",\"requestId\":\"1\",\"action\":".to_vec();
            line.extend(open.repeat(depth));
            line
        }
        _ => {
            let mut line = samples[dice.below(samples.len())].clone();
            wound(&mut line, &mut dice);
            line
        }
    }
}

/// Reads a line both ways; whatever can be read can be written and read again.
fn survive(line: &[u8]) -> (bool, bool) {
    let gateway = GatewayFrame::parse(line);
    if let Ok(frame) = &gateway {
        let again = GatewayFrame::parse(frame.to_line().as_bytes()).unwrap();
        assert_eq!(again.to_line(), frame.to_line());
    }
    let connector = ConnectorFrame::parse(line);
    if let Ok(frame) = &connector {
        let again = ConnectorFrame::parse(frame.to_line().as_bytes()).unwrap();
        assert_eq!(again.to_line(), frame.to_line());
    }
    for error in [gateway.as_ref().err(), connector.as_ref().err()].into_iter().flatten() {
        assert!(!error.to_string().is_empty());
    }
    (gateway.is_ok(), connector.is_ok())
}

#[test]
fn hostile_lines_never_panic() {
    let examples = gateway_examples().into_iter().chain(outbound_examples()).chain(connector_examples());
    let samples: Vec<Vec<u8>> = examples.map(|example| example.to_string().into_bytes()).collect();
    let (mut read, mut refused) = (0, 0);
    for seed in 0..rounds() {
        let line = hostile_line(seed, &samples);
        let outcome = std::panic::catch_unwind(|| survive(&line));
        let (gateway, connector) =
            outcome.unwrap_or_else(|_| panic!("seed {seed}: {}", String::from_utf8_lossy(&line)));
        read += u64::from(gateway || connector);
        refused += u64::from(!gateway && !connector);
    }
    // Were nearly all refused at once, the generator would test nothing.
    assert!(read * 20 > rounds() && refused * 20 > rounds(), "{read} read, {refused} refused");
}

#[test]
fn errors_have_kinds() {
    let kind = |line: &[u8]| GatewayFrame::parse(line).unwrap_err();
    assert!(matches!(kind(b""), FrameError::NotJson(_)));
    assert!(matches!(kind(b"[1,2]"), FrameError::NotAnObject));
    assert!(matches!(kind(b"NaN"), FrameError::NotAnObject));
    assert!(matches!(kind(b"{}"), FrameError::NoType));
    assert!(matches!(kind(br#"{"type":1}"#), FrameError::NoType));
    assert!(matches!(kind(br#"{"type":"inbound_ack"}"#), FrameError::Malformed { .. }));
    let kind = |line: &[u8]| ConnectorFrame::parse(line).unwrap_err();
    assert!(matches!(kind(br#"{"type":"descriptor"}"#), FrameError::Descriptor(_)));
    for event in ["null", "[]", "{}", r#"{"source":null}"#, r#"{"source":[]}"#] {
        let line = format!(r#"{{"type":"inbound","event":{event}}}"#);
        assert!(matches!(kind(line.as_bytes()), FrameError::Malformed { .. }), "{event}");
    }
}
