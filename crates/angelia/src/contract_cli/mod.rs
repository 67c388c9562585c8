//! `angelia contract …`: the contract's rules as a filter for other programs.
//!
//! Questions come as JSON lines and each gets one JSON line as its answer. A
//! question that makes no sense is answered with `{"error": …}`; the rest of
//! the input is still answered.

mod fields;
mod lines;
mod session_key;
mod split;
mod token;
#[cfg(test)]
mod vectors;

use angelia_contract::{Rules, schema};
use clap::{Subcommand, ValueEnum};
use fields::Fields;
use std::io::{self, BufRead, Write};

/// The rules of the relay contract, for scripts and other languages.
#[derive(Clone, Debug, Subcommand)]
pub enum ContractCommand {
    /// Prints the JSON Schema of every frame.
    #[command(after_help = "Example:\n  angelia contract schema > contract.schema.json")]
    Schema,

    /// Tells the session key of each source read from standard input.
    ///
    /// Each line is a source as it stands in an event, or an object with that source and the settings of the
    /// gateway's operator. The answer is the key under which the gateway files the conversation.
    #[command(after_help = session_key::EXAMPLES)]
    SessionKey {
        /// Which gateways the keys are for.
        #[arg(long, value_enum, default_value_t = KeyRules::Published)]
        rules: KeyRules,
    },

    /// Makes or checks upgrade tokens, one per line of standard input.
    ///
    /// A line with a gateway id and a secret is answered with a token. A line with a token and one secret or
    /// several is answered with what a connector would say of it.
    #[command(after_help = token::EXAMPLES)]
    Token,

    /// Cuts long texts as the connector does before it sends them.
    ///
    /// Code fences that a cut falls into are closed and opened again; `added_front` and `added_back` count the
    /// bytes of a part that were added for it. Without them, the parts join to the text.
    #[command(after_help = split::EXAMPLES)]
    Split,
}

/// Which generation of gateways a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeyRules {
    /// The releases 0.17.0, 0.18.2 and 0.19.0.
    Published,
    /// 0.19.1 and later.
    Newer,
}

impl From<KeyRules> for Rules {
    fn from(rules: KeyRules) -> Self {
        match rules {
            KeyRules::Published => Self::Published,
            KeyRules::Newer => Self::Newer,
        }
    }
}

/// Runs one command to the end of its input.
///
/// `now` tells the time in unix seconds where a question does not. An error is
/// one of reading or writing; a closed pipe is none.
pub fn run(
    command: &ContractCommand,
    now: impl Fn() -> u64,
    input: impl BufRead,
    mut output: impl Write,
) -> io::Result<()> {
    match command {
        ContractCommand::Schema => {
            quietly(output.write_all(schema::schema_text().as_bytes())).and_then(|()| quietly(output.flush()))
        }
        ContractCommand::SessionKey { rules } => {
            let rules = (*rules).into();
            answer_each(input, output, |line, out| session_key::answer(line, rules, out))
        }
        ContractCommand::Token => answer_each(input, output, |line, out| token::answer(line, &now, out)),
        ContractCommand::Split => answer_each(input, output, split::answer),
    }
}

fn answer_each(
    input: impl BufRead,
    output: impl Write,
    mut answer: impl FnMut(Fields, &mut Vec<u8>) -> Result<(), String>,
) -> io::Result<()> {
    lines::answer_lines(input, output, |line, out| {
        let begin = out.len();
        if let Err(message) = Fields::read(line).and_then(|fields| answer(fields, out)) {
            out.truncate(begin);
            lines::error(out, &message);
        }
    })
}

/// A reader that has seen enough is no error.
fn quietly(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Writes an answer as one line of JSON.
fn write_json(out: &mut Vec<u8>, answer: &impl serde::Serialize) -> Result<(), String> {
    serde_json::to_writer(out, answer).map_err(|error| error.to_string())
}
