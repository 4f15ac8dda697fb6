//! What a bucket answers in XML: lists of objects, and why it refuses. Only a few elements are looked for, and what is
//! not as expected is refused as a whole.

use domain::Timestamp;

/// A page of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) objects: Vec<Listed>,
    /// Where the next page begins; `None`: this is the last.
    pub(super) next: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) key: String,
    pub(super) modified: Timestamp,
}

/// Longest text of an element that is taken; keys have up to 1024 bytes.
const TEXT_MAX: usize = 8192;
/// Longest code of a refusal that is shown.
const CODE_MAX: usize = 64;

impl Page {
    /// Reads a page; `None`: it is no list.
    pub(super) fn parse(xml: &str) -> Option<Self> {
        let result = element(xml, "ListBucketResult")?.0;
        let mut page = Self::default();
        let mut rest = result;
        while let Some((object, after)) = element(rest, "Contents") {
            let modified = Timestamp::parse(&text(object, "LastModified")?).ok()?;
            page.objects.push(Listed { key: text(object, "Key")?, modified });
            rest = after;
        }
        page.next = match text(result, "IsTruncated").as_deref() {
            Some("true") => Some(text(result, "NextContinuationToken")?),
            _ => None,
        };
        Some(page)
    }
}

/// The code of a refusal, such as `SignatureDoesNotMatch`.
pub(super) fn refusal(xml: &str) -> Option<String> {
    let code = text(element(xml, "Error")?.0, "Code")?;
    let shown = code.len() <= CODE_MAX && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (shown && !code.is_empty()).then_some(code)
}

/// What is in the first element of a name, and what follows it. Elements of one name are not in each other.
fn element<'a>(xml: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let open = format!("<{name}");
    let mut rest = xml;
    loop {
        let (_, after) = rest.split_once(&open)?;
        rest = after;
        // Not one whose name only begins so; attributes may follow.
        if after.starts_with(['>', ' ', '\n', '\t', '\r']) {
            break;
        }
    }
    let (_, inside) = rest.split_once('>')?;
    inside.split_once(&format!("</{name}>"))
}

/// The text of an element.
fn text(xml: &str, name: &str) -> Option<String> {
    let (raw, _) = element(xml, name)?;
    if raw.len() > TEXT_MAX {
        return None;
    }
    let mut text = String::new();
    let mut rest = raw;
    while let Some((before, reference)) = rest.split_once('&') {
        text.push_str(before);
        let (name, after) = reference.split_once(';')?;
        text.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => numbered(name.strip_prefix('#')?)?,
        });
        rest = after;
    }
    text.push_str(rest);
    Some(text)
}

fn numbered(digits: &str) -> Option<char> {
    let number = match digits.strip_prefix('x') {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    char::from_u32(number.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><Prefix>a&amp;b/</Prefix>
<KeyCount>2</KeyCount><IsTruncated>true</IsTruncated><NextContinuationToken>1/x=&#x3D;</NextContinuationToken>
<Contents><Key>a&amp;b/odds/sport=mma/1.parquet</Key><LastModified>2026-11-14T23:38:00.000Z</LastModified>
<ETag>&quot;70ee1738b6b21e2c8a43f3a5ab0eee71&quot;</ETag><Size>11</Size></Contents>
<Contents><Key>a&amp;b/2</Key><LastModified>2026-11-14T23:38:01.000Z</LastModified></Contents></ListBucketResult>"#;

    #[test]
    fn a_page_is_read_with_its_keys_times_and_what_follows() {
        let page = Page::parse(PAGE).unwrap();
        let keys: Vec<&str> = page.objects.iter().map(|object| &*object.key).collect();
        assert_eq!(keys, ["a&b/odds/sport=mma/1.parquet", "a&b/2"]);
        assert_eq!(page.objects[0].modified.to_string(), "2026-11-14T23:38:00Z");
        assert_eq!(page.next.as_deref(), Some("1/x=="));
        assert_eq!(Page::parse("<ListBucketResult></ListBucketResult>"), Some(Page::default()));
    }

    #[test]
    fn what_is_no_list_is_refused_as_a_whole() {
        for bad in [
            "",
            "<html>",
            "<ListBucketResult>",
            "<ListBucketResults></ListBucketResults>",
            "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
            "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        ] {
            assert_eq!(Page::parse(bad), None, "{bad}");
        }
        let mut cut = (0..PAGE.len()).filter_map(|end| PAGE.get(..end));
        assert!(cut.all(|beginning| Page::parse(beginning).is_none()));
    }

    #[test]
    fn a_refusal_shows_its_code_and_nothing_else_of_the_answer() {
        let answer = "<Error><Code>SignatureDoesNotMatch</Code><Message>token</Message></Error>";
        assert_eq!(refusal(answer).as_deref(), Some("SignatureDoesNotMatch"));
        assert_eq!(refusal("<Error><Code>a token: x</Code></Error>"), None);
        assert_eq!(refusal("busy"), None);
    }
}
