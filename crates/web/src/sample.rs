//! An API request as code in four languages: curl, Python, TypeScript and Rust; the last three use our clients if they
//! have a method for it. Keys and tokens come from the environment, so that no secret is in code.

mod client;

/// A request in one language.
pub(crate) struct Line {
    pub(crate) id: &'static str,
    pub(crate) language: &'static str,
    pub(crate) text: String,
}

/// A request. Header values and the body are used as written; `$NAME` in a header is an environment variable.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    /// Body of a POST; empty for a GET.
    pub(crate) body: String,
}

impl Sample {
    /// A GET with the API key.
    pub(crate) fn get(url: String) -> Self {
        let key = ("X-API-Key".to_owned(), "$LINESMAN_KEY".to_owned());
        Self { url, headers: vec![key], body: String::new() }
    }

    /// Parses a curl command with headers and an optional here-document. `None` if it does anything else.
    pub(crate) fn parse(curl: &str) -> Option<Self> {
        let (command, body) = curl.split_once("<<'END'\n").unwrap_or((curl, ""));
        let body = body.trim_end().strip_suffix("END").unwrap_or(body).trim_end().to_owned();
        let command = command.replace("\\\n", " ");
        let mut words = words(command.trim())?.into_iter();
        if words.next()? != "curl" {
            return None;
        }
        let mut sample = Self { url: String::new(), headers: Vec::new(), body };
        while let Some(word) = words.next() {
            match word.as_str() {
                "-s" | "-i" => {}
                "-H" => {
                    let header = words.next()?;
                    let (name, value) = header.split_once(": ")?;
                    sample.headers.push((name.to_owned(), value.to_owned()));
                }
                "--data-binary" if words.next()? == "@-" => {}
                url if url.starts_with("http") && sample.url.is_empty() => sample.url = word,
                _ => return None,
            }
        }
        (!sample.url.is_empty()).then_some(sample)
    }

    /// The request in every language, curl first.
    pub(crate) fn lines(&self) -> [Line; 4] {
        let plain = || [self.python(), self.typescript(), self.rust()];
        let [python, typescript, rust] = client::programs(self).unwrap_or_else(plain);
        [
            Line { id: "curl", language: "curl", text: self.curl() },
            Line { id: "python", language: "Python", text: python },
            Line { id: "typescript", language: "TypeScript", text: typescript },
            Line { id: "rust", language: "Rust", text: rust },
        ]
    }

    fn curl(&self) -> String {
        let headers = self.headers.iter().map(|(name, value)| {
            let quote = if value.contains('$') { '"' } else { '\'' };
            format!("-H {quote}{name}: {value}{quote} ")
        });
        let headers: String = headers.collect();
        if self.body.is_empty() {
            return format!("curl {headers}\\\n  '{}'", self.url);
        }
        format!("curl {headers}\\\n  --data-binary @- '{}' <<'END'\n{}\nEND", self.url, self.body)
    }

    fn python(&self) -> String {
        let value = |value: &str| match variable(value) {
            Some(("", name)) => format!("os.environ[\"{name}\"]"),
            Some((before, name)) => format!("\"{before}\" + os.environ[\"{name}\"]"),
            None => format!("{value:?}"),
        };
        let headers =
            self.headers.iter().map(|(name, text)| format!("\"{name}\": {}", value(text)));
        let headers = headers.collect::<Vec<_>>().join(", ");
        let (before, data) = if self.body.is_empty() {
            (String::new(), "")
        } else {
            (format!("body = r\"\"\"{}\"\"\"\n", self.body), "\n    data=body.encode(),")
        };
        format!(
            "import json, os, urllib.request\n\n{before}request = urllib.request.Request(\n    \"{}\",{data}\n    \
             headers={{{headers}}},\n)\nwith urllib.request.urlopen(request, timeout=10) as answer:\n    \
             print(answer.status, json.load(answer))",
            self.url
        )
    }

    fn typescript(&self) -> String {
        let value = |value: &str| match variable(value) {
            Some(("", name)) => format!("process.env.{name}!"),
            Some((before, name)) => format!("`{before}${{process.env.{name}}}`"),
            None => format!("{value:?}"),
        };
        let headers =
            self.headers.iter().map(|(name, text)| format!("\"{name}\": {}", value(text)));
        let headers = headers.collect::<Vec<_>>().join(", ");
        let (before, more) = if self.body.is_empty() {
            (String::new(), "")
        } else {
            (format!("const body = `{}`;\n", self.body), "method: \"POST\", body, ")
        };
        format!(
            "{before}const answer = await fetch(\n  \"{}\",\n  {{ {more}headers: {{ {headers} }} }},\n);\n\
             console.log(answer.status, await answer.json());",
            self.url
        )
    }

    fn rust(&self) -> String {
        let value = |value: &str| match variable(value) {
            Some(("", name)) => format!("std::env::var(\"{name}\")?"),
            Some((before, name)) => {
                format!("format!(\"{before}{{}}\", std::env::var(\"{name}\")?)")
            }
            None => format!("{value:?}"),
        };
        let headers = self.headers.iter();
        let headers: String = headers
            .map(|(name, text)| format!("    .header(\"{name}\", {})\n", value(text)))
            .collect();
        let (method, body) = if self.body.is_empty() {
            ("get", String::new())
        } else {
            ("post", format!("    .body(r#\"{}\"#)\n", self.body))
        };
        format!(
            "let answer = reqwest::Client::new()\n    .{method}(\"{}\")\n{headers}{body}    .send()\n    .await?;\n\
             println!(\"{{}} {{}}\", answer.status(), answer.text().await?);",
            self.url
        )
    }
}

/// A value that ends in a variable: the prefix and the variable's name.
fn variable(value: &str) -> Option<(&str, &str)> {
    value.split_once('$')
}

/// Splits a command into words like a shell, with quotes. `None` if a quote is not closed or there is more than one
/// command.
fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in command.chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '\n' | '|' | ';' | '>') => return None,
            (None, ' ') => words.extend(word.take()),
            (_, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curl_command_is_read_and_written_again() {
        let sample = Sample::parse(
            "curl -s -H \"X-API-Key: $LINESMAN_KEY\" -H 'If-None-Match: \"x\"' \\\n  'http://h/v1/books'\n",
        )
        .unwrap();
        assert_eq!(sample.url, "http://h/v1/books");
        assert_eq!(sample.headers.last().unwrap().1, "\"x\"");
        let [curl, python, typescript, rust] = sample.lines();
        assert_eq!(Sample::parse(&curl.text), Some(sample));
        assert!(
            python.text.contains("os.environ[\"LINESMAN_KEY\"], \"If-None-Match\": \"\\\"x\\\"\"")
        );
        assert!(typescript.text.contains("process.env.LINESMAN_KEY!"), "{}", typescript.text);
        assert!(rust.text.contains(".header(\"X-API-Key\", std::env::var(\"LINESMAN_KEY\")?)"));
    }

    #[test]
    fn a_push_keeps_its_body_in_every_language() {
        let curl = "curl -H \"Authorization: Bearer $T\" \\\n  --data-binary @- 'http://h/x' <<'END'\n{\"a\":1}\n{\"b\":2}\nEND";
        let sample = Sample::parse(curl).unwrap();
        assert_eq!(sample.body, "{\"a\":1}\n{\"b\":2}");
        // Not an address of ours, so the clients are not used.
        for line in sample.lines() {
            assert!(
                line.text.contains(&sample.body) && line.text.contains("Bearer "),
                "{}",
                line.text
            );
        }
        assert_eq!(sample.lines()[0].text, curl);
    }

    #[test]
    fn programs_use_the_clients_where_they_have_a_method() {
        let odds = "http://h/v1/sports/mma/odds?market=moneyline&regions=us,uk&limit=5";
        let [_, python, typescript, rust] = Sample::get(odds.to_owned()).lines();
        assert_eq!(
            python.text,
            "from linesman import Linesman\n\nwith Linesman(\"http://h\") as client:\n    for record in \
             client.odds(\"mma\", market=\"moneyline\", regions=[\"us\", \"uk\"], limit=5, max_items=5):\n        \
             print(record)"
        );
        let call = "client.odds(\"mma\", { market: \"moneyline\", regions: [\"us\", \"uk\"], limit: 5, max_items: 5 })";
        assert!(typescript.text.contains(call), "{}", typescript.text);
        assert!(
            rust.text.contains(".regions([\"us\", \"uk\"])\n        .limit(5)"),
            "{}",
            rust.text
        );
        let one = "http://h/v1/sports/golf/events/evt_1/explain?as_of=2026-11-14T23:38:00Z";
        let [_, python, ..] = Sample::get(one.to_owned()).lines();
        let call =
            "print(client.explain(\"golf\", \"evt_1\", as_of=\"2026-11-14T23:38:00Z\").data)";
        assert!(python.text.ends_with(call), "{}", python.text);
        let pushed = "curl -H \"Authorization: Bearer $FEED_TOKEN\" --data-binary @- http://h/ingest/v1/messages <<'END'\n{\"a\":1}\nEND";
        for line in &Sample::parse(pushed).unwrap().lines()[1..] {
            assert!(line.text.contains("Feed") && line.text.contains("{\"a\":1}"), "{}", line.text);
        }
    }

    #[test]
    fn what_the_clients_have_no_method_for_stays_a_plain_request() {
        for target in [
            "sports/mma/odds?format=csv",
            "sports/mma/odds?since=abc",
            "sports/mma/odds?limit=05",
            "sports/mma/odds?limit=1e3",
            "sports/mma/events?name=%22%29",
            "sports/mma/events?name=a%0Ab",
            "sports/%24x/odds",
            "stream",
        ] {
            let [_, python, typescript, rust] =
                Sample::get(format!("http://h/v1/{target}")).lines();
            for line in [python, typescript, rust] {
                assert!(line.text.contains(&format!("http://h/v1/{target}")), "{}", line.text);
            }
        }
        let tagged =
            "curl -H \"X-API-Key: $LINESMAN_KEY\" -H 'If-None-Match: \"x\"' http://h/v1/books";
        assert!(Sample::parse(tagged).unwrap().lines()[1].text.contains("urllib"));
    }

    #[test]
    fn what_is_more_than_a_request_is_left_as_it_is() {
        for text in
            ["curl http://h | jq .", "linesman serve", "curl -X POST http://h", "curl 'http://h"]
        {
            assert_eq!(Sample::parse(text), None, "{text}");
        }
    }
}
