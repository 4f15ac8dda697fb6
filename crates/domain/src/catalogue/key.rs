//! The form of keys of sports, groups and bookmakers.

pub(super) fn check_key(key: &str) -> Result<(), String> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    if (1..=40).contains(&key.len()) && key.bytes().all(plain) {
        Ok(())
    } else {
        Err(format!("key `{key}` must be 1 to 40 characters of a-z, 0-9 and _"))
    }
}
