//! The register that makes changes of keys known to nodes that cannot reach the database.

use std::{fmt, future::Future, pin::Pin};

/// Why a register did not answer.
pub type RegisterError = Box<dyn std::error::Error + Send + Sync>;
pub type RegisterFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Publishes change numbers and keeps the greatest.
///
/// Answers are linearisable: every number announced before [`RevocationRegister::confirm`] was called shows in it. An
/// answer that may be stale is an error.
pub trait RevocationRegister: Send + Sync + fmt::Debug {
    /// Publishes a number: every later [`RevocationRegister::confirm`] returns it or a greater one. Returns the
    /// greatest known number.
    fn announce(&self, number: i64) -> RegisterFuture<'_, Result<i64, RegisterError>>;

    /// A number that was announced at some time; `None` if none ever was. There may be greater ones.
    fn known(&self) -> RegisterFuture<'_, Result<Option<i64>, RegisterError>>;

    /// Wakes nodes, so that they ask earlier. It may be lost.
    fn hint(&self) -> RegisterFuture<'_, ()>;

    /// The greatest number announced before this call. Fails if none ever was.
    fn confirm(&self, held: i64) -> RegisterFuture<'_, Result<i64, RegisterError>>;

    /// Waits until a number may have been announced. It may be wrong both ways: callers ask afterwards.
    fn wait_for_hint(&self) -> RegisterFuture<'_, ()>;
}
