//! A person's own safety: password, sessions, second factor, and what was done in their name.
use accounts::{Attempt, EmailAddress, Password, PasswordFault};
use askama::Template;
use http::Reply;

use crate::dashboard::moment::Moment;
use crate::dashboard::page::{self, Notice, Shell, Trouble};
use crate::dashboard::qr::Qr;
use crate::dashboard::route::SecurityAct;
use crate::dashboard::sign;
use crate::dashboard::visit::Visit;

/// Entries of one's own log on the page.
const OWN_LOG_MAX: usize = 15;

struct SessionLine {
    id: String,
    browser: String,
    agent: String,
    address: String,
    started: Moment,
    seen: Moment,
    current: bool,
}

struct LogLine {
    at: Moment,
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

pub(crate) async fn answer(visit: &Visit<'_>, page: SecurityAct) -> Result<Reply, Trouble> {
    let people = &visit.web.people;
    match page {
        SecurityAct::ChangePassword => change_password(visit).await,
        SecurityAct::EndSession => {
            let session = visit.session()?;
            if !people.end_session(session, visit.id, &visit.origin).await? {
                return Err(Trouble::NotFound);
            }
            Ok(page::redirect("/dashboard/security?done=session-ended"))
        }
        SecurityAct::EndSessions => {
            people.end_sessions(visit.session()?, &visit.origin).await?;
            Ok(visit.without_session(page::redirect("/signin?done=signed-out")))
        }
        SecurityAct::SecondFactorForm => second_factor_page(visit, None).await,
        SecurityAct::SecondFactorOn => second_factor_on(visit).await,
        SecurityAct::SecondFactorOff => {
            let code = visit.form.get("code");
            match people.disable_second_factor(visit.session()?, code, &visit.origin).await? {
                Attempt::Done => Ok(page::redirect("/dashboard/security?done=factor-off")),
                attempt @ (Attempt::Refused | Attempt::Throttled { .. } | Attempt::Busy) => {
                    let notice =
                        sign::notice(attempt, "That code is not right, or was used already.");
                    show(visit, Some((sign::status(attempt), notice))).await
                }
            }
        }
        SecurityAct::Security => show(visit, None).await,
    }
}

async fn show(visit: &Visit<'_>, not: Option<(u16, Notice)>) -> Result<Reply, Trouble> {
    let (people, session) = (&visit.web.people, visit.session()?);
    let (status, notice) = not.map_or((200, None), |(status, notice)| (status, Some(notice)));
    let sessions = people.sessions(session).await?.into_iter().map(|row| SessionLine {
        id: row.id,
        browser: browser_name(&row.agent),
        agent: row.agent,
        address: row.address,
        started: Moment::new(row.created_at, visit.now),
        seen: Moment::new(row.seen_at, visit.now),
        current: row.current,
    });
    let log = people.audit(Some(&session.account.id), None).await?;
    let log = log.into_iter().take(OWN_LOG_MAX).map(|row| LogLine {
        at: Moment::new(row.at, visit.now),
        action: row.action,
        subject: row.subject,
        address: row.address,
    });
    let page = SecurityPage {
        shell: Shell::new(visit, "Security", "security").with(notice),
        name: session.account.name.clone(),
        email: session.account.email.clone(),
        second_factor: session.account.second_factor,
        recovery_left: people.recovery_codes_left(session).await?,
        sessions: sessions.collect(),
        log: log.collect(),
    };
    page::render(status, &page)
}

/// What people call the browser that calls itself so: `Firefox on Windows`.
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

async fn change_password(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let (people, session) = (&visit.web.people, visit.session()?);
    let old = Password::typed(visit.form.get("old").to_owned());
    let chosen = EmailAddress::parse(&session.account.email)
        .ok_or("The account's address cannot be read.")
        .and_then(|email| {
            let password = visit.form.get("password").to_owned();
            let password = Password::choose(password, &email).map_err(PasswordFault::message)?;
            Ok((email, password))
        });
    let (old, (email, new)) = match (old, chosen) {
        (Some(old), Ok(chosen)) => (old, chosen),
        (None, _) => {
            return show(visit, Some((403, Notice::bad("The old password is wrong.")))).await;
        }
        (_, Err(text)) => return show(visit, Some((400, Notice::bad(text)))).await,
    };
    match people.change_password(session, &visit.token, (old, new), &visit.origin).await? {
        // What the browser was known by went with the old password.
        Attempt::Done => {
            let done = page::redirect("/dashboard/security?done=password-changed");
            visit.with_device(done, &email).await
        }
        attempt @ (Attempt::Refused | Attempt::Throttled { .. } | Attempt::Busy) => {
            let notice = sign::notice(attempt, "The old password is wrong.");
            show(visit, Some((sign::status(attempt), notice))).await
        }
    }
}

async fn second_factor_page(
    visit: &Visit<'_>,
    not: Option<(u16, Notice)>,
) -> Result<Reply, Trouble> {
    let session = visit.session()?;
    let Some(secret) = visit.web.people.offer_second_factor(session).await? else {
        return Ok(page::redirect("/dashboard/security"));
    };
    let (status, notice) = not.map_or((200, None), |(status, notice)| (status, Some(notice)));
    let plain = secret.expose();
    let groups: Vec<String> =
        plain.as_bytes().chunks(4).map(|group| group.escape_ascii().to_string()).collect();
    let uri = secret.expose_uri("Linesman", &session.account.email);
    let page = SecondFactorPage {
        shell: Shell::new(visit, "Two-factor authentication", "security").with(notice),
        secret: groups.join(" "),
        qr: Qr::new(&uri),
        uri,
    };
    page::render(status, &page)
}

async fn second_factor_on(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let (people, code) = (&visit.web.people, visit.form.get("code"));
    match people.confirm_second_factor(visit.session()?, code, &visit.origin).await? {
        Ok(codes) => {
            let page = RecoveryPage {
                shell: Shell::new(visit, "Recovery codes", "security")
                    .with(Some(Notice::good("Two-factor authentication is on."))),
                codes: codes.iter().map(accounts::RecoveryCode::expose).collect(),
            };
            page::render(200, &page)
        }
        Err(attempt) => {
            let notice = sign::notice(
                attempt,
                "That code is not right. Check the phone's clock and try the next one.",
            );
            second_factor_page(visit, Some((sign::status(attempt), notice))).await
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
