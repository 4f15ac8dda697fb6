//! The parts of a Rust file.

/// The code of a file before its module of tests, which is the last item.
pub(crate) fn without_tests(text: &str) -> &str {
    let mut tests = text.match_indices("#[cfg(test)]").map(|(at, attribute)| {
        let item = text.get(at + attribute.len()..).unwrap_or_default().trim_start();
        (at, item.lines().find(|line| !line.starts_with("#[")).unwrap_or_default())
    });
    let tests = tests.find(|(_, item)| {
        let name = item.split_once("mod ").filter(|(before, _)| is_visibility(before));
        name.is_some_and(|(_, name)| name.contains('{'))
    });
    tests.and_then(|(at, _)| text.get(..at)).unwrap_or(text)
}

fn is_visibility(text: &str) -> bool {
    text.is_empty() || (text.starts_with("pub") && text.ends_with(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_ends_at_its_module_of_tests_and_at_no_other_item_for_tests() {
        let code = "#[cfg(test)]\nmod tests;\n#[cfg(test)]\nfn mod_a() {}\nfn b() {}\n";
        assert_eq!(without_tests(code), code);
        for module in ["mod tests {", "#[allow(dead_code)]\npub(crate) mod a {", "mod t { c(); }"] {
            let text = format!("{code}#[cfg(test)]\n{module}\n}}");
            assert_eq!(without_tests(&text), code, "{module}");
        }
    }
}
