//! Messages for refused parameters: what is wrong and how to correct it (D4).

use domain::suggest::did_you_mean;

use crate::error::ApiError;
use crate::operation::Operation;
use crate::v1::param::Param;

/// The parameters that accept lists, each with an example.
const LIST_EXAMPLES: [(Param, &str); 7] = [
    (Param::Regions, "us,uk"),
    (Param::Region, "us,uk"),
    (Param::EventIds, "evt_1,evt_2"),
    (Param::Sports, "mma,boxing"),
    (Param::Channels, "odds,scores"),
    (Param::Bookmakers, "bet365,fanduel"),
    (Param::Reference, "bet365,fanduel"),
];

pub(super) fn repeated(param: Param) -> String {
    let name = param.name();
    let mut text = format!("`{name}` is sent more than once");
    if let Some((_, list)) = LIST_EXAMPLES.iter().find(|(own, _)| *own == param) {
        text.push_str(&format!("; separate its values with commas: `{name}={list}`"));
    }
    text
}

pub(super) fn unknown(operation: Operation, name: &str) -> ApiError {
    if name == Param::ApiKey.name() {
        let text = "`api_key` is not accepted here; send the key in the request header X-API-Key";
        return ApiError::param(Param::ApiKey.name(), text);
    }
    let known = || {
        operation
            .row()
            .params()
            .iter()
            .map(|param| param.name())
            .filter(|n| *n != Param::ApiKey.name())
    };
    let near = did_you_mean(name, known());
    let list: Vec<&str> = known().collect();
    let takes = if list.is_empty() {
        "this endpoint takes no parameters".to_owned()
    } else {
        format!("this endpoint takes {}", list.join(", "))
    };
    let name = short(name);
    ApiError::param(name.clone(), format!("unknown parameter `{name}`; {takes}{near}"))
}

pub(crate) fn unknown_value<'a>(
    what: &str,
    given: &str,
    keys: impl Iterator<Item = &'a str> + Clone,
) -> String {
    let near = did_you_mean(given, keys.clone());
    let list: Vec<&str> = keys.collect();
    format!("there is no {what} `{}`; use one of {}{near}", short(given), list.join(", "))
}

/// A value sent by the client, shortened and without secrets, for use in a message.
pub(crate) fn short(text: &str) -> String {
    if looks_secret(text) { "…".to_owned() } else { text.chars().take(40).collect() }
}

/// True if a text may contain a key or a token, or a part of one: 32 letters and digits after a prefix, which is
/// easily left out. No known name has a run of ten of them with a digit, or of twenty without.
fn looks_secret(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut runs = lower.split(|c: char| !c.is_ascii_alphanumeric());
    lower.contains("sk_")
        || lower.contains("fk_")
        || runs.any(|run| {
            let has_digit = run.bytes().any(|byte| byte.is_ascii_digit());
            run.len() >= 20 || (run.len() >= 10 && has_digit)
        })
}
