//! Account security: password, sessions, second factor, and the account's own audit log.
use accounts::{Attempt, EmailAddress, Password, PasswordFault};
use askama::Template;
use http::Reply;

use crate::dashboard::page::{self, Notice, Shell};
use crate::dashboard::page_error::PageError;
use crate::dashboard::page_request::PageRequest;
use crate::dashboard::qr::Qr;
use crate::dashboard::route::SecurityAct;
use crate::dashboard::sign;
use crate::dashboard::time_text::TimeText;

/// Maximum number of audit log entries on the page.
const OWN_LOG_MAX: usize = 15;

struct SessionLine {
    id: String,
    browser: String,
    agent: String,
    address: String,
    started: TimeText,
    seen: TimeText,
    current: bool,
}

struct LogLine {
    at: TimeText,
    action: String,
    subject: String,
    address: String,
}

#[derive(Template)]
#[template(path = "security.html")]
struct SecurityPage {
    shell: Shell,
    name: String,
    email: String,
    second_factor: bool,
    recovery_left: i64,
    sessions: Vec<SessionLine>,
    log: Vec<LogLine>,
}

#[derive(Template)]
#[template(path = "second_factor.html")]
struct SecondFactorPage {
    shell: Shell,
    secret: String,
    uri: String,
    qr: Option<Qr>,
}

#[derive(Template)]
#[template(path = "recovery.html")]
struct RecoveryPage {
    shell: Shell,
    codes: Vec<String>,
}

pub(crate) async fn answer(
    page_request: &PageRequest<'_>,
    page: SecurityAct,
) -> Result<Reply, PageError> {
    let people = &page_request.web.people;
    match page {
        SecurityAct::ChangePassword => change_password(page_request).await,
        SecurityAct::EndSession => {
            let session = page_request.session()?;
            if !people.end_session(session, page_request.id, &page_request.origin).await? {
                return Err(PageError::NotFound);
            }
            Ok(page::redirect("/dashboard/security?done=session-ended"))
        }
        SecurityAct::EndSessions => {
            people.end_sessions(page_request.session()?, &page_request.origin).await?;
            Ok(page_request.without_session(page::redirect("/signin?done=signed-out")))
        }
        SecurityAct::SecondFactorForm => second_factor_page(page_request, None).await,
        SecurityAct::SecondFactorOn => second_factor_on(page_request).await,
        SecurityAct::SecondFactorOff => {
            let code = page_request.form.get("code");
            match people
                .disable_second_factor(page_request.session()?, code, &page_request.origin)
                .await?
            {
                Attempt::Done => Ok(page::redirect("/dashboard/security?done=factor-off")),
                attempt @ (Attempt::Refused | Attempt::Throttled { .. } | Attempt::Busy) => {
                    let notice = sign::notice(attempt, "The code is wrong or was already used.");
                    show(page_request, Some((sign::status(attempt), notice))).await
                }
            }
        }
        SecurityAct::Security => show(page_request, None).await,
    }
}

async fn show(
    page_request: &PageRequest<'_>,
    not: Option<(u16, Notice)>,
) -> Result<Reply, PageError> {
    let (people, session) = (&page_request.web.people, page_request.session()?);
    let (status, notice) = not.map_or((200, None), |(status, notice)| (status, Some(notice)));
    let sessions = people.sessions(session).await?.into_iter().map(|row| SessionLine {
        id: row.id,
        browser: browser_name(&row.agent),
        agent: row.agent,
        address: row.address,
        started: TimeText::new(row.created_at, page_request.now),
        seen: TimeText::new(row.seen_at, page_request.now),
        current: row.current,
    });
    let log = people.audit(Some(&session.account.id), None).await?;
    let log = log.into_iter().take(OWN_LOG_MAX).map(|row| LogLine {
        at: TimeText::new(row.at, page_request.now),
        action: row.action,
        subject: row.subject,
        address: row.address,
    });
    let page = SecurityPage {
        shell: Shell::new(page_request, "Security", "security").with(notice),
        name: session.account.name.clone(),
        email: session.account.email.clone(),
        second_factor: session.account.second_factor,
        recovery_left: people.recovery_codes_left(session).await?,
        sessions: sessions.collect(),
        log: log.collect(),
    };
    page::render(status, &page)
}

/// Common name of a browser for a user agent: `Firefox on Windows`.
fn browser_name(agent: &str) -> String {
    // The order matters: most browsers name the others too.
    const BROWSERS: [(&str, &str); 6] = [
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
        ("curl/", "curl"),
    ];
    const SYSTEMS: [(&str, &str); 6] = [
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS", "macOS"),
        ("Linux", "Linux"),
    ];
    let known = |list: &[(&str, &'static str)]| {
        list.iter().find(|(sign, _)| agent.contains(sign)).map(|(_, name)| *name)
    };
    match (known(&BROWSERS), known(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(only), None) | (None, Some(only)) => only.to_owned(),
        (None, None) if agent.is_empty() => "unknown".to_owned(),
        (None, None) => agent.chars().take(40).collect(),
    }
}

async fn change_password(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let (people, session) = (&page_request.web.people, page_request.session()?);
    let old = Password::typed(page_request.form.get("old").to_owned());
    let chosen = EmailAddress::parse(&session.account.email)
        .ok_or("The account's address cannot be read.")
        .and_then(|email| {
            let password = page_request.form.get("password").to_owned();
            let password = Password::choose(password, &email).map_err(PasswordFault::message)?;
            Ok((email, password))
        });
    let (old, (email, new)) = match (old, chosen) {
        (Some(old), Ok(chosen)) => (old, chosen),
        (None, _) => {
            return show(page_request, Some((403, Notice::bad("The old password is wrong."))))
                .await;
        }
        (_, Err(text)) => return show(page_request, Some((400, Notice::bad(text)))).await,
    };
    match people
        .change_password(session, &page_request.token, (old, new), &page_request.origin)
        .await?
    {
        // The new password invalidated the device cookie.
        Attempt::Done => {
            let done = page::redirect("/dashboard/security?done=password-changed");
            page_request.with_device(done, &email).await
        }
        attempt @ (Attempt::Refused | Attempt::Throttled { .. } | Attempt::Busy) => {
            let notice = sign::notice(attempt, "The old password is wrong.");
            show(page_request, Some((sign::status(attempt), notice))).await
        }
    }
}

async fn second_factor_page(
    page_request: &PageRequest<'_>,
    not: Option<(u16, Notice)>,
) -> Result<Reply, PageError> {
    let session = page_request.session()?;
    let Some(secret) = page_request.web.people.offer_second_factor(session).await? else {
        return Ok(page::redirect("/dashboard/security"));
    };
    let (status, notice) = not.map_or((200, None), |(status, notice)| (status, Some(notice)));
    let plain = secret.expose();
    let groups: Vec<String> =
        plain.as_bytes().chunks(4).map(|group| group.escape_ascii().to_string()).collect();
    let uri = secret.expose_uri("Linesman", &session.account.email);
    let page = SecondFactorPage {
        shell: Shell::new(page_request, "Two-factor authentication", "security").with(notice),
        secret: groups.join(" "),
        qr: Qr::new(&uri),
        uri,
    };
    page::render(status, &page)
}

async fn second_factor_on(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let (people, code) = (&page_request.web.people, page_request.form.get("code"));
    match people.confirm_second_factor(page_request.session()?, code, &page_request.origin).await? {
        Ok(codes) => {
            let page = RecoveryPage {
                shell: Shell::new(page_request, "Recovery codes", "security")
                    .with(Some(Notice::good("Two-factor authentication is on."))),
                codes: codes.iter().map(accounts::RecoveryCode::expose).collect(),
            };
            page::render(200, &page)
        }
        Err(attempt) => {
            let notice = sign::notice(
                attempt,
                "The code is wrong. Check the phone's clock and try the next one.",
            );
            second_factor_page(page_request, Some((sign::status(attempt), notice))).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_has_the_name_that_people_give_it() {
        for (agent, name) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
                "Chrome on Linux",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile Safari/604.1",
                "Safari on iPhone",
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:140.0) Gecko/20100101 Firefox/140.0",
                "Firefox on macOS",
            ),
            ("curl/8.5.0", "curl"),
            ("", "unknown"),
        ] {
            assert_eq!(browser_name(agent), name);
        }
    }
}
