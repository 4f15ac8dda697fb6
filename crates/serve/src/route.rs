//! Where a path leads: the one table that every request goes through. Pages have a table of their own in `web`.

use crate::service::{Doors, Service};

/// What answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    V1,
    Push,
    Page,
    Docs,
    OpenApi,
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
    doors: &'static [Doors],
}

const MAIN: &[Doors] = &[Doors::Main];
const OPERATOR: &[Doors] = &[Doors::Operator];
const ALL: &[Doors] = &[Doors::Main, Doors::Ingest, Doors::Operator];

const fn route(path: &'static str, target: Target, doors: &'static [Doors]) -> Route {
    Route { path, below: false, target, doors }
}

/// The most used first.
const ROUTES: [Route; 9] = [
    Route { path: "/v1", below: true, target: Target::V1, doors: MAIN },
    route(api::ingest::PATH, Target::Push, &[Doors::Main, Doors::Ingest]),
    route("/healthz", Target::Health, ALL),
    route("/readyz", Target::Ready, ALL),
    route("/metrics", Target::Metrics, OPERATOR),
    route("/feeds", Target::Feeds, OPERATOR),
    route("/openapi.json", Target::OpenApi, MAIN),
    route("/", Target::Docs, MAIN),
    Route { path: "/docs", below: true, target: Target::Docs, doors: MAIN },
];

impl Route {
    fn leads_from(&self, path: &str) -> bool {
        path.strip_prefix(self.path)
            .is_some_and(|rest| rest.is_empty() || (self.below && rest.starts_with('/')))
    }
}

/// What a path leads to at a listener; `None` where there is nothing.
#[inline]
pub(crate) fn find(service: &Service, doors: Doors, path: &str) -> Option<Target> {
    let found = ROUTES.iter().find(|route| route.leads_from(path) && route.doors.contains(&doors));
    match found.map(|route| route.target) {
        Some(Target::Push) if doors == Doors::Main && !service.ingest_on_main => None,
        Some(Target::Docs) if !service.web.settings.docs => None,
        None if doors == Doors::Main && web::covers(&service.web, path) => Some(Target::Page),
        found => found,
    }
}
