//! A Betfair session: the sign-in, and the catalogue of markets.

use domain::Timestamp;
use serde::Deserialize;
use serde_json::json;

use crate::fetch::{Client, Request};
use crate::settings::{Access, BetfairSettings, Secret};

const LOGIN_URL: &str = "https://identitysso.betfair.com";
const CERT_LOGIN_URL: &str = "https://identitysso-cert.betfair.com";
const API_URL: &str = "https://api.betfair.com";
/// Markets per catalogue request: the exchange weighs each and allows at most 200.
pub(crate) const MARKETS_AT_ONCE: usize = 100;

/// The reason why there is no session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoSession {
    Failed(String),
    Refused(String),
}

#[derive(Clone, Debug)]
pub(crate) struct Session {
    client: Client,
    pub(crate) app_key: Secret,
    pub(crate) token: Secret,
    api_url: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Login {
    token: String,
    status: String,
    error: String,
    session_token: String,
    login_status: String,
}

/// A query to the catalogue.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    /// The markets with these ids.
    Markets(Vec<Box<str>>),
    /// The markets of these event types that start soonest, up to an instant.
    Soonest { event_types: Vec<String>, until: Timestamp },
}

impl Session {
    /// Signs in with the secrets as they are now.
    pub(crate) async fn sign_in(
        settings: &BetfairSettings,
        access: &Access,
    ) -> Result<Self, NoSession> {
        let read = |what: &str, secret: &Option<crate::settings::SecretSource>| {
            let secret = secret.as_ref().ok_or_else(|| format!("there is no `{what}`"))?;
            secret.read()
        };
        let refused = NoSession::Refused;
        let app_key = read("app_key", &settings.app_key).map_err(refused)?;
        let username = read("username", &settings.username).map_err(refused)?;
        let password = read("password", &settings.password).map_err(refused)?;
        let identity = identity(settings).map_err(refused)?;
        let client = Client::new(access, identity.as_deref()).map_err(refused)?;
        let (base, path) = match identity {
            Some(_) => (CERT_LOGIN_URL, "api/certlogin"),
            None => (LOGIN_URL, "api/login"),
        };
        let base = settings.login_url.as_deref().unwrap_or(base).trim_end_matches('/');
        let pairs = [("username", username.reveal()), ("password", password.reveal())];
        let mut form =
            reqwest::Url::parse("http://localhost/").map_err(|error| refused(error.to_string()))?;
        form.query_pairs_mut().extend_pairs(pairs);
        let text = |text: &str| Secret::from(text.to_owned());
        let request = Request {
            url: format!("{base}/{path}"),
            headers: vec![
                ("x-application".to_owned(), app_key.clone()),
                ("accept".to_owned(), text("application/json")),
                ("content-type".to_owned(), text("application/x-www-form-urlencoded")),
            ],
            body: Some(text(form.query().unwrap_or_default())),
        };
        let fetched = client.send(&request).await.map_err(NoSession::Failed)?;
        if matches!(fetched.status, 401 | 403) {
            return Err(refused(format!("the sign-in was answered with {}", fetched.status)));
        }
        let login: Login = serde_json::from_slice(&fetched.body).map_err(|_| {
            NoSession::Failed(format!("the sign-in was answered with {}", fetched.status))
        })?;
        let token = if login.token.is_empty() { login.session_token } else { login.token };
        if token.is_empty() {
            let why = [login.error, login.login_status, login.status]
                .into_iter()
                .find(|why| !why.is_empty());
            let why: String =
                why.unwrap_or_default().chars().filter(char::is_ascii_graphic).take(100).collect();
            return Err(refused(format!("the sign-in was refused: {why}")));
        }
        let api_url =
            settings.api_url.as_deref().unwrap_or(API_URL).trim_end_matches('/').to_owned();
        Ok(Self { client, app_key, token: token.into(), api_url })
    }

    /// Queries the catalogue; each answer is a list of markets.
    pub(crate) async fn catalogue(self, question: Question) -> Result<Vec<Vec<u8>>, String> {
        let filters: Vec<serde_json::Value> = match &question {
            Question::Markets(ids) => {
                ids.chunks(MARKETS_AT_ONCE).map(|ids| json!({ "marketIds": ids })).collect()
            }
            Question::Soonest { event_types, until } => {
                vec![
                    json!({ "eventTypeIds": event_types, "marketStartTime": { "to": until.to_string() } }),
                ]
            }
        };
        let mut answers = Vec::new();
        for filter in filters {
            let body = json!({
                "filter": filter,
                "maxResults": MARKETS_AT_ONCE,
                "sort": "FIRST_TO_START",
                "marketProjection":
                    ["COMPETITION", "EVENT", "EVENT_TYPE", "MARKET_START_TIME", "MARKET_DESCRIPTION", "RUNNER_DESCRIPTION"],
            });
            let text = |text: &str| Secret::from(text.to_owned());
            let request = Request {
                url: format!("{}/exchange/betting/rest/v1.0/listMarketCatalogue/", self.api_url),
                headers: vec![
                    ("x-application".to_owned(), self.app_key.clone()),
                    ("x-authentication".to_owned(), self.token.clone()),
                    ("accept".to_owned(), text("application/json")),
                    ("content-type".to_owned(), text("application/json")),
                ],
                body: Some(body.to_string().into()),
            };
            let fetched = self.client.send(&request).await?;
            if fetched.status != 200 {
                return Err(format!("the catalogue was answered with {}", fetched.status));
            }
            answers.push(fetched.body);
        }
        Ok(answers)
    }
}

/// The certificate and its key in one PEM text.
fn identity(settings: &BetfairSettings) -> Result<Option<Vec<u8>>, String> {
    let Some((cert, key)) = &settings.cert else { return Ok(None) };
    let read = |path: &std::path::Path| {
        std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let mut pem = read(key)?;
    pem.push(b'\n');
    pem.extend(read(cert)?);
    Ok(Some(pem))
}

/// The ids of the markets in answers of the catalogue.
pub(crate) fn market_ids(answers: &[Vec<u8>]) -> Vec<Box<str>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Market {
        market_id: Box<str>,
    }
    let markets =
        answers.iter().filter_map(|body| serde_json::from_slice::<Vec<Market>>(body).ok());
    markets.flatten().map(|market| market.market_id).collect()
}
