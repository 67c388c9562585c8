//! Enums whose variants are words: in a column of the store, in counters, in `explain`.

/// Declares an enum and the word of each variant, which stands here and nowhere else.
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)* }
    ) => {
        $(#[$meta])*
        pub enum $name { $($(#[$of])* $variant,)* }

        impl $name {
            /// Each of them.
            pub const ALL: [Self; <[&str]>::len(&[$($word),*])] = [$(Self::$variant),*];

            /// Its word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// Reads [`as_str`](Self::as_str) back; `None` for a word that nobody knows.
            pub fn parse(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use words;
