//! What a table of records is: names and kinds of columns, its key, and by what it
//! is searched. From this the engines make their SQL, once for every database.

use crate::error::{Error, Result};

/// What one column of one row holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// Nothing.
    Null,
    /// A number, a time, a flag.
    Int(i64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Value {
    fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Int(number) => (*number).into(),
            Self::Text(text) => text.as_str().into(),
            Self::Bytes(bytes) => bytes.as_slice().into(),
        }
    }
}

/// A row, as values in the order of its table's columns.
pub type Row = Vec<Value>;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Numbers, times, flags.
    Int,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether it may hold nothing.
    pub nullable: bool,
}

impl Column {
    /// The column of a field.
    pub(crate) const fn of<F: Field>(name: &'static str) -> Self {
        Self { name, kind: F::KIND, nullable: F::NULLABLE }
    }
}

/// One table, or the part of one that records see.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns; those of the key come first.
    pub columns: &'static [Column],
    /// How many columns the key has. None: rows are only added, and the engine numbers them.
    pub key: usize,
    /// How many columns at the end are somebody else's: read here, never written.
    pub foreign: usize,
    /// What a line of the change feed names; nothing if changes are not fed.
    pub fed: &'static [&'static str],
    /// By which columns, besides the key, rows are found.
    pub finds: &'static [&'static [&'static str]],
    /// Along which columns it is read a part at a time.
    pub walks: &'static [Walk],
    /// The column that holds sealed values, of which it is asked how they begin.
    pub sealed: Option<&'static str>,
    /// Whether it is so long that only parts of it are read.
    pub long: bool,
}

/// A way through a table: the rows that have something in common, in the order of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Walk {
    /// What they have in common; nothing for all rows.
    pub by: &'static [&'static str],
    /// The column. Rows where it holds nothing are left out.
    pub along: &'static str,
}

impl Table {
    /// The columns that records write.
    pub fn own(&self) -> &'static [Column] {
        &self.columns[..self.columns.len() - self.foreign]
    }

    /// Where a column is.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The key of a row.
    pub fn key_of(&self, row: &[Value]) -> Row {
        row[..self.key].to_vec()
    }

    /// What a line of the change feed says of a row; `None` if nothing.
    pub fn feed(&self, row: &[Value]) -> Option<String> {
        let named = self.fed.iter().filter_map(|name| row.get(self.column(name)?));
        let named: Vec<serde_json::Value> = named.map(Value::to_json).collect();
        (!named.is_empty()).then(|| serde_json::Value::from(named).to_string())
    }

    /// The names of the key's columns.
    pub fn key_names(&self) -> Vec<&'static str> {
        self.columns[..self.key].iter().map(|column| column.name).collect()
    }
}

/// The name that a declaration may leave out.
pub(crate) const fn at_most_one(names: &'static [&'static str]) -> Option<&'static str> {
    match names {
        [name, ..] => Some(*name),
        [] => None,
    }
}

/// Something that is kept as one row.
pub trait Record: Sized {
    /// Where.
    const TABLE: &'static Table;

    /// Its row.
    fn to_row(&self) -> Row;

    /// What a row says; `None` if it cannot be read.
    fn from_row(row: Row) -> Option<Self>;

    /// Like [`Record::from_row`], with an error that names the table.
    fn read(row: Row) -> Result<Self> {
        Self::from_row(row).ok_or_else(|| unreadable(Self::TABLE))
    }
}

/// What whoever needs a row is told if it says nothing that anybody knows.
pub(crate) fn unreadable(table: &Table) -> Error {
    Error::internal(format!("a row of {} cannot be read", table.name))
}

/// What can be searched for.
pub trait ToValue {
    /// As a column holds it.
    fn to_value(&self) -> Value;
}

/// What a column can hold.
pub trait Field: ToValue + Sized {
    /// Of which kind.
    const KIND: Kind;
    /// Whether it may be nothing.
    const NULLABLE: bool = false;

    /// Reads it back; `None` if it is something else.
    fn from_value(value: Value) -> Option<Self>;
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> Value {
        (**self).to_value()
    }
}

impl ToValue for Value {
    fn to_value(&self) -> Value {
        self.clone()
    }
}

impl ToValue for str {
    fn to_value(&self) -> Value {
        Value::Text(self.to_owned())
    }
}

/// Types that a column holds as they are.
macro_rules! held {
    ($($type:ty as $kind:ident),*) => {$(
        impl ToValue for $type {
            fn to_value(&self) -> Value {
                Value::$kind(self.to_owned())
            }
        }

        impl Field for $type {
            const KIND: Kind = Kind::$kind;

            fn from_value(value: Value) -> Option<Self> {
                match value {
                    Value::$kind(held) => Some(held),
                    _ => None,
                }
            }
        }
    )*};
}

held!(String as Text, i64 as Int, Vec<u8> as Bytes);

impl<const N: usize> ToValue for [u8; N] {
    fn to_value(&self) -> Value {
        Value::Bytes(self.to_vec())
    }
}

impl<const N: usize> Field for [u8; N] {
    const KIND: Kind = Kind::Bytes;

    fn from_value(value: Value) -> Option<Self> {
        Vec::from_value(value)?.try_into().ok()
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_value)
    }
}

impl<T: Field> Field for Option<T> {
    const KIND: Kind = T::KIND;
    const NULLABLE: bool = true;

    fn from_value(value: Value) -> Option<Self> {
        if value == Value::Null { Some(None) } else { T::from_value(value).map(Some) }
    }
}

/// Says how a type that is written as another is kept.
macro_rules! field {
    ($type:ty as $stored:ty, $to:expr, $from:expr) => {
        impl $crate::records::ToValue for $type {
            fn to_value(&self) -> $crate::records::Value {
                let to: fn(&$type) -> $stored = $to;
                $crate::records::ToValue::to_value(&to(self))
            }
        }

        impl $crate::records::Field for $type {
            const KIND: $crate::records::Kind = <$stored as $crate::records::Field>::KIND;
            const NULLABLE: bool = <$stored as $crate::records::Field>::NULLABLE;

            fn from_value(value: $crate::records::Value) -> Option<Self> {
                let from: fn($stored) -> Option<$type> = $from;
                from(<$stored as $crate::records::Field>::from_value(value)?)
            }
        }
    };
}

field!(bool as i64, |flag| i64::from(*flag), |number| Some(number != 0));

/// Declares a struct that is kept as one row: its columns, those of the key first; after
/// `foreign` those that somebody else writes. With `impl`, a type that there is already.
macro_rules! record {
    (
        $(#[$meta:meta])*
        pub struct $name:ident in $table:literal $(, $option:ident $given:tt)*
        { $($(#[$of:meta])* $field:ident: $type:ty,)* }
        $(foreign { $($(#[$of_foreign:meta])* $foreign:ident: $foreign_type:ty,)* })?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub struct $name {
            $($(#[$of])* pub $field: $type,)*
            $($($(#[$of_foreign])* pub $foreign: $foreign_type,)*)?
        }

        record! {
            impl $name in $table $(, $option $given)*
            { $($field: $type,)* } foreign { $($($foreign: $foreign_type,)*)? }
        }
    };
    (
        impl $name:ident in $table:literal, key $key:literal
        $(, fed [$($fed:literal),*])? $(, finds [$($find:tt),*])?
        $(, walks [$([$($common:literal),*] along $along:literal),*])?
        $(, sealed $sealed:literal)? $(, long $long:literal)?
        { $($field:ident: $type:ty,)* } $(foreign { $($foreign:ident: $foreign_type:ty,)* })?
    ) => {
        impl $crate::records::Record for $name {
            const TABLE: &'static $crate::records::Table = &$crate::records::Table {
                name: $table,
                columns: &[
                    $($crate::records::Column::of::<$type>(stringify!($field)),)*
                    $($($crate::records::Column::of::<$foreign_type>(stringify!($foreign)),)*)?
                ],
                key: $key,
                foreign: <[&str]>::len(&[$($(stringify!($foreign)),*)?]),
                fed: &[$($($fed),*)?],
                finds: &[$($(&$find),*)?],
                walks: &[$($($crate::records::Walk { by: &[$($common),*], along: $along },)*)?],
                sealed: $crate::records::table::at_most_one(&[$($sealed)?]),
                long: false $(|| $long)?,
            };

            fn to_row(&self) -> $crate::records::Row {
                use $crate::records::ToValue as _;
                vec![$(self.$field.to_value(),)* $($(self.$foreign.to_value(),)*)?]
            }

            fn from_row(row: $crate::records::Row) -> Option<Self> {
                use $crate::records::Field as _;
                let mut values = row.into_iter();
                Some(Self {
                    $($field: <$type>::from_value(values.next()?)?,)*
                    $($($foreign: <$foreign_type>::from_value(values.next()?)?,)*)?
                })
            }
        }
    };
}

pub(crate) use {field, record};
