//! HTTP, independent of the content served: connections, heads and bodies, timeouts, encodings, limits on connections,
//! and refusals before any service is called.
//!
//! HTTP/1.1 is the hot path and our own code (`fast_path`); HTTP/2 is hyper's (`http2`). Both end in the same
//! [`Service`].

mod byte_source;
mod date;
mod encoding;
mod fast_path;
mod http2;
mod listener;
mod load_shedding;
mod not_ready;
mod peer;
pub mod percent;
mod proxy;
mod range;
mod reply;
mod request;
mod request_id;
mod sendfile;
mod server;
mod service;
mod shared_socket;
mod slots;
mod sock_diag;
mod timeout;
mod unread;
mod vanished;
pub mod websocket;

pub use byte_source::{ByteSource, SourceBody};
pub use date::http_date;
pub use encoding::Encoding;
pub use listener::{Listener, Tls, run};
pub use load_shedding::LoadShedding;
pub use not_ready::{NotReady, answer_until};
pub use peer::Peer;
pub use proxy::{Network, NotANetwork, Proxies, ProxyHeader};
pub use range::Ranged;
pub use reply::{Body, BodyStream, Head, Line, LongBody, Reply, StreamBody};
pub use request::{
    AgentHeaders, BoxedHeaders, FAULT_HEADER, HEAD_BYTES_MAX, HEADERS_MAX, HeaderSet, Method,
    PageHeaders, PathTraits, Request, SingleHeader, TARGET_BYTES_MAX, WebSocketHeaders, cut, parts,
};
pub use request_id::{RequestId, RequestIds};
pub use sendfile::{BodyFile, FILE_BODY_BYTES_MIN, FileBody};
pub use server::{Counters, Server, ServerSettings};
pub use service::{Answering, ConnectionState, Refusal, RequestBody, Service};
pub use shared_socket::DirectSocket;
pub use slots::{Slot, SlotLimits, Slots};
