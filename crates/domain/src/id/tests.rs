use std::collections::HashSet;

use super::*;

#[test]
fn ids_round_trip_and_sort_as_text() {
    let mut ids: Vec<EventId> = (0..1000).map(|n| EventId::minted(7, n)).collect();
    ids.push(EventId::from_number(u64::MAX));
    ids.push(EventId::from_number(0));
    ids.sort_unstable();
    let texts: Vec<String> = ids.iter().map(ToString::to_string).collect();
    assert!(texts.is_sorted());
    for (id, text) in ids.iter().zip(&texts) {
        assert_eq!(EventId::parse(text), Some(*id));
    }
    for bad in
        ["", "evt_", "evt_zzzzzzzzzzz", "odd_00000000000", "evt_0000000000-", "evt_000000000000"]
    {
        assert_eq!(EventId::parse(bad), None, "{bad}");
    }
}

#[test]
fn minted_ids_never_repeat() {
    let made: HashSet<EventId> = (0..100_000).map(|n| EventId::minted(42, n)).collect();
    assert_eq!(made.len(), 100_000);
}

#[test]
fn a_record_is_told_apart_by_each_of_its_parts() {
    let event = EventId::from_number(5);
    let ids: HashSet<RecordId> = [
        RecordId::new(event, "a", Market::Matchup, None),
        RecordId::new(event, "b", Market::Matchup, None),
        RecordId::new(event, "a", Market::ThreeBall, None),
        RecordId::new(event, "a", Market::Matchup, Some("1")),
        RecordId::new(EventId::from_number(6), "a", Market::Matchup, None),
    ]
    .into();
    assert_eq!(ids.len(), 5);
}

#[test]
fn the_prior_form_is_32_digits_of_which_only_those_of_a_number_are_an_id() {
    for number in [0, 1, 0x5c1e_0f2a_9b77_44d1, u64::MAX] {
        let id = EventId::from_number(number);
        let mut text = String::new();
        id.push_hex(&mut text);
        assert_eq!(text.len(), 32);
        assert_eq!(EventId::parse_hex(&text), Ok(Some(id)));
        let last = if text.ends_with('0') { '1' } else { '0' };
        text.pop();
        assert_eq!(EventId::parse_hex(&text), Err(NotHex));
        text.push(last);
        assert_eq!(EventId::parse_hex(&text), Ok(None));
    }
    for other in ["", "evt_00000000001", &"A".repeat(32), &"+".repeat(32), &"g".repeat(32)] {
        assert_eq!(EventId::parse_hex(other), Err(NotHex), "{other}");
    }
}
