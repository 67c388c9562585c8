//! The relay, seen from outside: the real binary, sockets by hand.

mod relay {
    mod command;
    mod delivery;
    mod idle;
    mod interrupt;
    mod outbound;
    mod takeover;
    mod upgrade;
    pub(crate) mod world;
}
