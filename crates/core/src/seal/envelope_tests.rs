//! Tests of the bytes of a sealed value.

use super::*;

const ROW: &str = "gateway/acme/gw-1";

#[test]
fn it_opens_only_where_it_was_sealed() {
    let key = MasterKey::mint();
    let sealed = key.seal(&Secret::new("s3cret"), ROW).unwrap();
    assert_eq!(key.open(&sealed, ROW).unwrap().expose(), "s3cret");
    assert_eq!(key.open(&sealed, "gateway/evil/gw-1").unwrap_err(), Unreadable::Damaged);
    assert!(!sealed.windows(6).any(|w| w == b"s3cret"));
}

/// Where each field ends, with its name.
const FIELDS: [(&str, usize); 7] = [
    ("the mark", 4),
    ("the version", 5),
    ("the name of the key", 9),
    ("the nonce of the data key", 33),
    ("the data key", 81),
    ("the nonce of the secret", 105),
    ("the secret", 127),
];

#[test]
fn no_field_can_be_changed_or_cut() {
    let key = MasterKey::mint();
    let sealed = key.seal(&Secret::new("s3cret"), ROW).unwrap();
    assert_eq!(sealed.len(), FIELDS[6].1);
    let mut from = 0;
    for (field, to) in FIELDS {
        for at in from..to {
            for bit in 0..8 {
                let mut bent = sealed.clone();
                bent[at] ^= 1 << bit;
                let error = key.open(&bent, ROW).expect_err(field);
                match field {
                    // Without its mark it is a value of before, of a key that nobody has.
                    "the mark" | "the name of the key" => {
                        assert!(matches!(error, Unreadable::Key { .. }), "{field}: {error}");
                    }
                    "the version" => assert_eq!(error, Unreadable::Format(bent[at]), "{field}"),
                    _ => assert_eq!(error, Unreadable::Damaged, "{field}"),
                }
            }
        }
        from = to;
    }
    for length in 0..sealed.len() {
        assert_eq!(key.open(&sealed[..length], ROW).unwrap_err(), Unreadable::Damaged, "{length} bytes");
    }
    assert!(key.open(&[&*sealed, &[0]].concat(), ROW).is_err());
}

#[test]
fn parts_of_two_values_do_not_make_a_third() {
    let key = MasterKey::mint();
    let [one, two] = ["one", "two"].map(|text| key.seal(&Secret::new(text), ROW).unwrap());
    let body_at = FIELDS[4].1;
    let mixed = [&one[..body_at], &two[body_at..]].concat();
    assert_eq!(key.open(&mixed, ROW).unwrap_err(), Unreadable::Damaged);
    assert_ne!(one[9..body_at], two[9..body_at], "each has a key of its own");
}

#[test]
fn a_change_of_keys_leaves_the_secret_as_it_is() {
    let (old, new) = (MasterKey::mint(), MasterKey::mint());
    let sealed = old.seal(&Secret::new("s3cret"), ROW).unwrap();
    let anew = rewrap(&old, &new, &sealed, ROW).unwrap();
    let body_at = FIELDS[4].1;
    assert_eq!(anew[body_at..], sealed[body_at..]);
    assert_ne!(anew[5..body_at], sealed[5..body_at]);
    assert!(new.head().begins(&anew) && old.head().begins(&sealed));
    let mut claimed = anew.clone();
    claimed[..9].copy_from_slice(old.head().bytes());
    assert_eq!(old.open(&claimed, ROW).unwrap_err(), Unreadable::Damaged, "a name alone opens nothing");
}

#[test]
fn a_foreign_key_names_the_key_it_needs() {
    let (old, new) = (MasterKey::mint(), MasterKey::mint());
    let sealed = old.seal(&Secret::new("x"), "row").unwrap();
    let error = new.open(&sealed, "row").unwrap_err().to_string();
    assert!(error.contains(&old.id().to_string()) && error.contains(&new.id().to_string()), "{error}");
    assert_eq!(key_id(&sealed), Some(old.id()));
}

#[test]
fn a_format_of_the_future_is_named() {
    let key = MasterKey::mint();
    let mut sealed = key.seal(&Secret::new("x"), "row").unwrap();
    sealed[4] = 3;
    assert_eq!(key.open(&sealed, "row").unwrap_err(), Unreadable::Format(3));
    assert_eq!(key_id(&sealed), None);
    assert!(Unreadable::Format(3).to_string().contains("newer"), "and says what to do");
}
