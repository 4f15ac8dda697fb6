//! A browser: it keeps its cookie, sends the headers of browsers, and fills in the forms of pages.

use accounts::{Actor, EmailAddress, NewAccount, Origin, Password, Profile};
use reqwest::Method;

use crate::harness::{Answer, TestApp};

pub(crate) const PASSWORD: &str = "correct horse battery";

/// The origin of a sign-up outside a browser.
pub(crate) fn nowhere() -> Origin {
    Origin { address: None, agent: String::new(), device: None }
}

pub(crate) fn account(email: &str, name: &str) -> NewAccount {
    let email = EmailAddress::parse(email).unwrap();
    let password = Password::choose(PASSWORD.to_owned(), &email).unwrap();
    NewAccount { profile: Profile::try_new(email, name).unwrap(), password }
}

#[derive(Debug)]
pub(crate) struct Browser<'a> {
    pub(crate) app: &'a TestApp,
    pub(crate) cookie: Option<String>,
    /// The token by which an account recognises it after a sign-in.
    pub(crate) device: Option<String>,
    form_token: String,
}

impl<'a> Browser<'a> {
    pub(crate) fn new(app: &'a TestApp) -> Self {
        Self { app, cookie: None, device: None, form_token: String::new() }
    }

    /// A developer who has signed up and in.
    pub(crate) async fn developer(app: &'a TestApp, email: &str) -> Self {
        let mut browser = Self::new(app);
        app.service.web.people.sign_up(account(email, "A Developer"), &nowhere()).await.unwrap();
        browser.sign_in(email).await;
        browser
    }

    /// An operator who used the link that the first start prints.
    pub(crate) async fn operator(app: &'a TestApp) -> Self {
        let mut browser = Self::new(app);
        let link = app.service.web.people.first_operator_link().await.unwrap().unwrap();
        let path = format!("/link/{}", link.expose());
        assert_eq!(browser.get(&path).await.status, 200);
        let fields = [("name", "Op"), ("email", "op@example.com"), ("password", PASSWORD)];
        let entered = browser.post(&path, &fields).await;
        assert_eq!((entered.status, entered.header("location")), (303, Some("/console")));
        browser.get("/console").await;
        browser
    }

    pub(crate) async fn sign_in(&mut self, email: &str) {
        self.get("/signin").await;
        let entered = self.post("/signin", &[("email", email), ("password", PASSWORD)]).await;
        assert_eq!(entered.status, 303, "{}", entered.text());
        self.get("/dashboard/security").await;
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        let answer = Answer::of(self.request(Method::GET, path)).await;
        self.take(&answer);
        answer
    }

    /// Sends a form with the token of the previous page, from this site.
    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let token = self.form_token.clone();
        let mut all = vec![("form_token", token.as_str())];
        all.extend_from_slice(fields);
        let site = [
            ("origin", format!("http://{}", self.app.addr)),
            ("sec-fetch-site", "same-origin".to_owned()),
        ];
        let answer = self.post_as(path, &all, &site).await;
        self.take(&answer);
        answer
    }

    /// Sends a form that requires confirmation, and then the form of the confirmation page, which must contain all
    /// these texts.
    pub(crate) async fn confirm(
        &mut self,
        path: &str,
        fields: &[(&str, &str)],
        told: &[&str],
    ) -> Answer {
        let asked = self.post(path, fields).await;
        assert_eq!(asked.status, 200, "{path}: {}", asked.text());
        assert!(asked.text().contains("name=\"confirmed\""), "{path} does not ask");
        for told in told {
            assert!(asked.text().contains(told), "{path} does not say {told}: {}", asked.text());
        }
        let mut fields = fields.to_vec();
        fields.push(("confirmed", "yes"));
        self.post(path, &fields).await
    }

    /// Sends exactly these fields and headers.
    pub(crate) async fn post_as(
        &self,
        path: &str,
        fields: &[(&str, &str)],
        headers: &[(&str, String)],
    ) -> Answer {
        let body: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", percent(value))).collect();
        let mut request = self
            .request(Method::POST, path)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body.join("&"));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        Answer::of(request).await
    }

    pub(crate) fn form_token(&self) -> &str {
        &self.form_token
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let mut request = self.app.request(method, path).header("user-agent", "a browser");
        let cookies: Vec<&str> =
            [&self.cookie, &self.device].into_iter().flatten().map(String::as_str).collect();
        if !cookies.is_empty() {
            request = request.header("cookie", cookies.join("; "));
        }
        request
    }

    fn take(&mut self, answer: &Answer) {
        for cookie in cookies(answer) {
            let kept = cookie.split(';').next().map(str::to_owned);
            if cookie.contains("linesman_device=") {
                self.device = kept;
            } else {
                self.cookie = kept;
            }
        }
        if answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html"))
            && let Some(token) = between(answer.text(), "name=\"form_token\" value=\"", "\"")
        {
            self.form_token = token.to_owned();
        }
    }
}

/// Every cookie that an answer sets.
pub(crate) fn cookies(answer: &Answer) -> Vec<String> {
    let set = answer.headers.get_all("set-cookie").iter();
    set.map(|value| value.to_str().unwrap().to_owned()).collect()
}

pub(crate) fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

pub(crate) fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let from = text.find(before)? + before.len();
    let rest = &text[from..];
    rest.find(after).map(|to| &rest[..to])
}

/// The id of the account with this address.
pub(crate) async fn account_id(app: &TestApp, email: &str) -> String {
    let accounts = app.service.web.people.accounts().await.unwrap();
    accounts.into_iter().find(|account| account.email == email).unwrap().id
}

/// A person at the machine.
pub(crate) fn machine() -> Actor {
    Actor::command_line()
}
