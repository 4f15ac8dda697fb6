//! What every request with a key goes through, in v1 and in `/v4`: limits, method, maintenance, faults on request, and
//! what the key is left with. The order is that of D3 and V4.

pub(crate) mod fault;
pub(crate) mod last_request;
pub(crate) mod refusal;
pub(crate) mod refusal_log;

use accounts::{Call, Grant, KeyEntry, KeyKind, Maintenance, Outcome, Standing};
use domain::{Timestamp, World};
use http::{Method, Reply, Request};
use tokio::time::Instant;

use crate::admission::fault::Fault;
use crate::admission::refusal::{charged, closed, too_busy, wrong_method};
use crate::answers::{Answer, Answers, HashedSelector, Ready};
use crate::context::Api;
use crate::error::{self, ApiError};
use crate::operation::Operation;
use crate::response_head::put_standing;

/// Counts a request towards the burst limit of its key and checks its target.
pub(crate) async fn begin(
    api: &Api,
    request: &Request<'_>,
    entry: &KeyEntry,
    now: Timestamp,
) -> Result<(), ApiError> {
    charged(api.accounts.charge_burst(entry, now).await)?;
    error::check_target(request)
}

/// Checks if an operation can be answered now: the method, maintenance, and the fault that a sandbox key asks for.
pub(crate) async fn enter(
    api: &Api,
    request: &Request<'_>,
    entry: &KeyEntry,
    operation: Operation,
    now: Timestamp,
) -> Result<(), ApiError> {
    let is_read = match operation.is_stream() {
        true => request.method == Method::Get,
        false => request.method.reads(),
    };
    if !is_read {
        return Err(wrong_method(operation));
    }
    if let Maintenance::On { retry_after_s } = api.accounts.maintenance()
        && !operation.is_free()
    {
        return Err(closed(retry_after_s));
    }
    if let Some(fault) = Fault::parse(request.fault, entry)? {
        Box::pin(fault.apply(&entry.meters.standing(now), now)).await?;
    }
    Ok(())
}

/// Counts an answered request for its key, and puts into the head what the key has left: `standing` if it was charged.
pub(crate) fn end(
    request: &Request<'_>,
    entry: &KeyEntry,
    operation: Operation,
    reply: &mut Reply,
    standing: Option<Standing>,
    now: Timestamp,
) {
    let outcome = Outcome::of_status(reply.status);
    entry.count(Call { operation: operation.index(), outcome, agent: request.agent }, now);
    let mut standing = standing.unwrap_or_else(|| entry.meters.standing(now));
    if let Ok(Some(fault)) = Fault::parse(request.fault, entry) {
        fault.adjust_standing(&mut standing);
    }
    put_standing(&mut reply.head, entry, &standing, now);
}

/// The world that a key reads.
pub(crate) fn world_of(grant: &Grant) -> World {
    match grant.kind {
        KeyKind::Sandbox => World::Sandbox,
        KeyKind::Production => World::Live,
    }
}

/// The answer from the cache, or computed now.
///
/// # Errors
/// The answer is not cached and the service is overloaded.
pub(crate) fn find_or_make(
    api: &Api,
    answers: &Answers,
    selector: &HashedSelector,
    begun: Instant,
    make: impl FnOnce() -> Answer,
) -> Result<Ready, ApiError> {
    match answers.find(selector) {
        Ok(ready) => Ok(ready),
        // Popular answers are requested again immediately. Refusing them until the queue is shorter would refuse
        // everybody after each publication; refusing rare ones shortens the queue.
        Err(missing) if !missing.asked_before && api.server.load.sheds(begun) => Err(too_busy()),
        Err(missing) => Ok(Ready { answer: answers.make(selector, missing, make), popular: false }),
    }
}
