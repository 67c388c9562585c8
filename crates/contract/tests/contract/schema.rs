//! The committed schema, and the promise not to take anything back.

use super::compat;
use angelia_contract::schema::{schema, schema_text};
use serde_json::Value;

#[test]
fn the_committed_schema_is_current() {
    let committed = include_str!("../../schema/v1.json");
    let hint = "regenerate: angelia contract schema > crates/contract/schema/v1.json";
    let read: Value = serde_json::from_str(committed).expect(hint);
    assert_eq!(read, schema(), "{hint}");
    assert_eq!(committed, schema_text(), "{hint}");
}

#[test]
fn nothing_is_taken_back_within_the_version() {
    let frozen: Value = serde_json::from_str(include_str!("../../schema/v1.baseline.json")).unwrap();
    let found = compat::violations(&frozen, &schema());
    let list: String = found.iter().map(|violation| format!("\n  {violation}")).collect();
    assert!(found.is_empty(), "the contract may only grow; this takes something back:{list}");
}

/// What was added has to be kept from then on, so the baseline follows.
#[test]
fn the_baseline_keeps_up_with_what_was_added() {
    let frozen: Value = serde_json::from_str(include_str!("../../schema/v1.baseline.json")).unwrap();
    let missing = compat::violations(&schema(), &frozen);
    let list: String = missing.iter().map(|violation| format!("\n  {violation}")).collect();
    assert!(missing.is_empty(), "copy schema/v1.json to schema/v1.baseline.json; it lacks:{list}");
}

#[test]
fn the_real_schema_is_really_checked() {
    let frozen = schema();
    for (pointer, key) in [
        ("/$defs/Source/properties", "scope_id"),
        ("/$defs/Hello/properties", "botId"),
        ("/$defs/Descriptor/properties", "len_unit"),
        ("/$defs", "ActionResult"),
    ] {
        let mut newer = schema();
        newer.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(key).unwrap();
        assert!(!compat::violations(&frozen, &newer).is_empty(), "{pointer} {key}");
    }
    for at in 0..14 {
        let mut newer = schema();
        newer.pointer_mut("/$defs/Action/oneOf").unwrap().as_array_mut().unwrap().remove(at);
        assert!(!compat::violations(&frozen, &newer).is_empty(), "operation {at}");
    }
}
