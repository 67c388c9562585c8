//! Handing the next master key to another node, so that only that process can open it.
//!
//! It lies in the store for a moment, where whoever has the old key may read; the old key may be
//! why it is changed. So each process makes a key pair (X25519) whose private half is nowhere but
//! in its memory, and the next key is sealed to that. Around it is a seal of the old key: it
//! proves that a node wrote it, and not somebody who can only write to the database.

use angelia_core::error::{Error, Result};
use angelia_core::seal::MasterKey;
use angelia_core::secret::{Secret, fingerprint, hex};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use parking_lot::Mutex;
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::rand::SystemRandom;
use serde::{Deserialize, Serialize};

/// A key on its way to one process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Given {
    /// The public key it is sealed to.
    to: String,
    /// The public key of whoever gives it, good for this once.
    by: String,
    sealed: String,
}

/// Whom a key can be handed to: this process.
#[derive(Default)]
pub(crate) struct Recipient(Mutex<Option<Pair>>);

struct Pair {
    private: EphemeralPrivateKey,
    public: String,
}

impl Pair {
    fn make() -> Result<Self> {
        let failed = |_| Error::internal("no key pair could be made");
        let private = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).map_err(failed)?;
        let public = BASE64.encode(private.compute_public_key().map_err(failed)?);
        Ok(Self { private, public })
    }

    /// What both sides come to, and nobody else.
    fn agree(self, with: &str, text: impl FnOnce(&str) -> String) -> Result<MasterKey> {
        let public = BASE64.decode(with).map_err(|_| foreign())?;
        let shared = |shared: &[u8]| {
            let text = Secret::new(text(&hex(shared)));
            MasterKey::from_hex(Secret::new(hex(&fingerprint(text.expose()))).expose())
        };
        agree_ephemeral(self.private, &UnparsedPublicKey::new(&X25519, public), shared)
            .map_err(|_| foreign())?
    }
}

fn foreign() -> Error {
    Error::invalid("what another node handed over for the master key cannot be read")
}

fn text(node: &str, by: &str, to: &str, shared: &str) -> String {
    format!("angelia key hand-over/{node}/{by}/{to}/{shared}")
}

/// What a key is bound to on its way: nobody else's, and no other secret.
fn bound_to(node: &str) -> String {
    format!("key-handover/{node}")
}

/// Seals `key` to the process that offers `to`, the node called `node`, which has `known`.
pub(crate) fn give(key: &MasterKey, known: &MasterKey, node: &str, to: &str) -> Result<Given> {
    let pair = Pair::make()?;
    let by = pair.public.clone();
    let agreed = pair.agree(to, |shared| text(node, &by, to, shared))?;
    let inner = agreed.seal(&key.to_hex(), &bound_to(node))?;
    let outer = known.seal(&Secret::new(BASE64.encode(inner)), &bound_to(node))?;
    Ok(Given { to: to.to_owned(), by, sealed: BASE64.encode(outer) })
}

impl Recipient {
    /// The public key that others seal to. It is good for one key; then there is another.
    pub(crate) fn offer(&self) -> Result<String> {
        let mut pair = self.0.lock();
        if pair.is_none() {
            *pair = Some(Pair::make()?);
        }
        Ok(pair.as_ref().map(|pair| pair.public.clone()).unwrap_or_default())
    }

    /// The key that was handed to this process, the node called `node`, which has `known`; `None`
    /// if it is for another, or was taken already.
    pub(crate) fn take(&self, given: &Given, known: &MasterKey, node: &str) -> Result<Option<MasterKey>> {
        let opened = |sealed: &str| BASE64.decode(sealed).map_err(|_| foreign());
        let mut pair = self.0.lock();
        if pair.as_ref().is_none_or(|pair| pair.public != given.to) {
            return Ok(None);
        }
        // First what proves a node: others must not use the pair up.
        let inner = known.open(&opened(&given.sealed)?, &bound_to(node))?;
        let Some(mine) = pair.take() else { return Ok(None) };
        let agreed = mine.agree(&given.by, |shared| text(node, &given.by, &given.to, shared))?;
        let key = agreed.open(&opened(inner.expose())?, &bound_to(node))?;
        MasterKey::from_hex(key.expose()).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_process_it_is_for_gets_a_key_and_only_from_a_node() {
        let [old, next, other] = [MasterKey::mint(), MasterKey::mint(), MasterKey::mint()];
        let (mine, theirs) = (Recipient::default(), Recipient::default());
        let given = give(&next, &old, "a", &mine.offer().unwrap()).unwrap();
        assert!(theirs.take(&given, &old, "a").unwrap().is_none(), "not for it");
        let stolen = Recipient::default();
        let for_thief = Given { to: stolen.offer().unwrap(), ..given.clone() };
        assert!(stolen.take(&for_thief, &old, "a").is_err(), "who has the old key learns nothing");

        let forged = give(&next, &other, "a", &mine.offer().unwrap()).unwrap();
        assert!(mine.take(&forged, &old, "a").is_err(), "who has not the old key says nothing");
        assert!(mine.take(&given, &old, "b").is_err(), "it is another node's");
        assert_eq!(mine.take(&given, &old, "a").unwrap().map(|key| key.id()), Some(next.id()));
        assert!(mine.take(&given, &old, "a").unwrap().is_none(), "once");
        assert_ne!(mine.offer().unwrap(), given.to);
    }
}
