//! The upgrade token, with which a gateway opens its socket.
//!
//! `base64url(gateway_id ":" exp ":" hex(hmac_sha256(secret, gateway_id ":" exp)))`
//!
//! Reading and judging are apart on purpose. A connector first needs the
//! gateway id to find secrets, then wants to know *which* secret signed (a
//! revoked one is answered differently from a wrong one), and only then cares
//! about time.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Lifetime gateways give their tokens; each dial mints a new one.
pub const DEFAULT_TTL_SECONDS: u64 = 300;
/// How long past its end a token is still taken: clocks differ.
pub const LEEWAY_SECONDS: u64 = 300;
/// How far ahead a token may end. Gateways ask for minutes; a token good for
/// longer than a day is a standing password, and was not made by one.
pub const MAX_AHEAD_SECONDS: u64 = 24 * 3600;
/// Longest token read. Gateway ids are host names or short labels; the bound
/// keeps an unauthenticated caller from buying work with a long header.
pub const MAX_TOKEN_BYTES: usize = 2048;

/// Bytes of a signature.
const SIGNATURE_BYTES: usize = 32;

/// A token that was read, but not yet judged.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// `gateway_id ":" exp`, exactly as signed.
    signed: String,
    id_len: usize,
    exp: u64,
    signature: [u8; SIGNATURE_BYTES],
}

// The signature lets its holder in until it expires, so it stays out of logs.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token")
            .field("gateway_id", &self.gateway_id())
            .field("exp", &self.exp)
            .finish_non_exhaustive()
    }
}

/// Why a token is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It is longer than [`MAX_TOKEN_BYTES`].
    #[error("the token is too long")]
    TooLong,
    /// It is not base64url of the three fields.
    #[error("the token is malformed")]
    Malformed,
    /// It never ends, which a connector does not take.
    #[error("the token never expires")]
    NeverExpires,
    /// It ends later than [`MAX_AHEAD_SECONDS`] from now.
    #[error("the token expires too far ahead")]
    TooFarAhead,
    /// It ended more than [`LEEWAY_SECONDS`] ago.
    #[error("the token has expired")]
    Expired,
}

/// Makes a token that is good for `ttl` seconds; 0 makes one without an end.
pub fn mint(gateway_id: &str, secret: &str, now: u64, ttl: u64) -> String {
    let exp = match ttl {
        0 => 0,
        ttl => now.saturating_add(ttl),
    };
    let signed = format!("{gateway_id}:{exp}");
    let signature = mac(secret, &signed).finalize().into_bytes();
    URL_SAFE_NO_PAD.encode(format!("{signed}:{}", to_hex(&signature)))
}

/// Reads a token without judging it.
pub fn parse(token: &str) -> Result<Token, TokenError> {
    if token.len() > MAX_TOKEN_BYTES {
        return Err(TokenError::TooLong);
    }
    read(token).ok_or(TokenError::Malformed)
}

fn read(token: &str) -> Option<Token> {
    let bytes = URL_SAFE_NO_PAD.decode(without_padding(token)?).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    // From the right: the gateway id may contain colons of its own.
    let (signed, signature) = text.rsplit_once(':')?;
    let (gateway_id, exp) = signed.rsplit_once(':')?;
    if gateway_id.is_empty() || exp.is_empty() || !exp.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(Token {
        exp: exp.parse().ok()?,
        id_len: gateway_id.len(),
        signature: from_hex(signature)?,
        signed: signed.to_owned(),
    })
}

/// Takes off the padding Python's encoder adds, if it is the right amount.
fn without_padding(token: &str) -> Option<&str> {
    let bare = token.trim_end_matches('=');
    let padding = token.len() - bare.len();
    (padding == 0 || (padding <= 2 && token.len().is_multiple_of(4))).then_some(bare)
}

impl Token {
    /// Who it claims to be from.
    pub fn gateway_id(&self) -> &str {
        &self.signed[..self.id_len]
    }

    /// When it ends, in unix seconds; 0 is never.
    pub fn exp(&self) -> u64 {
        self.exp
    }

    /// Whether `secret` signed it; takes the same time either way.
    pub fn signed_by(&self, secret: &str) -> bool {
        mac(secret, &self.signed).verify_slice(&self.signature).is_ok()
    }

    /// The position of the first secret that signed it.
    ///
    /// All secrets are tried, so that the time taken does not tell which one
    /// of a rotation matched.
    pub fn first_match<'a>(&self, secrets: impl IntoIterator<Item = &'a str>) -> Option<usize> {
        let mut found = None;
        for (at, secret) in secrets.into_iter().enumerate() {
            if self.signed_by(secret) && found.is_none() {
                found = Some(at);
            }
        }
        found
    }

    /// Whether it is still good at `now`, through the whole second it ends in.
    ///
    /// The rule of the gateways' own verifier, to which 0 is no end.
    pub fn is_fresh(&self, now: u64, leeway: u64) -> bool {
        self.exp == 0 || now <= self.exp.saturating_add(leeway)
    }

    /// The connector's rule about time, stricter than the gateways' own.
    pub fn check_time(&self, now: u64) -> Result<(), TokenError> {
        if self.exp == 0 {
            return Err(TokenError::NeverExpires);
        }
        if self.exp > now.saturating_add(MAX_AHEAD_SECONDS) {
            return Err(TokenError::TooFarAhead);
        }
        if !self.is_fresh(now, LEEWAY_SECONDS) {
            return Err(TokenError::Expired);
        }
        Ok(())
    }
}

/// The secret is used as text: sixty-four hex digits are sixty-four key bytes.
fn mac(secret: &str, message: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(message.as_bytes());
    mac
}

fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

fn from_hex(text: &str) -> Option<[u8; SIGNATURE_BYTES]> {
    let digits: Vec<u8> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()?;
    if digits.len() != 2 * SIGNATURE_BYTES {
        return None;
    }
    let mut bytes = [0; SIGNATURE_BYTES];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_750_000_000;

    #[test]
    fn time_is_judged_at_its_edges() {
        let ending = |exp| parse(&mint("gw", "s", exp - 1, 1)).unwrap();
        assert_eq!(ending(NOW - LEEWAY_SECONDS).check_time(NOW), Ok(()));
        let late = ending(NOW - LEEWAY_SECONDS - 1);
        assert_eq!(late.check_time(NOW), Err(TokenError::Expired));
        assert_eq!(ending(NOW + MAX_AHEAD_SECONDS).check_time(NOW), Ok(()));
        let early = ending(NOW + MAX_AHEAD_SECONDS + 1);
        assert_eq!(early.check_time(NOW), Err(TokenError::TooFarAhead));
        let endless = parse(&mint("gw", "s", NOW, 0)).unwrap();
        assert_eq!(endless.check_time(NOW), Err(TokenError::NeverExpires));
        assert!(endless.is_fresh(u64::MAX, 0));
    }

    #[test]
    fn odd_tokens_are_refused() {
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let hex = "0".repeat(64);
        for text in [
            String::new(),
            "gw".into(),
            format!(":5:{hex}"),
            format!("gw::{hex}"),
            format!("gw:+5:{hex}"),
            format!("gw:-5:{hex}"),
            format!("gw:99999999999999999999:{hex}"),
            format!("gw:5:{}", &hex[1..]),
            format!("gw:5:{hex}0"),
            format!("gw:5:{}g", &hex[1..]),
        ] {
            assert_eq!(parse(&encode(&text)), Err(TokenError::Malformed), "{text}");
        }
        assert_eq!(parse("a===="), Err(TokenError::Malformed));
        assert_eq!(parse(&"a".repeat(MAX_TOKEN_BYTES + 1)), Err(TokenError::TooLong));
    }

    #[test]
    fn debug_keeps_the_signature_to_itself() {
        let token = parse(&mint("gw", "s", NOW, 300)).unwrap();
        assert_eq!(format!("{token:?}"), "Token { gateway_id: \"gw\", exp: 1750000300, .. }");
    }
}
