//! "Did you mean …?" suggestions for keys with a typing error.

/// Longer than any key; longer texts are not compared, to bound the work.
const KEY_BYTES_MAX: usize = 40;

/// The end of a sentence that suggests the nearest key, or nothing.
pub fn did_you_mean<'a>(given: &str, keys: impl Iterator<Item = &'a str>) -> String {
    nearest(given, keys).map(|key| format!("; did you mean `{key}`?")).unwrap_or_default()
}

/// The key with the fewest edits, if they are few for its length. Case and punctuation do not count: a source that
/// says `Draft Kings` means `draftkings`.
pub fn nearest<'a>(given: &str, keys: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let edits_max = (fold(given).chars().count() / 3).min(2);
    let (edits, key) = closest_by(given, keys)?;
    (edits <= edits_max).then_some(key)
}

/// The key with the fewest edits, however many those are.
pub fn closest<'a>(given: &str, keys: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    closest_by(given, keys).map(|(_, key)| key)
}

fn closest_by<'a>(given: &str, keys: impl Iterator<Item = &'a str>) -> Option<(usize, &'a str)> {
    if given.len() > KEY_BYTES_MAX {
        return None;
    }
    let given = fold(given);
    let edits = keys.map(|key| (strsim::osa_distance(&given, &fold(key)), key));
    edits.min().filter(|_| !given.is_empty())
}

/// A key without case and punctuation.
pub(crate) fn fold(key: &str) -> String {
    key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_named_only_when_it_is_near() {
        let keys = ["draftkings", "fanduel", "tab", "unibet", "unibet_us"];
        for (given, expected) in [
            ("fan_duel", Some("fanduel")),
            ("FanDual", Some("fanduel")),
            ("Draft Kings", Some("draftkings")),
            ("unibet-us", Some("unibet_us")),
            ("tba", Some("tab")),
            ("ta", None),
            ("", None),
            ("--", None),
            ("corner_shop", None),
        ] {
            assert_eq!(nearest(given, keys.into_iter()), expected, "{given}");
        }
        assert_eq!(nearest(&"fanduel".repeat(9), keys.into_iter()), None);
        assert_eq!(closest("tabcorp", keys.into_iter()), Some("tab"));
        assert_eq!(closest(&"fanduel".repeat(9), keys.into_iter()), None);
    }
}
