//! Frames out of a stream of bytes: payload as it arrives, control frames whole.

use bytes::{Buf, Bytes, BytesMut};
use std::io::Cursor;
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

/// The protocol's own limit.
const MAX_CONTROL: usize = 125;

/// Something that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::relay) enum Piece {
    /// Some payload of a text or binary message, or of a part of one.
    Data(Bytes),
    /// A ping, to be answered with the same payload.
    Ping(Bytes),
    /// The answer to a ping.
    Pong(Bytes),
    /// The peer is done.
    Close,
}

/// A peer that does not keep to the protocol. Nothing more can be read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) struct Broken;

/// A frame that is being read.
struct Current {
    opcode: OpCode,
    mask: [u8; 4],
    /// Where in the mask the next byte is.
    at: usize,
    left: u64,
}

/// Reads frames, one piece at a time.
#[derive(Default)]
pub(in crate::relay) struct FrameReader {
    current: Option<Current>,
    /// A header, or a control frame's payload, that has not arrived whole: never more than 139 bytes.
    partial: Vec<u8>,
    /// Whether a message of several frames has begun.
    in_message: bool,
}

impl FrameReader {
    /// Whether a frame has begun and not ended.
    pub(in crate::relay) fn is_unfinished(&self) -> bool {
        self.current.is_some() || !self.partial.is_empty()
    }

    /// Takes the next piece out of what arrived; `None` if more has to arrive first.
    pub(in crate::relay) fn next(&mut self, arrived: &mut BytesMut) -> Result<Option<Piece>, Broken> {
        loop {
            let Some(current) = &mut self.current else {
                if self.header(arrived)? { continue } else { return Ok(None) }
            };
            if let OpCode::Control(control) = current.opcode {
                return Ok(self.control(control, arrived));
            }
            let length = usize::try_from(current.left).unwrap_or(usize::MAX).min(arrived.len());
            if current.left > 0 && length == 0 {
                return Ok(None);
            }
            let mut payload = arrived.split_to(length);
            current.unmask(&mut payload);
            if current.left == 0 {
                self.current = None;
            }
            if !payload.is_empty() {
                return Ok(Some(Piece::Data(payload.freeze())));
            }
        }
    }

    /// Reads the next header; `false` if it has not arrived whole.
    fn header(&mut self, arrived: &mut BytesMut) -> Result<bool, Broken> {
        let before = self.partial.len();
        if before == 0 && arrived.is_empty() {
            return Ok(false);
        }
        // The longest header has 14 bytes; only those are looked at.
        let wanted = arrived.len().min(14 - before.min(14));
        self.partial.extend_from_slice(&arrived[..wanted]);
        let mut cursor = Cursor::new(&self.partial[..]);
        let Some((header, length)) = FrameHeader::parse(&mut cursor).map_err(|_| Broken)? else {
            arrived.advance(wanted);
            return Ok(false);
        };
        let used = usize::try_from(cursor.position()).unwrap_or_default() - before;
        arrived.advance(used);
        self.partial.clear();
        self.begin(&header, length)?;
        Ok(true)
    }

    fn begin(&mut self, header: &FrameHeader, length: u64) -> Result<(), Broken> {
        let FrameHeader { is_final, rsv1, rsv2, rsv3, opcode, mask } = header;
        let continues = *opcode == OpCode::Data(Data::Continue);
        let in_order = match opcode {
            OpCode::Control(_) => *is_final && length <= MAX_CONTROL as u64,
            OpCode::Data(_) => continues == self.in_message,
        };
        // Clients have to mask, and no extension was agreed on.
        let Some(mask) = mask.filter(|_| in_order && !rsv1 && !rsv2 && !rsv3) else { return Err(Broken) };
        if let OpCode::Data(_) = opcode {
            self.in_message = !is_final;
        }
        self.current = Some(Current { opcode: *opcode, mask, at: 0, left: length });
        Ok(())
    }

    /// A control frame, once it is whole.
    fn control(&mut self, control: Control, arrived: &mut BytesMut) -> Option<Piece> {
        let current = self.current.as_mut()?;
        let length = usize::try_from(current.left).unwrap_or(MAX_CONTROL).min(arrived.len());
        let mut part = arrived.split_to(length);
        current.unmask(&mut part);
        self.partial.extend_from_slice(&part);
        if current.left > 0 {
            return None;
        }
        self.current = None;
        let payload = Bytes::from(std::mem::take(&mut self.partial));
        Some(match control {
            Control::Ping => Piece::Ping(payload),
            Control::Pong => Piece::Pong(payload),
            Control::Close | Control::Reserved(_) => Piece::Close,
        })
    }
}

impl Current {
    fn unmask(&mut self, payload: &mut [u8]) {
        let mut mask = self.mask;
        mask.rotate_left(self.at);
        for word in payload.chunks_mut(4) {
            word.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
        }
        self.at = (self.at + payload.len()) % 4;
        self.left -= payload.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tungstenite::protocol::frame::Frame;
    use tungstenite::protocol::{Role, WebSocket};
    use tungstenite::{Message, protocol::WebSocketConfig};

    /// A frame as a client writes it.
    fn masked(opcode: OpCode, is_final: bool, payload: &[u8], mask: [u8; 4]) -> Vec<u8> {
        let header = FrameHeader { is_final, opcode, mask: Some(mask), ..FrameHeader::default() };
        let mut bytes = Vec::new();
        header.format(payload.len() as u64, &mut bytes).unwrap();
        bytes.extend(payload.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
        bytes
    }

    /// Everything read from a stream that arrives in chunks that end at `cuts`.
    fn read(stream: &[u8], cuts: &[usize]) -> Result<(Vec<u8>, Vec<Piece>), Broken> {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let (mut reader, mut data, mut others) = (FrameReader::default(), Vec::new(), Vec::new());
        for chunk in cuts.windows(2) {
            let mut arrived = BytesMut::from(&stream[chunk[0]..chunk[1]]);
            while let Some(piece) = reader.next(&mut arrived)? {
                match piece {
                    Piece::Data(bytes) => data.extend_from_slice(&bytes),
                    other => others.push(other),
                }
            }
            assert!(arrived.is_empty(), "everything that arrived was taken");
            assert!(reader.partial.capacity() <= 256, "next to nothing is kept");
        }
        Ok((data, others))
    }

    proptest! {
        /// However it is cut, tungstenite and this reader see the same payload.
        #[test]
        fn tungstenite_reads_the_same(
            messages in prop::collection::vec((prop::collection::vec("[a-zé😀\\n]{0,200}", 1..4), any::<[u8; 4]>(), any::<bool>()), 0..8),
            cuts in prop::collection::vec(0..4_000usize, 0..12),
        ) {
            let mut stream = Vec::new();
            for (parts, mask, ping) in &messages {
                for (at, part) in parts.iter().enumerate() {
                    let opcode = if at == 0 { Data::Text } else { Data::Continue };
                    stream.extend(masked(OpCode::Data(opcode), at + 1 == parts.len(), part.as_bytes(), *mask));
                    if *ping {
                        stream.extend(masked(OpCode::Control(Control::Ping), true, b"between", *mask));
                    }
                }
            }
            let (data, others) = read(&stream, &cuts).unwrap();
            let mut theirs = WebSocket::from_raw_socket(
                Duplex(Cursor::new(stream)), Role::Server, Some(WebSocketConfig::default()));
            let mut text = Vec::new();
            while let Ok(message) = theirs.read() {
                if let Message::Text(part) = message {
                    text.extend_from_slice(part.as_bytes());
                }
            }
            prop_assert_eq!(data, text);
            prop_assert!(others.iter().all(|it| *it == Piece::Ping(Bytes::from_static(b"between"))));
            let pings: usize = messages.iter().filter(|it| it.2).map(|it| it.0.len()).sum();
            prop_assert_eq!(others.len(), pings);
        }

        /// Garbage is an error or is waited for, never a panic.
        #[test]
        fn garbage_is_survived(stream in prop::collection::vec(any::<u8>(), 0..400), cuts in prop::collection::vec(0..400usize, 0..6)) {
            let _ = read(&stream, &cuts);
        }
    }

    /// What is written goes nowhere.
    struct Duplex(Cursor<Vec<u8>>);

    impl std::io::Read for Duplex {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(buffer)
        }
    }

    impl std::io::Write for Duplex {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_breaks_the_protocol_ends_the_reading() {
        let text = OpCode::Data(Data::Text);
        let mut unmasked = Vec::new();
        Frame::message(&b"hi"[..], text, true).format(&mut unmasked).unwrap();
        let compressed = {
            let mut frame = masked(text, true, b"hi", [1; 4]);
            frame[0] |= 0x40;
            frame
        };
        let ping = OpCode::Control(Control::Ping);
        for (broken, why) in [
            (unmasked, "not masked"),
            (compressed, "compressed"),
            (masked(ping, true, &[0; 126], [1; 4]), "a large ping"),
            (masked(ping, false, b"x", [1; 4]), "a ping in parts"),
            (masked(OpCode::Data(Data::Continue), true, b"x", [1; 4]), "nothing to continue"),
            ([masked(text, false, b"x", [1; 4]), masked(text, true, b"x", [1; 4])].concat(), "two at once"),
            (vec![0x83, 0x80, 0, 0, 0, 0], "an unknown opcode"),
        ] {
            assert_eq!(read(&broken, &[]).unwrap_err(), Broken, "{why}");
        }
    }

    #[test]
    fn an_announced_length_is_not_kept_room_for() {
        let header =
            FrameHeader { opcode: OpCode::Data(Data::Text), mask: Some([0; 4]), ..FrameHeader::default() };
        let mut bytes = Vec::new();
        header.format(1 << 50, &mut bytes).unwrap();
        bytes.extend(b"begins");
        let (data, _) = read(&bytes, &[3, 9]).unwrap();
        assert_eq!(data, b"begins");
    }
}
