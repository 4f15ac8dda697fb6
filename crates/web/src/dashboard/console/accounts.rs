//! Accounts: list, allowances, and suspension.

use ::accounts::{AccountRecord, Allowance, EmailAddress, Limits, Role};
use askama::Template;

use crate::dashboard::confirm::{self, Question};
use crate::dashboard::console::audit::AuditLine;
use crate::dashboard::key_line::KeyLine;
use crate::dashboard::page::{self, Shell};
use crate::dashboard::page_error::PageError;
use crate::dashboard::page_request::PageRequest;
use crate::dashboard::route::PeopleAct;
use crate::dashboard::time_text::{TimeText, number};
use http::Reply;

/// Maximum number of lines of the audit log on an account's page.
const DEEDS_SHOWN_MAX: usize = 20;
/// Maximum number of characters used of a search text.
const SEARCH_CHARS_MAX: usize = 200;

struct AccountLine {
    id: String,
    email: String,
    name: String,
    role: &'static str,
    created: TimeText,
    production: Option<TimeText>,
    suspended: Option<TimeText>,
    second_factor: bool,
    is_self: bool,
    /// Its allowance, if it is not the default.
    limited: Option<String>,
}

impl AccountLine {
    fn new(account: &AccountRecord, own: &str, page_request: &PageRequest<'_>) -> Self {
        Self {
            is_self: account.id == *own,
            id: account.id.clone(),
            email: account.email.clone(),
            name: account.name.clone(),
            role: account.role.as_str(),
            created: TimeText::new(account.created_at, page_request.now),
            production: account.production_since.map(|at| TimeText::new(at, page_request.now)),
            suspended: account.suspended_at.map(|at| TimeText::new(at, page_request.now)),
            second_factor: account.second_factor,
            limited: (account.allowance != Allowance::default())
                .then(|| format!("{} a day", number(account.limits().requests_per_day))),
        }
    }

    fn is_operator(&self) -> bool {
        self.role == Role::Operator.as_str()
    }
}

#[derive(Template)]
#[template(path = "accounts.html")]
struct AccountsPage {
    shell: Shell,
    accounts: Vec<AccountLine>,
    query: String,
}

/// Maximum number of ended keys shown for an account.
const ENDED_SHOWN_MAX: u32 = 50;

/// A limit in the form: the value set, and the default.
struct LimitField {
    name: &'static str,
    title: &'static str,
    value: String,
    default: String,
    max: u32,
}

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage {
    shell: Shell,
    account: AccountLine,
    limits: Vec<LimitField>,
    keys: Vec<KeyLine>,
    actions: Vec<AuditLine>,
}

#[derive(Template)]
#[template(path = "link_issued.html")]
struct LinkIssuedPage {
    shell: Shell,
    heading: &'static str,
    text: String,
    url: String,
}

pub(super) async fn answer(
    page_request: &PageRequest<'_>,
    page: PeopleAct,
) -> Result<Reply, PageError> {
    match page {
        PeopleAct::Accounts => accounts_page(page_request).await,
        PeopleAct::Account => account_page(page_request).await,
        PeopleAct::Invite => invite(page_request).await,
        PeopleAct::Limit => limit(page_request).await,
        PeopleAct::Suspend => suspend(page_request, true).await,
        PeopleAct::Resume => suspend(page_request, false).await,
        PeopleAct::Reset => reset(page_request).await,
    }
}

async fn accounts_page(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let own = &page_request.session()?.account.id;
    let query: String = page_request.query.get("q").trim().chars().take(SEARCH_CHARS_MAX).collect();
    let accounts = page_request.web.people.find_accounts(&query).await?;
    let accounts =
        accounts.iter().map(|account| AccountLine::new(account, own, page_request)).collect();
    let shell = Shell::new(page_request, "Accounts", "accounts");
    page::render(200, &AccountsPage { shell, accounts, query })
}

async fn account_page(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let own = &page_request.session()?.account.id;
    let account = page_request.web.people.account(page_request.id).await?;
    let accounts = &page_request.web.api.accounts;
    let mut keys = accounts.live_keys_of(&account.id).await?;
    keys.reverse();
    keys.extend(accounts.ended_keys_of(&account.id, (0, ENDED_SHOWN_MAX)).await?);
    let keys = keys.iter().map(|view| KeyLine::new(view, page_request.now)).collect();
    let actions = page_request.web.people.audit(Some(&account.id), None).await?;
    let page = AccountPage {
        shell: Shell::new(page_request, "Account", "accounts"),
        limits: limit_fields(&account),
        account: AccountLine::new(&account, own, page_request),
        keys,
        actions: actions
            .into_iter()
            .take(DEEDS_SHOWN_MAX)
            .map(|row| AuditLine::new(row, page_request.now))
            .collect(),
    };
    page::render(200, &page)
}

fn limit_fields(account: &AccountRecord) -> Vec<LimitField> {
    let set = account.allowance;
    let default = AccountRecord { allowance: Allowance::default(), ..account.clone() };
    let field = |name, title, value: Option<u32>, default: String, max| LimitField {
        name,
        title,
        value: value.map_or_else(String::new, |value| value.to_string()),
        default,
        max,
    };
    let Limits { burst_per_minute, requests_per_day, .. } = default.limits();
    vec![
        field("keys_max", "Active keys", set.keys_max, default.keys_max().to_string(), 1000),
        field(
            "burst_per_minute",
            "Requests per minute",
            set.burst_per_minute,
            burst_per_minute.to_string(),
            u32::MAX,
        ),
        field(
            "requests_per_day",
            "Requests per day",
            set.requests_per_day,
            requests_per_day.to_string(),
            u32::MAX,
        ),
        field(
            "requests_per_month",
            "Requests per month",
            set.requests_per_month,
            "no limit".to_owned(),
            u32::MAX,
        ),
    ]
}

async fn limit(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let field = |name: &str| match page_request.form.get(name).trim() {
        "" => Ok(None),
        typed => typed.parse::<u32>().map(Some).map_err(|_| {
            let text = "A limit is a whole number, or empty for what every account has.";
            PageError::Refused(text.to_owned())
        }),
    };
    let allowance = Allowance {
        keys_max: field("keys_max")?,
        burst_per_minute: field("burst_per_minute")?,
        requests_per_day: field("requests_per_day")?,
        requests_per_month: field("requests_per_month")?,
    };
    page_request.web.people.limit(page_request.id, allowance, &page_request.actor()?).await?;
    // The keys in memory are updated before the success is shown.
    page_request.web.api.accounts.reload().await?;
    Ok(page::redirect(&format!("/console/accounts/{}?done=limited", page_request.id)))
}

async fn invite(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let typed = page_request.form.get("email").trim();
    let email = match EmailAddress::parse(typed) {
        Some(email) => Some(email),
        None if typed.is_empty() => None,
        None => {
            let text = "This is not an email address such as ann@example.com.";
            return Err(PageError::Refused(text.to_owned()));
        }
    };
    let token = page_request.web.people.invite(email.as_ref(), &page_request.actor()?).await?;
    let whom = email.map_or("whoever has it".to_owned(), |email| email.to_string());
    link_issued(
        page_request,
        "An invitation",
        format!("Send this link to {whom}. It makes one account and works once, within 7 days."),
        &token.expose(),
    )
}

async fn reset(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let account = page_request.web.people.account(page_request.id).await?;
    let token = page_request.web.people.reset_link(page_request.id, &page_request.actor()?).await?;
    let text = format!(
        "Send this link to {}. With it they set a new password; it works once, within a day.",
        account.email
    );
    link_issued(page_request, "A link to set a password", text, &token.expose())
}

fn link_issued(
    page_request: &PageRequest<'_>,
    heading: &'static str,
    text: String,
    token: &str,
) -> Result<Reply, PageError> {
    let page = LinkIssuedPage {
        shell: Shell::new(page_request, heading, "accounts"),
        heading,
        text,
        url: format!("{}/link/{token}", page_request.base()),
    };
    page::render(200, &page)
}

async fn ask_suspend(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let account = page_request.web.people.account(page_request.id).await?;
    let keys = page_request.web.api.accounts.live_keys_of(&account.id).await?.len();
    let question = Question {
        here: "accounts",
        heading: format!("Suspend {}?", account.email),
        points: vec![
            "All its sessions are signed out, and nobody can sign in to it.".to_owned(),
            format!("Requests with its {keys} active keys are refused with 401 at once."),
            "Nothing is deleted: resuming the account makes its keys work again.".to_owned(),
        ],
        fields: &["back"],
        button: "Suspend the account",
        back: format!("/console/accounts/{}", account.id),
    };
    confirm::ask(page_request, question)
}

async fn suspend(page_request: &PageRequest<'_>, suspended: bool) -> Result<Reply, PageError> {
    let (people, actor) = (&page_request.web.people, page_request.actor()?);
    let done = if suspended {
        if page_request.session()?.account.id == page_request.id {
            let text = "You cannot suspend yourself; another operator can.";
            return Err(PageError::Refused(text.to_owned()));
        }
        if !confirm::is_confirmed(page_request) {
            return ask_suspend(page_request).await;
        }
        people.suspend(page_request.id, &actor).await?;
        "suspended"
    } else {
        people.resume(page_request.id, &actor).await?;
        "resumed"
    };
    // The keys in memory are updated before the success is shown.
    page_request.web.api.accounts.reload().await?;
    Ok(page::redirect(&match page_request.form.get("back") {
        "account" => format!("/console/accounts/{}?done={done}", page_request.id),
        _ => format!("/console/accounts?done={done}"),
    }))
}
