//! A judge in Python that is asked line by line.

use angelia_testkit::discord::oracle_python;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The running judge; it ends when dropped.
pub(super) struct Peer {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts a script of the test kit.
    pub(super) fn start(script: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/python").join(script);
        let mut process = Command::new(oracle_python())
            .arg("-B")
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start the oracle");
        let (input, output) = (process.stdin.take(), process.stdout.take().unwrap());
        Self { process, input, output: BufReader::new(output) }
    }

    pub(super) fn ask(&mut self, question: &Value) -> Value {
        writeln!(self.input.as_mut().unwrap(), "{question}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|_| panic!("the oracle fell silent over {question}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.process.wait();
    }
}
