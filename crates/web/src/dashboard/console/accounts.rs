//! Accounts: who there is, what each is allowed, and shutting one out.

use ::accounts::{AccountRecord, Allowance, EmailAddress, Limits, Role};
use askama::Template;

use crate::dashboard::confirm::{self, Question};
use crate::dashboard::console::audit::AuditLine;
use crate::dashboard::keys::KeyLine;
use crate::dashboard::moment::{Moment, number};
use crate::dashboard::page::{self, Shell, Trouble};
use crate::dashboard::route::PeopleAct;
use crate::dashboard::visit::Visit;
use http::Reply;

/// Lines of the audit log on an account's page.
const DEEDS_SHOWN_MAX: usize = 20;
/// Letters of a search that are looked for.
const SEARCH_CHARS_MAX: usize = 200;

struct AccountLine {
    id: String,
    email: String,
    name: String,
    role: &'static str,
    created: Moment,
    production: Option<Moment>,
    suspended: Option<Moment>,
    second_factor: bool,
    is_self: bool,
    /// What it is allowed, where that is not what every account is.
    limited: Option<String>,
}

impl AccountLine {
    fn new(account: &AccountRecord, own: &str, visit: &Visit<'_>) -> Self {
        Self {
            is_self: account.id == *own,
            id: account.id.clone(),
            email: account.email.clone(),
            name: account.name.clone(),
            role: account.role.as_str(),
            created: Moment::new(account.created_at, visit.now),
            production: account.production_since.map(|at| Moment::new(at, visit.now)),
            suspended: account.suspended_at.map(|at| Moment::new(at, visit.now)),
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

/// Ended keys that are shown of an account.
const ENDED_SHOWN_MAX: u32 = 50;

/// A limit in the form: what was set, and what holds where nothing is.
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
    deeds: Vec<AuditLine>,
}

#[derive(Template)]
#[template(path = "link_issued.html")]
struct LinkIssuedPage {
    shell: Shell,
    heading: &'static str,
    text: String,
    url: String,
}

pub(super) async fn answer(visit: &Visit<'_>, page: PeopleAct) -> Result<Reply, Trouble> {
    match page {
        PeopleAct::Accounts => accounts_page(visit).await,
        PeopleAct::Account => account_page(visit).await,
        PeopleAct::Invite => invite(visit).await,
        PeopleAct::Limit => limit(visit).await,
        PeopleAct::Suspend => suspend(visit, true).await,
        PeopleAct::Resume => suspend(visit, false).await,
        PeopleAct::Reset => reset(visit).await,
    }
}

async fn accounts_page(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let own = &visit.session()?.account.id;
    let query: String = visit.query.get("q").trim().chars().take(SEARCH_CHARS_MAX).collect();
    let accounts = visit.web.people.find_accounts(&query).await?;
    let accounts = accounts.iter().map(|account| AccountLine::new(account, own, visit)).collect();
    let shell = Shell::new(visit, "Accounts", "accounts");
    page::render(200, &AccountsPage { shell, accounts, query })
}

async fn account_page(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let own = &visit.session()?.account.id;
    let account = visit.web.people.account(visit.id).await?;
    let accounts = &visit.web.api.accounts;
    let mut keys = accounts.live_keys_of(&account.id).await?;
    keys.reverse();
    keys.extend(accounts.ended_keys_of(&account.id, (0, ENDED_SHOWN_MAX)).await?);
    let keys = keys.iter().map(|view| KeyLine::new(view, visit.now)).collect();
    let deeds = visit.web.people.audit(Some(&account.id), None).await?;
    let page = AccountPage {
        shell: Shell::new(visit, "Account", "accounts"),
        limits: limit_fields(&account),
        account: AccountLine::new(&account, own, visit),
        keys,
        deeds: deeds
            .into_iter()
            .take(DEEDS_SHOWN_MAX)
            .map(|row| AuditLine::new(row, visit.now))
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

async fn limit(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let field = |name: &str| match visit.form.get(name).trim() {
        "" => Ok(None),
        typed => typed.parse::<u32>().map(Some).map_err(|_| {
            let text = "A limit is a whole number, or empty for what every account has.";
            Trouble::Refused(text.to_owned())
        }),
    };
    let allowance = Allowance {
        keys_max: field("keys_max")?,
        burst_per_minute: field("burst_per_minute")?,
        requests_per_day: field("requests_per_day")?,
        requests_per_month: field("requests_per_month")?,
    };
    visit.web.people.limit(visit.id, allowance, &visit.actor()?).await?;
    // The keys in memory follow the store before anybody is told that it is done.
    visit.web.api.accounts.reload().await?;
    Ok(page::redirect(&format!("/console/accounts/{}?done=limited", visit.id)))
}

async fn invite(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let typed = visit.form.get("email").trim();
    let email = match EmailAddress::parse(typed) {
        Some(email) => Some(email),
        None if typed.is_empty() => None,
        None => {
            let text = "This is not an email address such as ann@example.com.";
            return Err(Trouble::Refused(text.to_owned()));
        }
    };
    let token = visit.web.people.invite(email.as_ref(), &visit.actor()?).await?;
    let whom = email.map_or("whoever has it".to_owned(), |email| email.to_string());
    link_issued(
        visit,
        "An invitation",
        format!("Send this link to {whom}. It makes one account and works once, within 7 days."),
        &token.expose(),
    )
}

async fn reset(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let account = visit.web.people.account(visit.id).await?;
    let token = visit.web.people.reset_link(visit.id, &visit.actor()?).await?;
    let text = format!(
        "Send this link to {}. With it they set a new password; it works once, within a day.",
        account.email
    );
    link_issued(visit, "A link to set a password", text, &token.expose())
}

fn link_issued(
    visit: &Visit<'_>,
    heading: &'static str,
    text: String,
    token: &str,
) -> Result<Reply, Trouble> {
    let page = LinkIssuedPage {
        shell: Shell::new(visit, heading, "accounts"),
        heading,
        text,
        url: format!("{}/link/{token}", visit.base()),
    };
    page::render(200, &page)
}

async fn ask_suspend(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let account = visit.web.people.account(visit.id).await?;
    let keys = visit.web.api.accounts.live_keys_of(&account.id).await?.len();
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
    confirm::ask(visit, question)
}

async fn suspend(visit: &Visit<'_>, suspended: bool) -> Result<Reply, Trouble> {
    let (people, actor) = (&visit.web.people, visit.actor()?);
    let done = if suspended {
        if visit.session()?.account.id == visit.id {
            let text = "You cannot suspend yourself; another operator can.";
            return Err(Trouble::Refused(text.to_owned()));
        }
        if !confirm::is_confirmed(visit) {
            return ask_suspend(visit).await;
        }
        people.suspend(visit.id, &actor).await?;
        "suspended"
    } else {
        people.resume(visit.id, &actor).await?;
        "resumed"
    };
    // The keys in memory follow the store before anybody is told that it is done.
    visit.web.api.accounts.reload().await?;
    Ok(page::redirect(&match visit.form.get("back") {
        "account" => format!("/console/accounts/{}?done={done}", visit.id),
        _ => format!("/console/accounts?done={done}"),
    }))
}
