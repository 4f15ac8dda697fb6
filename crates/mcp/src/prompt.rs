//! Prompts: common tasks for models, with the rules for prices that change.

use rmcp::model::{ErrorData, GetPromptResult, PromptArgument, PromptMessage, Role};
use serde_json::Value;

use crate::message::Params;

/// Maximum length of a value: no name is longer.
const VALUE_CHARS_MAX: usize = 200;

/// The end of every prompt.
const RULES: &str = "Prices change: state how old each price is (`last_update`, compared with `server_time` of \
get_status), leave out or mark those that are stale, and present nothing as certain: no price, no probability and no \
profit is guaranteed.";

struct Prompt {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    arguments: &'static [(&'static str, &'static str)],
    /// The prompt's text, with the arguments in braces.
    text: &'static str,
}

const EVENT: (&str, &str) =
    ("event", "The event: its id, or the name of a participant or tournament.");

const PROMPTS: [Prompt; 3] = [
    Prompt {
        name: "compare_prices",
        title: "Compare prices",
        description: "Compares the bookmakers' prices for an event.",
        arguments: &[EVENT],
        text: "Compare the bookmakers' prices for this event: {event}\n\nFind it with list_events (`name` takes names, \
               and list_sports has the sport keys). Read get_best for the best price of every outcome and get_odds with \
               its `event_id` for the others. Show one table for each market: outcome, best price and its bookmaker, the \
               other prices.",
    },
    Prompt {
        name: "why_no_price",
        title: "Why is there no price?",
        description: "Finds out why a bookmaker has no price for an event.",
        arguments: &[EVENT, ("bookmaker", "The bookmaker's key, or its title.")],
        text: "Find out why there is no price of the bookmaker {bookmaker} for this event: {event}\n\nFind the event with \
               list_events (`name` takes names, and list_sports has the sport keys) and the bookmaker's key with \
               list_books. Call explain_event with both, and explain in plain words what it says: the reason, since when, \
               and what would have to happen for a price to appear.",
    },
    Prompt {
        name: "fair_price",
        title: "Fair prices",
        description: "Estimates prices without the bookmakers' margin for an event.",
        arguments: &[
            EVENT,
            ("method", "How the margin is removed: a value of `method` of get_fair."),
        ],
        text: "Estimate fair prices, without the bookmakers' margin, for this event: {event}\n\nFind it with list_events \
               (`name` takes names, and list_sports has the sport keys). Call get_fair with its `event_id` and the method \
               {method}, and get_best for the best prices on offer. For every outcome show the fair probability and \
               price, the best price on offer and by how much they differ, and say how many bookmakers the estimate is \
               made of.",
    },
];

/// The result of `prompts/list`.
pub(crate) fn list() -> Vec<rmcp::model::Prompt> {
    let argument = |(name, meaning): &(&str, &str)| {
        PromptArgument::new(*name).with_description(*meaning).with_required(true)
    };
    let listed = |prompt: &Prompt| {
        let arguments = prompt.arguments.iter().map(argument).collect();
        rmcp::model::Prompt::new(prompt.name, Some(prompt.description), Some(arguments))
            .with_title(prompt.title)
    };
    PROMPTS.iter().map(listed).collect()
}

/// The result of `prompts/get`.
///
/// # Errors
/// There is no such prompt, or an argument is missing, unknown or too long.
pub(crate) fn get(name: &str, given: Option<&Params>) -> Result<GetPromptResult, ErrorData> {
    let invalid = |text: String| ErrorData::invalid_params(text, None);
    let prompt = PROMPTS.iter().find(|prompt| prompt.name == name);
    let prompt = prompt.ok_or_else(|| invalid("there is no such prompt".to_owned()))?;
    let is_known = |given: &str| prompt.arguments.iter().any(|(name, _)| *name == given);
    if given.into_iter().flatten().any(|(name, _)| !is_known(name)) {
        let names: Vec<&str> = prompt.arguments.iter().map(|(name, _)| *name).collect();
        return Err(invalid(format!("`{name}` takes {}", names.join(" and "))));
    }
    let mut values = Vec::new();
    for (name, _) in prompt.arguments {
        let value = given.and_then(|given| given.get(*name)).and_then(Value::as_str);
        let value = value.map(str::trim).filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| invalid(format!("`{name}` is needed, as a text")))?;
        if value.chars().count() > VALUE_CHARS_MAX || value.chars().any(char::is_control) {
            let text = format!("`{name}` has at most {VALUE_CHARS_MAX} characters, on one line");
            return Err(invalid(text));
        }
        values.push((*name, value));
    }
    let text = format!("{}\n\n{RULES}", fill(prompt.text, &values));
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(prompt.description))
}

/// Replaces the names in braces by values, each as JSON text, whose end is unambiguous. Values are not searched for
/// names.
fn fill(text: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::new();
    let mut parts = text.split('{');
    filled.extend(parts.next());
    for part in parts {
        let (name, rest) = part.split_once('}').unwrap_or((part, ""));
        let value = values.iter().find(|(known, _)| *known == name);
        filled.extend(value.map(|(_, value)| Value::from(*value).to_string()));
        filled.push_str(rest);
    }
    filled
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text_of(params: &Value) -> Result<String, String> {
        let name = params["name"].as_str().unwrap_or_default();
        let result = get(name, params["arguments"].as_object());
        let result = result.map_err(|error| error.message.into_owned())?;
        let result = serde_json::to_value(result).unwrap();
        Ok(result["messages"][0]["content"]["text"].as_str().unwrap().to_owned())
    }

    #[test]
    fn every_prompt_says_what_to_do_and_that_nothing_is_certain() {
        for prompt in &PROMPTS {
            let values = prompt
                .arguments
                .iter()
                .map(|(name, _)| ((*name).to_owned(), json!("{event} \"x\"")));
            let values: Params = values.collect();
            let text = text_of(&json!({ "name": prompt.name, "arguments": values })).unwrap();
            assert!(text.contains("how old each price is") && text.contains("nothing as certain"));
            // The value is inserted verbatim, and its braces are not replaced.
            assert_eq!(text.matches(r#""{event} \"x\"""#).count(), prompt.arguments.len());
        }
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (params, named) in [
            (json!({}), "no such prompt"),
            (json!({"name": "compare_prices"}), "`event` is needed"),
            (json!({"name": "compare_prices", "arguments": {"event": " "}}), "`event` is needed"),
            (json!({"name": "compare_prices", "arguments": {"event": 1}}), "`event` is needed"),
            (json!({"name": "compare_prices", "arguments": {"event": "a\nb"}}), "on one line"),
            (json!({"name": "compare_prices", "arguments": {"event": "a".repeat(201)}}), "at most"),
            (json!({"name": "why_no_price", "arguments": {"event": "a"}}), "`bookmaker`"),
            (
                json!({"name": "fair_price", "arguments": {"event": "a", "key": "b"}}),
                "event and method",
            ),
        ] {
            let error = text_of(&params).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }
}
