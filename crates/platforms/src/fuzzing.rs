//! Places as operators and people write them, as a target for a fuzzer.

use crate::PLACES;
use angelia_core::admission::Place;

/// The text of a place: what is read is written the same way, and in a private chat it is
/// known who may speak.
pub fn place(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let stored: Option<Place> = text.parse().ok();
    if let Some(place) = &stored {
        assert_eq!(place.to_string(), text, "a place is written as it was read");
        assert_eq!(place.to_string(), format!("{}:{}", place.platform(), place.path()));
    }
    match PLACES.meant(text, &["matrix"]) {
        Ok(meant) => {
            assert_eq!(Some(&meant), stored.as_ref(), "what may be meant can be stored");
            if let Some(person) = PLACES.private_person(&meant) {
                let allow =
                    PLACES.default_allow(&meant).expect("of a private chat it is known who may speak");
                assert!(allow.admits(person) && !allow.admits(&format!("{person}0")));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_of_places_is_survived() {
        angelia_corpus::replay("place", place);
    }
}
