//! Converts the times of feeds to instants: ISO 8601 with its usual variations, a given form, seconds or
//! milliseconds.

use domain::time::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};

/// A time zone by name or offset.
///
/// # Errors
/// There is no such zone.
pub(super) fn parse_zone(name: &str) -> Result<TimeZone, String> {
    if name.eq_ignore_ascii_case("utc") || name == "Z" {
        return Ok(TimeZone::UTC);
    }
    if let Some(seconds) = parse_offset(name) {
        return offset_zone(seconds).ok_or_else(|| format!("`{name}` is not an offset"));
    }
    // The database is part of the program: the same on every machine, and nothing is read from disk.
    TimeZoneDatabase::bundled().get(name).map_err(|_| {
        format!("`{name}` is not a time zone; use a name such as `Europe/London`, or `+02:00`")
    })
}

/// Reads ISO 8601: `T` or a space, seconds optional, any number of places, with or without an offset.
pub(super) fn parse_iso(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    if let Ok(instant) = Timestamp::parse(text) {
        return Some(instant);
    }
    let (date, rest) = text.split_at_checked(10)?;
    let mut parts = date.splitn(3, ['-', '/']);
    let (year, month, day) =
        (digits(parts.next()?)?, digits(parts.next()?)?, digits(parts.next()?)?);
    let rest = rest.strip_prefix(['T', 't', ' ']).unwrap_or(rest).trim();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.' && c != ',');
    let (clock, offset) = rest.split_at_checked(end.unwrap_or(rest.len()))?;
    let (clock, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, ""));
    let mut parts = clock.split(':').filter(|part| !part.is_empty());
    let mut next = || parts.next().map_or(Some(0), digits);
    let (hour, minute, second) = (next()?, next()?, next()?);
    if parts.next().is_some() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let millis = fraction
        .bytes()
        .chain(*b"000")
        .take(3)
        .fold(0_i64, |n, digit| n * 10 + i64::from(digit - b'0'));
    let date = DateTime::new(
        i16::try_from(year).ok()?,
        i8::try_from(month).ok()?,
        i8::try_from(day).ok()?,
        i8::try_from(hour).ok()?,
        i8::try_from(minute).ok()?,
        i8::try_from(second.min(59)).ok()?,
        i32::try_from(millis).ok()? * 1_000_000,
    );
    let offset = offset.trim();
    let zone = match offset {
        "" => zone.clone(),
        "Z" | "z" | "UTC" | "GMT" => TimeZone::UTC,
        _ => offset_zone(parse_offset(offset)?)?,
    };
    instant(date.ok()?, &zone)
}

/// Checks a form of `time`, once per mapping.
///
/// # Errors
/// The form has an unknown directive.
pub(super) fn check_form(form: &str) -> Result<(), String> {
    let any = DateTime::constant(2026, 11, 14, 23, 38, 0, 0).to_zoned(TimeZone::UTC);
    let any = any.map_err(|error| error.to_string())?;
    strtime::format(form, &any).map(drop).map_err(|error| format!("`{form}`: {error}"))
}

/// Reads a time in the given form.
pub(super) fn parse_form(text: &str, form: &str, zone: &TimeZone) -> Option<Timestamp> {
    let parsed = strtime::parse(form, text).ok()?;
    if parsed.offset().is_some() {
        return parsed
            .to_timestamp()
            .ok()
            .map(|instant| Timestamp::from_millis(instant.as_millisecond()));
    }
    instant(parsed.to_datetime().ok()?, zone)
}

fn instant(date: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let zoned = date.to_zoned(zone.clone()).ok()?;
    Some(Timestamp::from_millis(zoned.timestamp().as_millisecond()))
}

fn offset_zone(seconds: i32) -> Option<TimeZone> {
    Offset::from_seconds(seconds).ok().map(TimeZone::fixed)
}

/// `+02:00`, `-0500` or `+02` in seconds.
fn parse_offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest.split_once(':') {
        Some(parts) => parts,
        None => rest.split_at_checked(2)?,
    };
    let minutes = if minutes.is_empty() { 0 } else { digits(minutes)? };
    let seconds = digits(hours)? * 3600 + minutes * 60;
    Some(sign * i32::try_from(seconds).ok()?)
}

fn digits(text: &str) -> Option<i64> {
    let valid = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
    if valid { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_the_forms_that_feeds_use() {
        let london = parse_zone("Europe/London").unwrap();
        let eastern = parse_zone("-05:00").unwrap();
        for (text, zone, expected) in [
            ("2026-04-05 15:10:00+00", &london, "2026-04-05T15:10:00Z"),
            ("2021-05-10T03:00", &london, "2021-05-10T02:00:00Z"),
            ("2021-01-10T03:00", &london, "2021-01-10T03:00:00Z"),
            ("2021-03-06 18:00:00.0", &eastern, "2021-03-06T23:00:00Z"),
            ("2021-03-06T18:00:00.1234567Z", &eastern, "2021-03-06T18:00:00Z"),
            ("2021-03-06", &eastern, "2021-03-06T05:00:00Z"),
            ("2021-03-06T18:00:00 -0700", &london, "2021-03-07T01:00:00Z"),
        ] {
            let read = parse_iso(text, zone).map(|instant| instant.to_string());
            assert_eq!(read.as_deref(), Some(expected), "{text}");
        }
        for bad in
            ["", "2021", "2021-13-01T00:00:00", "tomorrow at noon", "2021-03-06T18:00:00 east"]
        {
            assert_eq!(parse_iso(bad, &london), None, "{bad}");
        }
        let read = |text, form| parse_form(text, form, &london).map(|instant| instant.to_string());
        assert_eq!(
            read("30/03/21 21:00:00", "%d/%m/%y %H:%M:%S").as_deref(),
            Some("2021-03-30T20:00:00Z")
        );
        assert_eq!(read("20210307", "%Y%m%d").as_deref(), Some("2021-03-07T00:00:00Z"));
        assert_eq!(
            read("2021/06/20T03:00:00Z UTC", "%Y/%m/%dT%H:%M:%SZ UTC").as_deref(),
            Some("2021-06-20T02:00:00Z")
        );
        assert!(parse_zone("Europe/Lundon").is_err());
        assert!(check_form("%i").is_err());
    }
}
