//! Hellos and the descriptors that answer them.

use crate::identities::Front;
use angelia_contract::descriptor::Descriptor;
use angelia_contract::frame::{ConnectorFrame, Hello};
use angelia_contract::source::RELAY;
use angelia_core::clock::Mono;
use angelia_core::commands::{self, Command};
use angelia_core::identity::MAX_NAME;
use std::collections::BTreeSet;
use std::time::Duration;

/// With several hellos: after this long without another the primary is repeated.
const QUIET: Duration = Duration::from_millis(200);
/// How long a first hello may be followed by a second before the drain starts.
const GRACE: Duration = Duration::from_millis(20);
/// The platform with whose hello gateways tell their commands.
const DISCORD: &str = "discord";
/// Hellos answered on one socket; nobody fronts more identities.
const MAX_HELLOS: usize = 32;

/// The hellos of one socket.
#[derive(Debug, Default)]
pub(super) struct Handshake {
    hellos: usize,
    last: Option<Mono>,
    /// The descriptor that answered the first hello.
    primary: Option<Box<Descriptor>>,
    complete: bool,
    /// Whether anybody ever said hello on this socket.
    begun: bool,
    /// The bots the hellos named, until the handshake is complete.
    fronts: BTreeSet<Front>,
    /// The commands that one of them named, until then.
    commands: Option<Vec<Command>>,
}

impl Handshake {
    /// Takes a hello; answers the line to write, if it is to be answered.
    pub(super) fn hello(&mut self, descriptor: Descriptor, now: Mono) -> Option<String> {
        if self.hellos >= MAX_HELLOS {
            return None;
        }
        self.hellos += 1;
        self.begun = true;
        self.last = Some(now);
        self.complete = false;
        let line = ConnectorFrame::Descriptor { descriptor: descriptor.clone() }.to_line();
        self.primary.get_or_insert_with(|| Box::new(descriptor));
        Some(line)
    }

    /// Notes which bot a hello is for; `relay` is none in particular.
    pub(super) fn fronts(&mut self, hello: &Hello) {
        let (platform, bot) = (hello.platform.as_str(), hello.bot_id.as_str());
        let named = !platform.is_empty() && platform != RELAY;
        if named && platform.len().max(bot.len()) <= MAX_NAME && self.fronts.len() < MAX_HELLOS {
            self.fronts.insert((platform.to_lowercase(), bot.to_owned()));
        }
    }

    /// Notes which commands a hello names, if it says anything of them; answers how many of them no
    /// provider takes. They come with the Discord hello and count for every platform. So one for
    /// Discord without any says that the gateway tells none, and others say nothing.
    pub(super) fn commands(&mut self, hello: &Hello) -> usize {
        match &hello.command_manifest {
            _ if self.hellos >= MAX_HELLOS => 0,
            Some(named) => {
                let read = commands::read(named);
                self.commands = Some(read.commands);
                read.dropped
            }
            None if hello.platform.eq_ignore_ascii_case(DISCORD) => {
                self.commands.get_or_insert_default();
                0
            }
            None => 0,
        }
    }

    /// The commands of a complete handshake, if anything was said of them since the last.
    pub(super) fn take_commands(&mut self) -> Option<Vec<Command>> {
        self.commands.take()
    }

    /// All bots of a complete handshake.
    pub(super) fn take_fronts(&mut self) -> BTreeSet<Front> {
        std::mem::take(&mut self.fronts)
    }

    /// Whether anybody said hello.
    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// Starts over, for a gateway that went idle and may come back on the same socket.
    pub(super) fn renew(&mut self) {
        *self = Self { begun: self.begun, complete: true, ..Self::default() };
    }

    /// When [`Handshake::complete`] may have something to say.
    pub(super) fn due(&self) -> Option<Mono> {
        let wait = if self.hellos > 1 { QUIET } else { GRACE };
        self.last.filter(|_| !self.complete).map(|last| last + wait)
    }

    /// Ends the handshake once it is quiet. Published gateways up to 0.19 keep
    /// the last descriptor they got, so the primary is said once more.
    pub(super) fn complete(&mut self, now: Mono) -> Option<Option<String>> {
        if self.due().is_none_or(|due| now < due) {
            return None;
        }
        self.complete = true;
        let repeat = self.primary.as_ref().filter(|_| self.hellos > 1);
        Some(repeat.map(|primary| ConnectorFrame::Descriptor { descriptor: (**primary).clone() }.to_line()))
    }
}

/// What a gateway that fronts `hello` is told. `ours` are the descriptors of the bots
/// here, `routed` the platforms from which somebody can reach it. Silence would hang it
/// for 30 s, so even a platform we do not have gets an answer, a cautious one.
///
/// One that says `relay` fronts whatever leads to it. Where nothing does yet it is told what
/// fits every platform here: it learns of no change before it starts again, and the first
/// route often comes after the first hello.
pub(super) fn descriptor_for(hello: &Hello, ours: &[Descriptor], routed: &BTreeSet<&str>) -> Descriptor {
    if let Some(descriptor) = ours.iter().find(|d| d.platform.eq_ignore_ascii_case(&hello.platform)) {
        return descriptor.clone();
    }
    let leading_to_it = || ours.iter().filter(|known| routed.contains(known.platform.as_str()));
    if hello.platform == RELAY
        && let Some(common) = Descriptor::common(leading_to_it()).or_else(|| Descriptor::common(ours))
    {
        return common;
    }
    Descriptor {
        platform: hello.platform.clone(),
        label: hello.platform.clone(),
        max_message_length: 1_600,
        supported_ops: vec!["send".into()],
        ..Descriptor::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(platform: &str, ours: &[Descriptor], routed: &[&str]) -> Descriptor {
        let hello = Hello { platform: platform.into(), ..Hello::default() };
        descriptor_for(&hello, ours, &routed.iter().copied().collect())
    }

    fn at(ms: u64) -> Mono {
        Mono(Duration::from_millis(ms))
    }

    #[test]
    fn one_hello_starts_soon_and_several_repeat_the_primary() {
        let mut one = Handshake::default();
        assert_eq!(one.due(), None);
        assert!(one.hello(Descriptor::default(), at(0)).unwrap().ends_with('\n'));
        assert_eq!(one.complete(at(19)), None);
        assert_eq!(one.complete(at(20)), Some(None));
        assert_eq!(one.complete(at(21)), None, "only once");

        let mut two = Handshake::default();
        let named = |name: &str| Descriptor { platform: name.into(), ..Descriptor::default() };
        two.hello(named("discord"), at(0));
        two.hello(named("telegram"), at(10));
        assert_eq!(two.complete(at(209)), None);
        let repeated = two.complete(at(210)).unwrap().unwrap();
        assert!(repeated.contains("discord"));
    }

    #[test]
    fn hellos_without_end_are_not_answered_without_end() {
        let mut handshake = Handshake::default();
        let answered = (0..100).filter(|_| handshake.hello(Descriptor::default(), at(0)).is_some()).count();
        assert_eq!(answered, MAX_HELLOS);
    }

    #[test]
    fn commands_come_with_one_hello_and_another_takes_none_away() {
        let hello = |platform: &str, names: Option<&[&str]>| Hello {
            platform: platform.into(),
            command_manifest: names.map(|names| names.iter().map(|name| json!({ "name": name })).collect()),
            ..Hello::default()
        };
        let mut handshake = Handshake::default();
        let mut told = |hello: Hello| {
            let dropped = handshake.commands(&hello);
            (dropped, handshake.take_commands().map(|all| all.len()))
        };
        assert_eq!(told(hello("telegram", None)), (0, None), "it says nothing of them");
        assert_eq!(told(hello("discord", Some(&["new", "help", "Bad"]))), (1, Some(2)));
        assert_eq!(told(hello("webchat", Some(&["new"]))), (0, Some(1)));
        assert_eq!(told(hello("discord", None)), (0, Some(0)), "it has none to tell");
        handshake.commands(&hello("discord", Some(&["new"])));
        handshake.commands(&hello("telegram", None));
        assert_eq!(handshake.take_commands().map(|all| all.len()), Some(1));
    }

    #[test]
    fn every_hello_gets_a_descriptor() {
        let ours = [
            Descriptor { platform: "webchat".into(), max_message_length: 8_000, ..Descriptor::default() },
            Descriptor { platform: "sms".into(), max_message_length: 1_600, ..Descriptor::default() },
        ];
        assert_eq!(told("webchat", &ours, &["sms"]).platform, "webchat");
        let unknown = told("discord", &ours, &[]);
        assert_eq!((unknown.platform.as_str(), unknown.supports_edit), ("discord", false));
        assert!(unknown.max_message_length > 0);
        assert_eq!(told("relay", &[], &[]).platform, "relay");
    }

    #[test]
    fn a_relay_is_told_of_what_leads_to_it() {
        let bot = |platform: &str, max_message_length| Descriptor {
            platform: platform.into(),
            max_message_length,
            ..Descriptor::default()
        };
        let ours = [bot("webchat", 8_000), bot("discord", 2_000), bot("sms", 1_600), bot("sms", 1_600)];
        let told = |routed: &[&str]| {
            let told = told("relay", &ours, routed);
            (told.platform, told.max_message_length)
        };
        assert_eq!(told(&["webchat"]), ("webchat".into(), 8_000), "others' bots are none of its business");
        assert_eq!(told(&["discord", "webchat"]), ("relay".into(), 2_000));
        assert_eq!(told(&["discord", "matrix"]), ("discord".into(), 2_000), "nobody is there");
        for nothing_yet in [&[][..], &["matrix"]] {
            assert_eq!(told(nothing_yet), ("relay".into(), 1_600), "whichever comes");
        }
    }
}
