//! Discord's signatures, against PyNaCl and discord-interactions: what they
//! sign and accept we accept, and what was touched nobody does.

use super::peer::Peer;
use angelia_core::clock::UnixMillis;
use angelia_platforms::discord::verify::PublicKey;
use ed25519_dalek::{Signer, SigningKey};
use serde_json::json;

const NOW: i64 = 1_700_000_000;
const CASES: usize = 1_000;
/// Seconds by which a request may be older or younger than we think it is.
const WINDOW: usize = 300;
/// The order of the curve's group: a signature plus this is another way to
/// write it, which must not pass.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// A request as it comes: the headers are bytes, the key is the portal's.
#[derive(Clone, Debug, PartialEq)]
struct Request {
    key: Vec<u8>,
    signature: Vec<u8>,
    timestamp: Vec<u8>,
    body: Vec<u8>,
}

impl Request {
    fn signature_bytes(&self) -> Vec<u8> {
        unhex(std::str::from_utf8(&self.signature).unwrap())
    }

    fn set_signature(&mut self, bytes: &[u8]) {
        self.signature = hex(bytes).into_bytes();
    }
}

/// What this side says.
fn accepted(request: &Request) -> bool {
    let Ok(key) = PublicKey::parse(&hex(&request.key)) else { return false };
    let now = UnixMillis(NOW * 1000);
    key.signed_at(&request.signature, &request.timestamp, &request.body, now).is_some()
}

/// The judges, line by line.
struct Oracle(Peer);

impl Oracle {
    fn start() -> Self {
        Self(Peer::start("discord_oracle.py"))
    }

    /// A request that PyNaCl signs.
    fn sign(&mut self, seed: &[u8], timestamp: String, body: Vec<u8>) -> Request {
        let timestamp = timestamp.into_bytes();
        let ask = json!({ "seed": hex(seed), "timestamp": hex(&timestamp), "body": hex(&body) });
        let signed = self.0.ask(&json!({ "sign": ask }));
        let part = |name: &str| unhex(signed[name].as_str().unwrap());
        Request { key: part("key"), signature: part("signature"), timestamp, body }
    }

    /// Whether both judges accept it; they have to agree.
    fn accepts(&mut self, request: &Request) -> bool {
        let ask = json!({ "key": hex(&request.key), "signature": hex(&request.signature),
            "timestamp": hex(&request.timestamp), "body": hex(&request.body) });
        let answer = self.0.ask(&json!({ "judge": ask }));
        assert_eq!(answer["nacl"], answer["interactions"], "{request:?}");
        answer["nacl"].as_bool().unwrap()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        usize::try_from((mixed >> 33) % sides as u64).unwrap()
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| u8::try_from(self.roll(256)).unwrap()).collect()
    }

    /// Of a request's time: anywhere in the window.
    fn time(&mut self) -> String {
        (NOW + i64::try_from(self.roll(2 * WINDOW + 1)).unwrap() - WINDOW as i64).to_string()
    }

    /// A body as Discord writes them, or any bytes: nobody may look into it yet.
    fn body(&mut self) -> Vec<u8> {
        let length = self.roll(2_000);
        if self.roll(4) == 0 {
            return self.bytes(length);
        }
        let words = ["salt", " ", "grüße", "🌊", "\\n", "\u{200d}", "水", "\"", "{", "}"];
        let text: String = (0..length / 8).map(|_| words[self.roll(words.len())]).collect();
        json!({ "id": self.roll(1 << 30).to_string(), "type": 2, "data": { "name": text } })
            .to_string()
            .into()
    }

    fn flip(&mut self, bytes: &mut [u8]) {
        let bit = self.roll(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

/// One request, changed in a way that an attacker might.
fn mutated(dice: &mut Dice, request: &Request, other: &Request) -> Request {
    let mut bent = request.clone();
    match dice.roll(10) {
        0 => dice.flip(&mut bent.body),
        1 => dice.flip(&mut bent.timestamp),
        2 => dice.flip(&mut bent.key),
        3 => {
            let mut signature = bent.signature_bytes();
            dice.flip(&mut signature);
            bent.set_signature(&signature);
        }
        4 => bent.body = other.body.clone(),
        5 => bent.signature = other.signature.clone(),
        6 => bent.key = other.key.clone(),
        7 => bent.body.push(b' '),
        8 => {
            let half = 1 + dice.roll(63);
            bent.set_signature(&request.signature_bytes()[..half]);
        }
        _ => {
            let mut signature = bent.signature_bytes();
            let mut carry = 0_u16;
            for (byte, part) in signature[32..].iter_mut().zip(ORDER) {
                carry += u16::from(*byte) + u16::from(part);
                *byte = carry.to_le_bytes()[0];
                carry >>= 8;
            }
            bent.set_signature(&signature);
        }
    }
    bent
}

#[test]
fn what_the_judges_sign_is_accepted_and_what_was_touched_is_not() {
    let (mut oracle, mut dice) = (Oracle::start(), Dice(5));
    let mut requests = Vec::new();
    for _ in 0..CASES {
        let (seed, time, mut body) = (dice.bytes(32), dice.time(), dice.body());
        if body.is_empty() {
            body.push(b'{');
        }
        let request = oracle.sign(&seed, time, body);
        assert!(accepted(&request), "{request:?}");
        assert!(oracle.accepts(&request), "{request:?}");
        requests.push(request);
    }
    for number in 0..CASES {
        let bent = mutated(&mut dice, &requests[number], &requests[(number + 1) % CASES]);
        assert_ne!(bent, requests[number]);
        assert!(!oracle.accepts(&bent), "{bent:?}");
        assert!(!accepted(&bent), "{bent:?}");
    }
}

#[test]
fn what_is_signed_here_is_accepted_by_the_judges() {
    let (mut oracle, mut dice) = (Oracle::start(), Dice(7));
    for _ in 0..100 {
        let key = SigningKey::from_bytes(&dice.bytes(32).try_into().unwrap());
        let (timestamp, body) = (dice.time().into_bytes(), dice.body());
        let signature = key.sign(&[&timestamp[..], &body].concat());
        let signature = hex(&signature.to_bytes()).into_bytes();
        let request = Request { key: key.verifying_key().as_bytes().to_vec(), signature, timestamp, body };
        assert!(oracle.accepts(&request) && accepted(&request), "{request:?}");
    }
}

#[test]
fn no_single_bit_of_a_request_can_be_another() {
    let mut oracle = Oracle::start();
    let body = br#"{"id":"1","type":2,"token":"aW50","data":{"name":"ask"}}"#.to_vec();
    let request = oracle.sign(&[9; 32], NOW.to_string(), body);
    assert!(accepted(&request) && oracle.accepts(&request));
    let mut flips = 0;
    let mut refused = |bent: &Request, judged: bool| {
        assert!(!accepted(bent), "{bent:?}");
        assert!(!judged || !oracle.accepts(bent), "{bent:?}");
        flips += 1;
    };
    let flipped = |bytes: &[u8], bit: usize| {
        let mut bytes = bytes.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    };
    for bit in 0..request.body.len() * 8 {
        refused(&Request { body: flipped(&request.body, bit), ..request.clone() }, true);
    }
    for bit in 0..request.timestamp.len() * 8 {
        refused(&Request { timestamp: flipped(&request.timestamp, bit), ..request.clone() }, true);
    }
    for bit in 0..request.key.len() * 8 {
        refused(&Request { key: flipped(&request.key, bit), ..request.clone() }, true);
    }
    let signature = request.signature_bytes();
    for bit in 0..signature.len() * 8 {
        let mut bent = request.clone();
        bent.set_signature(&flipped(&signature, bit));
        refused(&bent, true);
    }
    // The header itself: a capital letter means the same to the judges, and is
    // refused here all the same.
    for bit in 0..request.signature.len() * 8 {
        refused(&Request { signature: flipped(&request.signature, bit), ..request.clone() }, false);
    }
    assert_eq!(flips, (request.body.len() + request.timestamp.len() + 32 + 64 + 128) * 8);
}
