//! The table of paths that every request goes through. Pages have their own table in `web`.

use http::{HeaderSet, PathTraits};

use crate::service::{ListenerRole, Service, agents};

/// The part that answers.
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
    /// Whether it also covers every path below.
    below: bool,
    target: Target,
    /// The listeners that serve it.
    roles: &'static [ListenerRole],
    /// The headers that its answers may depend on.
    headers: HeaderSet,
}

const MAIN: &[ListenerRole] = &[ListenerRole::Main];
const OPERATOR: &[ListenerRole] = &[ListenerRole::Operator];
const ALL: &[ListenerRole] = &[ListenerRole::Main, ListenerRole::Ingest, ListenerRole::Operator];

const fn route(path: &'static str, target: Target, roles: &'static [ListenerRole]) -> Route {
    Route { path, below: false, target, roles, headers: HeaderSet::Page }
}

/// A path and all paths below it.
const fn tree(path: &'static str, target: Target) -> Route {
    Route { below: true, ..route(path, target, MAIN) }
}

/// The most used first.
const ROUTES: [Route; 14] = [
    Route { headers: HeaderSet::Ranges, ..tree("/v1", Target::V1) },
    Route { headers: HeaderSet::CrossOrigin, ..tree("/v4", Target::V4) },
    route(api::ingest::PATH, Target::Push, &[ListenerRole::Main, ListenerRole::Ingest]),
    Route { headers: HeaderSet::Agent, ..route(agents::PATH, Target::Agents, MAIN) },
    route("/healthz", Target::Health, ALL),
    route("/readyz", Target::Ready, ALL),
    route("/metrics", Target::Metrics, OPERATOR),
    route("/feeds", Target::Feeds, OPERATOR),
    route("/openapi.json", Target::OpenApi, MAIN),
    route("/openapi/v4.json", Target::OpenApiV4, MAIN),
    route("/", Target::Docs, MAIN),
    tree("/docs", Target::Docs),
    route("/llms.txt", Target::Docs, MAIN),
    route("/llms-full.txt", Target::Docs, MAIN),
];

impl Route {
    fn matches(&self, path: &str) -> bool {
        path.strip_prefix(self.path)
            .is_some_and(|rest| rest.is_empty() || (self.below && rest.starts_with('/')))
    }
}

/// The target of a path at a listener; `None` if there is none.
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

/// The properties of a path, on any listener.
#[inline]
pub(crate) fn traits(path: &str) -> PathTraits {
    match ROUTES.iter().find(|route| route.matches(path)) {
        Some(Route { target: Target::V1, .. }) if path == api::STREAM_PATH => {
            PathTraits { headers: HeaderSet::Stream, is_stream: true }
        }
        Some(route) => PathTraits { headers: route.headers, is_stream: false },
        None => PathTraits { headers: HeaderSet::Page, is_stream: web::is_stream(path) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_which_headers_are_read_and_whether_its_answer_ends() {
        for (path, headers, is_stream) in [
            ("/v1/sports", HeaderSet::Ranges, false),
            ("/v1/stream", HeaderSet::Stream, true),
            ("/v1/stream/", HeaderSet::Ranges, false),
            ("/v10", HeaderSet::Page, false),
            ("/v4/sports", HeaderSet::CrossOrigin, false),
            ("/mcp", HeaderSet::Agent, false),
            ("/mcp/", HeaderSet::Page, false),
            (api::ingest::PATH, HeaderSet::Page, false),
            ("/board/mma", HeaderSet::Page, false),
            ("/board/mma/stream", HeaderSet::Page, true),
            ("/nothing", HeaderSet::Page, false),
        ] {
            assert_eq!(traits(path), PathTraits { headers, is_stream }, "{path}");
        }
    }
}
