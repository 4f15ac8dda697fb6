//! HTTP: the v1 API, the push door, the docs, the dashboard, health and metrics; and the running worlds behind them.

mod answers;
mod app;
mod dashboard;
mod date;
mod docs;
mod encoding;
mod error;
mod http2;
mod ingest;
mod lane;
mod ledger;
mod metrics;
mod not_ready;
mod openapi;
mod ops;
mod patience;
mod peer;
mod percent;
mod places;
mod pressure;
mod proxy;
mod reply;
mod request;
mod request_id;
mod server;
mod service;
mod spool;
mod unread;
mod v1;
mod world;

pub use app::{App, Parts, Settings};
pub use dashboard::{
    DashboardSettings, RouteView, Who, keep_pages, operation_words, routes as dashboard_routes,
};
pub use date::http_date;
pub use error::ErrorCode;
pub use ingest::PushLimits;
pub use not_ready::wait_at;
pub use openapi::document as openapi_document;
pub use proxy::{Network, NotANetwork, Proxies, ProxyHeader};
pub use server::{Door, Tls, run};
pub use service::Doors;
pub use v1::{WIRES, check_target};
pub use world::{
    AloneError, Base, EventView, Identities, Logged, Membership, Node, OperateError, Published,
    RefView, Replay, Seat, WorldError, WorldHandle, WorldOptions, Writer, keep_desk, operate_alone,
    operate_from_afar, replay_book,
};
