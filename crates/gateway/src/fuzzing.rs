//! What a gateway reads from a connector, as a target for a fuzzer.

use crate::interaction::interaction_event;
use angelia_contract::ConnectorFrame;
use angelia_contract::session_key::{KeyOptions, Rules, session_key};

/// A line of a connector, and what an agent would make of it.
pub fn connector_frame(data: &[u8]) {
    let frame = match ConnectorFrame::parse(data) {
        Ok(frame) => frame,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let line = frame.to_line();
    let again = ConnectorFrame::parse(line.as_bytes()).expect("what is written can be read");
    assert_eq!(again.to_line(), line);
    let event = match &frame {
        ConnectorFrame::Inbound(inbound) => Some(inbound.event.clone()),
        ConnectorFrame::PassthroughForward { forward, .. } => interaction_event(forward),
        _ => None,
    };
    if let Some(event) = event {
        for rules in [Rules::Published, Rules::Newer] {
            assert!(!session_key(&event.source, &KeyOptions::default(), rules).is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_of_connector_frames_is_survived() {
        angelia_corpus::replay("connector_frame", connector_frame);
    }
}
