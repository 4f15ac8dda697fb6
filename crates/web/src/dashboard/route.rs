//! Table of all pages: path, method and required role. The security tests iterate over this table, so that no page can
//! be forgotten.

use crate::dashboard::page_error::PageError;
use http::Method;

/// Required role for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Anyone,
    /// The password was correct and the second factor is still missing.
    HalfSignedIn,
    /// Any signed-in account.
    Developer,
    Operator,
}

/// Target of a route, grouped by the module that handles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    Status(StatusAct),
    Board(BoardAct),
    Sign(SignAct),
    Keys(KeysAct),
    Access(AccessAct),
    Usage,
    Explore(ExploreAct),
    Security(SecurityAct),
    Console(ConsoleAct),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusAct {
    Status,
    StatusJson,
    StatusFeed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignAct {
    SignInForm,
    SignIn,
    CodeForm,
    Code,
    SignUpForm,
    SignUp,
    SignOut,
    LinkForm,
    Link,
    ForgotForm,
    Forgot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeysAct {
    Keys,
    CreateKey,
    Key,
    RotateKey,
    RevokeKeyForm,
    RevokeKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessAct {
    Access,
    RequestAccess,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExploreAct {
    Explore,
    Run,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecurityAct {
    Security,
    ChangePassword,
    EndSession,
    EndSessions,
    SecondFactorForm,
    SecondFactorOn,
    SecondFactorOff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConsoleAct {
    Console,
    People(PeopleAct),
    Requests,
    ApproveRequest,
    RefuseRequest,
    AllKeys,
    CreateAnyKey,
    RevokeAnyKeyForm,
    RevokeAnyKey,
    StreamsOfKeyForm,
    StreamsOfKey,
    Feeds,
    CreateFeed,
    Feed,
    RevokeFeed,
    PauseFeed,
    ResumeFeed,
    ReadAdapter,
    Market(MarketAct),
    Audit,
    Maintenance,
}

/// Operator actions on accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeopleAct {
    Accounts,
    Account,
    Invite,
    Limit,
    Suspend,
    Resume,
    Reset,
}

/// Operator actions on events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarketAct {
    Events,
    Event,
    Unsure,
    Merge,
    Part,
    Split,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoardAct {
    Front,
    Board,
    Stream,
    Event,
    EventStream,
    Value,
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) method: Method,
    /// `{id}` matches one segment.
    pub(crate) path: &'static str,
    pub(crate) who: Who,
    pub(crate) page: Page,
}

const fn get(path: &'static str, who: Who, page: Page) -> Route {
    Route { method: Method::Get, path, who, page }
}

const fn post(path: &'static str, who: Who, page: Page) -> Route {
    Route { method: Method::Post, path, who, page }
}

static ROUTES: &[Route] = &[
    get("/status", Who::Anyone, Page::Status(StatusAct::Status)),
    get("/status.json", Who::Anyone, Page::Status(StatusAct::StatusJson)),
    get("/status.atom", Who::Anyone, Page::Status(StatusAct::StatusFeed)),
    get("/board", Who::Anyone, Page::Board(BoardAct::Front)),
    get("/board/{id}", Who::Anyone, Page::Board(BoardAct::Board)),
    get("/board/event/{id}", Who::Anyone, Page::Board(BoardAct::Event)),
    get("/board/event/{id}/stream", Who::Anyone, Page::Board(BoardAct::EventStream)),
    get("/board/{id}/value", Who::Anyone, Page::Board(BoardAct::Value)),
    get("/board/{id}/stream", Who::Anyone, Page::Board(BoardAct::Stream)),
    get("/signin", Who::Anyone, Page::Sign(SignAct::SignInForm)),
    post("/signin", Who::Anyone, Page::Sign(SignAct::SignIn)),
    get("/signin/code", Who::HalfSignedIn, Page::Sign(SignAct::CodeForm)),
    post("/signin/code", Who::HalfSignedIn, Page::Sign(SignAct::Code)),
    get("/signup", Who::Anyone, Page::Sign(SignAct::SignUpForm)),
    post("/signup", Who::Anyone, Page::Sign(SignAct::SignUp)),
    post("/signout", Who::Anyone, Page::Sign(SignAct::SignOut)),
    get("/link/{id}", Who::Anyone, Page::Sign(SignAct::LinkForm)),
    post("/link/{id}", Who::Anyone, Page::Sign(SignAct::Link)),
    get("/forgot", Who::Anyone, Page::Sign(SignAct::ForgotForm)),
    post("/forgot", Who::Anyone, Page::Sign(SignAct::Forgot)),
    get("/dashboard", Who::Developer, Page::Keys(KeysAct::Keys)),
    post("/dashboard/keys", Who::Developer, Page::Keys(KeysAct::CreateKey)),
    get("/dashboard/keys/{id}", Who::Developer, Page::Keys(KeysAct::Key)),
    post("/dashboard/keys/{id}/rotate", Who::Developer, Page::Keys(KeysAct::RotateKey)),
    get("/dashboard/keys/{id}/revoke", Who::Developer, Page::Keys(KeysAct::RevokeKeyForm)),
    post("/dashboard/keys/{id}/revoke", Who::Developer, Page::Keys(KeysAct::RevokeKey)),
    get("/dashboard/access", Who::Developer, Page::Access(AccessAct::Access)),
    post("/dashboard/access", Who::Developer, Page::Access(AccessAct::RequestAccess)),
    get("/dashboard/usage", Who::Developer, Page::Usage),
    get("/dashboard/explore", Who::Developer, Page::Explore(ExploreAct::Explore)),
    post("/dashboard/explore", Who::Developer, Page::Explore(ExploreAct::Run)),
    get("/dashboard/security", Who::Developer, Page::Security(SecurityAct::Security)),
    post(
        "/dashboard/security/password",
        Who::Developer,
        Page::Security(SecurityAct::ChangePassword),
    ),
    post(
        "/dashboard/security/sessions/{id}/end",
        Who::Developer,
        Page::Security(SecurityAct::EndSession),
    ),
    post("/dashboard/security/sessions", Who::Developer, Page::Security(SecurityAct::EndSessions)),
    get(
        "/dashboard/security/second-factor",
        Who::Developer,
        Page::Security(SecurityAct::SecondFactorForm),
    ),
    post(
        "/dashboard/security/second-factor",
        Who::Developer,
        Page::Security(SecurityAct::SecondFactorOn),
    ),
    post(
        "/dashboard/security/second-factor/off",
        Who::Developer,
        Page::Security(SecurityAct::SecondFactorOff),
    ),
    get("/console", Who::Operator, Page::Console(ConsoleAct::Console)),
    get("/console/accounts", Who::Operator, Page::Console(ConsoleAct::People(PeopleAct::Accounts))),
    post(
        "/console/accounts/invite",
        Who::Operator,
        Page::Console(ConsoleAct::People(PeopleAct::Invite)),
    ),
    post(
        "/console/accounts/{id}/suspend",
        Who::Operator,
        Page::Console(ConsoleAct::People(PeopleAct::Suspend)),
    ),
    post(
        "/console/accounts/{id}/resume",
        Who::Operator,
        Page::Console(ConsoleAct::People(PeopleAct::Resume)),
    ),
    post(
        "/console/accounts/{id}/reset",
        Who::Operator,
        Page::Console(ConsoleAct::People(PeopleAct::Reset)),
    ),
    get(
        "/console/accounts/{id}",
        Who::Operator,
        Page::Console(ConsoleAct::People(PeopleAct::Account)),
    ),
    post(
        "/console/accounts/{id}/limits",
        Who::Operator,
        Page::Console(ConsoleAct::People(PeopleAct::Limit)),
    ),
    get("/console/requests", Who::Operator, Page::Console(ConsoleAct::Requests)),
    post(
        "/console/requests/{id}/approve",
        Who::Operator,
        Page::Console(ConsoleAct::ApproveRequest),
    ),
    post("/console/requests/{id}/refuse", Who::Operator, Page::Console(ConsoleAct::RefuseRequest)),
    get("/console/keys", Who::Operator, Page::Console(ConsoleAct::AllKeys)),
    post("/console/keys", Who::Operator, Page::Console(ConsoleAct::CreateAnyKey)),
    get("/console/keys/{id}/revoke", Who::Operator, Page::Console(ConsoleAct::RevokeAnyKeyForm)),
    post("/console/keys/{id}/revoke", Who::Operator, Page::Console(ConsoleAct::RevokeAnyKey)),
    get("/console/keys/{id}/streams", Who::Operator, Page::Console(ConsoleAct::StreamsOfKeyForm)),
    post("/console/keys/{id}/streams", Who::Operator, Page::Console(ConsoleAct::StreamsOfKey)),
    get("/console/feeds", Who::Operator, Page::Console(ConsoleAct::Feeds)),
    post("/console/feeds", Who::Operator, Page::Console(ConsoleAct::CreateFeed)),
    post("/console/feeds/{id}/revoke", Who::Operator, Page::Console(ConsoleAct::RevokeFeed)),
    get("/console/feeds/{id}", Who::Operator, Page::Console(ConsoleAct::Feed)),
    post("/console/feeds/{id}/pause", Who::Operator, Page::Console(ConsoleAct::PauseFeed)),
    post("/console/feeds/{id}/resume", Who::Operator, Page::Console(ConsoleAct::ResumeFeed)),
    post("/console/feeds/{id}/read", Who::Operator, Page::Console(ConsoleAct::ReadAdapter)),
    get("/console/events", Who::Operator, Page::Console(ConsoleAct::Market(MarketAct::Events))),
    get("/console/events/{id}", Who::Operator, Page::Console(ConsoleAct::Market(MarketAct::Event))),
    get("/console/unsure", Who::Operator, Page::Console(ConsoleAct::Market(MarketAct::Unsure))),
    post(
        "/console/events/merge",
        Who::Operator,
        Page::Console(ConsoleAct::Market(MarketAct::Merge)),
    ),
    post(
        "/console/events/apart",
        Who::Operator,
        Page::Console(ConsoleAct::Market(MarketAct::Part)),
    ),
    post(
        "/console/events/{id}/split",
        Who::Operator,
        Page::Console(ConsoleAct::Market(MarketAct::Split)),
    ),
    get("/console/audit", Who::Operator, Page::Console(ConsoleAct::Audit)),
    post("/console/maintenance", Who::Operator, Page::Console(ConsoleAct::Maintenance)),
];

/// First segments of the pages' paths.
const OURS: [&str; 12] = [
    "board",
    "status",
    "status.json",
    "status.atom",
    "signin",
    "signup",
    "signout",
    "link",
    "forgot",
    "dashboard",
    "console",
    "assets",
];

/// A route, for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteView {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// `{id}` matches one segment.
    pub path: &'static str,
    pub who: Who,
}

/// All pages.
pub fn routes() -> impl Iterator<Item = RouteView> {
    ROUTES.iter().map(|route| RouteView {
        method: if route.method == Method::Post { "POST" } else { "GET" },
        path: route.path,
        who: route.who,
    })
}

/// True if the path belongs to the pages, even if no page exists there.
pub(crate) fn is_ours(path: &str) -> bool {
    let first = path.strip_prefix('/').and_then(|rest| rest.split('/').next());
    first.is_some_and(|first| OURS.contains(&first))
}

/// Methods of a page that only reads.
pub(crate) const READS: &str = "GET, HEAD";

/// Finds the route for a path and the value of its `{id}`.
pub(crate) fn find(method: Method, path: &str) -> Result<(&'static Route, &str), PageError> {
    let (mut read, mut sent) = (false, false);
    for route in ROUTES {
        let Some(id) = capture(route.path, path) else {
            continue;
        };
        if route.method == method || (method == Method::Head && route.method == Method::Get) {
            return Ok((route, id));
        }
        if route.method == Method::Post {
            sent = true;
        } else {
            read = true;
        }
    }
    Err(match (read, sent) {
        (true, true) => PageError::WrongMethod { allow: "GET, HEAD, POST" },
        (true, false) => PageError::WrongMethod { allow: READS },
        (false, true) => PageError::WrongMethod { allow: "POST" },
        (false, false) => PageError::NotFound,
    })
}

/// True if a visitor may be redirected to this path after signing in: it is one of our pages and only reads.
pub(crate) fn is_destination(path: &str) -> bool {
    let signed_in = |who| matches!(who, Who::Developer | Who::Operator);
    find(Method::Get, path).is_ok_and(|(route, _)| signed_in(route.who))
}

/// Value of `{id}`, empty if the pattern has none. `None` if the path does not match.
fn capture<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let mut id = "";
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(id),
            (Some("{id}"), Some(part)) if !part.is_empty() => id = part,
            (Some(one), Some(other)) if one == other => {}
            (Some(_), _) | (None, Some(_)) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_its_page_and_names_what_it_is_about() {
        let (route, id) = find(Method::Post, "/dashboard/keys/key_1/rotate").unwrap();
        assert_eq!((route.page, id), (Page::Keys(KeysAct::RotateKey), "key_1"));
        assert_eq!(find(Method::Head, "/signin").unwrap().0.page, Page::Sign(SignAct::SignInForm));
        for nowhere in ["/dashboard/", "/dashboard/keys/", "/dashboard/keys//rotate", "/signin/x"] {
            assert!(matches!(find(Method::Get, nowhere), Err(PageError::NotFound)), "{nowhere}");
        }
    }

    #[test]
    fn a_path_that_takes_another_method_says_which() {
        for (method, path, expected) in [
            (Method::Get, "/signout", "POST"),
            (Method::Post, "/status", "GET, HEAD"),
            (Method::Other, "/signin", "GET, HEAD, POST"),
        ] {
            let Err(PageError::WrongMethod { allow }) = find(method, path) else {
                panic!("{path} takes it");
            };
            assert_eq!(allow, expected, "{path}");
        }
    }

    #[test]
    fn no_two_routes_are_the_same_and_all_are_ours() {
        for (n, route) in ROUTES.iter().enumerate() {
            assert!(is_ours(route.path), "{}", route.path);
            let same = |other: &Route| other.path == route.path && other.method == route.method;
            assert!(!ROUTES.iter().skip(n + 1).any(same), "{}", route.path);
        }
        assert!(!is_ours("/v1/status") && !is_ours("/docs") && !is_ours("/"));
    }

    #[test]
    fn nobody_is_sent_anywhere_but_to_a_page_of_ours() {
        assert!(is_destination("/dashboard/keys/key_1") && is_destination("/console/audit"));
        for bad in [
            "",
            "/",
            "//evil.example",
            "https://evil.example",
            "/signout",
            "/signin",
            "/dashboard/../x",
            "/\\evil.example",
            "/dashboard/keys/key_1/rotate",
            "/link/abc",
        ] {
            assert!(!is_destination(bad), "{bad}");
        }
    }
}
