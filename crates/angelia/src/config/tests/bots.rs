//! Bots, and what people are told.

use super::*;
use angelia_connector::Away;
use angelia_core::egress::Remark;
use angelia_core::own_words::{Language, OwnWords};

const DISCORD: &str = "[[bots]]\nplatform = \"discord\"\nid = \"123\"\ntoken = { env = \"D\" }\n";
const SMS: &str = "[[bots]]\nplatform = \"sms\"\nid = \"+15550100\"\naccount_sid = \"AC1\"\n\
                   auth_token = { env = \"S\" }\napi_url = \"http://127.0.0.1:9\"\n";
const WECOM: &str = "[[bots]]\nplatform = \"wecom\"\nid = \"ww1/1000002\"\nsecret = { env = \"A\" }\n\
                     callback_token = { env = \"B\" }\nencoding_aes_key = { env = \"C\" }\n\
                     api_url = \"http://127.0.0.1:9\"\n";
const TELEGRAM: &str = "[[bots]]\nplatform = \"telegram\"\nid = \"765\"\ntoken = { file = \"/run/t\" }\n";

/// What is wrong with a bot of which only `lines` are unusual.
fn one(bot: &str, lines: &str) -> String {
    faults(load("bot-one", &format!("{bot}{lines}"), &[])).join("\n")
}

#[test]
fn bots_are_read_and_printed() {
    assert!(Config::default().bots.is_empty());
    let text = format!(
        "{DISCORD}api_url = \"http://127.0.0.1:9/\"\ngateway_url = \"ws://[::1]:9\"\n\
         {DISCORD}name = \"second\"\n{TELEGRAM}ingest = \"poll\"\ngreeting = \" Hi,\\nyou \"\n"
    )
    .replacen("\"123\"", "\"124\"", 1);
    let config = load("bots", &text, &[("ANGELIA_D", "hunter2")]).unwrap();
    let [one, two, three] = config.bots.as_slice() else { panic!("{:?}", config.bots) };
    assert_eq!((one.platform(), one.id.as_str(), one.name()), ("discord", "124", "discord"));
    assert_eq!(one.api_url.as_deref(), Some("http://127.0.0.1:9"), "no slash at the end");
    assert_eq!(one.text("gateway_url"), Some("ws://[::1]:9"));
    assert_eq!((two.name(), two.secret("token")), ("second", Some(&SecretRef::Env("D".into()))));
    assert_eq!((three.name(), three.text("ingest")), ("telegram", Some("poll")));
    assert_eq!(three.text("greeting"), Some("Hi,\nyou"));

    let printed = config.print();
    for line in [
        "[[bots]]\nplatform = \"discord\"\nid = \"124\"\ntoken = { env = \"D\" }\ncommands = [\"ask <question>: Ask ",
        "\ngateway_commands = \"auto\"\nname = \"discord\"\n",
        "\ngateway_url = \"ws://[::1]:9\"\n# public_key is not set: interactions come over the bot's own",
        "\ninteractions = \"auto\"\n# ingest is not set: it is for Telegram\n",
        "\n# api_url is not set: the provider's own address is used\n# gateway_url is not set: Discord's own",
        "\ntoken = { file = \"/run/t\" }\ncommands = [\"ask ",
        "\ngateway_commands = \"auto\"\nname = \"telegram\"\n",
        "\n# gateway_url is not set: it is for Discord\n",
        "\n# interactions is not set: it is for Discord\ningest = \"poll\"\n",
    ] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
    let again = load("bots-printed", &printed, &[]).unwrap();
    assert_eq!(again.print(), printed);
    assert_eq!(again.bots.len(), 3);
}

#[test]
fn bots_that_cannot_work_are_faults() {
    let text = r#"[[bots]]
platform = "slack"
id = "12a"
token = "hunter2"
[[bots]]
platform = "discord"
id = 123
token = { env = "A" }
nmae = "main"
[[bots]]
name = "Main Bot"
api_url = "http://api.example.org"
gateway_url = "https://gateway.example.org"
[[bots]]
platform = "telegram"
id = "0123"
token = { env = "A" }
api_url = "https://u:hunter2@api.example.org"
ingest = "push"
greeting = "  "
"#;
    let told = faults(load("bots-faults", text, &[]));
    for (line, words) in [
        (2, "`bots.platform` can be \"discord\" or \"telegram\" or \"sms\" or \"wecom\", not \"slack\""),
        (3, "`bots.id` must be the bot's id: "),
        (4, "`bots.token` is a secret and must be a reference"),
        (7, "`bots.id` needs a text in quotes, not this number"),
        (9, "there is no setting `bots.nmae`; did you mean `bots.name`?"),
        (
            10,
            "`bots.platform` is missing: say where the bot is, \"discord\", \"telegram\", \"sms\" or \"wecom\"",
        ),
        (10, "`bots.id` is missing: "),
        (11, "`bots.name` is part of an address: write 1 to 32 small letters"),
        (12, "`bots.api_url` is not an address to rely on (plain http is good only for this machine"),
        (13, "`bots.gateway_url` is not an address to rely on (it must begin with wss://)"),
        (16, "`bots.id` must be the bot's id"),
        (18, "`bots.api_url` is not an address to rely on (it must not hold a user name or password)"),
        (19, "`bots.ingest` can be \"poll\" or \"webhook\", not \"push\""),
        (20, "`bots.greeting` must not be empty"),
    ] {
        assert!(
            told.iter().any(|told| told.starts_with(&format!(":{line}: {words}"))),
            "{line} {words}\n{told:#?}"
        );
    }
    assert_eq!(told.len(), 14, "{told:#?}");
    assert!(!told.join("").contains("hunter2"), "{told:#?}");
    for (bot, lines, words) in [
        (DISCORD, "api_url = \"https://x/api\"", "it must end after the host and port"),
        (DISCORD, "gateway_url = \"ws://gateway.example.org\"", "plain ws is good only for this machine"),
        (DISCORD, "public_key = \"12\"", "`bots.public_key` must be the application's public key"),
        (DISCORD, "interactions = \"both\"", "`bots.interactions` can be \"auto\" or "),
        (DISCORD, "commands = [\"Ask: x\"]", "`bots.commands` holds \"Ask: x\", whose name is not"),
        (DISCORD, "commands = [\"a: x\", \"a: y\"]", "`bots.commands` names the command \"a\" twice"),
        (DISCORD, "name = \"\"", "`bots.name` is part of an address"),
        (DISCORD, &format!("name = \"{}\"", "a".repeat(33)), "`bots.name` is part of an address"),
        (
            TELEGRAM,
            &format!("greeting = \"{}\"", "ä".repeat(1001)),
            "at most 1000 characters long, and has 1001",
        ),
    ] {
        let told = one(bot, lines);
        assert!(told.contains(words), "{lines}: {told}");
    }
}

#[test]
fn every_platform_has_its_keys() {
    let config = load("bots-posted", &format!("{SMS}{WECOM}"), &[]).unwrap();
    let printed = config.print();
    for line in [
        "platform = \"sms\"\nid = \"+15550100\"\n# token is not set: it is for Discord and Telegram\n",
        "\naccount_sid = \"AC1\"\nauth_token = { env = \"S\" }\n# signing_key is not set: the auth token signs",
        "\nsecret = { env = \"A\" }\ncallback_token = { env = \"B\" }\nencoding_aes_key = { env = \"C\" }\n",
    ] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
    assert_eq!(load("bots-posted-again", &printed, &[]).unwrap().print(), printed);
    for (bot, gone, words) in [
        (
            DISCORD,
            "token",
            "`bots.token` is missing for a bot on discord: the provider lets nobody in without one; write {",
        ),
        (SMS, "account_sid", "`bots.account_sid` is missing for a bot on sms: Twilio asks for it"),
        (SMS, "auth_token", "`bots.auth_token` is missing for a bot on sms"),
        (WECOM, "secret", "`bots.secret` is missing for a bot on wecom"),
        (WECOM, "callback_token", "`bots.callback_token` is missing"),
        (WECOM, "encoding_aes_key", "`bots.encoding_aes_key` is missing"),
    ] {
        let kept: Vec<&str> = bot.lines().filter(|line| !line.starts_with(&format!("{gone} "))).collect();
        let told = one(&kept.join("\n"), "");
        assert!(told.starts_with(&format!(":1: {words}")), "{gone}: {told}");
    }
    for (bot, id, words) in [
        (SMS, "15550100", "`bots.id` is not one of a bot on sms: write the phone number"),
        (WECOM, "+15550100", "`bots.id` is not one of a bot on wecom: write the company's id"),
        (DISCORD, "ww1/1", "`bots.id` is not one of a bot on discord: write the application id"),
    ] {
        let id_line = bot.lines().find(|line| line.starts_with("id ")).unwrap();
        let told = one(&bot.replace(id_line, &format!("id = {id:?}")), "");
        assert!(told.contains(words), "{id}: {told}");
    }
    let half = one(SMS, "signing_key = \"k\"");
    assert!(half.contains("`bots.signing_key` and signing_secret go together"), "{half}");
}

#[test]
fn a_key_of_another_platform_names_it() {
    for (bot, line, words) in [
        (SMS, "commands = []", "`bots.commands` is for discord and telegram bots"),
        (SMS, "token = { env = \"T\" }", "`bots.token` is for discord and telegram bots"),
        (TELEGRAM, "gateway_url = \"wss://x\"", "`bots.gateway_url` is for discord bots"),
        (DISCORD, "ingest = \"poll\"", "`bots.ingest` is for telegram bots"),
        (DISCORD, "greeting = \"hi\"", "`bots.greeting` is for telegram bots"),
    ] {
        let told = one(bot, line);
        assert!(told.starts_with(&format!(":1: {words}")), "{line}: {told}");
    }
}

#[test]
fn bots_are_told_apart() {
    let twice = one(TELEGRAM, TELEGRAM);
    assert!(twice.contains("`bots.id` names the telegram bot 765 a second time"), "{twice}");
    let other = DISCORD.replace("123", "124");
    let nameless = one(DISCORD, &other);
    assert!(nameless.contains("`bots.name` is \"discord\" for two discord bots"), "{nameless}");
    assert!(nameless.contains("name = \"second\""), "{nameless}");
    let namesakes = one(&format!("{DISCORD}name = \"a\"\n"), &format!("{other}name = \"a\"\n"));
    assert!(namesakes.contains("`bots.name` is \"a\" for two discord bots"), "{namesakes}");
    let text = format!("{DISCORD}name = \"a\"\n{other}{TELEGRAM}name = \"a\"\n");
    assert_eq!(
        load("bots-apart", &text, &[]).unwrap().bots.len(),
        3,
        "of two platforms they may be namesakes"
    );
}

#[test]
fn a_webhook_needs_an_address_telegram_reaches() {
    let webhook = format!("{TELEGRAM}ingest = \"webhook\"\n");
    let with = |url: &str, more: &str| {
        load("webhook", &format!("{webhook}{more}"), &[("ANGELIA_SERVER__PUBLIC_URL", url)])
    };
    assert_eq!(with("https://relay.example.org", "").unwrap().bots[0].text("ingest"), Some("webhook"));
    for bad in ["http://relay.example.org", "https://localhost", "http://127.0.0.1:8787"] {
        let told = faults(with(bad, "")).join("\n");
        assert!(told.contains(&format!("Telegram cannot post to {bad}: set server.public_url")), "{told}");
    }
    let own = "api_url = \"http://127.0.0.1:9\"\n";
    assert!(with("http://127.0.0.1:8787", own).is_ok(), "both are on this machine");
    assert!(with("http://relay.example.org", own).is_err());
    for (bot, words) in [
        (
            format!("{DISCORD}public_key = \"{}\"\n", "0".repeat(64)),
            "or leave the key out: interactions then come over",
        ),
        (
            SMS.replace("api_url = \"http://127.0.0.1:9\"\n", ""),
            "`bots.platform` is \"sms\", but Twilio cannot post to",
        ),
        (WECOM.replace("api_url = \"http://127.0.0.1:9\"\n", ""), "but WeCom cannot post to"),
    ] {
        let told = one(&bot, "");
        assert!(told.contains(words), "{told}");
    }
    let told = one(&webhook, "");
    assert!(told.starts_with("`bots.ingest` is \"webhook\" for telegram, but"), "{told}");
}

#[test]
fn a_list_is_written_as_a_list() {
    let told = |text: &str| faults(load("bots-shape", text, &[])).join("\n");
    for text in ["[bots]\nplatform = \"discord\"", "bots = 1", "bots = [1]"] {
        assert!(told(text).contains("`bots` is a list of tables; write [[bots]]"), "{}", told(text));
    }
    assert!(told("[[bot]]\nid = \"1\"").contains("there is no section `bot`; did you mean `bots`?"));
    let env = faults(from(None, &[("ANGELIA_BOTS__TOKEN", "hunter2")])).join("\n");
    assert!(env.contains("there is no setting `ANGELIA_BOTS__TOKEN`") && !env.contains("hunter2"), "{env}");
    // A token may be kept in a variable that looks like a misspelt setting.
    let token = DISCORD.replace("\"D\"", "\"ANGELIA_LOGLEVEL\"");
    assert!(load("bots-token", &token, &[("ANGELIA_LOGLEVEL", "hunter2")]).is_ok());
}

#[test]
fn notices_are_set_and_bounded() {
    assert_eq!(Config::default().notices, Notices::default());
    for (name, words) in [
        ("away_text", OwnWords::Away),
        ("no_agent_text", OwnWords::NoAgentYet),
        ("unanswered_text", OwnWords::Unanswered),
        ("lost_text", OwnWords::Lost),
        ("ambiguous_text", OwnWords::InDoubt),
        ("repeat_mark", OwnWords::RepeatMark),
    ] {
        let documented = format!("# {name} = {:?}\n", words.text(Language::English));
        assert!(default_file().contains(&documented), "{documented}");
    }
    let text = "[notices]\naway = \"all\"\naway_text = \"Back soon.\"\nambiguous = \"repeat\"\n\
                hint = \"Ask Ann to let you in.\"";
    let env = [("ANGELIA_NOTICES__AWAY", "never"), ("ANGELIA_NOTICES__HINT", "")];
    let config = load("notices", text, &[]).unwrap();
    assert_eq!(
        (config.notices.away, config.notices.hint.as_deref()),
        (Away::All, Some("Ask Ann to let you in."))
    );
    assert_eq!(config.notices.ambiguous, Remark::Repeat);
    assert!(config.print().contains(
        "[notices]\naway = \"all\"\naway_after = \"1m\"\naway_text = \"Back soon.\"\n# no_agent_text is not set: \
         it is said in the reader's language\n"
    ));
    let config = load("notices-env", text, &env).unwrap();
    assert_eq!((config.notices.away, config.notices.hint), (Away::Never, None));
    let long = "x".repeat(501);
    for (line, words) in [
        ("away = \"sometimes\"", "`notices.away` can be \"dm\" or \"all\" or \"never\", not \"sometimes\""),
        ("away = true", "`notices.away` needs a text in quotes"),
        ("away_text = \"\"", "`notices.away_text` must not be empty"),
        (&format!("away_text = \"{long}\""), "`notices.away_text` must be at most 500 characters long"),
        ("unanswered_text = \"\"", "`notices.unanswered_text` must not be empty"),
        ("lost_text = \"\"", "`notices.lost_text` must not be empty"),
        ("repeat_mark = \"\"", "`notices.repeat_mark` must not be empty"),
        ("ambiguous = \"twice\"", "`notices.ambiguous` can be \"tell\" or \"repeat\", not \"twice\""),
        ("ambigous = \"tell\"", "there is no setting `notices.ambigous`; did you mean `notices.ambiguous`?"),
        (&format!("hint = \"{long}\""), "`notices.hint` must be at most 500 characters long"),
    ] {
        let told = faults(load("notices-bad", &format!("[notices]\n{line}"), &[])).join("\n");
        assert!(told.starts_with(&format!(":2: {words}")), "{line}: {told}");
    }
}
