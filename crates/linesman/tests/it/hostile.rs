//! What must not be lost or taken in silence, whoever or whatever does it.

mod accounts;
