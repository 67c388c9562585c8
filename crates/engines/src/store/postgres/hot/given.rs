//! What a statement is given for many at once: one array for each column.

use std::borrow::Cow;
use tokio_postgres::types::{ToSql, Type};

/// One array of what a statement is given, and its type.
pub(in super::super) type Given<'a> = (&'a (dyn ToSql + Sync), Type);

/// Numbers; some of them may be none.
pub(in super::super) fn numbers<C: ToSql + Sync>(column: &C) -> Given<'_> {
    (column, Type::INT8_ARRAY)
}

/// Texts; some of them may be none.
pub(in super::super) fn texts<C: ToSql + Sync>(column: &C) -> Given<'_> {
    (column, Type::TEXT_ARRAY)
}

/// Bytes.
pub(in super::super) fn bytes<C: ToSql + Sync>(column: &C) -> Given<'_> {
    (column, Type::BYTEA_ARRAY)
}

/// One number.
pub(in super::super) fn number(value: &i64) -> Given<'_> {
    (value, Type::INT8)
}

/// A text as PostgreSQL can hold it.
pub(in super::super) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

/// The same of what may be none.
pub(in super::super) fn some_text(value: Option<&str>) -> Option<Cow<'_, str>> {
    value.map(text)
}

/// A number of ours as PostgreSQL's.
pub(in super::super) fn signed(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}
