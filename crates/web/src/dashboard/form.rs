//! Submitted form fields: `application/x-www-form-urlencoded`, bounded by the caller. Fields may be passwords, so they
//! are never printed.

use std::fmt;

use http::percent::decode;

/// Maximum number of fields; more than any form has.
const FIELDS_MAX: usize = 64;

/// The fields of a form, or of a query.
#[derive(Default)]
pub(crate) struct Form(Vec<(String, String)>);

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Form({} fields)", self.0.len())
    }
}

impl Form {
    /// Parses a form; `None` if it is not UTF-8 or has too many fields.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let mut fields = Vec::new();
        for field in std::str::from_utf8(body).ok()?.split('&').filter(|field| !field.is_empty()) {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            fields.push((decode(name)?.into_owned(), decode(value)?.into_owned()));
        }
        (fields.len() <= FIELDS_MAX).then_some(Self(fields))
    }

    /// The first field with that name; empty if there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value)
    }

    /// All fields with that name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// A query of the non-empty fields: `?q=two+words`, or an empty text.
pub(crate) fn query(fields: &[(&str, &str)]) -> String {
    let fields = fields.iter().filter(|(_, value)| !value.is_empty());
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    if query.is_empty() { query } else { format!("?{query}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded() {
        let form =
            Form::parse(b"email=a%40b.c&note=one+two%0d%0A&group=a&group=b&empty=&flag").unwrap();
        assert_eq!((form.get("email"), form.get("note")), ("a@b.c", "one two\r\n"));
        assert_eq!(form.all("group").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!((form.get("empty"), form.get("flag"), form.get("none")), ("", "", ""));
    }

    #[test]
    fn what_is_no_form_is_refused() {
        for bad in ["a=%", "a=%4", "a=%zz", "a=%ff", &"a=1&".repeat(65)] {
            assert!(Form::parse(bad.as_bytes()).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_query_says_what_it_was_made_of() {
        let made = query(&[("q", "Jiří & \"x\"+<1>"), ("sport", ""), ("page", "2")]);
        assert!(made.is_ascii() && made.starts_with("?q="), "{made}");
        let read = Form::parse(made.trim_start_matches('?').as_bytes()).unwrap();
        assert_eq!((read.get("q"), read.get("page")), ("Jiří & \"x\"+<1>", "2"));
        assert_eq!(query(&[("q", "")]), "");
    }

    #[test]
    fn a_form_is_not_printed() {
        let form = Form::parse(b"password=secret").unwrap();
        assert!(!format!("{form:?}").contains("secret"));
    }
}
