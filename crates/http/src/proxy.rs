//! The client of a request that comes through a proxy.
//!
//! One header is trusted, and only as far as addresses that the operator named have written it: everything left of the
//! first unknown address is that address's claim. Used for throttles, places on the board and logs; never for the
//! rights of a key.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use ipnet::IpNet;

use crate::request::PageHeaders;

/// Maximum number of proxies in a row.
const HOPS_MAX: usize = 16;

/// An address, or a network such as `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

/// The text is neither an address nor a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotANetwork;

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let address = text.split('/').next().unwrap_or_default();
        // `IpNet` alone would accept leading zeros.
        let address: IpAddr = address.parse().map_err(|_| NotANetwork)?;
        let network = if text.contains('/') { text.parse().ok() } else { Some(address.into()) };
        network.map(Self).ok_or(NotANetwork)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The header in which a proxy names its client. Only one of them is trusted: a proxy that writes one passes the other
/// on as the client sent it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyHeader {
    #[default]
    XForwardedFor,
    /// RFC 7239.
    Forwarded,
}

/// The proxies in front of the service.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    /// Trusted addresses; none by default.
    pub trusted: Vec<Network>,
    pub header: ProxyHeader,
}

impl Proxies {
    /// The client of a request: the last sender in the list that is not a trusted proxy.
    pub fn client(&self, peer: Option<IpAddr>, page: &PageHeaders<'_>) -> Option<IpAddr> {
        let mut client = peer?.to_canonical();
        if !self.trusts(client) {
            return Some(client);
        }
        let value = match self.header {
            ProxyHeader::XForwardedFor => page.forwarded_for.as_deref(),
            ProxyHeader::Forwarded => page.forwarded.as_deref(),
        };
        let value = value.and_then(|value| std::str::from_utf8(value).ok()).unwrap_or_default();
        // Each proxy appends the address of its client.
        let hops = value.rsplit(',').map(str::trim).filter(|hop| !hop.is_empty());
        for hop in hops.take(HOPS_MAX) {
            let sender = match self.header {
                ProxyHeader::XForwardedFor => read_node(hop),
                ProxyHeader::Forwarded => read_element(hop),
            };
            // The sender is not named with an address: only its successor is known.
            let Some(sender) = sender else { break };
            client = sender;
            if !self.trusts(client) {
                break;
            }
        }
        Some(client)
    }

    /// True if an address is one of these proxies.
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.0.contains(&address))
    }
}

/// The `for` of one element of `Forwarded`.
fn read_element(element: &str) -> Option<IpAddr> {
    let mut senders = element.split(';').filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        name.eq_ignore_ascii_case("for").then_some(value)
    });
    let sender = senders.next()?;
    if senders.next().is_some() {
        return None;
    }
    let plain = sender.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(sender);
    read_node(plain)
}

/// An address, with or without a port; an IPv6 address with a port has brackets.
fn read_node(text: &str) -> Option<IpAddr> {
    let bare = || text.parse::<IpAddr>().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let bracketed = || {
        let inner = text.strip_prefix('[')?.strip_suffix(']')?;
        inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
    };
    bare().or_else(with_port).or_else(bracketed).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::net::Ipv4Addr;

    use super::*;

    fn proxies(header: ProxyHeader) -> Proxies {
        let trusted = ["127.0.0.1", "10.0.0.0/8", "2001:db8:1::/48"];
        Proxies { trusted: trusted.map(|text| text.parse().unwrap()).to_vec(), header }
    }

    fn client(header: ProxyHeader, peer: &str, value: &str) -> String {
        let value = Some(Cow::Borrowed(value.as_bytes()));
        let browser = match header {
            ProxyHeader::XForwardedFor => {
                PageHeaders { forwarded_for: value, ..PageHeaders::default() }
            }
            ProxyHeader::Forwarded => PageHeaders { forwarded: value, ..PageHeaders::default() },
        };
        let client = proxies(header).client(Some(peer.parse().unwrap()), &browser);
        client.unwrap().to_string()
    }

    #[test]
    fn networks_hold_what_begins_alike() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("192.0.2.128/25", "192.0.2.200", "192.0.2.127"),
            ("0.0.0.0/0", "203.0.113.9", "::1"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"),
            ("::1", "::1", "127.0.0.1"),
        ] {
            let network: Network = network.parse().unwrap();
            assert!(network.0.contains(&inside.parse::<IpAddr>().unwrap()), "{network} {inside}");
            assert!(
                !network.0.contains(&outside.parse::<IpAddr>().unwrap()),
                "{network} {outside}"
            );
        }
        for bad in [
            "",
            "10.0.0.0/33",
            "010.0.0.0/8",
            "::/129",
            "10.0.0.0/+8",
            "10.0.0.0/",
            "proxy",
            "1.2.3.4:80",
        ] {
            assert_eq!(bad.parse::<Network>(), Err(NotANetwork), "{bad}");
        }
    }

    #[test]
    fn the_last_sender_who_is_no_proxy_of_ours_is_the_client() {
        let of = |peer, value| client(ProxyHeader::XForwardedFor, peer, value);
        assert_eq!(of("127.0.0.1", "203.0.113.9"), "203.0.113.9");
        assert_eq!(of("127.0.0.1", "203.0.113.9, 10.1.2.3"), "203.0.113.9");
        assert_eq!(of("::ffff:10.0.0.1", "203.0.113.9:4711"), "203.0.113.9");
        assert_eq!(of("2001:db8:1::1", "[2001:db8:9::7]:4711"), "2001:db8:9::7");
        // A client's claims about earlier senders are not trusted.
        assert_eq!(of("127.0.0.1", "198.51.100.1, 203.0.113.9"), "203.0.113.9");
        assert_eq!(of("127.0.0.1", "10.9.9.9, 203.0.113.9, 10.1.2.3"), "203.0.113.9");
        // No other address is trusted.
        assert_eq!(of("203.0.113.9", "198.51.100.1"), "203.0.113.9");
        // Requests that start at a trusted proxy are its own.
        assert_eq!(of("127.0.0.1", "10.1.2.3"), "10.1.2.3");
        assert_eq!(of("127.0.0.1", ""), "127.0.0.1");
    }

    #[test]
    fn what_is_no_address_ends_the_row_where_it_stands() {
        let of = |value: &str| client(ProxyHeader::XForwardedFor, "127.0.0.1", value);
        for value in
            ["unknown", "203.0.113.9, unknown", "_hidden", "localhost", "1.2.3", "::1%eth0"]
        {
            assert_eq!(of(value), "127.0.0.1", "{value}");
        }
        assert_eq!(of("203.0.113.9, unknown, 10.1.2.3"), "10.1.2.3");
        assert_eq!(of(" , ,203.0.113.9 ,, "), "203.0.113.9");
        let long = format!("203.0.113.9{}", ", 10.0.0.1".repeat(1000));
        assert_eq!(of(&long), "10.0.0.1");
    }

    #[test]
    fn the_standard_header_is_read_where_it_is_the_one() {
        let of = |value| client(ProxyHeader::Forwarded, "127.0.0.1", value);
        assert_eq!(of("for=203.0.113.9;proto=https;by=10.0.0.1"), "203.0.113.9");
        assert_eq!(of("proto=https; For=\"[2001:db8:9::7]:4711\""), "2001:db8:9::7");
        assert_eq!(of("for=198.51.100.1, for=203.0.113.9, for=10.1.2.3"), "203.0.113.9");
        for value in
            ["for=unknown", "for=_x", "proto=https", "for=1.2.3.4;for=5.6.7.8", "for=\"1.2.3.4"]
        {
            assert_eq!(of(value), "127.0.0.1", "{value}");
        }
        // The other header is under the control of the client.
        let sent = Some(Cow::Borrowed(&b"203.0.113.9"[..]));
        let browser = PageHeaders { forwarded_for: sent, ..PageHeaders::default() };
        let peer = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        assert_eq!(proxies(ProxyHeader::Forwarded).client(peer, &browser), peer);
        assert_eq!(Proxies::default().client(peer, &browser), peer);
    }
}
