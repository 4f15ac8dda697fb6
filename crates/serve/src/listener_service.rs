//! Routes a request, whatever its transport, to the part of the service that answers it.

use std::pin::pin;
use std::sync::Arc;

use api::{ApiError, ErrorCode, Memory, catch_panics, v1, v4};
use http::{
    Answering, ConnectionState, Listener, Method, PathTraits, Refusal, Reply, Request, RequestBody,
    RequestId, Server,
};
use tokio_util::sync::CancellationToken;

use crate::ops;
use crate::route::{self, Target};
use crate::service::agents;
use crate::service::{ListenerRole, Service};

/// The service as seen through one listener.
#[derive(Debug)]
pub struct ListenerService {
    pub service: Arc<Service>,
    pub role: ListenerRole,
}

/// Serves requests at a listener until `stopping`.
///
/// The request path is compiled in the crate that boxes it: here, with the settings of this crate (`Cargo.toml`), and
/// not again in every program.
pub fn run(
    service: Arc<ListenerService>,
    listener: Listener,
    stopping: CancellationToken,
) -> Answering<'static, ()> {
    Box::pin(http::run(service, listener, stopping))
}

impl ListenerService {
    /// Whether a path belongs to `/v4` at this listener.
    fn shows_v4(&self, path: &str) -> bool {
        v4::covers(path) && route::find(&self.service, self.role, path) == Some(Target::V4)
    }

    /// Answers a request that panicked in the format of its interface.
    fn in_form(
        &self,
        request: &Request<'_>,
        answered: Result<Reply, ApiError>,
    ) -> Result<Reply, ApiError> {
        let api = &self.service.api;
        answered.or_else(|error| {
            if !self.shows_v4(request.path) {
                return Err(error);
            }
            let reply = v4::refuse(&api.settings.v4, error, Some(request));
            api.metrics.note_refusal(&reply);
            Ok(reply)
        })
    }

    async fn route(
        &self,
        request: &Request<'_>,
        connection: &mut ConnectionState<Memory>,
        request_id: RequestId,
    ) -> Result<Reply, ApiError> {
        let service = &*self.service;
        let target = route::find(service, self.role, request.path);
        if target == Some(Target::V1) {
            let (operation, reply) =
                v1::answer(&service.api, request, connection, request_id).await;
            service.api.metrics.note_answer(operation, &reply, connection.begun.elapsed());
            return Ok(reply);
        }
        if target == Some(Target::V4) {
            let (operation, reply) =
                v4::answer(&service.api, request, connection, request_id).await;
            service.api.metrics.note_answer(operation, &reply, connection.begun.elapsed());
            return Ok(reply);
        }
        api::check_target(request)?;
        match target {
            Some(Target::Push) => {
                let mut error =
                    ApiError::new(ErrorCode::MethodNotAllowed, "ingest takes POST only");
                error.allow = Some("POST");
                Err(error)
            }
            Some(Target::Agents) => Err(agents::wrong_method()),
            Some(Target::Page) => {
                Ok(connection.peer.serve(web::answer(&service.web, request)).await)
            }
            Some(Target::Docs) if request.method.reads() => {
                Ok(connection.peer.serve(web::docs_answer(&service.web, request)).await)
            }
            Some(target) => ops::answer(service, request, target),
            None => Err(self.not_found(request.path)),
        }
    }

    fn not_found(&self, path: &str) -> ApiError {
        let text = match self.role {
            ListenerRole::Main if path == "/v4" || path.starts_with("/v4/") => {
                "there is no such path: /v4 is switched off here, and this API is under /v1; /docs shows the paths, names \
                 and parameters that replace those of The Odds API v4"
            }
            ListenerRole::Main => {
                let whole = path.trim_end_matches('/');
                let found = whole != path && route::find(&self.service, self.role, whole).is_some();
                return api::no_such_path(found);
            }
            ListenerRole::Ingest => "this listener serves ingest only",
            ListenerRole::Operator => "this listener has /metrics, /feeds, /healthz and /readyz",
        };
        ApiError::new(ErrorCode::NotFound, text)
    }
}

impl http::Service for ListenerService {
    type Memory = Memory;

    fn server(&self) -> &Arc<Server> {
        &self.service.api.server
    }

    fn limits_connections(&self) -> bool {
        self.role != ListenerRole::Operator
    }

    fn traits(path: &str) -> PathTraits {
        route::traits(path)
    }

    fn is_plain(&self, request: &Request<'_>) -> bool {
        request.method != Method::Post && !request.traits.is_stream
    }

    async fn answer(
        &self,
        request: &Request<'_>,
        connection: &mut ConnectionState<Memory>,
    ) -> Reply {
        let api = &self.service.api;
        let request_id = api.next_request_id();
        let answering = pin!(self.route(request, connection, request_id));
        let answered = catch_panics(&api.metrics, answering).await;
        self.service.finish(self.in_form(request, answered), request_id)
    }

    async fn answer_with_body<B: RequestBody>(
        &self,
        request: &Request<'_>,
        connection: &mut ConnectionState<Memory>,
        body: B,
    ) -> Reply {
        let Service { api, web, .. } = &*self.service;
        let target = route::find(&self.service, self.role, request.path);
        let request_id = api.next_request_id();
        let answered = match (request.method, target) {
            (Method::Post, Some(Target::Push)) => {
                catch_panics(&api.metrics, pin!(api::ingest::take(api, request, body))).await
            }
            (Method::Post, Some(Target::Page)) => {
                catch_panics(&api.metrics, pin!(web::take_form(web, request, body))).await
            }
            (Method::Post, Some(Target::Agents)) => {
                let taken = agents::take(&self.service, request, connection.peer, body);
                catch_panics(&api.metrics, pin!(taken)).await
            }
            (Method::Get, Some(Target::Page)) if web::is_stream(request.path) => {
                let watching = async { Ok(web::watch(web, request, request_id).await) };
                catch_panics(&api.metrics, pin!(watching)).await
            }
            _ => {
                let answering = pin!(self.route(request, connection, request_id));
                self.in_form(request, catch_panics(&api.metrics, answering).await)
            }
        };
        self.service.finish(answered, request_id)
    }

    fn refuse(&self, refusal: Refusal, message: &'static str, path: &str) -> Reply {
        let api = &self.service.api;
        let error = ApiError::from((refusal, message));
        let too_large = matches!(error.code, ErrorCode::HeadTooLarge | ErrorCode::TargetTooLong);
        let answered = if too_large && self.shows_v4(path) {
            let reply = v4::refuse(&api.settings.v4, error, None);
            api.metrics.note_refusal(&reply);
            Ok(reply)
        } else {
            Err(error)
        };
        self.service.finish(answered, api.next_request_id())
    }
}
