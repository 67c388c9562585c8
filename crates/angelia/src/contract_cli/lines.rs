//! One answer per line, fast for files and prompt for conversations.

use std::io::{self, BufRead, Write};

/// Longest line that is read: well over the largest frame anybody may send.
pub(super) const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;

/// Answers every line of `input` on a line of `output`.
///
/// Answers go out before more input is waited for. A program at the other end
/// of a pair of pipes may therefore ask, read the answer, and ask again, while
/// a file still goes through in large pieces. A reader that has seen enough
/// and closes the pipe ends the work without an error.
pub(super) fn answer_lines(
    mut input: impl BufRead,
    mut output: impl Write,
    mut answer: impl FnMut(&[u8], &mut Vec<u8>),
) -> io::Result<()> {
    let mut partial = Partial::default();
    let mut answers = Vec::with_capacity(64 * 1024);
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let at_end = chunk.is_empty();
        let taken = chunk.len();
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            partial.finish(&rest[..end], |line| give(&mut answer, line, &mut answers));
            rest = &rest[end + 1..];
        }
        partial.extend(rest);
        input.consume(taken);
        if at_end && partial.begun {
            partial.finish(&[], |line| give(&mut answer, line, &mut answers));
        }
        if !write(&mut output, &answers)? || at_end {
            return Ok(());
        }
        answers.clear();
    }
}

/// Writes and flushes; false if nobody reads any more.
fn write(output: &mut impl Write, answers: &[u8]) -> io::Result<bool> {
    match output.write_all(answers).and_then(|()| output.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

fn give(answer: &mut impl FnMut(&[u8], &mut Vec<u8>), line: Option<&[u8]>, answers: &mut Vec<u8>) {
    match line {
        Some(line) => answer(line, answers),
        None => error(answers, &format!("the line is longer than {MAX_LINE_BYTES} bytes")),
    }
    answers.push(b'\n');
}

/// Writes `{"error": …}`.
pub(super) fn error(answers: &mut Vec<u8>, message: &str) {
    answers.extend_from_slice(b"{\"error\":");
    text(answers, message);
    answers.push(b'}');
}

/// Writes a JSON string.
pub(super) fn text(answers: &mut Vec<u8>, text: &str) {
    // Writing text to memory cannot fail.
    let _ = serde_json::to_writer(answers, text);
}

/// A line of which the end has not arrived yet.
#[derive(Default)]
struct Partial {
    bytes: Vec<u8>,
    begun: bool,
    too_long: bool,
}

impl Partial {
    fn extend(&mut self, more: &[u8]) {
        self.begun |= !more.is_empty();
        self.too_long |= self.bytes.len() + more.len() > MAX_LINE_BYTES;
        if self.too_long {
            self.bytes.clear();
        } else {
            self.bytes.extend_from_slice(more);
        }
    }

    /// Hands over the line that ends with `last`; none if it was too long.
    fn finish(&mut self, last: &[u8], hand_over: impl FnOnce(Option<&[u8]>)) {
        if !self.begun && last.len() <= MAX_LINE_BYTES {
            return hand_over(Some(last));
        }
        self.extend(last);
        hand_over((!self.too_long).then_some(&self.bytes));
        *self = Self { bytes: std::mem::take(&mut self.bytes), ..Self::default() };
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn echo(line: &[u8], answers: &mut Vec<u8>) {
        answers.push(b'<');
        answers.extend_from_slice(line);
        answers.push(b'>');
    }

    fn run(input: &[u8], piece: usize) -> String {
        let mut output = Vec::new();
        answer_lines(BufReader::with_capacity(piece, input), &mut output, echo).unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn lines_survive_any_cut() {
        for piece in 1..12 {
            assert_eq!(run(b"one\n\ntwo three\nlast", piece), "<one>\n<>\n<two three>\n<last>\n", "{piece}");
        }
        assert_eq!(run(b"", 4), "");
        assert_eq!(run(b"\n", 4), "<>\n");
    }

    #[test]
    fn an_endless_line_costs_one_error_and_no_memory() {
        let mut input = vec![b'x'; MAX_LINE_BYTES + 1];
        input.extend_from_slice(b"\nnext\n");
        for piece in [1000, usize::from(u16::MAX), MAX_LINE_BYTES * 2] {
            let output = run(&input, piece);
            assert_eq!(output, "{\"error\":\"the line is longer than 8388608 bytes\"}\n<next>\n");
        }
    }

    /// Fails the test if input is asked for while an answer is owed.
    struct Conversation<'a> {
        questions: std::vec::IntoIter<&'static str>,
        owed: &'a std::cell::Cell<usize>,
    }

    impl io::Read for Conversation<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            assert_eq!(self.owed.get(), 0, "the answer is late");
            let Some(question) = self.questions.next() else { return Ok(0) };
            self.owed.set(1);
            buffer[..question.len()].copy_from_slice(question.as_bytes());
            Ok(question.len())
        }
    }

    struct Reader<'a>(&'a std::cell::Cell<usize>, Vec<u8>);

    impl Write for Reader<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.set(0);
            Ok(())
        }
    }

    #[test]
    fn an_answer_goes_out_before_the_next_question_is_awaited() {
        let owed = std::cell::Cell::new(0);
        let questions = Conversation { questions: vec!["a\n", "b\n"].into_iter(), owed: &owed };
        let mut answers = Reader(&owed, Vec::new());
        answer_lines(BufReader::new(questions), &mut answers, echo).unwrap();
        assert_eq!(answers.1, b"<a>\n<b>\n");
    }

    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_quiet() {
        assert!(answer_lines(&b"one\ntwo\n"[..], Closed, echo).is_ok());
    }
}
