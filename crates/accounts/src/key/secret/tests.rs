use super::*;

#[test]
fn a_key_is_its_prefix_and_32_base62_characters_and_reads_back() {
    for (kind, prefix) in [(KeyKind::Sandbox, "sk_test_"), (KeyKind::Production, "sk_live_")] {
        let key = KeySecret::generate(kind).unwrap();
        let random = key.expose().strip_prefix(prefix).unwrap();
        assert_eq!(random.len(), 32);
        assert!(random.bytes().all(|b| b.is_ascii_alphanumeric()));
        let read = KeySecret::parse(key.expose().as_bytes()).unwrap();
        assert_eq!((read.kind(), read.digest()), (kind, key.digest()));
    }
}

/// The scheme is published for scanners: a change of it must fail here.
#[test]
fn the_checksum_is_base62_of_crc_32() {
    assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
    assert_eq!(checksum(b"123456789"), *b"3jZRME");
    assert_eq!(checksum(b""), *b"000000");
}

#[test]
fn every_mistyped_character_is_noticed() {
    let key = KeySecret::generate(KeyKind::Production).unwrap();
    let token = FeedToken::generate().unwrap();
    for at in 0..40 {
        for byte in (0..=u8::MAX).filter(|&byte| byte != key.text[at]) {
            let mut text = key.text;
            text[at] = byte;
            assert!(KeySecret::parse(&text).is_none());
        }
    }
    for at in 0..35 {
        for byte in (0..=u8::MAX).filter(|&byte| byte != token.text[at]) {
            let mut text = token.text;
            text[at] = byte;
            assert!(FeedToken::parse(&text).is_none());
        }
    }
}

#[test]
fn what_is_too_short_too_long_or_of_another_sort_is_refused() {
    let key = KeySecret::generate(KeyKind::Sandbox).unwrap();
    let token = FeedToken::generate().unwrap();
    assert!(KeySecret::parse(&key.text[..39]).is_none());
    assert!(KeySecret::parse(&[&key.text[..], b"0"].concat()).is_none());
    assert!(KeySecret::parse(&token.text).is_none());
    assert!(FeedToken::parse(&key.text).is_none());
    assert!(KeySecret::parse(b"").is_none());
}

#[test]
fn debug_shows_nothing_secret() {
    let key = KeySecret::generate(KeyKind::Sandbox).unwrap();
    let token = FeedToken::generate().unwrap();
    assert_eq!(format!("{key:?}"), "KeySecret(sk_test_…)");
    assert_eq!(format!("{token:?}"), "FeedToken(fk_…)");
    assert_eq!(format!("{:?}", key.digest()), "Digest(..)");
    assert_eq!(key.hint().chars().count(), 11);
}

#[test]
fn ids_and_keys_do_not_repeat() {
    let ids: std::collections::HashSet<_> = (0..1000).map(|_| KeyId::generate().unwrap()).collect();
    assert_eq!(ids.len(), 1000);
    assert!(ids.iter().all(|id| id.as_str().len() == 20 && id.as_str().starts_with("key_")));
}
