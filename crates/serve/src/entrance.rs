//! One request, whichever way it came: which part of the service answers.

use std::sync::Arc;

use api::{ApiError, ErrorCode, catch_panics, v1};
use http::{ConnectionState, Method, Refusal, Reply, Request, RequestBody, RequestId, Server};

use crate::ops;
use crate::route::{self, Target};
use crate::service::{Doors, Service};

/// The service as one listener shows it.
#[derive(Debug)]
pub struct Entrance {
    pub service: Arc<Service>,
    pub doors: Doors,
}

impl Entrance {
    async fn route(
        &self,
        request: &Request<'_>,
        connection: &mut ConnectionState<v1::Memory>,
        request_id: RequestId,
    ) -> Result<Reply, ApiError> {
        let service = &*self.service;
        let target = route::find(service, self.doors, request.path);
        if target == Some(Target::V1) {
            let (endpoint, reply) = v1::answer(&service.api, request, connection, request_id).await;
            service.api.metrics.note_answer(endpoint, &reply, connection.begun.elapsed());
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
            Some(Target::Page) => {
                // Boxed, or every connection would be as large as a page in the making.
                Ok(Box::pin(connection.peer.serve(web::answer(&service.web, request))).await)
            }
            Some(Target::Docs) if request.method.reads() => {
                Ok(Box::pin(connection.peer.serve(web::docs_answer(&service.web, request))).await)
            }
            Some(target) => ops::answer(service, request, target),
            None => Err(ApiError::new(
                ErrorCode::NotFound,
                match self.doors {
                    Doors::Main => "there is no such path; /docs lists the endpoints",
                    Doors::Ingest => "this listener serves ingest only",
                    Doors::Operator => "this listener has /metrics, /feeds, /healthz and /readyz",
                },
            )),
        }
    }
}

impl http::Service for Entrance {
    type Memory = v1::Memory;

    fn server(&self) -> &Arc<Server> {
        &self.service.api.server
    }

    fn limits_connections(&self) -> bool {
        self.doors != Doors::Operator
    }

    fn is_plain(&self, request: &Request<'_>) -> bool {
        request.method != Method::Post && !web::is_stream(request.path)
    }

    async fn answer(
        &self,
        request: &Request<'_>,
        connection: &mut ConnectionState<v1::Memory>,
    ) -> Reply {
        let api = &self.service.api;
        let request_id = api.next_request_id();
        let answering = self.route(request, connection, request_id);
        let answered = catch_panics(&api.metrics, answering).await;
        self.service.finish(answered, request_id)
    }

    async fn answer_with_body<B: RequestBody>(
        &self,
        request: &Request<'_>,
        connection: &mut ConnectionState<v1::Memory>,
        body: B,
    ) -> Reply {
        let Service { api, web, .. } = &*self.service;
        let target = route::find(&self.service, self.doors, request.path);
        let request_id = api.next_request_id();
        let answered = match (request.method, target) {
            (Method::Post, Some(Target::Push)) => {
                catch_panics(&api.metrics, api::ingest::take(api, request, body)).await
            }
            (Method::Post, Some(Target::Page)) => {
                catch_panics(&api.metrics, web::take_form(web, request, body)).await
            }
            (Method::Get, Some(Target::Page)) if web::is_stream(request.path) => {
                Ok(web::watch(web, request, request_id).await)
            }
            _ => catch_panics(&api.metrics, self.route(request, connection, request_id)).await,
        };
        self.service.finish(answered, request_id)
    }

    fn refuse(&self, refusal: Refusal, message: &'static str) -> Reply {
        let request_id = self.service.api.next_request_id();
        self.service.finish(Err((refusal, message).into()), request_id)
    }
}
