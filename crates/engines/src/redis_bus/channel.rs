//! Which channel of the server a topic has.
//!
//! `{cluster.17}i42`: what stands in braces decides the slot in a Redis cluster. There a
//! command takes channels of one slot only, so topics share a few slots instead of having
//! one each: ten thousand of them are followed with [`SLOTS`] commands, and are still
//! spread over the nodes of the cluster.

use angelia_core::directory::BotKey;
use angelia_core::inbox::InstanceId;
use angelia_core::ports::Topic;

/// Over how many slots of a cluster the channels are spread.
pub(super) const SLOTS: u16 = 64;

/// A channel, and which of the slots it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Channel {
    pub(super) name: String,
    pub(super) slot: u16,
}

impl Channel {
    /// The channel of a topic in the cluster `prefix`.
    pub(super) fn of(prefix: &str, topic: &Topic) -> Self {
        let (slot, rest) = match topic {
            Topic::Instance(id) => (spread(&id.0.to_be_bytes()), format!("i{}", id.0)),
            Topic::Room(room) => (spread(room.as_bytes()), format!("r{room}")),
            Topic::Bot(BotKey { platform, bot }) => {
                let name = format!("{platform}/{bot}");
                (spread(name.as_bytes()), format!("b{name}"))
            }
            Topic::Node(node) => (spread(node.as_bytes()), format!("n{node}")),
            Topic::Control => (0, "c".to_owned()),
        };
        Self { name: format!("{{{prefix}.{slot}}}{rest}"), slot }
    }
}

/// The topic of a channel; `None` for one that is not of this cluster.
pub(super) fn topic(prefix: &str, channel: &[u8]) -> Option<Topic> {
    let name = std::str::from_utf8(channel).ok()?;
    let (_, rest) = name.strip_prefix('{')?.strip_prefix(prefix)?.split_once('}')?;
    match rest.split_at_checked(1)? {
        ("i", id) => id.parse().ok().map(|id| Topic::Instance(InstanceId(id))),
        ("r", room) => Some(Topic::Room(room.to_owned())),
        ("b", bot) => {
            let (platform, bot) = bot.split_once('/')?;
            Some(Topic::Bot(BotKey::new(platform, bot)))
        }
        ("n", node) => Some(Topic::Node(node.to_owned())),
        ("c", "") => Some(Topic::Control),
        _ => None,
    }
}

/// Any slot, but on every node the same one: FNV-1a.
fn spread(bytes: &[u8]) -> u16 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    u16::try_from(hash % u64::from(SLOTS)).unwrap_or_default()
}

/// Whether a prefix leaves the braces to us, and channels short.
pub(super) fn is_prefix(prefix: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=64).contains(&prefix.len()) && prefix.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_tells_its_topic() {
        let rooms = ["acme/lobby", "", "{odd}", "ü", "i42"].map(|room| Topic::Room(room.into()));
        let instances = [0, 1, -1, i64::MAX].map(|id| Topic::Instance(InstanceId(id)));
        let bots = [("wecom", "ww1/7"), ("discord", "")].map(|(on, bot)| Topic::Bot(BotKey::new(on, bot)));
        let others = [Topic::Node("a-1".into()), Topic::Control];
        for of in rooms.into_iter().chain(instances).chain(bots).chain(others) {
            let channel = Channel::of("abc", &of);
            assert_eq!(topic("abc", channel.name.as_bytes()), Some(of), "{channel:?}");
            assert!(channel.slot < SLOTS);
        }
        for foreign in ["", "{abc.1}", "{abd.1}i1", "i1", "{abc.1}x", "{abc.1}i", "{abc.1}cc", "{abc.1}bx"] {
            assert_eq!(topic("abc", foreign.as_bytes()), None, "{foreign}");
        }
    }

    #[test]
    fn instances_that_were_made_one_after_the_other_are_spread() {
        let mut of_slot = [0; SLOTS as usize];
        for id in 1..=10_000 {
            of_slot[usize::from(Channel::of("abc", &Topic::Instance(InstanceId(id))).slot)] += 1;
        }
        assert!(of_slot.iter().all(|count| (50..300).contains(count)), "{of_slot:?}");
    }
}
