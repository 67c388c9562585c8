//! What every store must do. Written against the ports, so that each engine
//! runs the same tests.

mod store {
    mod actions;
    mod bench;
    mod inbox;
    pub(crate) mod open;
    mod people;
}
