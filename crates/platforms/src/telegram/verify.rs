//! Whether a posted update is Telegram's: it carries the secret we gave.

use angelia_core::secret::Secret;
use axum::http::HeaderMap;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The header that carries it.
pub(super) const HEADER: &str = "x-telegram-bot-api-secret-token";
/// What the secret is made for.
const PURPOSE: &[u8] = b"angelia webhook secret";

/// The secret of a bot's webhook. It comes from the token, so that a restart
/// does not change it, and does not tell the token.
pub(super) fn webhook_secret(token: &Secret) -> Secret {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(token.expose().as_bytes()) else {
        unreachable!("HMAC takes keys of any length");
    };
    mac.update(PURPOSE);
    Secret::new(mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// Whether a request carries the secret; the time it takes does not tell how
/// much of it was right.
pub(super) fn is_authentic(secret: &Secret, headers: &HeaderMap) -> bool {
    let given = headers.get(HEADER).map(|value| value.as_bytes()).unwrap_or_default();
    secret.expose().as_bytes().ct_eq(given).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn only_the_secret_opens() {
        let secret = webhook_secret(&Secret::new("77:token"));
        assert_eq!(secret.expose().len(), 64);
        assert!(secret.expose().bytes().all(|byte| byte.is_ascii_hexdigit()));
        let with = |value: &[u8]| {
            HeaderMap::from_iter([(HEADER.parse().unwrap(), HeaderValue::from_bytes(value).unwrap())])
        };
        assert!(is_authentic(&secret, &with(secret.expose().as_bytes())));
        assert!(!is_authentic(&secret, &HeaderMap::new()));
        for wrong in [&b""[..], b"\xff\xfe", &secret.expose().as_bytes()[..63], b"77:token"] {
            assert!(!is_authentic(&secret, &with(wrong)), "{wrong:?}");
        }
        assert_ne!(webhook_secret(&Secret::new("77:other")).expose(), secret.expose());
    }
}
