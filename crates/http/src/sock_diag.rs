//! Queries the kernel for the reason why a connection waits, which no socket option reports: netlink's `sock_diag`,
//! which `ss` uses, too.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use tokio::net::TcpStream;

/// Lengths and kinds of messages (`linux/netlink.h`, `linux/inet_diag.h`).
const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
const BY_FAMILY: u16 = 20;
const IS_REQUEST: u16 = 1;
const IPV4: u8 = 2;
const IPV6: u8 = 10;
const TCP: u8 = 6;
/// Positions of the kind and of the running timer in an answer.
const KIND_AT: usize = 4;
const TIMER_AT: usize = HEADER_BYTES + 2;
/// The timer that probes a closed window.
const WINDOW_TIMER: u8 = 4;

/// Queries about the connections of this process.
#[derive(Debug)]
pub(crate) struct SockDiag(OwnedFd);

impl SockDiag {
    pub(crate) fn open() -> io::Result<Self> {
        let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        let protocol = Some(netlink::SOCK_DIAG);
        Ok(Self(socket_with(family, SocketType::DGRAM, flags, protocol)?))
    }

    /// True if written bytes wait for the client to make room: everything sent is acknowledged, and its window is
    /// closed.
    pub(crate) fn waits_for_window(&self, stream: &TcpStream) -> io::Result<bool> {
        let question = question(stream.local_addr()?, stream.peer_addr()?);
        send(&self.0, &question, SendFlags::empty())?;
        let mut answer = [0; 1024];
        // It is available as soon as the question was sent.
        let (_, bytes) = recv(&self.0, &mut answer, RecvFlags::DONTWAIT)?;
        let kind = answer.get(KIND_AT..).and_then(<[u8]>::first_chunk).copied();
        if kind.map(u16::from_ne_bytes) != Some(BY_FAMILY) || bytes <= TIMER_AT {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(answer.get(TIMER_AT) == Some(&WINDOW_TIMER))
    }
}

fn question(local: SocketAddr, peer: SocketAddr) -> Vec<u8> {
    let mut question = Vec::with_capacity(REQUEST_BYTES);
    let length = u32::try_from(REQUEST_BYTES).unwrap_or(u32::MAX);
    question.extend(length.to_ne_bytes());
    question.extend(BY_FAMILY.to_ne_bytes());
    question.extend(IS_REQUEST.to_ne_bytes());
    // No sequence number, and from any port.
    question.extend([0; 8]);
    let (family, scope) = match local {
        SocketAddr::V4(_) => (IPV4, 0),
        SocketAddr::V6(local) => (IPV6, local.scope_id()),
    };
    question.extend([family, TCP, 0, 0]);
    // In any state.
    question.extend(u32::MAX.to_ne_bytes());
    question.extend(local.port().to_be_bytes());
    question.extend(peer.port().to_be_bytes());
    question.extend(address(local.ip()));
    question.extend(address(peer.ip()));
    question.extend(scope.to_ne_bytes());
    // Any connection with these addresses.
    question.extend([u8::MAX; 8]);
    question
}

fn address(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        }
        IpAddr::V6(ip) => ip.octets(),
    }
}
