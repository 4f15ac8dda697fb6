//! A request as a call of one of our clients, in Python, TypeScript and Rust. The key is where the clients look for it.

use std::borrow::Cow;

use crate::sample::{Sample, variable};

/// Operations of a sport whose answers are lists.
const LISTS: [&str; 8] = ["odds", "scores", "events", "best", "fair", "arbitrage", "ev", "middles"];
/// Parameters that are written without quotes.
const NUMBERS: [&str; 4] = ["limit", "max_age", "min_books", "stake"];
/// Parameters that make an answer something else than what a method gives.
const NO_ARGUMENT: [&str; 5] = ["since", "cursor", "format", "group_by", "region"];
const INGEST: &str = "/ingest/v1/messages";

/// The code in Python, TypeScript and Rust; `None`: no method makes this request as it is.
pub(super) fn code(sample: &Sample) -> Option<[String; 3]> {
    match Call::of(sample) {
        Some(call) => Some([call.python(), call.typescript(), call.rust()]),
        None => Push::of(sample).map(|push| [push.python(), push.typescript(), push.rust()]),
    }
}

/// A call of a method.
struct Call<'a> {
    base: &'a str,
    method: &'a str,
    is_list: bool,
    arguments: Vec<&'a str>,
    parameters: Vec<(&'a str, Cow<'a, str>)>,
}

impl<'a> Call<'a> {
    fn of(sample: &'a Sample) -> Option<Self> {
        let [(name, value)] = sample.headers.as_slice() else { return None };
        if name != "X-API-Key" || value != "$LINESMAN_KEY" || !sample.body.is_empty() {
            return None;
        }
        let (base, target) = sample.url.split_once("/v1/")?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let parts: Vec<&str> = path.split('/').collect();
        let (method, is_list, arguments) = match parts.as_slice() {
            [method @ ("sports" | "books")] => (*method, true, vec![]),
            [method @ ("status" | "history")] if query.is_empty() => (*method, false, vec![]),
            ["sports", sport, "coverage"] => ("coverage", false, vec![*sport]),
            ["sports", sport, method] if LISTS.contains(method) => (*method, true, vec![*sport]),
            ["sports", sport, "events", event] => ("event", false, vec![*sport, *event]),
            ["sports", sport, "events", event, "explain"] => {
                ("explain", false, vec![*sport, *event])
            }
            _ => return None,
        };
        let mut parameters = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=')?;
            if NO_ARGUMENT.contains(&name) {
                return None;
            }
            let value = http::percent::decode(value)?;
            parameters.push((name, value.clone()));
            // One page, as the request asks for: the size of a page is no end of a list.
            if name == "limit" {
                parameters.push(("max_items", value));
            }
        }
        Some(Self { base, method, is_list, arguments, parameters })
    }

    /// The arguments and then the parameters, written by a language.
    fn list(&self, parameter: impl Fn(&str, &str) -> String) -> Vec<String> {
        let arguments = self.arguments.iter().map(|argument| format!("{argument:?}"));
        let named =
            self.parameters.iter().map(|(name, value)| parameter(name, &literal(name, value)));
        arguments.chain(named).collect()
    }

    fn python(&self) -> String {
        let list = self.list(|name, value| format!("{name}={value}")).join(", ");
        let call = format!("client.{}({list})", self.method);
        let read = match self.is_list {
            true => format!("for record in {call}:\n        print(record)"),
            false => format!("print({call}.data)"),
        };
        format!(
            "from linesman import Linesman\n\nwith Linesman(\"{}\") as client:\n    {read}",
            self.base
        )
    }

    fn typescript(&self) -> String {
        let mut list: Vec<String> =
            self.arguments.iter().map(|argument| format!("{argument:?}")).collect();
        let named = self.parameters.iter();
        let named: Vec<String> =
            named.map(|(name, value)| format!("{name}: {}", literal(name, value))).collect();
        if !named.is_empty() {
            list.push(format!("{{ {} }}", named.join(", ")));
        }
        let call = format!("client.{}({})", self.method, list.join(", "));
        let read = match self.is_list {
            true => format!("for await (const record of {call}) console.log(record);"),
            false => format!("console.log((await {call}).data);"),
        };
        format!(
            "import {{ Linesman }} from \"linesman-client\";\n\n\
             const client = new Linesman({{ url: \"{}\" }});\n{read}",
            self.base
        )
    }

    fn rust(&self) -> String {
        let arguments: Vec<String> =
            self.arguments.iter().map(|argument| format!("{argument:?}")).collect();
        let mut call = format!("client.{}({})", self.method, arguments.join(", "));
        for (name, value) in &self.parameters {
            let value = literal(name, value);
            call.push_str(&match *name {
                "max_items" => format!("\n        .max_items({value})"),
                name => format!("\n        .param(\"{name}\", {value})"),
            });
        }
        let read = if self.is_list { ".all().await?" } else { ".await?.data" };
        program(
            "use linesman_client::Client;",
            &format!(
                "    let client = Client::builder().url(\"{}\").build()?;\n    let answer = {call}{read};\n    \
                 println!(\"{{answer:#?}}\");",
                self.base
            ),
        )
    }
}

/// Messages that a feed pushes.
struct Push<'a> {
    base: &'a str,
    token: &'a str,
    messages: Vec<&'a str>,
}

impl<'a> Push<'a> {
    fn of(sample: &'a Sample) -> Option<Self> {
        let [(name, value)] = sample.headers.as_slice() else { return None };
        let ("Bearer ", token) = variable(value)? else { return None };
        let base = sample.url.strip_suffix(INGEST).filter(|_| name == "Authorization")?;
        let messages: Vec<&str> = sample.body.lines().collect();
        // Objects whose text is the same in every language.
        let is_plain = |line: &&str| {
            let other = ["true", "false", "null"];
            line.starts_with('{') && !other.iter().any(|word| line.contains(word))
        };
        (!messages.is_empty() && messages.iter().all(is_plain)).then_some(Self {
            base,
            token,
            messages,
        })
    }

    fn list(&self, before: &str, after: &str) -> String {
        self.messages.iter().map(|message| format!("{before}{message}{after}\n")).collect()
    }

    fn python(&self) -> String {
        format!(
            "import os\n\nfrom linesman import Feed\n\nmessages = [\n{}]\n\
             with Feed(\"{}\", os.environ[\"{}\"]) as feed:\n    print(feed.push(messages))",
            self.list("    ", ","),
            self.base,
            self.token
        )
    }

    fn typescript(&self) -> String {
        format!(
            "import {{ Feed }} from \"linesman-client\";\nimport type {{ FeedMessage }} from \"linesman-client\";\n\n\
             const messages: FeedMessage[] = [\n{}];\nconst feed = new Feed(\"{}\", process.env.{}!);\n\
             console.log(await feed.push(messages));",
            self.list("  ", ","),
            self.base,
            self.token
        )
    }

    fn rust(&self) -> String {
        program(
            "use linesman_client::Feed;\nuse serde_json::json;",
            &format!(
                "    let messages = [\n{}    ];\n    let feed = Feed::new(\"{}\", std::env::var(\"{}\")?)?;\n    \
                 println!(\"{{:#?}}\", feed.push(messages).await?);",
                self.list("        json!(", "),"),
                self.base,
                self.token
            ),
        )
    }
}

fn literal(name: &str, value: &str) -> String {
    let is_number = NUMBERS.contains(&name) || name == "max_items";
    match is_number && value.bytes().all(|byte| byte.is_ascii_digit()) {
        true => value.to_owned(),
        false => format!("{value:?}"),
    }
}

/// A whole program in Rust.
fn program(uses: &str, body: &str) -> String {
    format!(
        "{uses}\n\n#[tokio::main]\nasync fn main() -> Result<(), Box<dyn std::error::Error>> {{\n{body}\n    Ok(())\n}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(url: &str) -> Option<[String; 3]> {
        code(&Sample::get(format!("http://h{url}")))
    }

    #[test]
    fn a_request_is_a_call_of_a_method() {
        let [python, typescript, rust] =
            code_of("/v1/sports/mma/odds?market=moneyline&regions=us,eu&limit=3").unwrap();
        assert_eq!(
            python,
            "from linesman import Linesman\n\nwith Linesman(\"http://h\") as client:\n    \
             for record in client.odds(\"mma\", market=\"moneyline\", regions=\"us,eu\", limit=3, max_items=3):\n        \
             print(record)"
        );
        assert!(typescript.contains(
            "of client.odds(\"mma\", { market: \"moneyline\", regions: \"us,eu\", limit: 3, max_items: 3 })"
        ));
        assert!(
            rust.contains(".param(\"limit\", 3)\n        .max_items(3).all().await?;"),
            "{rust}"
        );
        let [python, typescript, rust] =
            code_of("/v1/sports/mma/events/evt_1/explain?market=spread").unwrap();
        assert!(
            python.contains("print(client.explain(\"mma\", \"evt_1\", market=\"spread\").data)")
        );
        assert!(
            typescript.contains(
                "(await client.explain(\"mma\", \"evt_1\", { market: \"spread\" })).data"
            )
        );
        assert!(rust.contains("client.explain(\"mma\", \"evt_1\")\n        .param(\"market\", \"spread\").await?.data;"));
        assert!(code_of("/v1/status").unwrap()[0].contains("print(client.status().data)"));
    }

    #[test]
    fn what_no_method_does_is_left_to_http() {
        for url in ["/v1/stream", "/v1/sports/mma/odds?format=csv", "/v1/nothing", "/openapi.json"]
        {
            assert!(code_of(url).is_none(), "{url}");
        }
    }

    #[test]
    fn a_push_goes_through_a_feed() {
        let body = "{\"type\":\"heartbeat\"}\n{\"type\":\"remove\",\"ref\":\"a\"}".to_owned();
        let headers = vec![("Authorization".to_owned(), "Bearer $TOKEN".to_owned())];
        let mut sample = Sample { url: format!("http://h{INGEST}"), headers, body };
        for text in code(&sample).unwrap() {
            assert!(
                text.contains("{\"type\":\"remove\",\"ref\":\"a\"}") && text.contains("TOKEN"),
                "{text}"
            );
        }
        sample.body = "{\"type\":\"odds\",\"suspended\":true}".to_owned();
        assert!(code(&sample).is_none());
    }
}
