//! The sports of the sandbox.

/// The five sports of the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Discipline {
    Mma,
    Boxing,
    Tennis,
    Football,
    Golf,
}

impl Discipline {
    pub(crate) const ALL: [Self; 5] =
        [Self::Mma, Self::Boxing, Self::Tennis, Self::Football, Self::Golf];

    /// The sport's key in the catalogue.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Mma => "mma",
            Self::Boxing => "boxing",
            Self::Tennis => "tennis",
            Self::Football => "american_football",
            Self::Golf => "golf",
        }
    }
}
