//! The commands, asked what real gateways answered.

use super::*;
use serde_json::{Value, json};

const NOW: u64 = 1_750_000_000;
const KEYS: &str = include_str!("../../../contract/tests/vectors/session-keys.json");
const TOKENS: &str = include_str!("../../../contract/tests/vectors/upgrade-tokens.json");

fn ask(command: &ContractCommand, questions: &[Value]) -> Vec<Value> {
    let lines: String = questions.iter().map(|question| format!("{question}\n")).collect();
    raw(command, &lines)
}

fn raw(command: &ContractCommand, lines: &str) -> Vec<Value> {
    let mut output = Vec::new();
    run(command, || NOW, lines.as_bytes(), &mut output).unwrap();
    let output = String::from_utf8(output).unwrap();
    assert!(output.is_empty() || output.ends_with('\n'));
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn session_key(rules: KeyRules) -> ContractCommand {
    ContractCommand::SessionKey { rules }
}

#[test]
fn session_keys_are_those_of_the_gateways() {
    let vectors: Value = serde_json::from_str(KEYS).unwrap();
    let vectors = vectors["vectors"].as_array().unwrap();
    assert!(vectors.len() > 30);
    for (version, rules) in [
        ("0.17.0", KeyRules::Published),
        ("0.18.2", KeyRules::Published),
        ("0.19.0", KeyRules::Published),
        ("main-2026-08-22", KeyRules::Newer),
    ] {
        let questions: Vec<_> = vectors
            .iter()
            .map(|vector| json!({"source": vector["wire_source"], "options": vector["options"]}))
            .collect();
        let answers = ask(&session_key(rules), &questions);
        assert_eq!(answers.len(), vectors.len());
        for (vector, answer) in vectors.iter().zip(&answers) {
            let key = &vector["keys"][version];
            match key {
                Value::Null => assert!(answer["error"].is_string(), "{}", vector["name"]),
                key => assert_eq!(answer, &json!({"session_key": key}), "{}", vector["name"]),
            }
            if vector["options"] == json!({}) {
                let bare = ask(&session_key(rules), std::slice::from_ref(&vector["wire_source"]));
                assert_eq!(bare, std::slice::from_ref(answer));
            }
        }
    }
}

#[test]
fn tokens_are_those_of_the_gateways() {
    let vectors: Value = serde_json::from_str(TOKENS).unwrap();
    for vector in vectors["vectors"].as_array().unwrap() {
        let mut question = vector.clone();
        let token = question.as_object_mut().unwrap().remove("token").unwrap();
        assert_eq!(ask(&ContractCommand::Token, &[question]), [json!({"token": token})]);
        let check = json!({"token": token, "secrets": ["other", vector["secret"]]});
        let [answer] = ask(&ContractCommand::Token, &[check]).try_into().unwrap();
        let endless = vector["ttl"] == 0;
        assert_eq!(answer["gateway_id"], vector["gateway_id"]);
        assert_eq!(answer["exp"], if endless { json!(0) } else { json!(NOW + 300) });
        assert_eq!(answer["valid"], !endless);
        assert_eq!(answer.get("reason").is_some(), endless);
    }
}

#[test]
fn a_token_is_refused_with_its_reason() {
    let minted = ask(&ContractCommand::Token, &[json!({"gateway_id": "gw", "secret": "hunter2"})]);
    let token = &minted[0]["token"];
    let reasons = ask(
        &ContractCommand::Token,
        &[
            json!({"token": token, "secret": "hunter2", "now": NOW + 600}),
            json!({"token": token, "secret": "hunter2", "now": NOW + 601}),
            json!({"token": token, "secret": "wrong"}),
            json!({"token": "rubbish", "secret": "hunter2"}),
        ],
    );
    assert_eq!(reasons[0], json!({"gateway_id": "gw", "exp": NOW + 300, "valid": true}));
    assert_eq!(reasons[1]["reason"], "the token has expired");
    assert_eq!(reasons[2]["reason"], "none of the secrets signed it");
    assert_eq!(reasons[2]["gateway_id"], "gw");
    let rubbish =
        json!({"gateway_id": null, "exp": null, "valid": false, "reason": "the token is malformed"});
    assert_eq!(reasons[3], rubbish);
}

#[test]
fn texts_are_cut_as_the_contract_cuts_them() {
    let code = format!("```rust\n{}```\n", "let x = 1;\n".repeat(6));
    let questions = [
        json!({"text": "one two three four", "limit": 16}),
        json!({"text": "😀😀😀", "limit": 2, "unit": "utf16"}),
        json!({"text": "ééé", "limit": 4, "unit": "bytes"}),
        json!({"text": code, "limit": 48, "unit": "chars"}),
        json!({"text": "", "limit": 10}),
    ];
    let answers = ask(&ContractCommand::Split, &questions);
    let part = |text: &str| json!({"text": text, "added_front": 0, "added_back": 0});
    assert_eq!(answers[0], json!({"parts": [part("one two three "), part("four")]}));
    assert_eq!(answers[1], json!({"parts": [part("😀"), part("😀"), part("😀")]}));
    assert_eq!(answers[2], json!({"parts": [part("éé"), part("é")]}));
    let whole: String = answers[3]["parts"].as_array().unwrap().iter().map(content).collect();
    assert_eq!(whole, code);
    assert!(answers[3]["parts"][0]["added_back"].as_u64() > Some(0));
    assert_eq!(answers[4], json!({"parts": []}));
}

fn content(part: &Value) -> &str {
    let text = part["text"].as_str().unwrap();
    let added = |name: &str| usize::try_from(part[name].as_u64().unwrap()).unwrap();
    &text[added("added_front")..text.len() - added("added_back")]
}

#[test]
fn the_schema_is_the_committed_one() {
    let mut output = Vec::new();
    run(&ContractCommand::Schema, || NOW, io::empty(), &mut output).unwrap();
    let committed = include_str!("../../../contract/schema/v1.json");
    assert_eq!(String::from_utf8(output).unwrap(), committed);
}

#[test]
fn a_bad_line_is_answered_and_the_next_one_too() {
    let lines = "\nrubbish\n[1]\n{\"source\":3}\n{\"source\":{},\"optoins\":{}}\n\
                 {\"source\":{},\"options\":{\"profile\":1}}\n{\"chat_id\":\"\\ud800\"}\n{\"chat_id\":\"7\"}";
    let answers = raw(&session_key(KeyRules::Published), lines);
    let errors: Vec<_> = answers.iter().map(|answer| answer["error"].as_str().unwrap_or_default()).collect();
    assert_eq!(errors.len(), 8);
    assert_eq!(errors[0], "the line is empty");
    assert!(errors[1].starts_with("the line is not JSON: "), "{}", errors[1]);
    assert_eq!(errors[2], "the line is not a JSON object");
    assert_eq!(errors[3], "the source is not an object");
    assert_eq!(errors[4], "there is no field `optoins` here; see --help");
    assert_eq!(errors[5], "`profile` must be a string");
    assert!(errors[6].starts_with("the line is not JSON: "), "{}", errors[6]);
    assert_eq!(answers[7], json!({"session_key": "agent:main:relay:dm:7"}));
}

#[test]
fn errors_do_not_repeat_secrets() {
    let questions = [
        json!({"token": "x", "secrets": "hunter2"}),
        json!({"token": "x", "secret": ["hunter2"]}),
        json!({"token": "x", "secret": "hunter2", "secrets": []}),
        json!({"gateway_id": 7, "secret": "hunter2"}),
        json!({"gateway_id": "gw", "secret": "hunter2", "ttl": -1}),
        json!({"gateway_id": "gw", "secret": "hunter2", "tll": 1}),
        json!({"text": "hunter2", "limit": "hunter2"}),
    ];
    for answer in ask(&ContractCommand::Token, &questions) {
        let error = answer["error"].as_str().unwrap();
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn the_command_line_is_sound() {
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(subcommand)]
        command: ContractCommand,
    }

    let parse = |words: &[&str]| Cli::try_parse_from(words);
    let cli = parse(&["contract", "session-key", "--rules", "newer"]).unwrap();
    assert!(matches!(cli.command, ContractCommand::SessionKey { rules: KeyRules::Newer }));
    for name in ["schema", "session-key", "token", "split"] {
        let help = parse(&["contract", name, "--help"]).unwrap_err().to_string();
        assert!(help.contains("Example"), "{help}");
    }
}
