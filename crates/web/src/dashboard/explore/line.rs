//! The same request as a URL and as code in each language. The URL is percent-encoded so that it needs no quoting in
//! any of them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::dashboard::explore::field::Field;
use crate::sample::{Line, Sample};

/// Characters encoded in a path, and in a query.
const IN_PATH: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const IN_QUERY: AsciiSet = IN_PATH.remove(b',').remove(b':');

/// Path and query of the submitted values.
pub(crate) fn target(template: &str, fields: &[Field]) -> String {
    let mut path = template.to_owned();
    let mut query = Vec::new();
    for field in fields {
        if field.in_path {
            let value = utf8_percent_encode(&field.value, &IN_PATH).to_string();
            path = path.replace(&format!("{{{}}}", field.name), &value);
        } else if !field.value.is_empty() {
            let value = utf8_percent_encode(&field.value, &IN_QUERY);
            query.push(format!("{}={value}", field.name));
        }
    }
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}

/// The request in every language, with a placeholder for the key.
pub(crate) fn all(base: &str, target: &str) -> Vec<Line> {
    Sample::get(format!("{base}{target}")).lines().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::explore::field;
    use crate::dashboard::form::Form;
    use api::Operation;

    fn target_of(endpoint: Operation, form: &str) -> String {
        let catalogue = domain::Catalogue::load(None).unwrap();
        let form = Form::parse(form.as_bytes()).unwrap();
        target(endpoint.row().path.unwrap(), &field::of(endpoint, &catalogue, &form))
    }

    #[test]
    fn an_address_holds_what_was_filled_in_and_nothing_empty() {
        assert_eq!(
            target_of(
                Operation::GetOdds,
                "p_sport_key=golf&p_regions=us&p_regions=uk&p_limit=3&p_market="
            ),
            "/v1/sports/golf/odds?regions=us,uk&limit=3"
        );
        assert_eq!(target_of(Operation::ListBooks, "p_limit=3"), "/v1/books");
    }

    #[test]
    fn nothing_that_is_filled_in_can_leave_its_place_in_any_language() {
        let hostile = "p_sport_key=../x%3F%23&p_limit='\"`$(id)\\\n%0A</script>";
        let target = target_of(Operation::GetOdds, &hostile.replace('\n', ""));
        assert!(
            target.starts_with("/v1/sports/..%2Fx%3F%23/odds?limit=%27%22%60%24%28id%29%5C"),
            "{target}"
        );
        for bad in ['\'', '"', '`', '$', '\\', '\n', '<', ' '] {
            assert!(!target.contains(bad), "{bad:?}");
        }
        for line in all("http://localhost:8080", &target) {
            assert_eq!(line.text.matches(&target).count(), 1);
        }
    }
}
