//! What Iris says, and to what.

/// What she adds when somebody stops her.
pub(super) const STOPPED: &str = " …\n\n**Stopped**, as you asked.";
/// How much of a message is quoted.
const QUOTED: usize = 160;
/// What would be markup if it were quoted as it is.
const MARKUP: &[char] = &['\\', '`', '*', '_', '[', ']', '<', '>', '&', '~', '|', '#'];

/// With what the line begins that the server writes under a message with files.
const ATTACHED: [&str; 5] = ["[photo ", "[voice ", "[audio ", "[video ", "[document "];

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    Hello,
    Help,
    Command,
    Reply,
    Streaming,
    Story,
    Hermes,
    Markdown,
    Thanks,
    Files,
    Other,
}

/// A message, and what is known of it.
pub(super) struct Heard<'a> {
    pub(super) text: &'a str,
    pub(super) message_id: &'a str,
    pub(super) session_key: &'a str,
    /// How many came before it.
    pub(super) count: usize,
    /// Whether it replies to something, and what that was about, if she remembers.
    pub(super) reply: Option<Option<Topic>>,
}

/// Words by which a topic is recognised; the first that fits counts.
const WORDS: [(Topic, &[&str]); 7] = [
    (Topic::Hermes, &["hermes", "connect"]),
    (Topic::Streaming, &["stream", "streaming", "edit", "edits", "typing"]),
    (Topic::Story, &["story", "happened", "explain", "journal"]),
    (Topic::Markdown, &["markdown", "code", "table", "format"]),
    (Topic::Help, &["help", "commands", "menu"]),
    (Topic::Thanks, &["thanks", "thank", "bye", "goodbye", "nice", "cool", "great"]),
    (Topic::Hello, &["hello", "hi", "hey", "hallo", "iris", "morning", "moin", "test"]),
];

/// One thing to try next, another one each time.
const TIPS: [&str; 4] = [
    "**Reply** to this message: I get to know which one you mean.",
    "Select your message and look at **What happened**: each leg of its way, with its time.",
    "Write to **Metis** in the direct message, and press **Stop** while it thinks.",
    "Open the room **hermes** and let your own hermes-agent join.",
];

impl Topic {
    /// What a message is about, as far as a list of words can tell.
    pub(super) fn of(heard: &Heard<'_>) -> Self {
        if heard.text.starts_with('/') {
            return Self::Command;
        }
        let under = heard.text.lines().last().unwrap_or_default();
        if ATTACHED.iter().any(|sign| under.starts_with(sign)) {
            return Self::Files;
        }
        if heard.reply.is_some() {
            return Self::Reply;
        }
        let text = heard.text.to_lowercase();
        let asks = text.trim() == "?";
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
        let found = WORDS.iter().find(|(_, known)| words.iter().any(|word| known.contains(word)));
        match found {
            Some((topic, _)) => *topic,
            None if asks => Self::Help,
            None if heard.count == 0 => Self::Hello,
            None => Self::Other,
        }
    }

    /// How she names it when somebody comes back to it.
    fn name(self) -> &'static str {
        match self {
            Self::Hello => "who I am",
            Self::Help => "what to try",
            Self::Command => "commands",
            Self::Reply => "replies",
            Self::Streaming => "streaming",
            Self::Story => "the way of a message",
            Self::Hermes => "hermes-agent",
            Self::Markdown => "Markdown",
            Self::Thanks => "how nice this is",
            Self::Files => "files",
            Self::Other => "what you said",
        }
    }
}

/// Her answer, in Markdown; it begins with what was said.
pub(super) fn say(topic: Topic, heard: &Heard<'_>) -> String {
    let quote = quote(heard.text);
    let tip = TIPS[heard.count % TIPS.len()];
    let Heard { message_id, session_key, .. } = heard;
    let body = match topic {
        Topic::Hello => format!(
            "Hello, I am **Iris**, a demo agent. I have no language model, but your message reached me as it \
             would reach a real agent:\n\n1. the server wrote it to disk and only then said that it has it,\n\
             2. it went into the inbox of my gateway, `iris`,\n3. and over one WebSocket, which I dialed, to \
             me.\n\nThis answer goes the same way back, as one message that I keep editing. Say `help` for \
             what else there is, or try this: {tip}"
        ),
        Topic::Help => "Here is what you can try:\n\n- **Reply** to one of my messages: I get to know which \
             one.\n- **What happened** shows the way your message took, with the time of every leg.\n- \
             **Metis**, in the direct message, thinks slowly. Press **Stop** while it does.\n- The room \
             **hermes** waits for your own hermes-agent and shows the lines to paste.\n- Words I know: \
             `streaming`, `story`, `hermes`, `markdown`, and commands such as `/hello`."
            .to_owned(),
        Topic::Command => format!(
            "That begins with a slash, so I got it as a **command**: its `message_type` is `command`. Agents \
             have commands of their own; I only have this answer.\n\nOne is special everywhere: `/stop` \
             interrupts the agent, like the button, and overtakes everything that waits. {tip}"
        ),
        Topic::Reply => replied(heard, tip),
        Topic::Streaming => format!(
            "This answer is **one message**. I sent its first line and have been editing it since, some ten \
             times a second; every edit is written to disk before you see it, so a reload shows the same.\n\n\
             With the Rust half of Angelia it is `conversation.stream()` and a `push` for each piece. Where a \
             platform cannot edit, SMS for example, the same code sends whole paragraphs. {tip}"
        ),
        Topic::Story => format!(
            "The server keeps a journal of every message. Yours is `{message_id}`; select it and look at \
             **What happened**, or ask in a terminal, as the demo's first lines show:\n\n```sh\nangelia \
             explain {message_id}\n```\n\nIt belongs to the conversation `{session_key}`: events of one \
             conversation are handled in order, others beside it."
        ),
        Topic::Hermes => "Open the room **hermes**. Nobody answers there yet: it shows the lines to paste into \
             a shell where **hermes-agent** is installed. They name this server, an id and a secret, and start \
             its gateway.\n\nIt dials out to here, so nothing has to be opened on its side. When it is there \
             the room says so, and it answers with its own model and tools. What you write before waits for \
             it."
            .to_owned(),
        Topic::Markdown => "Agents write *Markdown*, and each platform gets it in its own dialect. Here the \
             server renders it to **safe** HTML:\n\n```rust\nlet mut reply = \
             conversation.stream();\nreply.push(\"word by word\").await?;\nreply.finish().await?;\n```\n\n- \
             lists,\n- `code`,\n- [links](https://commonmark.org), and no raw HTML: `<b>` stays `<b>`."
            .to_owned(),
        Topic::Thanks => format!(
            "That is kind. I pass it on to whoever wrote my sentences.\n\nYour message `{message_id}` was on \
             disk before the server said thank you, and so is this. Before you go: {tip}"
        ),
        Topic::Files => format!(
            "You attached something. A real agent gets it **byte for byte**, and may send pictures, sound and \
             documents back. I only read the line in brackets that stands below your words.\n\n{tip}"
        ),
        Topic::Other => other(heard, tip),
    };
    format!("{quote}\n\n{body}")
}

fn replied(heard: &Heard<'_>, tip: &str) -> String {
    let about = match heard.reply.flatten() {
        Some(topic) => format!("to what I wrote about **{}**", topic.name()),
        None => "to an earlier message, which I do not remember".to_owned(),
    };
    format!(
        "You replied {about}. The event I got says so: `reply_to_message_id` names the message you meant. In a \
         room with several people a reply is also one of the ways to speak to the agent.\n\nMy own answers are \
         replies too, to `{}`. {tip}",
        heard.message_id
    )
}

/// Two ways to say that she has no idea.
fn other(heard: &Heard<'_>, tip: &str) -> String {
    let Heard { message_id, session_key, .. } = heard;
    if heard.count.is_multiple_of(2) {
        format!(
            "I would love to have an opinion on that, but I am a demo agent **without a language model**. What \
             I know is the way it took: `{message_id}` was written to disk, waited in the inbox of `iris` for \
             a moment, and came over my WebSocket; I acknowledged it, and only then it left the inbox.\n\n{tip}"
        )
    } else {
        format!(
            "A model would have something clever to say here; I can tell you this much: your message is \
             `{message_id}`, it belongs to the conversation `{session_key}`, and had I been away, the server \
             would have kept it for me.\n\nSay `help` for the words I know. {tip}"
        )
    }
}

/// What was said, as a quote of one line that is no markup, whatever it holds.
pub(super) fn quote(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown = String::from("> “");
    for c in words.chars().take(QUOTED) {
        if MARKUP.contains(&c) {
            shown.push('\\');
        }
        shown.push(c);
    }
    if words.chars().count() > QUOTED {
        shown.push('…');
    }
    shown.push('”');
    shown
}

/// A text in the pieces it is shown in: its first line, then word by word.
/// Markup is not torn apart, or the reader would see its asterisks.
pub(super) fn pieces(text: &str) -> Vec<&str> {
    let first = text.find('\n').unwrap_or(text.len());
    let mut pieces = vec![&text[..first]];
    let (mut from, rest) = (first, &text[first..]);
    for (at, space) in rest.match_indices([' ', '\n']) {
        let end = first + at + space.len();
        let piece = &text[from..end];
        let is_even = |mark: &str| piece.matches(mark).count().is_multiple_of(2);
        let whole = is_even("**") && is_even("`");
        if whole && !piece.trim().is_empty() {
            pieces.push(piece);
            from = end;
        }
    }
    pieces.push(&text[from..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(text: &str) -> Heard<'_> {
        Heard {
            text,
            message_id: "wp1",
            session_key: "agent:main:relay:group:web-lobby:you",
            count: 1,
            reply: None,
        }
    }

    #[test]
    fn different_words_have_different_answers() {
        let topics = [
            ("Hello!", Topic::Hello),
            ("help", Topic::Help),
            (" ? ", Topic::Help),
            ("/hello", Topic::Command),
            ("how do I connect hermes?", Topic::Hermes),
            ("what happened?", Topic::Story),
            ("show me streaming", Topic::Streaming),
            ("Markdown please", Topic::Markdown),
            ("thanks", Topic::Thanks),
            ("look\n[photo a.png: a cat] [document b.pdf]", Topic::Files),
            ("What is the way to the sky?", Topic::Other),
        ];
        let mut answers = std::collections::BTreeSet::new();
        for (text, topic) in topics {
            let heard = heard(text);
            assert_eq!(Topic::of(&heard), topic, "{text}");
            let answer = say(topic, &heard);
            assert!(answer.starts_with(&quote(text)), "{answer}");
            answers.insert(answer);
        }
        assert_eq!(answers.len(), topics.len());
        assert_eq!(Topic::of(&Heard { reply: Some(None), ..heard("the sky") }), Topic::Reply);
        let again = Heard { reply: Some(Some(Topic::Hermes)), ..heard("and then?") };
        assert!(say(Topic::of(&again), &again).contains("**hermes-agent**"));
        let (even, odd) = (heard("the sky"), Heard { count: 2, ..heard("the sky") });
        assert_ne!(say(Topic::Other, &even), say(Topic::Other, &odd));
    }

    #[test]
    fn what_is_quoted_is_no_markup_and_one_short_line() {
        assert_eq!(quote("a *b*\n\n# c"), "> “a \\*b\\* \\# c”");
        assert_eq!(quote("<script>"), "> “\\<script\\>”");
        assert!(quote(&"é".repeat(9_000)).chars().count() < QUOTED + 10);
    }

    #[test]
    fn pieces_are_the_whole_text_and_keep_markup_together() {
        for topic in [Topic::Hello, Topic::Help, Topic::Story, Topic::Markdown, Topic::Other] {
            let text = say(topic, &heard("one two"));
            let pieces = pieces(&text);
            assert_eq!(pieces.concat(), text);
            assert_eq!(pieces[0], "> “one two”");
            assert!(pieces.len() > 20, "{topic:?} comes in {} pieces", pieces.len());
            assert!(pieces.iter().all(|piece| piece.matches("**").count().is_multiple_of(2)));
        }
        assert_eq!(pieces("one"), ["one", ""]);
    }
}
