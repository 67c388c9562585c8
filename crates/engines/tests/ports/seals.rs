//! What every keeper of records must do with what is sealed: list all of it, replace what
//! is still as it was read, and give up a key when nothing needs it.

use super::vault::{capability, keep};
use crate::store::identity::{by, gateway};
use angelia_core::clock::UnixMillis;
use angelia_core::error::Kind;
use angelia_core::records::Records;
use angelia_core::seal::{FORMER_KEY, KEY_CHECK, Keys, MasterKey, OAUTH_KEY};
use angelia_core::secret::Secret;
use angelia_core::store::{
    AuditStore, IdentityStore, KeyChange, PageSize, Resealed, Retired, SealStore, SealedValue, VaultStore,
};
use angelia_core::vault::Capability;

/// Everything that is sealed, read in steps of so many.
pub(crate) async fn sealed_in(records: &(impl Records + ?Sized), step: usize) -> Vec<SealedValue> {
    let mut values: Vec<SealedValue> = Vec::new();
    loop {
        let page = records.sealed_values(values.last(), PageSize::of(step)).await.unwrap();
        let more = page.more;
        values.extend(page);
        if !more {
            return values;
        }
    }
}

/// Every value with a byte more, as another key would make of it.
pub(crate) fn anew(values: Vec<SealedValue>) -> Vec<Resealed> {
    let longer = |old: SealedValue| Resealed { sealed: [old.sealed.as_slice(), &[9]].concat(), old };
    values.into_iter().map(longer).collect()
}

/// A change from one check to another.
fn change(old_check: &[u8], check: &[u8]) -> KeyChange {
    let (from, to) = (MasterKey::mint().id(), MasterKey::mint().id());
    KeyChange { from, to, old_check: old_check.to_vec(), check: check.to_vec(), former: vec![6] }
}

async fn every_kind_is_listed_with_what_it_is_bound_to(records: &(impl Records + ?Sized)) {
    assert!(sealed_in(records, 1).await.is_empty());
    records.create_tenant("acme", None, &by()).await.unwrap();
    records.create_tenant("keyless", None, &by()).await.unwrap();
    let instance = records.create_gateway(gateway("acme", "gw"), &by()).await.unwrap().instance;
    keep(records, &[5, 6].map(|id| Capability { instance, ..capability(id, i64::MAX) })).await;
    records.rotate_gateway("acme", "gw", vec![8], Some(UnixMillis(i64::MAX)), &by()).await.unwrap();
    records.keep_delivery_key("acme", vec![3]).await.unwrap();
    records.set_note(KEY_CHECK, vec![1]).await.unwrap();
    records.set_note(OAUTH_KEY, vec![2]).await.unwrap();
    records.set_note("furnished", vec![1]).await.unwrap();
    let listed = sealed_in(records, 100).await;
    let bound: Vec<(&str, &[u8])> =
        listed.iter().map(|value| (value.bound_to.as_str(), value.sealed.as_slice())).collect();
    let expected: [(&str, &[u8]); 7] = [
        ("key_check", &[1]),
        ("oauth_key", &[2]),
        ("delivery-key/acme", &[3]),
        ("gateway-secret/acme/gw", &[7]),
        ("gateway-secret/acme/gw", &[8]),
        ("capability/acme/1/discord/main/lab/ann/i5", &[5]),
        ("capability/acme/1/discord/main/lab/ann/i6", &[6]),
    ];
    assert_eq!(bound, expected);
    for step in 1..=8 {
        assert_eq!(sealed_in(records, step).await, listed, "in steps of {step}");
    }
    let small = records.sealed_values(None, PageSize { count: 100, bytes: 3 }).await.unwrap();
    assert_eq!((small.items.as_slice(), small.more), (&listed[..3], true), "a step is short of bytes too");
    let held = records.capabilities(instance, UnixMillis(0)).await.unwrap();
    let bindings: Vec<String> = held.iter().map(|it| it.bound_to()).collect();
    assert_eq!(bindings, [bound[5].0, bound[6].0], "as whoever opens one says it");

    let fed = records.changed(0, 1_000).await.unwrap().len();
    assert_eq!(records.reseal(anew(listed)).await.unwrap(), 7);
    let resealed = sealed_in(records, 100).await;
    assert!(resealed.iter().all(|value| value.sealed.len() == 2 && value.sealed[1] == 9), "{resealed:?}");
    assert_eq!(records.note("furnished").await.unwrap(), Some(vec![1]), "what is not sealed stays");
    assert_eq!(records.note(KEY_CHECK).await.unwrap(), Some(vec![1, 9]));
    let secrets = records.gateways().await.unwrap().remove(0).secrets;
    assert_eq!(secrets.iter().map(|secret| secret.sealed.clone()).collect::<Vec<_>>(), [[8, 9], [7, 9]]);
    assert_eq!(secrets[1].valid_until, Some(UnixMillis(i64::MAX)), "the rest of a row stays");
    let held = records.capabilities(instance, UnixMillis(0)).await.unwrap();
    assert_eq!(held.iter().map(|it| it.sealed.clone()).collect::<Vec<_>>(), [[5, 9], [6, 9]]);
    assert_eq!(
        records.changed(0, 1_000).await.unwrap().len(),
        fed,
        "nobody has to read the same secret anew"
    );
}

async fn more_than_is_read_at_a_time_is_listed_in_order(records: &(impl Records + ?Sized)) {
    let all: Vec<Capability> = (1..=50).map(|id| capability(id, i64::MAX)).collect();
    keep(records, &all).await;
    for tenant in 0..40 {
        records.create_tenant(&format!("t{tenant:02}"), None, &by()).await.unwrap();
    }
    records.keep_delivery_key("t39", vec![7]).await.unwrap();
    for step in [1, 16, 17, 100] {
        let listed = sealed_in(records, step).await;
        let rows: Vec<&str> = listed.iter().map(|value| value.row.as_str()).collect();
        let ids: Vec<String> = (1..=50).map(|id: i64| id.to_string()).collect();
        assert_eq!(rows[0], "t39", "behind many that have none");
        assert_eq!(rows[1..], ids.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

async fn what_changed_meanwhile_is_left_as_it_is_now(records: &(impl Records + ?Sized)) {
    records.create_tenant("acme", None, &by()).await.unwrap();
    records.create_gateway(gateway("acme", "gone"), &by()).await.unwrap();
    records.create_gateway(gateway("acme", "stays"), &by()).await.unwrap();
    records.set_note(OAUTH_KEY, vec![1]).await.unwrap();
    let read = anew(sealed_in(records, 100).await);
    records.set_note(OAUTH_KEY, vec![4]).await.unwrap();
    records.revoke_gateway("acme", "gone", &by()).await.unwrap();
    records.rotate_gateway("acme", "gone", vec![5], None, &by()).await.ok();
    records.create_gateway(gateway("acme", "late"), &by()).await.unwrap();
    let before: Vec<_> = sealed_in(records, 100).await;
    let same = before.iter().filter(|value| read.iter().any(|it| it.old == **value)).count();
    assert_eq!(records.reseal(read).await.unwrap(), same);
    assert_eq!(records.note(OAUTH_KEY).await.unwrap(), Some(vec![4]), "it was sealed anew by somebody else");
    let after = sealed_in(records, 100).await;
    assert_eq!(after.len(), before.len());
    assert!(after.last().unwrap().sealed.len() == 1, "one that came is not touched: {after:?}");
}

async fn a_change_begins_once_and_is_written_down(records: &(impl Records + ?Sized)) {
    records.set_note(KEY_CHECK, vec![1]).await.unwrap();
    let conflict = async |change| records.begin_key_change(change, &by()).await.unwrap_err().kind();
    assert_eq!(conflict(change(&[2], &[3])).await, Kind::Conflict, "another check was read");
    assert_eq!(records.note(FORMER_KEY).await.unwrap(), None);
    let begun = change(&[1], &[2]);
    records.begin_key_change(begun.clone(), &by()).await.unwrap();
    assert_eq!(records.note(KEY_CHECK).await.unwrap(), Some(vec![2]));
    assert_eq!(records.note(FORMER_KEY).await.unwrap(), Some(vec![6]));
    assert_eq!(conflict(change(&[2], &[3])).await, Kind::Conflict, "the one before is not finished");
    assert_eq!(records.note(KEY_CHECK).await.unwrap(), Some(vec![2]));
    let line = records.audit_lines(None, 1).await.unwrap().remove(0);
    assert_eq!((line.action.as_str(), line.target), ("key.rotate", begun.to.to_string()));
    assert_eq!(line.detail, format!("from {}", begun.from));
}

async fn a_key_goes_when_the_last_value_needs_it_no_more(records: &(impl Records + ?Sized)) {
    let keys = Keys::new(MasterKey::mint()).with_former(MasterKey::mint());
    let (old, head) = (keys.former().unwrap(), keys.current().head());
    let sealed = |id: i64| {
        let bound_to = format!("capability/acme/1/discord/main/lab/ann/i{id}");
        let key = if id % 2 == 0 { keys.current() } else { old };
        Capability { sealed: key.seal(&Secret::new("x"), &bound_to).unwrap(), ..capability(id, i64::MAX) }
    };
    keep(records, &[1, 2, 3, 4].map(sealed)).await;
    records.set_note(FORMER_KEY, vec![6]).await.unwrap();
    for due in sealed_in(records, 100).await.into_iter().filter(|value| keys.is_due(&value.sealed)) {
        assert_eq!(records.retire_key(head).await.unwrap(), Retired::Needed, "by {}", due.row);
        assert_eq!(records.note(FORMER_KEY).await.unwrap(), Some(vec![6]));
        let sealed = keys.rewrap(&due.sealed, &due.bound_to).unwrap();
        assert_eq!(records.reseal(vec![Resealed { old: due, sealed }]).await.unwrap(), 1);
    }
    let gone = records.retire_key(head).await.unwrap();
    assert!(matches!(gone, Retired::Gone { .. }), "{gone:?}");
    assert_eq!(records.note(FORMER_KEY).await.unwrap(), None);
    assert_eq!(records.retire_key(head).await.unwrap(), gone, "twice does no harm");
}

on_every_engine!(
    every_kind_is_listed_with_what_it_is_bound_to,
    more_than_is_read_at_a_time_is_listed_in_order,
    what_changed_meanwhile_is_left_as_it_is_now,
    a_change_begins_once_and_is_written_down,
    a_key_goes_when_the_last_value_needs_it_no_more,
);
