//! Enums whose variants have a text on the wire, in files and in metrics.

/// Gives an enum `ALL` (in the order given), its texts, and `parse`.
macro_rules! keyed {
    ($name:ident, $key:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        impl $name {
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            pub const fn $key(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.$key() == text)
            }
        }
    };
}

pub(crate) use keyed;
