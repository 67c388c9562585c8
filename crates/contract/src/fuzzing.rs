//! What this crate reads from strangers, as targets for a fuzzer.

use crate::line::LineBuffer;
use crate::{GatewayFrame, token};

/// Longest line of the smaller buffer, so that inputs reach both sides of it.
const SHORT_LINE: usize = 64;

/// What a gateway sends, cut anyhow: the first byte says into what pieces.
pub fn gateway_frame(data: &[u8]) {
    let Some((cut, stream)) = data.split_first() else { return };
    for max in [SHORT_LINE, stream.len()] {
        let at_once = lines(max, std::iter::once(stream));
        let in_pieces = lines(max, stream.chunks(usize::from(*cut).max(1)));
        // Where a long line begins to be too long depends on the pieces, not whether it does.
        assert_eq!(at_once, in_pieces, "lines do not depend on how they are cut into messages");
        for line in at_once.into_iter().flatten() {
            frame(&line);
        }
    }
}

/// The lines of a stream; `None` is one that is too long.
fn lines<'a>(max: usize, messages: impl Iterator<Item = &'a [u8]>) -> Vec<Option<Vec<u8>>> {
    let mut buffer = LineBuffer::new(max);
    let mut lines = Vec::new();
    for message in messages {
        lines.extend(buffer.push(message).map(|line| line.ok().map(|line| line.into_owned())));
        assert!(buffer.held() <= 2 * max.max(8), "no more is held than a line may take");
    }
    lines
}

fn frame(line: &[u8]) {
    match GatewayFrame::parse(line) {
        Ok(frame) => {
            let again = GatewayFrame::parse(frame.to_line().as_bytes()).expect("what is written can be read");
            assert_eq!(again.to_line(), frame.to_line());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The token of an upgrade, and of the built-in `/oauth/token`, which has its form.
pub fn upgrade_token(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(token) = token::parse(text) {
        assert!(!token.gateway_id().is_empty());
        assert!(!token.signed_by("a secret nobody signed with"));
        let _ = token.check_time(token.exp());
    }
    let secret = "the secret of a gateway";
    let minted = token::mint(text, secret, 1_750_000_000, data.len() as u64);
    let Ok(token) = token::parse(&minted) else {
        assert!(text.is_empty() || minted.len() > token::MAX_TOKEN_BYTES, "{text:?} cannot be read again");
        return;
    };
    assert_eq!(token.gateway_id(), text);
    assert_eq!(token.first_match(["another", secret]), Some(1));
    assert!(!token.signed_by("another"));
    let mut altered = minted.into_bytes();
    let at = data.len() % altered.len();
    altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
    let altered = String::from_utf8(altered).expect("base64url is text");
    if let Ok(altered) = token::parse(&altered) {
        // Only the case of a hexadecimal digit may differ without changing what is said.
        assert!(altered == token || !altered.signed_by(secret), "what was changed is still signed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_of_gateway_frames_is_survived() {
        angelia_corpus::replay("gateway_frame", gateway_frame);
    }

    #[test]
    fn the_corpus_of_upgrade_tokens_is_survived() {
        angelia_corpus::replay("upgrade_token", upgrade_token);
    }
}
