//! What is known of a gateway's habit of acknowledging.

/// Whether the gateway at the other end acknowledges `inbound` frames.
///
/// Published gateways before 0.18 never do; waiting for them would stall the
/// inbox for ever, and not waiting for the others would lose messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckHabit {
    /// Nothing was ever pushed to it long enough to tell.
    #[default]
    Unknown,
    /// At least one acknowledgement was seen.
    Acknowledges,
    /// It had its time for a first acknowledgement and gave none.
    Silent,
}

impl AckHabit {
    /// The word under which the store remembers it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Acknowledges => "acknowledges",
            Self::Silent => "silent",
        }
    }

    /// Reads [`AckHabit::as_str`] back; an unknown word is [`AckHabit::Unknown`].
    pub fn parse(word: &str) -> Self {
        match word {
            "acknowledges" => Self::Acknowledges,
            "silent" => Self::Silent,
            _ => Self::Unknown,
        }
    }
}
