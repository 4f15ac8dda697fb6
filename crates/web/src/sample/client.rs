//! A request as a program that uses our clients, if they have a method for it. Names and values are written into code,
//! so only letters, digits and safe characters are allowed; anything else uses the plain request.

use percent_encoding::percent_decode_str;

use crate::sample::{Sample, variable};

/// Number of records a program prints if the request has no limit.
const ITEMS: &str = "20";

/// Client methods by path below `/v1/`; a star is an argument.
const METHODS: [(&str, &str, Gives); 17] = [
    ("sports", "sports", Gives::All("sport")),
    ("books", "books", Gives::All("bookmaker")),
    ("status", "status", Gives::One),
    ("history", "history", Gives::One),
    ("sports/*/odds", "odds", Gives::Pages("record")),
    ("sports/*/odds/closing", "closing", Gives::Pages("record")),
    ("sports/*/scores", "scores", Gives::Pages("score")),
    ("sports/*/events", "events", Gives::Pages("event")),
    ("sports/*/events/*", "event", Gives::One),
    ("sports/*/events/*/explain", "explain", Gives::One),
    ("sports/*/events/*/odds/history", "price_path", Gives::Pages("path")),
    ("sports/*/best", "best", Gives::Pages("line")),
    ("sports/*/fair", "fair", Gives::Pages("line")),
    ("sports/*/arbitrage", "arbitrage", Gives::Pages("arbitrage")),
    ("sports/*/ev", "ev", Gives::Pages("value")),
    ("sports/*/middles", "middles", Gives::Pages("middle")),
    ("sports/*/coverage", "coverage", Gives::One),
];

/// Parameters that the clients accept, by type. The others select a response format or a page.
const TEXTS: [&str; 12] = [
    "market",
    "bookmaker",
    "odds_format",
    "status",
    "commence_from",
    "commence_to",
    "name",
    "as_of",
    "method",
    "changes",
    "from",
    "to",
];
const LISTS: [&str; 4] = ["regions", "event_ids", "bookmakers", "reference"];
const NUMBERS: [&str; 7] =
    ["limit", "max_age", "stake", "min_books", "min_ev", "min_profit", "max_cost"];

/// Result of a method; for a list, the name of an item.
#[derive(Clone, Copy)]
enum Gives {
    One,
    All(&'static str),
    Pages(&'static str),
}

/// A method call.
struct Call {
    base: String,
    method: &'static str,
    gives: Gives,
    /// Path arguments, quoted alike in every language.
    arguments: Vec<String>,
    /// Names and values as written in every language.
    parameters: Vec<(String, String)>,
    is_by_bout: bool,
}

/// The request in Python, TypeScript and Rust. `None` if no client method makes it.
pub(super) fn programs(sample: &Sample) -> Option<[String; 3]> {
    if sample.body.is_empty() {
        let call = Call::of(sample)?;
        Some([call.python(), call.typescript(), call.rust()])
    } else {
        push(sample)
    }
}

impl Call {
    fn of(sample: &Sample) -> Option<Self> {
        let [(header, key)] = sample.headers.as_slice() else { return None };
        if header != "X-API-Key" || key != "$LINESMAN_KEY" {
            return None;
        }
        let (base, target) = sample.url.split_once("/v1/")?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let parts: Vec<&str> = path.split('/').collect();
        let is_of = |pattern: &str| {
            let own: Vec<&str> = pattern.split('/').collect();
            own.len() == parts.len()
                && own.iter().zip(&parts).all(|(own, part)| *own == "*" || own == part)
        };
        let (pattern, method, gives) = METHODS.into_iter().find(|(own, ..)| is_of(own))?;
        let pairs = pattern.split('/').zip(&parts).filter(|(own, _)| *own == "*");
        let arguments = pairs.map(|(_, part)| quoted(part)).collect::<Option<_>>()?;
        let mut call = Self {
            base: quoted(base)?,
            method,
            gives,
            arguments,
            parameters: Vec::new(),
            is_by_bout: false,
        };
        let mut items = ITEMS.to_owned();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=')?;
            if (name, value, method) == ("group_by", "bout", "odds") {
                (call.is_by_bout, call.gives) = (true, Gives::Pages("bout"));
                continue;
            }
            if name == "limit" {
                value.clone_into(&mut items);
            }
            call.parameters.push((name.to_owned(), written(name, value)?));
        }
        if let Gives::Pages(_) = call.gives {
            call.parameters.push(("max_items".to_owned(), items));
        }
        Some(call)
    }

    fn python(&self) -> String {
        let mut arguments = self.arguments.clone();
        arguments.extend(self.is_by_bout.then(|| "group_by=\"bout\"".to_owned()));
        arguments.extend(self.parameters.iter().map(|(name, value)| {
            // `from` is a keyword.
            let name = if name == "from" { "from_" } else { name };
            format!("{name}={value}")
        }));
        let call = format!("client.{}({})", self.method, arguments.join(", "));
        let body = match self.gives {
            Gives::One => format!("    print({call}.data)"),
            Gives::All(item) | Gives::Pages(item) => {
                format!("    for {item} in {call}:\n        print({item})")
            }
        };
        format!("from linesman import Linesman\n\nwith Linesman({}) as client:\n{body}", self.base)
    }

    fn typescript(&self) -> String {
        let mut fields: Vec<String> = Vec::new();
        fields.extend(self.is_by_bout.then(|| "group_by: \"bout\"".to_owned()));
        fields.extend(self.parameters.iter().map(|(name, value)| format!("{name}: {value}")));
        let mut arguments = self.arguments.clone();
        arguments.extend((!fields.is_empty()).then(|| format!("{{ {} }}", fields.join(", "))));
        let call = format!("client.{}({})", self.method, arguments.join(", "));
        let body = match self.gives {
            Gives::One => format!("const {{ data }} = await {call};\nconsole.log(data);"),
            Gives::All(item) | Gives::Pages(item) => {
                format!("for await (const {item} of {call}) {{\n  console.log({item});\n}}")
            }
        };
        format!(
            "import {{ Linesman }} from \"linesman-client\";\n\nconst client = new Linesman({{ url: {} }});\n{body}",
            self.base
        )
    }

    fn rust(&self) -> String {
        let mut calls = vec![format!("{}({})", self.method, self.arguments.join(", "))];
        calls.extend(self.is_by_bout.then(|| "group_by_bout()".to_owned()));
        calls.extend(self.parameters.iter().map(|(name, value)| format!("{name}({value})")));
        let body = match self.gives {
            Gives::One => {
                format!("    println!(\"{{:?}}\", client.{}.await?.data);", calls.join("."))
            }
            Gives::All(item) | Gives::Pages(item) => format!(
                "    let mut {item}s = client\n        .{}\n        .items();\n    \
                 while let Some({item}) = {item}s.next().await {{\n        println!(\"{{:?}}\", {item}?);\n    }}",
                calls.join("\n        .")
            ),
        };
        format!(
            "use linesman_client::Client;\n\n#[tokio::main]\nasync fn main() -> linesman_client::Result<()> {{\n    \
             let client = Client::builder().url({}).build()?;\n{body}\n    Ok(())\n}}",
            self.base
        )
    }
}

/// A push of lines shown in the documentation.
fn push(sample: &Sample) -> Option<[String; 3]> {
    let [(header, value)] = sample.headers.as_slice() else { return None };
    let base = quoted(sample.url.strip_suffix("/ingest/v1/messages")?)?;
    let (_, token) = variable(value).filter(|(before, _)| *before == "Bearer ")?;
    if header != "Authorization" {
        return None;
    }
    let body = &sample.body;
    let python = format!(
        "import json, os\nfrom linesman import Feed\n\nmessages = r\"\"\"{body}\"\"\"\n\
         with Feed({base}, os.environ[\"{token}\"]) as feed:\n    \
         print(feed.push(json.loads(line) for line in messages.splitlines()))"
    );
    let objects = body.lines().map(|line| format!("  {line},\n")).collect::<String>();
    let typescript = format!(
        "import {{ Feed }} from \"linesman-client\";\n\nconst feed = new Feed({base}, process.env.{token} ?? \"\");\n\
         const receipt = await feed.push([\n{objects}]);\nconsole.log(receipt);"
    );
    let rust = format!(
        "use linesman_client::Feed;\n\nconst MESSAGES: &str = r#\"{body}\"#;\n\n#[tokio::main]\n\
         async fn main() -> Result<(), Box<dyn std::error::Error>> {{\n    \
         let feed = Feed::new({base}, std::env::var(\"{token}\")?)?;\n    \
         println!(\"{{:?}}\", feed.push_lines(MESSAGES.lines()).await?);\n    Ok(())\n}}"
    );
    Some([python, typescript, rust])
}

/// A parameter's value as written in every language; `None` if the clients do not accept it.
fn written(name: &str, value: &str) -> Option<String> {
    if TEXTS.contains(&name) {
        return quoted(value);
    }
    if LISTS.contains(&name) {
        let items = value.split(',').map(quoted).collect::<Option<Vec<_>>>()?;
        return Some(format!("[{}]", items.join(", ")));
    }
    let is_number = value.parse::<f64>().is_ok()
        && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && value.starts_with(|first: char| first.is_ascii_digit())
        // Numbers with leading zeros differ between languages.
        && (value.len() == 1 || !value.starts_with('0') || value.starts_with("0."));
    (NUMBERS.contains(&name) && is_number).then(|| value.to_owned())
}

/// A quoted text, if its quoting is the same in every language.
fn quoted(text: &str) -> Option<String> {
    let text = percent_decode_str(text).decode_utf8().ok()?;
    // The page fills in braces.
    let is_harmless = |letter: char| letter.is_alphanumeric() || " -._~:/[]{}".contains(letter);
    text.chars().all(is_harmless).then(|| format!("\"{text}\""))
}
