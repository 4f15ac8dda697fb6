//! Sign-in, sign-up, sign-out, one-time links, forgotten passwords.
use std::sync::Arc;

use accounts::{
    Attempt, EmailAddress, LinkPurpose, LinkToken, NewAccount, Password, PasswordFault, Profile,
    Role, SessionToken, SignIn, SignUp,
};
use askama::Template;
use http::Reply;

use crate::dashboard::page::{self, Notice, Shell};
use crate::dashboard::page_error::PageError;
use crate::dashboard::page_request::PageRequest;
use crate::dashboard::route::{self, SignAct};

const WRONG: &str = "Wrong email or password.";
/// The message where addresses are confirmed by email. One sentence for both cases: signing up with another person's
/// address must not reveal whether it already had an account.
const WRONG_OR_UNCONFIRMED: &str = "Wrong email or password, or the address is not confirmed yet: \
    then we send you the email with the link again.";
const WRONG_CODE: &str = "The code is wrong or was already used. Wait for the next one.";
const NO_ADDRESS: &str = "This is not an email address such as ann@example.com.";
const SIGNED_UP: &str =
    "Account created. Sign in to continue. (Already registered? Use your existing password.)";
const NO_NAME: &str = "A name has 1 to 100 characters.";

#[derive(Template)]
#[template(path = "signin.html")]
struct SignInPage {
    shell: Shell,
    email: String,
    next: String,
    sign_up: bool,
    by_mail: bool,
}

#[derive(Template)]
#[template(path = "forgot.html")]
struct ForgotPage {
    shell: Shell,
    by_mail: bool,
    email: String,
}

#[derive(Template)]
#[template(path = "code.html")]
struct CodePage {
    shell: Shell,
    next: String,
}

#[derive(Template)]
#[template(path = "signup.html")]
struct SignUpPage {
    shell: Shell,
    open: bool,
    by_invitation: bool,
    email: String,
    name: String,
}

#[derive(Template)]
#[template(path = "link.html")]
struct LinkPage {
    shell: Shell,
    heading: &'static str,
    text: &'static str,
    token: String,
    /// True if the form has no fields to fill in.
    confirms: bool,
    resets: bool,
    /// True if the address is fixed.
    bound: bool,
    email: String,
    name: String,
}

pub(crate) async fn answer(
    page_request: &PageRequest<'_>,
    page: SignAct,
) -> Result<Reply, PageError> {
    match page {
        SignAct::SignIn => sign_in(page_request).await,
        SignAct::CodeForm => code_page(page_request, None),
        SignAct::Code => finish_sign_in(page_request).await,
        SignAct::SignUpForm => sign_up_page(page_request, None),
        SignAct::SignUp => sign_up(page_request).await,
        SignAct::SignOut => sign_out(page_request).await,
        SignAct::LinkForm => link_page(page_request, None).await,
        SignAct::Link => use_link(page_request).await,
        SignAct::ForgotForm => forgot_page(page_request, None),
        SignAct::Forgot => forgot(page_request),
        SignAct::SignInForm if page_request.session.is_some() => {
            Ok(page::redirect(home(page_request)))
        }
        SignAct::SignInForm => sign_in_page(page_request, None),
    }
}

/// The sign-in page, with the requested page as the target after signing in.
pub(crate) fn sign_in_path(page_request: &PageRequest<'_>, changes: bool) -> String {
    let path = page_request.request.path;
    if changes || !route::is_destination(path) {
        return "/signin".to_owned();
    }
    format!("/signin?next={path}")
}

/// Start page of the visitor's role.
fn home(page_request: &PageRequest<'_>) -> &'static str {
    if page_request.is_operator() { "/console" } else { "/dashboard" }
}

/// Target after signing in: the requested page, or the start page of the account's role.
async fn destination(
    page_request: &PageRequest<'_>,
    token: &SessionToken,
) -> Result<String, PageError> {
    let next = page_request.form.get("next");
    if route::is_destination(next) {
        return Ok(next.to_owned());
    }
    let session = page_request.web.people.session(token).await?;
    let operator = session.is_some_and(|session| session.account.role == Role::Operator);
    Ok(if operator { "/console" } else { "/dashboard" }.to_owned())
}

/// Completes a sign-in and remembers the browser.
async fn enter(
    page_request: &PageRequest<'_>,
    token: &SessionToken,
    email: &EmailAddress,
) -> Result<Reply, PageError> {
    let to = destination(page_request, token).await?;
    page_request.with_device(page_request.with_session(page::redirect(&to), token), email).await
}

fn next_of(page_request: &PageRequest<'_>) -> String {
    let request = [page_request.form.get("next"), page_request.query.get("next")];
    request.into_iter().find(|next| route::is_destination(next)).unwrap_or_default().to_owned()
}

fn sign_in_page(page_request: &PageRequest<'_>, not: Option<Attempt>) -> Result<Reply, PageError> {
    with_retry(not, page::render(not.map_or(200, status), &sign_in_form(page_request, not))?)
}

fn sign_in_form(page_request: &PageRequest<'_>, not: Option<Attempt>) -> SignInPage {
    let wrong = if page_request.web.people.sends_mail() { WRONG_OR_UNCONFIRMED } else { WRONG };
    SignInPage {
        shell: Shell::new(page_request, "Sign in", "")
            .with(not.map(|attempt| notice(attempt, wrong))),
        email: page_request.form.get("email").to_owned(),
        next: next_of(page_request),
        sign_up: page_request.web.people.rules().sign_up == SignUp::Open,
        by_mail: page_request.web.people.sends_mail(),
    }
}

async fn sign_in(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let email = EmailAddress::parse(page_request.form.get("email"));
    let password = Password::typed(page_request.form.get("password").to_owned());
    let (Some(email), Some(password)) = (email, password) else {
        return sign_in_page(page_request, Some(Attempt::Refused));
    };
    let people = &page_request.web.people;
    match people.sign_in(&email, password, &page_request.origin, Some(&page_request.token)).await? {
        SignIn::Complete(token) => enter(page_request, &token, &email).await,
        SignIn::NeedsCode(token) => {
            let next = next_of(page_request);
            let query = if next.is_empty() { String::new() } else { format!("?next={next}") };
            Ok(page_request.with_session(page::redirect(&format!("/signin/code{query}")), &token))
        }
        SignIn::Unconfirmed => sign_in_page(page_request, Some(Attempt::Refused)),
        SignIn::Failed(attempt) => sign_in_page(page_request, Some(attempt)),
    }
}

fn code_page(page_request: &PageRequest<'_>, not: Option<Attempt>) -> Result<Reply, PageError> {
    let shell = Shell::new(page_request, "Two-factor authentication", "");
    let page = CodePage {
        shell: shell.with(not.map(|attempt| notice(attempt, WRONG_CODE))),
        next: next_of(page_request),
    };
    with_retry(not, page::render(not.map_or(200, status), &page)?)
}

async fn finish_sign_in(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let (people, half) = (&page_request.web.people, page_request.session()?);
    let code = page_request.form.get("code");
    match people.finish_sign_in(half, &page_request.token, code, &page_request.origin).await? {
        SignIn::Complete(token) | SignIn::NeedsCode(token) => {
            let email = EmailAddress::parse(&half.account.email).ok_or(PageError::Forbidden)?;
            enter(page_request, &token, &email).await
        }
        SignIn::Unconfirmed => Ok(page::redirect("/signin?done=unconfirmed")),
        SignIn::Failed(attempt) => code_page(page_request, Some(attempt)),
    }
}

fn sign_up_page(
    page_request: &PageRequest<'_>,
    not: Option<(u16, Notice)>,
) -> Result<Reply, PageError> {
    let rule = page_request.web.people.rules().sign_up;
    let (status, notice) = not.map_or((200, None), |(status, notice)| (status, Some(notice)));
    let page = SignUpPage {
        shell: Shell::new(page_request, "Create an account", "").with(notice),
        open: rule == SignUp::Open,
        by_invitation: rule == SignUp::Invitation,
        email: page_request.form.get("email").to_owned(),
        name: page_request.form.get("name").to_owned(),
    };
    page::render(status, &page)
}

async fn sign_up(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let new = match new_account(page_request, page_request.form.get("email")) {
        Ok(new) => new,
        Err(text) => return sign_up_page(page_request, Some((400, Notice::bad(text)))),
    };
    match page_request.web.people.sign_up(new, &page_request.origin).await? {
        Attempt::Done if page_request.web.people.sends_mail() => {
            Ok(page::redirect("/signin?done=signed-up-mail"))
        }
        Attempt::Done => enter_new(page_request).await,
        attempt @ (Attempt::Refused | Attempt::Throttled { .. } | Attempt::Busy) => {
            let notice = notice(attempt, "Accounts are not open to everybody here.");
            with_retry(Some(attempt), sign_up_page(page_request, Some((status(attempt), notice)))?)
        }
    }
}

/// Signs in a new account if addresses are not confirmed by email. If the address already had an account, its password
/// decides, as at the sign-in.
async fn enter_new(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let entered = sign_in(page_request).await?;
    if entered.status == 303 {
        return Ok(entered);
    }
    let page = SignInPage {
        shell: Shell::new(page_request, "Sign in", "").with(Some(Notice::good(SIGNED_UP))),
        ..sign_in_form(page_request, None)
    };
    page::render(200, &page)
}

async fn sign_out(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    if let Some(session) = &page_request.session {
        page_request.web.people.sign_out(session, &page_request.origin).await?;
    }
    Ok(page_request.without_session(page::redirect("/signin?done=signed-out")))
}

fn forgot_page(
    page_request: &PageRequest<'_>,
    not: Option<(u16, Notice)>,
) -> Result<Reply, PageError> {
    let (status, notice) = not.map_or((200, None), |(status, notice)| (status, Some(notice)));
    let page = ForgotPage {
        shell: Shell::new(page_request, "Forgotten password", "").with(notice),
        by_mail: page_request.web.people.sends_mail(),
        email: page_request.form.get("email").to_owned(),
    };
    page::render(status, &page)
}

/// The response and its time are the same whether or not the address has an account.
fn forgot(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let Some(email) = EmailAddress::parse(page_request.form.get("email")) else {
        return forgot_page(page_request, Some((400, Notice::bad(NO_ADDRESS))));
    };
    match page_request.web.people.admit_reset(&page_request.origin) {
        Attempt::Done => {}
        attempt @ (Attempt::Refused | Attempt::Throttled { .. } | Attempt::Busy) => {
            let notice = notice(attempt, "No mail is sent here; ask the operator for a link.");
            return with_retry(
                Some(attempt),
                forgot_page(page_request, Some((status(attempt), notice)))?,
            );
        }
    }
    let (web, origin) = (Arc::clone(page_request.web), page_request.origin.clone());
    tokio::spawn(async move {
        if let Err(error) = web.people.mail_reset(&email, &origin).await {
            tracing::error!(
                event = "email.not_written",
                error = &error as &dyn std::error::Error,
                "the email to reset a password could not be written"
            );
        }
    });
    Ok(page::redirect("/signin?done=reset-mail"))
}

async fn link_page(
    page_request: &PageRequest<'_>,
    not: Option<(u16, Notice)>,
) -> Result<Reply, PageError> {
    let seen = match LinkToken::parse(page_request.id.as_bytes()) {
        Some(token) => page_request.web.people.link_info(&token).await?,
        None => None,
    };
    let Some((purpose, email)) = seen else {
        let text = "This link was used already or has expired. Ask the operator for a new one; an operator \
                    gets one by starting the service again.";
        return Err(PageError::Refused(text.to_owned()));
    };
    let (heading, text) = match purpose {
        LinkPurpose::FirstOperator => {
            ("Welcome, operator", "This link makes the first operator's account. It works once.")
        }
        LinkPurpose::Invitation => {
            ("You are invited", "This link makes your account. It works once.")
        }
        LinkPurpose::PasswordReset => {
            ("Set a new password", "All sessions of the account are signed out with it.")
        }
        LinkPurpose::Confirmation => ("Confirm your address", "One press, and you can sign in."),
    };
    let (status, notice) = not.map_or((200, None), |(status, notice)| (status, Some(notice)));
    let typed = page_request.form.get("email").to_owned();
    let page = LinkPage {
        shell: Shell::new(page_request, heading, "").with(notice),
        heading,
        text,
        token: page_request.id.to_owned(),
        confirms: purpose == LinkPurpose::Confirmation,
        resets: purpose == LinkPurpose::PasswordReset,
        bound: email.is_some(),
        email: email.unwrap_or(typed),
        name: page_request.form.get("name").to_owned(),
    };
    page::render(status, &page)
}

async fn use_link(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let people = &page_request.web.people;
    let token = LinkToken::parse(page_request.id.as_bytes()).ok_or(PageError::NotFound)?;
    let Some((purpose, bound)) = people.link_info(&token).await? else {
        return link_page(page_request, None).await;
    };
    if purpose == LinkPurpose::Confirmation {
        return match people.confirm_by_link(&token, &page_request.origin).await? {
            Attempt::Done => Ok(page::redirect("/signin?done=confirmed")),
            Attempt::Refused | Attempt::Throttled { .. } | Attempt::Busy => {
                link_page(page_request, None).await
            }
        };
    }
    let email = bound.unwrap_or_else(|| page_request.form.get("email").to_owned());
    if purpose == LinkPurpose::PasswordReset {
        return reset(page_request, &token, &email).await;
    }
    let new = match new_account(page_request, &email) {
        Ok(new) => new,
        Err(text) => return link_page(page_request, Some((400, Notice::bad(text)))).await,
    };
    match people
        .sign_up_by_link(&token, new, &page_request.origin, Some(&page_request.token))
        .await?
    {
        SignIn::Complete(token) | SignIn::NeedsCode(token) => {
            let email = EmailAddress::parse(&email).ok_or(PageError::Forbidden)?;
            enter(page_request, &token, &email).await
        }
        SignIn::Unconfirmed => Ok(page::redirect("/signin?done=unconfirmed")),
        SignIn::Failed(attempt) => {
            let notice =
                notice(attempt, "This address cannot be used with this link; try another.");
            link_page(page_request, Some((status(attempt), notice))).await
        }
    }
}

async fn reset(
    page_request: &PageRequest<'_>,
    token: &LinkToken,
    email: &str,
) -> Result<Reply, PageError> {
    let chosen = EmailAddress::parse(email).ok_or(NO_ADDRESS).and_then(|email| {
        let password = choose(page_request, &email)?;
        Ok((email, password))
    });
    let (email, password) = match chosen {
        Ok(chosen) => chosen,
        Err(text) => return link_page(page_request, Some((400, Notice::bad(text)))).await,
    };
    match page_request.web.people.reset_by_link(token, password, &page_request.origin).await? {
        // The holder of the link owns the account: this browser can sign in even while the account is throttled by
        // others.
        Attempt::Done => {
            page_request.with_device(page::redirect("/signin?done=password-reset"), &email).await
        }
        attempt @ (Attempt::Refused | Attempt::Throttled { .. } | Attempt::Busy) => {
            link_page(page_request, Some((status(attempt), notice(attempt, "That did not work."))))
                .await
        }
    }
}

fn new_account(page_request: &PageRequest<'_>, email: &str) -> Result<NewAccount, &'static str> {
    let email = EmailAddress::parse(email).ok_or(NO_ADDRESS)?;
    let password = choose(page_request, &email)?;
    let profile = Profile::try_new(email, page_request.form.get("name")).ok_or(NO_NAME)?;
    Ok(NewAccount { profile, password })
}

fn choose(page_request: &PageRequest<'_>, email: &EmailAddress) -> Result<Password, &'static str> {
    let password = page_request.form.get("password").to_owned();
    Password::choose(password, email).map_err(PasswordFault::message)
}

/// The message for an attempt.
pub(crate) fn notice(attempt: Attempt, refused: &str) -> Notice {
    match attempt {
        Attempt::Done => Notice::good("Done."),
        Attempt::Refused => Notice::bad(refused),
        Attempt::Throttled { retry_after_s } => {
            Notice::bad(format!("Too many attempts. Try again in {retry_after_s} seconds."))
        }
        Attempt::Busy => {
            Notice::bad("Many people are signing in at the moment. Try again shortly.")
        }
    }
}

pub(crate) const fn status(attempt: Attempt) -> u16 {
    match attempt {
        Attempt::Done => 200,
        Attempt::Refused => 403,
        Attempt::Throttled { .. } => 429,
        Attempt::Busy => 503,
    }
}

fn with_retry(attempt: Option<Attempt>, mut reply: Reply) -> Result<Reply, PageError> {
    match attempt {
        Some(Attempt::Throttled { retry_after_s }) => {
            reply.head.put_number("retry-after", retry_after_s);
        }
        Some(Attempt::Busy) => reply.head.put_number("retry-after", 1_u32),
        Some(Attempt::Done | Attempt::Refused) | None => {}
    }
    Ok(reply)
}
