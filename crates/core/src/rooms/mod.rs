//! Rooms of the web chat: who has keys of them, what may be written and changed there,
//! and how much of it stays.

mod lines;
mod people;
mod size;

pub use lines::{
    Post, Posting, answered_text, can_say, continued, edited, has_entered, is_left_over, may_answer,
    may_revise, part_id, said, shows_what_is_gone,
};
pub use people::{LIMITS, Recognised, RoomStore};
pub use size::{LIMITS as SIZE_LIMITS, RoomSize, cut};
