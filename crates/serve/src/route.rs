//! Where a path leads: the one table that every request goes through. Pages have a table of their own in `web`.

use crate::service::{ListenerRole, Service};

/// What answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    V1,
    V4,
    Push,
    Agents,
    Page,
    Docs,
    OpenApi,
    OpenApiV4,
    Health,
    Ready,
    Metrics,
    Feeds,
}

struct Route {
    path: &'static str,
    /// Whether it is also for every path below.
    below: bool,
    target: Target,
    /// The listeners that have it.
    roles: &'static [ListenerRole],
}

const MAIN: &[ListenerRole] = &[ListenerRole::Main];
const OPERATOR: &[ListenerRole] = &[ListenerRole::Operator];
const ALL: &[ListenerRole] = &[ListenerRole::Main, ListenerRole::Ingest, ListenerRole::Operator];

const fn route(path: &'static str, target: Target, roles: &'static [ListenerRole]) -> Route {
    Route { path, below: false, target, roles }
}

/// The most used first.
const ROUTES: [Route; 14] = [
    Route { path: "/v1", below: true, target: Target::V1, roles: MAIN },
    Route { path: "/v4", below: true, target: Target::V4, roles: MAIN },
    route(api::ingest::PATH, Target::Push, &[ListenerRole::Main, ListenerRole::Ingest]),
    route(http::AGENT_PATH, Target::Agents, MAIN),
    route("/healthz", Target::Health, ALL),
    route("/readyz", Target::Ready, ALL),
    route("/metrics", Target::Metrics, OPERATOR),
    route("/feeds", Target::Feeds, OPERATOR),
    route("/openapi.json", Target::OpenApi, MAIN),
    route("/openapi/v4.json", Target::OpenApiV4, MAIN),
    route("/", Target::Docs, MAIN),
    Route { path: "/docs", below: true, target: Target::Docs, roles: MAIN },
    route("/llms.txt", Target::Docs, MAIN),
    route("/llms-full.txt", Target::Docs, MAIN),
];

impl Route {
    fn matches(&self, path: &str) -> bool {
        path.strip_prefix(self.path)
            .is_some_and(|rest| rest.is_empty() || (self.below && rest.starts_with('/')))
    }
}

/// What a path leads to at a listener; `None` where there is nothing.
#[inline]
pub(crate) fn find(service: &Service, role: ListenerRole, path: &str) -> Option<Target> {
    let found = ROUTES.iter().find(|route| route.matches(path) && route.roles.contains(&role));
    match found.map(|route| route.target) {
        Some(Target::Push) if role == ListenerRole::Main && !service.ingest_on_main => None,
        Some(Target::V4 | Target::OpenApiV4) if !service.api.settings.v4.enabled => None,
        Some(Target::Agents) if !service.agents.enabled => None,
        Some(Target::Docs) if !service.web.settings.docs => None,
        None if role == ListenerRole::Main && web::covers(&service.web, path) => Some(Target::Page),
        found => found,
    }
}
