//! The connector's own words to people, each in every language it speaks (docs/decisions/0042).
//!
//! What somebody reads in a chat stands here and nowhere else; what programs, gateways and
//! operators read is English and stands where it is made.

mod language;

use std::borrow::Cow;

pub use language::Language;

/// Declares what is said, and how in each language.
macro_rules! own_words {
    ($($(#[$meta:meta])* $name:ident { English: $english:expr, German: $german:expr $(,)? })*) => {
        /// Something that the connector itself says to people.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum OwnWords { $($(#[$meta])* $name,)* }

        impl OwnWords {
            /// Each of them.
            pub const ALL: [Self; <[&str]>::len(&[$($english),*])] = [$(Self::$name),*];

            /// How it is said in a language.
            pub const fn text(self, language: Language) -> &'static str {
                match (self, language) {
                    $((Self::$name, Language::English) => $english,
                    (Self::$name, Language::German) => $german,)*
                }
            }
        }
    };
}

own_words! {
    /// The agent is away, and a message waits for it.
    Away {
        English: "Your agent is away at the moment. Your message is kept and will be answered when it is back.",
        German: "Dein Agent ist gerade nicht da. Deine Nachricht ist aufgehoben und wird beantwortet, sobald er \
                 zurück ist.",
    }
    /// There is no agent yet, and a message waits for the first one.
    NoAgentYet {
        English: "There is no agent here yet. Your message is kept and goes to the first one that is set up.",
        German: "Hier gibt es noch keinen Agenten. Deine Nachricht ist aufgehoben und geht an den ersten, der \
                 eingerichtet wird.",
    }
    /// Nobody has answered a command or a press, and it can be answered in its place no longer.
    Unanswered {
        English: "Your agent has not answered yet. If it does, the answer comes here as a new message.",
        German: "Dein Agent hat noch nicht geantwortet. Tut er es noch, kommt die Antwort hier als neue Nachricht.",
    }
    /// Messages of a chat were dropped because too much waited.
    Lost {
        English: "More messages waited for your agent than are kept, and the oldest from this chat were dropped. \
                  Please send again what still matters.",
        German: "Für deinen Agenten warteten mehr Nachrichten, als aufgehoben werden, und die ältesten aus diesem \
                 Chat sind verworfen. Bitte schicke noch einmal, was noch wichtig ist.",
    }
    /// A message was not taken because too much waits.
    InboxFull {
        English: "Your agent has more messages waiting than are kept for it, so this one was not taken. \
                  Please send it again later.",
        German: "Für deinen Agenten warten schon so viele Nachrichten, wie aufgehoben werden; diese wurde nicht \
                 angenommen. Bitte schicke sie später noch einmal.",
    }
    /// A message of the agent may not have arrived.
    InDoubt {
        English: "A message from your agent may not have arrived here, or not completely. If something is missing, \
                  please ask again.",
        German: "Eine Nachricht deines Agenten ist hier vielleicht nicht oder nicht vollständig angekommen. Falls \
                 etwas fehlt, frage bitte noch einmal.",
    }
    /// What stands before a message that is said once more because it may not have arrived.
    RepeatMark {
        English: "(Perhaps a repetition: it is not known whether this arrived before.)",
        German: "(Vielleicht eine Wiederholung: Es ist nicht bekannt, ob das schon angekommen ist.)",
    }
    /// A file is too large to reach the agent.
    FileTooLarge {
        English: "Your agent did not get your file: it is larger than can be passed on. Please send a smaller one, \
                  or a link to it.",
        German: "Dein Agent hat deine Datei nicht bekommen: Sie ist größer, als weitergegeben werden kann. Bitte \
                 schicke eine kleinere oder einen Link.",
    }
    /// A file could not be passed on to the agent.
    FileLost {
        English: "Your agent did not get your file: it could not be fetched. Please send it again.",
        German: "Dein Agent hat deine Datei nicht bekommen: Sie konnte nicht geholt werden. Bitte schicke sie noch \
                 einmal.",
    }
    /// A line waits until the agent has finished what it works on.
    Held {
        English: "Your agent is still busy. Your message is kept and goes to it as soon as it has finished. \
                  Send /stop to stop it now.",
        German: "Dein Agent ist noch beschäftigt. Deine Nachricht ist aufgehoben und geht an ihn, sobald er fertig \
                 ist. Mit /stop hältst du ihn jetzt an.",
    }
    /// The agent was cut off while it worked, and nothing came since.
    TurnLost {
        English: "Your agent was cut off while it worked on this and has not answered since. Please ask again.",
        German: "Dein Agent wurde unterbrochen, während er daran arbeitete, und hat seitdem nicht geantwortet. Bitte \
                 frage noch einmal.",
    }
    /// What the bot is, and how a chat is linked.
    Greeting {
        English: "Hello! This bot passes messages between this chat and an AI agent. If the chat is linked to an \
                  agent, just write: the agent answers here. If it is not, ask whoever runs the agent for a code \
                  and send /link CODE.",
        German: "Hallo! Dieser Bot vermittelt zwischen diesem Chat und einem KI-Agenten. Ist der Chat mit einem \
                 Agenten verbunden, schreibe einfach: Der Agent antwortet hier. Wenn nicht, lass dir von den \
                 Betreibern des Agenten einen Code geben und sende /link CODE.",
    }
    /// How a code is used.
    HowToLink {
        English: "Type /link and the code you were given, in one message.",
        German: "Schreibe /link und den Code, den du bekommen hast, in eine Nachricht.",
    }
    /// Only some may link a chat.
    NotYoursToLink {
        English: "Only an administrator can link this chat.",
        German: "Nur wer diesen Chat verwaltet, kann ihn verbinden.",
    }
    /// The same for every reason: a code is not to be guessed by what is said of it.
    CodeNotGood {
        English: "This did not work: the code is wrong, used or too old, or this chat is linked already. \
                  Ask for a new code and try again later.",
        German: "Das hat nicht geklappt: Der Code ist falsch, verbraucht oder zu alt, oder dieser Chat ist schon \
                 verbunden. Lass dir einen neuen Code geben und versuche es später noch einmal.",
    }
    /// A code has to be written as a message.
    LinkInWriting {
        English: "A link code has to be written as a message: mention me, followed by /link and the code.",
        German: "Ein Code muss als Nachricht geschrieben werden: Erwähne mich, dann /link und der Code.",
    }
    /// Whether somebody administers a chat is not known at the moment.
    AdministratorUnknown {
        English: "I could not find out whether you administer this chat. Please try again in a minute.",
        German: "Ob du diesen Chat verwaltest, war gerade nicht herauszufinden. Bitte versuche es in einer Minute \
                 noch einmal.",
    }
    /// Something is wrong here that the person cannot mend.
    WentWrong {
        English: "Something went wrong here. Please try again later.",
        German: "Hier ist etwas schiefgegangen. Bitte versuche es später noch einmal.",
    }
    /// An interaction was not taken, and nothing of it is kept.
    TryAgain {
        English: "I could not take this just now. Please try again in a moment.",
        German: "Das konnte ich gerade nicht annehmen. Bitte versuche es gleich noch einmal.",
    }
    /// An interaction may have been taken.
    MayHaveArrived {
        English: "This took too long to be sure: it may have arrived. If no answer comes within a minute, please \
                  ask again.",
        German: "Das hat zu lange gedauert, um sicher zu sein: Vielleicht ist es angekommen. Kommt in einer Minute \
                 keine Antwort, frage bitte noch einmal.",
    }
    /// An interaction means nothing here.
    NotUnderstood {
        English: "I do not understand this kind of request.",
        German: "Diese Art von Anfrage verstehe ich nicht.",
    }
    /// A question of the agent was answered, or waits no longer.
    PromptOver {
        English: "This question is not open any more: it was answered, or it waited too long.",
        German: "Diese Frage ist nicht mehr offen: Sie wurde beantwortet oder hat zu lange gewartet.",
    }
    /// Only whoever asked the agent for something approves it.
    PromptNotYours {
        English: "Only the person whose request this is can decide it.",
        German: "Darüber kann nur entscheiden, wer darum gebeten hat.",
    }
    /// No tenant has the place.
    NobodyAnswersHere {
        English: "Nobody answers here: no agent is connected to this place.",
        German: "Hier antwortet niemand: Mit diesem Ort ist kein Agent verbunden.",
    }
    /// Somebody may not speak there.
    YouMayNot {
        English: "You are not among those who may talk to the agent here.",
        German: "Du gehörst nicht zu denen, die hier mit dem Agenten sprechen dürfen.",
    }
    /// The agent of the place was taken away.
    AgentNotSetUp {
        English: "The agent of this place is not set up at the moment.",
        German: "Der Agent dieses Ortes ist zurzeit nicht eingerichtet.",
    }
    /// Bots are not heard there.
    NoBots {
        English: "The agent here does not listen to bots.",
        German: "Der Agent hier hört nicht auf Bots.",
    }
    /// A room of the web chat has no tenant.
    RoomOfNobody {
        English: "this room belongs to nobody: the operator can give it to an agent (angelia route add)",
        German: "dieser Raum gehört niemandem: der Betreiber kann ihn einem Agenten geben (angelia route add)",
    }
    /// Somebody may not speak in a room.
    RoomNotForYou {
        English: "the agent does not listen to you here: the operator can change that (angelia route add --allow)",
        German: "der Agent hört hier nicht auf dich: der Betreiber kann das ändern (angelia route add --allow)",
    }
    /// The agents of a room were taken away.
    RoomWithoutAgent {
        English: "no agent is set up for this room: the operator can make one (angelia gateway create)",
        German: "für diesen Raum ist kein Agent eingerichtet: der Betreiber kann das tun (angelia gateway create)",
    }
    /// Bots are not heard in a room.
    RoomNotForBots {
        English: "the agent does not listen to bots",
        German: "der Agent hört nicht auf Bots",
    }
    /// A line was meant for others.
    RoomNotAddressed {
        English: "others are in this room: write @agent to be heard, or answer one of the agent's messages",
        German: "in diesem Raum sind noch andere: schreibe @agent, um gehört zu werden, oder antworte auf eine \
                 Nachricht des Agenten",
    }
    /// A line was a command for the server.
    RoomConsumed {
        English: "this was for the server itself; it has answered",
        German: "das war für den Server selbst; er hat geantwortet",
    }
    /// A line was a command for a carrier.
    RoomKeyword {
        English: "this was for the network that carries it",
        German: "das war für das Netz, das es befördert",
    }
    /// Too much waits for the agent of a room.
    RoomFull {
        English: "more waits for the agent than is kept: try again when it has read some",
        German: "für den Agenten wartet mehr, als aufgehoben wird: versuche es wieder, wenn er etwas gelesen hat",
    }
    /// An edit comes too late.
    EditNotWaiting {
        English: "the agent has the old text, or was never sent this message: write a new one",
        German: "der Agent hat den alten Text oder bekam diese Nachricht nie: schreibe eine neue",
    }
    /// What is edited, or was posted before, reached nobody.
    EditNotDelivered {
        English: "it reached nobody when it was said first: say it again",
        German: "es hat beim ersten Mal niemanden erreicht: schreibe es noch einmal",
    }
    /// What is edited waits for another agent.
    EditMoved {
        English: "the old text waits for another agent than the one of this room now: write a new message",
        German: "der alte Text wartet auf einen anderen Agenten als den, der jetzt in diesem Raum ist: schreibe eine \
                 neue Nachricht",
    }
    /// Somebody posts too fast in a room.
    RoomTooFast {
        English: "you write faster than is taken from one person: nothing was written, try again after a pause",
        German: "du schreibst schneller, als von einer Person angenommen wird: nichts wurde geschrieben, versuche es \
                 nach einer Pause wieder",
    }
    /// Strangers have to wait.
    RoomMuchWaits {
        English: "much waits for the agent already; try again later",
        German: "für den Agenten wartet schon viel; versuche es später wieder",
    }
}

/// How an agent without a name is spoken of, and how one with a name in the same place.
const OF_AGENT: [(&str, &str); 5] = [
    ("Your agent", "{}"),
    ("your agent", "{}"),
    ("Dein Agent", "{}"),
    ("deines Agenten", "von {}"),
    ("deinen Agenten", "{}"),
];

impl OwnWords {
    /// The same of an agent that people know by a name.
    pub fn of_agent(self, language: Language, name: Option<&str>) -> Cow<'static, str> {
        let text = self.text(language);
        let Some(name) = name.filter(|name| !name.trim().is_empty()) else { return text.into() };
        let spoken_of = OF_AGENT.into_iter().find_map(|(of, by_name)| Some((text.split_once(of)?, by_name)));
        match spoken_of {
            Some(((before, after), by_name)) => {
                format!("{before}{}{after}", by_name.replace("{}", name)).into()
            }
            None => text.into(),
        }
    }
}

/// What whoever used up a link code is told.
pub fn linked(tenant: &str, language: Language) -> String {
    match language {
        Language::English => format!("Linked: this chat belongs to {tenant} now."),
        Language::German => format!("Verbunden: Dieser Chat gehört jetzt zu {tenant}."),
    }
}

/// What a question shows once somebody has answered it.
pub fn chosen(label: &str, by: &str) -> String {
    format!("→ {label} ({by})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn everything_is_said_in_every_language_and_differently() {
        let all = OwnWords::ALL.into_iter().flat_map(|words| Language::ALL.map(|in_it| words.text(in_it)));
        let texts: Vec<&str> = all.collect();
        assert_eq!(texts.iter().collect::<HashSet<_>>().len(), OwnWords::ALL.len() * Language::ALL.len());
        for text in texts {
            assert!(!text.contains("  ") && text.trim() == text, "{text:?}");
            assert!(
                (20..500).contains(&text.chars().count()),
                "a notice is read in the middle of a talk: {text}"
            );
        }
        for language in Language::ALL {
            assert!(linked("acme", language).contains("acme"));
        }
    }

    #[test]
    fn an_agent_with_a_name_is_called_by_it() {
        let say = |words: OwnWords, language| words.of_agent(language, Some("Iris")).into_owned();
        assert!(say(OwnWords::Away, Language::English).starts_with("Iris is away at the moment."));
        assert!(say(OwnWords::InDoubt, Language::German).starts_with("Eine Nachricht von Iris ist"));
        assert!(say(OwnWords::Lost, Language::German).starts_with("Für Iris warteten"));
        let of_agent = [OwnWords::Away, OwnWords::Unanswered, OwnWords::Lost, OwnWords::InboxFull];
        for words in of_agent.into_iter().chain([OwnWords::InDoubt, OwnWords::Held, OwnWords::TurnLost]) {
            for language in Language::ALL {
                assert!(say(words, language).contains("Iris"), "{words:?} {language:?}");
                assert_eq!(words.of_agent(language, Some(" ")), words.text(language), "no name at all");
            }
        }
        assert_eq!(say(OwnWords::WentWrong, Language::English), OwnWords::WentWrong.text(Language::English));
    }

    #[test]
    fn what_can_be_typed_is_the_same_in_every_language() {
        for (words, typed) in [
            (OwnWords::Held, "/stop"),
            (OwnWords::Greeting, "/link CODE"),
            (OwnWords::HowToLink, "/link"),
            (OwnWords::LinkInWriting, "/link"),
        ] {
            for language in Language::ALL {
                assert!(words.text(language).contains(typed), "{words:?} {language:?}");
            }
        }
    }
}
