//! A request for a page: the session of its cookie, the check that forms come from our own pages, and the cookie of
//! the response.

use std::sync::Arc;

use accounts::{Actor, DeviceToken, EmailAddress, Origin, Role, Session, SessionToken, Stage};
use domain::Timestamp;

use crate::context::Web;
use crate::dashboard::form::Form;
use crate::dashboard::page_error::{Addresses, PageError};
use crate::dashboard::quota_note::{self, QuotaNote};
use http::{Peer, Reply, Request};

/// Name of the session cookie; over TLS with the prefix that binds it to this host and to TLS.
const COOKIE: &str = "linesman_session";
const COOKIE_TLS: &str = "__Host-linesman_session";
/// Name of the cookie that identifies a browser after a successful sign-in.
const DEVICE: &str = "linesman_device";
const DEVICE_TLS: &str = "__Host-linesman_device";
/// Lifetime of the device cookie since its last use: half a year.
const DEVICE_S: u32 = 180 * 86_400;

/// Maximum number of characters shown of an origin.
const ORIGIN_CHARS_MAX: usize = 200;

/// A request for a page, with the visitor's session.
#[derive(Debug)]
pub(crate) struct PageRequest<'a> {
    pub(crate) web: &'a Arc<Web>,
    pub(crate) request: &'a Request<'a>,
    pub(crate) form: Form,
    pub(crate) query: Form,
    /// Value of `{id}` in the route.
    pub(crate) id: &'a str,
    /// The browser's token: of a session, or of no session, in which case it only binds forms to the browser.
    pub(crate) token: SessionToken,
    pub(crate) session: Option<Session>,
    pub(crate) origin: Origin,
    pub(crate) now: Timestamp,
    /// The visitor's keys whose quota runs low, the fullest first.
    pub(crate) alerts: Vec<QuotaNote>,
    secure: bool,
    /// True if the browser has no token yet.
    is_new: bool,
}

impl<'a> PageRequest<'a> {
    pub(crate) async fn begin(
        web: &'a Arc<Web>,
        request: &'a Request<'a>,
        form: Form,
    ) -> Result<Self, PageError> {
        let peer = Peer::current();
        let public = web.settings.public_url.as_deref();
        let secure = public.map_or(peer.encrypted, |url| url.starts_with("https://"));
        let cookie = request.page.cookie.as_deref();
        let held = cookie.and_then(|cookie| read_cookie(cookie, cookie_name(secure)));
        let held = held.and_then(SessionToken::parse);
        let device = cookie.and_then(|cookie| read_cookie(cookie, device_name(secure)));
        let session = match &held {
            Some(token) => web.people.session(token).await?,
            None => None,
        };
        let is_new = held.is_none();
        let token = match held {
            Some(token) => token,
            None => SessionToken::generate()?,
        };
        let agent = request.agent.unwrap_or_default();
        Ok(Self {
            web,
            request,
            form,
            query: Form::parse(request.query.as_bytes()).unwrap_or_default(),
            id: "",
            token,
            session,
            origin: Origin {
                address: web.api.server.settings.proxies.client(peer.address, &request.page),
                agent: String::from_utf8_lossy(agent).into_owned(),
                device: device.and_then(DeviceToken::parse),
            },
            now: web.api.clock.now(),
            alerts: Vec::new(),
            secure,
            is_new,
        })
    }

    /// The session; present on all routes that require one.
    pub(crate) fn session(&self) -> Result<&Session, PageError> {
        self.session.as_ref().ok_or(PageError::Forbidden)
    }

    /// Reads which of the visitor's keys run low, for the banner. If the store fails, only the banner is missing; the
    /// page itself reports the failure.
    pub(crate) async fn look_at_quotas(&mut self) {
        let is_own_page = self.request.path.starts_with("/dashboard");
        let Some(session) = self.session.as_ref().filter(|session| session.stage == Stage::Full)
        else {
            return;
        };
        if is_own_page
            && let Ok(keys) = self.web.api.accounts.live_keys_of(&session.account.id).await
        {
            self.alerts = quota_note::notes(&keys, self.now);
        }
    }

    pub(crate) fn actor(&self) -> Result<Actor, PageError> {
        Ok(Actor::account(&self.session()?.account, &self.origin))
    }

    pub(crate) fn is_operator(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.account.role == Role::Operator)
    }

    /// Checks that a form was sent by a page of this service, as far as the browser reports it: `Sec-Fetch-Site`,
    /// which no page can set, and `Origin`. A client that sends neither is not a browser, so it cannot be used for a
    /// cross-site request.
    ///
    /// Behind a proxy that terminates TLS the origin differs from the address the service sees. Without `public_url`
    /// the browser's own comparison is then sufficient; a mismatch with `public_url` is always refused.
    ///
    /// # Errors
    /// The form was sent from another origin; if a setting may be the reason, it is named and logged.
    pub(crate) fn check_origin(&self) -> Result<(), PageError> {
        let browser = &self.request.page;
        let own = self.base();
        if browser.fetch_site.is_some_and(|site| site != b"same-origin") {
            return Err(PageError::Foreign(None));
        }
        let Some(origin) =
            browser.origin.filter(|origin| !origin.eq_ignore_ascii_case(own.as_bytes()))
        else {
            return Ok(());
        };
        let origin: String =
            String::from_utf8_lossy(origin).chars().take(ORIGIN_CHARS_MAX).collect();
        let compared = browser.fetch_site.is_some() && self.web.settings.public_url.is_none();
        if self.web.origin_warned.is_due(self.now) {
            tracing::warn!(
                event = "form.wrong_origin",
                browser = %origin.escape_debug(),
                service = %own,
                accepted = compared,
                "a form's origin differs from the address that this service assumes for itself: behind a proxy, set \
                 dashboard.public_url to the address in the browser and server.trusted_proxies to the proxy's address"
            );
        }
        if compared {
            Ok(())
        } else {
            Err(PageError::Foreign(Some(Addresses { browser: origin, service: own })))
        }
    }

    /// Origin of this service as the visitor sees it: `https://odds.example.com`.
    pub(crate) fn base(&self) -> String {
        if let Some(url) = &self.web.settings.public_url {
            return url.trim_end_matches('/').to_owned();
        }
        let host = self.request.host.unwrap_or(b"localhost");
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(byte);
        let host: Vec<u8> = host.iter().copied().filter(plain).take(255).collect();
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}", host.escape_ascii())
    }

    /// Sets the cookie of a new session.
    pub(crate) fn with_session(&self, mut reply: Reply, token: &SessionToken) -> Reply {
        let seconds = self.web.people.rules().session_max.as_secs();
        let name = cookie_name(self.secure);
        self.put_cookie(&mut reply, name, &token.expose(), &format!("; Max-Age={seconds}"));
        reply
    }

    /// Remembers the browser as one where the holder of this address signed in.
    pub(crate) async fn with_device(
        &self,
        mut reply: Reply,
        email: &EmailAddress,
    ) -> Result<Reply, PageError> {
        if let Some(device) = self.web.people.remember_device(email).await? {
            let name = device_name(self.secure);
            self.put_cookie(&mut reply, name, &device.expose(), &format!("; Max-Age={DEVICE_S}"));
        }
        Ok(reply)
    }

    /// Removes the session cookie.
    pub(crate) fn without_session(&self, mut reply: Reply) -> Reply {
        self.put_cookie(&mut reply, cookie_name(self.secure), "", "; Max-Age=0");
        reply
    }

    /// Adds the headers of every page.
    pub(crate) fn finish(&self, mut reply: Reply) -> Reply {
        // A browser without a token gets one with the first page, for the forms on it.
        let has_cookie = reply.head.iter().any(|(name, _)| name == b"set-cookie");
        let is_page = reply
            .head
            .iter()
            .any(|(name, value)| name == b"content-type" && value.starts_with(b"text/html"));
        // A cacheable page is the same for all visitors and has no forms.
        let is_own =
            reply.head.iter().any(|(name, value)| name == b"cache-control" && value == b"no-store");
        if self.is_new && is_page && is_own && !has_cookie {
            self.put_cookie(&mut reply, cookie_name(self.secure), &self.token.expose(), "");
        }
        if self.secure {
            reply.head.put("strict-transport-security", "max-age=31536000");
        }
        reply
    }

    fn put_cookie(&self, reply: &mut Reply, name: &str, value: &str, lasts: &str) {
        let secure = if self.secure { "; Secure" } else { "" };
        let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{lasts}");
        reply.head.put("set-cookie", cookie);
    }
}

const fn cookie_name(secure: bool) -> &'static str {
    if secure { COOKIE_TLS } else { COOKIE }
}

const fn device_name(secure: bool) -> &'static str {
    if secure { DEVICE_TLS } else { DEVICE }
}

fn read_cookie<'c>(header: &'c [u8], name: &str) -> Option<&'c [u8]> {
    header
        .split(|byte| *byte == b';')
        .find_map(|pair| pair.trim_ascii().strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_cookie_is_found_among_others_and_by_its_whole_name() {
        let token = SessionToken::generate().unwrap().expose();
        let found = |header: String| {
            read_cookie(header.as_bytes(), COOKIE).and_then(SessionToken::parse).is_some()
        };
        assert!(found(format!("a=b; {COOKIE}={token}")));
        assert!(found(format!("{COOKIE}={token};c=d")));
        assert!(!found(format!("x{COOKIE}={token}")));
        assert!(!found(format!("{COOKIE}x={token}")));
        assert!(!found(format!("{COOKIE}=short")));
        assert!(read_cookie(format!("{COOKIE}={token}").as_bytes(), COOKIE_TLS).is_none());
    }
}
