//! Rooms of the web chat: who has keys of them, what may be written and changed there,
//! and how much of it stays.

mod lines;
mod marks;
mod people;
mod size;
mod threads;

pub use lines::{
    Post, Posting, answered_text, can_say, continued, edited, has_entered, is_left_over, may_answer,
    may_revise, part_id, said, shows_what_is_gone,
};
pub use marks::{LIMITS as MARK_LIMITS, check_mark, marked};
pub use people::{LIMITS, Recognised, RoomStore};
pub use size::{LIMITS as SIZE_LIMITS, RoomSize, cut};
pub use threads::{LIMITS as THREAD_LIMITS, may_open, may_rename, not_renamed, thread_name, threaded};
