//! Signed tokens (RFC 7515, compact form) and the published keys that prove
//! them (RFC 7517). The arithmetic is ring's, which TLS brings along.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde_json::{Map, Value};

/// The only algorithms taken: never `none`, never one with a shared secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Rs256,
    Es256,
    EdDsa,
}

impl Algorithm {
    fn named(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            "EdDSA" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

/// A token that looks like one; nothing of it is proven yet.
pub(super) struct Unproven<'a> {
    algorithm: Algorithm,
    key_id: Option<String>,
    /// Header and claims as they were signed.
    signed: &'a str,
    signature: Vec<u8>,
}

impl<'a> Unproven<'a> {
    /// Reads a bearer; `None` if it is no token of a sort that is taken. One that
    /// demands extensions (`crit`) must not be taken by those who understand
    /// none of them.
    pub(super) fn read(bearer: &'a str) -> Option<Self> {
        let (signed, signature) = bearer.rsplit_once('.')?;
        if signed.split('.').count() != 2 {
            return None;
        }
        let header = header(bearer)?;
        if header.get("crit").is_some() {
            return None;
        }
        let key_id = match header.get("kid") {
            None | Some(Value::Null) => None,
            Some(kid) => Some(kid.as_str()?.to_owned()),
        };
        let algorithm = Algorithm::named(header.get("alg")?.as_str()?)?;
        Some(Self { algorithm, key_id, signed, signature: URL_SAFE_NO_PAD.decode(signature).ok()? })
    }

    /// The published key that is meant. Without a name there must be no choice.
    pub(super) fn find<'k>(&self, keys: &'k [Key]) -> Option<&'k Key> {
        let mut fitting = keys.iter().filter(|key| key.algorithm == self.algorithm);
        match &self.key_id {
            Some(id) => fitting.find(|key| key.id.as_ref() == Some(id)),
            None => fitting.next().filter(|_| fitting.next().is_none()),
        }
    }

    /// What the token claims, if this key signed it.
    pub(super) fn prove(&self, key: &Key) -> Option<Map<String, Value>> {
        // What a header says never decides alone which arithmetic is used.
        if key.algorithm != self.algorithm || !key.signed(self.signed.as_bytes(), &self.signature) {
            return None;
        }
        match claims(self.signed)? {
            Value::Object(claims) => Some(claims),
            _ => None,
        }
    }
}

/// A public key for signatures.
#[derive(Debug)]
pub(super) struct Key {
    id: Option<String>,
    algorithm: Algorithm,
    material: Material,
}

#[derive(Debug)]
enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// The point, or the key itself for Ed25519.
    Curve(Vec<u8>),
}

impl Key {
    /// Reads one key of a published set; `None` if it is of no use here.
    pub(super) fn read(key: &Value) -> Option<Self> {
        let text = |name: &str| key.get(name).and_then(Value::as_str);
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
        let coordinate = |name: &str| bytes(name).filter(|bytes| bytes.len() == 32);
        let (algorithm, material) = match (text("kty")?, text("crv")) {
            ("RSA", _) => {
                let (modulus, exponent) = (without_zeros(bytes("n")?), without_zeros(bytes("e")?));
                (Algorithm::Rs256, Material::Rsa { modulus, exponent })
            }
            ("EC", Some("P-256")) => {
                let point = [vec![4], coordinate("x")?, coordinate("y")?].concat();
                (Algorithm::Es256, Material::Curve(point))
            }
            ("OKP", Some("Ed25519")) => (Algorithm::EdDsa, Material::Curve(coordinate("x")?)),
            _ => return None,
        };
        let for_signing = key.get("use").is_none_or(|it| it == "sig");
        let named = key.get("alg").is_none_or(|it| it.as_str().and_then(Algorithm::named) == Some(algorithm));
        let id = text("kid").map(str::to_owned);
        (for_signing && named).then_some(Self { id, algorithm, material })
    }

    fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match (&self.material, self.algorithm) {
            (Material::Rsa { modulus: n, exponent: e }, _) => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            (Material::Curve(x), Algorithm::EdDsa) => {
                UnparsedPublicKey::new(&ED25519, x).verify(message, signature)
            }
            (Material::Curve(point), _) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
        };
        verified.is_ok()
    }
}

/// What a token's header says, before anything is proven: good for choosing who proves it and for
/// turning it away, never for letting it in. `None` if the bearer does not look like a signed token.
pub(super) fn header(bearer: &str) -> Option<Value> {
    part(bearer, 0)
}

/// The same of its claims; `None` if the bearer does not look like a signed token.
pub(super) fn claims(bearer: &str) -> Option<Value> {
    part(bearer, 1)
}

fn part(bearer: &str, index: usize) -> Option<Value> {
    let text = bearer.split('.').nth(index)?;
    let value: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    value.is_object().then_some(value)
}

/// A number as ring wants it; some issuers put zeros in front.
fn without_zeros(number: Vec<u8>) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number[zeros..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{Ed25519KeyPair, KeyPair};
    use serde_json::json;

    /// The Ed25519 example of RFC 8037, appendix A.
    const KEY: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    const TOKEN: &str = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.\
        hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

    fn published(more: &Value) -> Value {
        let mut key = json!({ "kty": "OKP", "crv": "Ed25519", "x": KEY });
        key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        key
    }

    fn token(header: &Value) -> String {
        format!("{}.e30.AAAA", URL_SAFE_NO_PAD.encode(header.to_string()))
    }

    #[test]
    fn the_example_of_the_standard_is_signed() {
        let (token, key) = (Unproven::read(TOKEN).unwrap(), Key::read(&published(&json!({}))).unwrap());
        assert!(key.signed(token.signed.as_bytes(), &token.signature));
        assert!(!key.signed(b"something else", &token.signature));
        assert!(token.prove(&key).is_none(), "signed, but its claims are no object");
    }

    /// The key is the right one and did sign it: only the header names another sort.
    #[test]
    fn what_a_header_calls_by_another_name_is_not_proven() {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let x = URL_SAFE_NO_PAD.encode(pair.public_key());
        let key = Key::read(&published(&json!({ "x": x }))).unwrap();
        let proven = |alg: &str| {
            let header = URL_SAFE_NO_PAD.encode(json!({ "alg": alg }).to_string());
            let signature = URL_SAFE_NO_PAD.encode(pair.sign(format!("{header}.e30").as_bytes()));
            Unproven::read(&format!("{header}.e30.{signature}")).unwrap().prove(&key).is_some()
        };
        assert!(proven("EdDSA"));
        assert!(!proven("ES256") && !proven("RS256"));
    }

    #[test]
    fn only_keys_for_such_signatures_are_taken() {
        for good in [json!({}), json!({ "use": "sig", "alg": "EdDSA" }), json!({ "kid": "k", "x5c": [] })] {
            assert!(Key::read(&published(&good)).is_some(), "{good}");
        }
        for bad in [
            json!({ "use": "enc" }),
            json!({ "alg": "ES256" }),
            json!({ "alg": "HS256" }),
            json!({ "alg": 7 }),
            json!({ "crv": "X25519" }),
            json!({ "kty": "oct", "k": "AAAA" }),
            json!({ "x": "AAAA" }),
        ] {
            assert!(Key::read(&published(&bad)).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_name_finds_its_key_and_without_one_there_is_no_choice() {
        let key = |kid: &str| Key::read(&published(&json!({ "kid": kid }))).unwrap();
        let keys = [key("a"), key("b")];
        let found = |header: Value, keys: &[Key]| {
            Unproven::read(&token(&header)).unwrap().find(keys).and_then(|key| key.id.clone())
        };
        assert_eq!(found(json!({ "alg": "EdDSA", "kid": "b" }), &keys).as_deref(), Some("b"));
        assert_eq!(found(json!({ "alg": "EdDSA", "kid": "c" }), &keys), None);
        assert_eq!(found(json!({ "alg": "EdDSA" }), &keys), None, "two would do");
        assert_eq!(found(json!({ "alg": "EdDSA" }), &keys[..1]).as_deref(), Some("a"));
        assert_eq!(found(json!({ "alg": "ES256", "kid": "a" }), &keys), None, "a key of another sort");
    }

    #[test]
    fn what_is_no_token_of_ours_is_not_read() {
        assert!(Unproven::read(&token(&json!({ "alg": "ES256", "kid": "k" }))).is_some());
        for crit in [json!(["exp"]), json!([]), json!(null), json!(7)] {
            assert!(Unproven::read(&token(&json!({ "alg": "ES256", "crit": crit }))).is_none(), "{crit}");
        }
        for alg in [json!("none"), json!("HS256"), json!("es256"), json!(null), json!(["ES256"])] {
            assert!(Unproven::read(&token(&json!({ "alg": alg }))).is_none(), "{alg}");
        }
        let good = token(&json!({ "alg": "ES256" }));
        for bearer in ["", "a", "a.b", "..", "a.b.c", &format!("{good}.x"), &format!("{good}=")] {
            assert!(Unproven::read(bearer).is_none(), "{bearer:?}");
        }
    }
}
