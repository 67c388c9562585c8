//! WeCom's callbacks, against wechatpy: what either side makes the other opens,
//! and what was touched opens nowhere.

use super::peer::Peer;
use angelia_core::clock::UnixMillis;
use angelia_core::secret::Secret;
use angelia_platforms::wecom::crypto::{Key, encrypt};
use angelia_platforms::wecom::verify::{Keys, Signed};
use serde_json::{Value, json};

const NOW: i64 = 1_700_000_000;
const CASES: u64 = 1_000;
const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// wechatpy, line by line.
struct Oracle(Peer);

impl Oracle {
    fn start() -> Self {
        Self(Peer::start("wecom_oracle.py"))
    }

    /// What wechatpy makes of a message.
    fn make(&mut self, app: &App, message: &str, nonce: &str) -> Callback {
        let mut asked = app.json();
        asked["message"] = message.into();
        asked["nonce"] = nonce.into();
        asked["timestamp"] = NOW.to_string().into();
        let made = self.0.ask(&json!({ "make": asked }));
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        Callback { encrypted: text("encrypted"), signed: signed(text("signature"), nonce) }
    }

    /// What wechatpy reads of a callback, if it opens it.
    fn judge(&mut self, app: &App, callback: &Callback) -> Option<String> {
        let mut asked = app.json();
        asked["encrypted"] = callback.encrypted.as_str().into();
        asked["signature"] = callback.signed.signature.as_str().into();
        asked["timestamp"] = callback.signed.timestamp.as_str().into();
        asked["nonce"] = callback.signed.nonce.as_str().into();
        let answer = self.0.ask(&json!({ "judge": asked }));
        assert!(answer["message"].is_string() || answer["refused"].is_string(), "{answer}");
        answer["message"].as_str().map(str::to_owned)
    }
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        usize::try_from((mixed >> 33) % sides as u64).unwrap()
    }

    fn word(&mut self, letters: &[u8], length: usize) -> String {
        (0..length).map(|_| char::from(letters[self.roll(letters.len())])).collect()
    }

    /// A text of so many bytes.
    fn text(&mut self, bytes: usize) -> String {
        let mut text = String::new();
        while text.len() < bytes {
            let c = ['a', ' ', '<', '&', 'é', '你', '好', '😀', '👩', '\u{200d}', '\n'][self.roll(11)];
            if text.len() + c.len_utf8() <= bytes {
                text.push(c);
            }
        }
        text
    }
}

/// The secrets of an app.
struct App {
    token: String,
    key: String,
    corp_id: String,
}

impl App {
    /// One with a key as the console draws them: any letter may be the last.
    fn any(dice: &mut Dice) -> Self {
        let (token, corp) = (3 + dice.roll(30), 4 + dice.roll(20));
        Self {
            token: dice.word(LETTERS, token),
            key: dice.word(LETTERS, 43),
            corp_id: format!("ww{}", dice.word(LETTERS, corp)),
        }
    }

    fn keys(&self) -> Keys {
        let key = Key::parse(&self.key).unwrap_or_else(|| panic!("{} is a key", self.key));
        Keys { token: Secret::new(&self.token), key, corp_id: self.corp_id.clone() }
    }

    fn json(&self) -> Value {
        json!({ "token": self.token, "key": self.key, "corp_id": self.corp_id })
    }

    /// What we make of a message.
    fn make(&self, dice: &mut Dice, message: &str, nonce: &str) -> Callback {
        let keys = self.keys();
        let salt = std::array::from_fn(|_| dice.roll(256) as u8);
        let encrypted = encrypt(&keys.key, salt, message.as_bytes(), &self.corp_id);
        let signature = keys.signature(&NOW.to_string(), nonce, &encrypted);
        Callback { encrypted, signed: signed(signature, nonce) }
    }

    /// What we read of a callback, if we open it.
    fn judge(&self, callback: &Callback) -> Option<String> {
        let opened = self.keys().open(&callback.signed, &callback.encrypted, UnixMillis(NOW * 1000));
        opened.map(|message| String::from_utf8(message).unwrap())
    }
}

#[derive(Clone, Debug)]
struct Callback {
    encrypted: String,
    signed: Signed,
}

fn signed(signature: String, nonce: &str) -> Signed {
    Signed { signature, timestamp: NOW.to_string(), nonce: nonce.to_owned(), echo: None }
}

/// Lengths around what texts are padded to, and others.
fn length(case: u64, dice: &mut Dice) -> usize {
    match case % 4 {
        0 => 28 + dice.roll(8),
        1 => 60 + dice.roll(8),
        2 => dice.roll(40),
        _ => dice.roll(3000),
    }
}

#[test]
fn either_opens_what_the_other_made() {
    let (mut oracle, mut dice) = (Oracle::start(), Dice(7));
    for case in 0..CASES {
        let app = App::any(&mut dice);
        let bytes = length(case, &mut dice);
        let (message, nonce) = (dice.text(bytes), dice.word(LETTERS, 10));
        let theirs = oracle.make(&app, &message, &nonce);
        assert_eq!(app.judge(&theirs).as_deref(), Some(message.as_str()), "case {case}: theirs");
        let ours = app.make(&mut dice, &message, &nonce);
        assert_eq!(oracle.judge(&app, &ours).as_deref(), Some(message.as_str()), "case {case}: ours");
    }
}

/// Changes one thing of a callback or of the app that opens it.
fn touch(dice: &mut Dice, app: &mut App, callback: &mut Callback) -> &'static str {
    let other = |dice: &mut Dice, text: &str, letters: &[u8]| {
        let at = dice.roll(text.len());
        let mut bytes = text.as_bytes().to_vec();
        while bytes[at] == text.as_bytes()[at] {
            bytes[at] = letters[dice.roll(letters.len())];
        }
        String::from_utf8(bytes).unwrap()
    };
    let signed = &mut callback.signed;
    match dice.roll(9) {
        0 => {
            // Not the padding at its end, which some readers take for nothing.
            let (text, end) = callback.encrypted.split_at(callback.encrypted.trim_end_matches('=').len());
            callback.encrypted = other(dice, text, BASE64) + end;
            "the text"
        }
        1 => {
            signed.signature = other(dice, &signed.signature, b"0123456789abcdef");
            "the signature"
        }
        2 => {
            signed.signature.truncate(dice.roll(40));
            "the signature's length"
        }
        3 => {
            signed.nonce = other(dice, &signed.nonce, LETTERS);
            "the nonce"
        }
        4 => {
            signed.timestamp = (NOW + 1 + dice.roll(200) as i64).to_string();
            "the time"
        }
        5 => {
            app.token = other(dice, &app.token, LETTERS);
            "the token"
        }
        6 => {
            // Bits of the last character belong to no byte.
            app.key = other(dice, &app.key[..42], LETTERS) + &app.key[42..];
            "the key"
        }
        7 => {
            app.corp_id = other(dice, &app.corp_id, LETTERS);
            "the company"
        }
        _ => {
            callback.encrypted.truncate(callback.encrypted.len() - 1 - dice.roll(40));
            "the text's length"
        }
    }
}

#[test]
fn what_was_touched_opens_nowhere() {
    let (mut oracle, mut dice) = (Oracle::start(), Dice(11));
    for case in 0..CASES {
        let mut app = App::any(&mut dice);
        let bytes = length(case, &mut dice);
        let (message, nonce) = (dice.text(bytes), dice.word(LETTERS, 10));
        let mut callback = match case % 2 {
            0 => oracle.make(&app, &message, &nonce),
            _ => app.make(&mut dice, &message, &nonce),
        };
        let what = touch(&mut dice, &mut app, &mut callback);
        assert_eq!(app.judge(&callback), None, "case {case}: {what}, here");
        assert_eq!(oracle.judge(&app, &callback), None, "case {case}: {what}, there");
    }
}

/// Whoever has the token could sign what was touched: nothing opens here then
/// that would not open there, or opens otherwise. Padding is read more strictly.
#[test]
fn what_was_touched_and_signed_anew_opens_here_only_as_there() {
    let (mut oracle, mut dice) = (Oracle::start(), Dice(13));
    let (mut here, mut there) = (0, 0);
    for case in 0..CASES {
        let app = App::any(&mut dice);
        let (bytes, nonce) = (length(case, &mut dice), dice.word(LETTERS, 10));
        let message = "x".repeat(bytes);
        let mut callback = app.make(&mut dice, &message, &nonce);
        let at = dice.roll(callback.encrypted.trim_end_matches('=').len());
        let letter = dice.word(BASE64, 1);
        callback.encrypted.replace_range(at..=at, &letter);
        callback.signed.signature = app.keys().signature(&NOW.to_string(), &nonce, &callback.encrypted);
        let ours = app.keys().open(&callback.signed, &callback.encrypted, UnixMillis(NOW * 1000));
        let theirs = oracle.judge(&app, &callback);
        there += usize::from(theirs.is_some());
        if let Some(text) = ours.and_then(|text| String::from_utf8(text).ok()) {
            here += 1;
            assert_eq!(theirs, Some(text), "case {case}");
        }
    }
    assert!(here > 0 && there >= here, "some changes do not matter: {here} here, {there} there");
}

#[test]
fn every_flipped_bit_is_noticed() {
    let mut dice = Dice(17);
    let app = App::any(&mut dice);
    let callback = Oracle::start().make(&app, "<xml><Content>你好 😀</Content></xml>", "n0nce");
    assert!(app.judge(&callback).is_some());
    let flips = |text: &str| -> Vec<String> {
        let flip = |bit: usize| {
            let mut bytes = text.as_bytes().to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            // What is no text cannot come here: a query and XML are UTF-8.
            String::from_utf8(bytes).ok()
        };
        (0..text.len() * 8).filter_map(flip).collect()
    };
    let mut flipped = 0;
    let mut closed = |callback: &Callback| {
        flipped += 1;
        assert_eq!(app.judge(callback), None, "{callback:?}");
    };
    for encrypted in flips(&callback.encrypted) {
        closed(&Callback { encrypted, ..callback.clone() });
    }
    let with = |signed: Signed| Callback { signed, ..callback.clone() };
    for signature in flips(&callback.signed.signature) {
        closed(&with(Signed { signature, ..callback.signed.clone() }));
    }
    for timestamp in flips(&callback.signed.timestamp) {
        closed(&with(Signed { timestamp, ..callback.signed.clone() }));
    }
    for nonce in flips(&callback.signed.nonce) {
        closed(&with(Signed { nonce, ..callback.signed.clone() }));
    }
    // Seven bits of each byte make a text of it again.
    let bytes = callback.encrypted.len() + 40 + 10 + 5;
    assert_eq!(flipped, bytes * 7);
}
