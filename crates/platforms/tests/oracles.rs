//! Signatures and crypto of webhooks, against judges that nobody here wrote.

#![allow(clippy::unwrap_used, reason = "tests: a failed expectation is a panic")]

mod oracles {
    mod discord;
    mod peer;
    mod sms;
    mod wecom;
}
