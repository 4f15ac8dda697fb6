//! All parts of the service, assembled.

pub(crate) mod agents;

use std::sync::Arc;

use api::{Api, ApiError};
use domain::World;
use http::{Reply, RequestId};
use web::Web;

use self::agents::Agents;

/// The purpose of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerRole {
    /// The API, the pages and, unless it has a separate listener, ingest.
    Main,
    /// Ingest alone.
    Ingest,
    /// `/metrics`, health and readiness.
    Operator,
}

/// The service with all its parts.
#[derive(Debug)]
pub struct Service {
    pub api: Arc<Api>,
    pub web: Arc<Web>,
    pub agents: Agents,
    /// Whether ingest is on the main listener.
    pub ingest_on_main: bool,
}

impl Service {
    /// Whether requests should be sent here: the service is not about to stop, no other node could have a newer
    /// snapshot, and keys are accepted.
    pub fn is_ready(&self) -> bool {
        let now = self.api.clock.now();
        !self.api.server.is_stopping()
            && self.has_key_authority()
            && self.api.accounts.can_count()
            && World::ALL.iter().all(|world| self.api.world(*world).is_abreast(now))
    }

    /// Whether this node may accept keys.
    pub(crate) fn has_key_authority(&self) -> bool {
        self.api.accounts.key_lease().is_none_or(|lease| lease.left_ms > 0)
    }

    /// Adds the headers of every answer.
    pub(crate) fn finish(&self, answered: Result<Reply, ApiError>, request_id: RequestId) -> Reply {
        let mut reply = answered.unwrap_or_else(|error| {
            let reply = error.into_reply(request_id);
            self.api.metrics.note_refusal(&reply);
            reply
        });
        request_id.put(&mut reply.head);
        reply
    }
}
