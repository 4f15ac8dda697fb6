//! Signing in, up and out; one-time links; forgotten passwords.
use std::sync::Arc;

use accounts::{
    Attempt, EmailAddress, LinkPurpose, LinkToken, NewAccount, Password, PasswordFault, Profile,
    Role, SessionToken, SignIn, SignUp,
};
use askama::Template;
use http::Reply;

use crate::dashboard::page::{self, Notice, Shell, Trouble};
use crate::dashboard::route::{self, SignAct};
use crate::dashboard::visit::Visit;

const WRONG: &str = "Wrong email or password.";
/// The same where addresses are confirmed by mail. One sentence for both: who signs up with somebody else's address
/// must not learn from it whether there was an account already.
const WRONG_OR_UNCONFIRMED: &str = "Wrong email or password, or the address is not confirmed yet: \
    then we send you the email with the link again.";
const WRONG_CODE: &str = "That code is not right, or was used already. Wait for the next one.";
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
    /// Nothing is to be filled in.
    confirms: bool,
    resets: bool,
    /// The address cannot be chosen.
    bound: bool,
    email: String,
    name: String,
}

pub(crate) async fn answer(visit: &Visit<'_>, page: SignAct) -> Result<Reply, Trouble> {
    match page {
        SignAct::SignIn => sign_in(visit).await,
        SignAct::CodeForm => code_page(visit, None),
        SignAct::Code => finish_sign_in(visit).await,
        SignAct::SignUpForm => sign_up_page(visit, None),
        SignAct::SignUp => sign_up(visit).await,
        SignAct::SignOut => sign_out(visit).await,
        SignAct::LinkForm => link_page(visit, None).await,
        SignAct::Link => use_link(visit).await,
        SignAct::ForgotForm => forgot_page(visit, None),
        SignAct::Forgot => forgot(visit),
        SignAct::SignInForm if visit.session.is_some() => Ok(page::redirect(home(visit))),
        SignAct::SignInForm => sign_in_page(visit, None),
    }
}

/// Where somebody who has to sign in first is sent, and from there back to what they asked for.
pub(crate) fn sign_in_path(visit: &Visit<'_>, changes: bool) -> String {
    let path = visit.request.path;
    if changes || !route::is_destination(path) {
        return "/signin".to_owned();
    }
    format!("/signin?next={path}")
}

/// Where somebody signed in belongs.
fn home(visit: &Visit<'_>) -> &'static str {
    if visit.is_operator() { "/console" } else { "/dashboard" }
}

/// Where to after signing in: back, or to where the account belongs.
async fn destination(visit: &Visit<'_>, token: &SessionToken) -> Result<String, Trouble> {
    let next = visit.form.get("next");
    if route::is_destination(next) {
        return Ok(next.to_owned());
    }
    let session = visit.web.people.session(token).await?;
    let operator = session.is_some_and(|session| session.account.role == Role::Operator);
    Ok(if operator { "/console" } else { "/dashboard" }.to_owned())
}

/// Lets somebody in, and the browser be known as theirs.
async fn enter(
    visit: &Visit<'_>,
    token: &SessionToken,
    email: &EmailAddress,
) -> Result<Reply, Trouble> {
    let to = destination(visit, token).await?;
    visit.with_device(visit.with_session(page::redirect(&to), token), email).await
}

fn next_of(visit: &Visit<'_>) -> String {
    let request = [visit.form.get("next"), visit.query.get("next")];
    request.into_iter().find(|next| route::is_destination(next)).unwrap_or_default().to_owned()
}

fn sign_in_page(visit: &Visit<'_>, not: Option<Attempt>) -> Result<Reply, Trouble> {
    with_retry(not, page::render(not.map_or(200, status), &sign_in_form(visit, not))?)
}

fn sign_in_form(visit: &Visit<'_>, not: Option<Attempt>) -> SignInPage {
    let wrong = if visit.web.people.sends_mail() { WRONG_OR_UNCONFIRMED } else { WRONG };
    SignInPage {
        shell: Shell::new(visit, "Sign in", "").with(not.map(|attempt| notice(attempt, wrong))),
        email: visit.form.get("email").to_owned(),
        next: next_of(visit),
        sign_up: visit.web.people.rules().sign_up == SignUp::Open,
        by_mail: visit.web.people.sends_mail(),
    }
}

async fn sign_in(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let email = EmailAddress::parse(visit.form.get("email"));
    let password = Password::typed(visit.form.get("password").to_owned());
    let (Some(email), Some(password)) = (email, password) else {
        return sign_in_page(visit, Some(Attempt::Refused));
    };
    let people = &visit.web.people;
    match people.sign_in(&email, password, &visit.origin, Some(&visit.token)).await? {
        SignIn::Complete(token) => enter(visit, &token, &email).await,
        SignIn::NeedsCode(token) => {
            let next = next_of(visit);
            let query = if next.is_empty() { String::new() } else { format!("?next={next}") };
            Ok(visit.with_session(page::redirect(&format!("/signin/code{query}")), &token))
        }
        SignIn::Unconfirmed => sign_in_page(visit, Some(Attempt::Refused)),
        SignIn::Failed(attempt) => sign_in_page(visit, Some(attempt)),
    }
}

fn code_page(visit: &Visit<'_>, not: Option<Attempt>) -> Result<Reply, Trouble> {
    let shell = Shell::new(visit, "Two-factor authentication", "");
    let page = CodePage {
        shell: shell.with(not.map(|attempt| notice(attempt, WRONG_CODE))),
        next: next_of(visit),
    };
    with_retry(not, page::render(not.map_or(200, status), &page)?)
}

async fn finish_sign_in(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let (people, half) = (&visit.web.people, visit.session()?);
    let code = visit.form.get("code");
    match people.finish_sign_in(half, &visit.token, code, &visit.origin).await? {
        SignIn::Complete(token) | SignIn::NeedsCode(token) => {
            let email = EmailAddress::parse(&half.account.email).ok_or(Trouble::Forbidden)?;
            enter(visit, &token, &email).await
        }
        SignIn::Unconfirmed => Ok(page::redirect("/signin?done=unconfirmed")),
        SignIn::Failed(attempt) => code_page(visit, Some(attempt)),
    }
}

fn sign_up_page(visit: &Visit<'_>, not: Option<(u16, Notice)>) -> Result<Reply, Trouble> {
    let rule = visit.web.people.rules().sign_up;
    let (status, notice) = not.map_or((200, None), |(status, notice)| (status, Some(notice)));
    let page = SignUpPage {
        shell: Shell::new(visit, "Create an account", "").with(notice),
        open: rule == SignUp::Open,
        by_invitation: rule == SignUp::Invitation,
        email: visit.form.get("email").to_owned(),
        name: visit.form.get("name").to_owned(),
    };
    page::render(status, &page)
}

async fn sign_up(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let new = match new_account(visit, visit.form.get("email")) {
        Ok(new) => new,
        Err(text) => return sign_up_page(visit, Some((400, Notice::bad(text)))),
    };
    match visit.web.people.sign_up(new, &visit.origin).await? {
        Attempt::Done if visit.web.people.sends_mail() => {
            Ok(page::redirect("/signin?done=signed-up-mail"))
        }
        Attempt::Done => enter_new(visit).await,
        attempt @ (Attempt::Refused | Attempt::Throttled { .. } | Attempt::Busy) => {
            let notice = notice(attempt, "Accounts are not open to everybody here.");
            with_retry(Some(attempt), sign_up_page(visit, Some((status(attempt), notice)))?)
        }
    }
}

/// Signs in whoever has just signed up, where no email confirms the address. Where the address had an account already,
/// its password decides, as at the sign-in.
async fn enter_new(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let entered = sign_in(visit).await?;
    if entered.status == 303 {
        return Ok(entered);
    }
    let page = SignInPage {
        shell: Shell::new(visit, "Sign in", "").with(Some(Notice::good(SIGNED_UP))),
        ..sign_in_form(visit, None)
    };
    page::render(200, &page)
}

async fn sign_out(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    if let Some(session) = &visit.session {
        visit.web.people.sign_out(session, &visit.origin).await?;
    }
    Ok(visit.without_session(page::redirect("/signin?done=signed-out")))
}

fn forgot_page(visit: &Visit<'_>, not: Option<(u16, Notice)>) -> Result<Reply, Trouble> {
    let (status, notice) = not.map_or((200, None), |(status, notice)| (status, Some(notice)));
    let page = ForgotPage {
        shell: Shell::new(visit, "Forgotten password", "").with(notice),
        by_mail: visit.web.people.sends_mail(),
        email: visit.form.get("email").to_owned(),
    };
    page::render(status, &page)
}

/// The answer is the same, and takes the same time, whether the address has an account or not.
fn forgot(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let Some(email) = EmailAddress::parse(visit.form.get("email")) else {
        return forgot_page(visit, Some((400, Notice::bad(NO_ADDRESS))));
    };
    match visit.web.people.admit_reset(&visit.origin) {
        Attempt::Done => {}
        attempt @ (Attempt::Refused | Attempt::Throttled { .. } | Attempt::Busy) => {
            let notice = notice(attempt, "No mail is sent here; ask the operator for a link.");
            return with_retry(Some(attempt), forgot_page(visit, Some((status(attempt), notice)))?);
        }
    }
    let (web, origin) = (Arc::clone(visit.web), visit.origin.clone());
    tokio::spawn(async move {
        if let Err(error) = web.people.mail_reset(&email, &origin).await {
            tracing::error!(error = &error as &dyn std::error::Error, "no reset by mail");
        }
    });
    Ok(page::redirect("/signin?done=reset-mail"))
}

async fn link_page(visit: &Visit<'_>, not: Option<(u16, Notice)>) -> Result<Reply, Trouble> {
    let seen = match LinkToken::parse(visit.id.as_bytes()) {
        Some(token) => visit.web.people.link_info(&token).await?,
        None => None,
    };
    let Some((purpose, email)) = seen else {
        let text = "This link was used already or has expired. Ask the operator for a new one; an operator \
                    gets one by starting the service again.";
        return Err(Trouble::Refused(text.to_owned()));
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
    let typed = visit.form.get("email").to_owned();
    let page = LinkPage {
        shell: Shell::new(visit, heading, "").with(notice),
        heading,
        text,
        token: visit.id.to_owned(),
        confirms: purpose == LinkPurpose::Confirmation,
        resets: purpose == LinkPurpose::PasswordReset,
        bound: email.is_some(),
        email: email.unwrap_or(typed),
        name: visit.form.get("name").to_owned(),
    };
    page::render(status, &page)
}

async fn use_link(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let people = &visit.web.people;
    let token = LinkToken::parse(visit.id.as_bytes()).ok_or(Trouble::NotFound)?;
    let Some((purpose, bound)) = people.link_info(&token).await? else {
        return link_page(visit, None).await;
    };
    if purpose == LinkPurpose::Confirmation {
        return match people.confirm_by_link(&token, &visit.origin).await? {
            Attempt::Done => Ok(page::redirect("/signin?done=confirmed")),
            Attempt::Refused | Attempt::Throttled { .. } | Attempt::Busy => {
                link_page(visit, None).await
            }
        };
    }
    let email = bound.unwrap_or_else(|| visit.form.get("email").to_owned());
    if purpose == LinkPurpose::PasswordReset {
        return reset(visit, &token, &email).await;
    }
    let new = match new_account(visit, &email) {
        Ok(new) => new,
        Err(text) => return link_page(visit, Some((400, Notice::bad(text)))).await,
    };
    match people.sign_up_by_link(&token, new, &visit.origin, Some(&visit.token)).await? {
        SignIn::Complete(token) | SignIn::NeedsCode(token) => {
            let email = EmailAddress::parse(&email).ok_or(Trouble::Forbidden)?;
            enter(visit, &token, &email).await
        }
        SignIn::Unconfirmed => Ok(page::redirect("/signin?done=unconfirmed")),
        SignIn::Failed(attempt) => {
            let notice =
                notice(attempt, "This address cannot be used with this link; try another.");
            link_page(visit, Some((status(attempt), notice))).await
        }
    }
}

async fn reset(visit: &Visit<'_>, token: &LinkToken, email: &str) -> Result<Reply, Trouble> {
    let chosen = EmailAddress::parse(email).ok_or(NO_ADDRESS).and_then(|email| {
        let password = choose(visit, &email)?;
        Ok((email, password))
    });
    let (email, password) = match chosen {
        Ok(chosen) => chosen,
        Err(text) => return link_page(visit, Some((400, Notice::bad(text)))).await,
    };
    match visit.web.people.reset_by_link(token, password, &visit.origin).await? {
        // Who has the link is the holder: they can sign in now, however many strangers try to.
        Attempt::Done => {
            visit.with_device(page::redirect("/signin?done=password-reset"), &email).await
        }
        attempt @ (Attempt::Refused | Attempt::Throttled { .. } | Attempt::Busy) => {
            link_page(visit, Some((status(attempt), notice(attempt, "That did not work.")))).await
        }
    }
}

fn new_account(visit: &Visit<'_>, email: &str) -> Result<NewAccount, &'static str> {
    let email = EmailAddress::parse(email).ok_or(NO_ADDRESS)?;
    let password = choose(visit, &email)?;
    let profile = Profile::try_new(email, visit.form.get("name")).ok_or(NO_NAME)?;
    Ok(NewAccount { profile, password })
}

fn choose(visit: &Visit<'_>, email: &EmailAddress) -> Result<Password, &'static str> {
    let password = visit.form.get("password").to_owned();
    Password::choose(password, email).map_err(PasswordFault::message)
}

/// What a gate says to whoever stands before it.
pub(crate) fn notice(attempt: Attempt, refused: &str) -> Notice {
    match attempt {
        Attempt::Done => Notice::good("Done."),
        Attempt::Refused => Notice::bad(refused),
        Attempt::Throttled { retry_after_s } => {
            Notice::bad(format!("That was tried too often. Try again in {retry_after_s} seconds."))
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

fn with_retry(attempt: Option<Attempt>, mut reply: Reply) -> Result<Reply, Trouble> {
    match attempt {
        Some(Attempt::Throttled { retry_after_s }) => {
            reply.head.put_number("retry-after", retry_after_s);
        }
        Some(Attempt::Busy) => reply.head.put_number("retry-after", 1_u32),
        Some(Attempt::Done | Attempt::Refused) | None => {}
    }
    Ok(reply)
}
