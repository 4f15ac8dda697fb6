//! The `date` header: formatted once a second by each thread, and copied from then on.

use std::cell::Cell;

use domain::Timestamp;

/// `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) type HttpDate = [u8; 29];

thread_local! {
    static LAST: Cell<(i64, HttpDate)> = const { Cell::new((i64::MIN, [0; 29])) };
}

/// The date in the format of HTTP.
pub(crate) fn http_date_bytes(at: Timestamp) -> HttpDate {
    let (second, text) = LAST.get();
    if second == at.as_secs() {
        return text;
    }
    let text = write(at);
    LAST.set((at.as_secs(), text));
    text
}

/// The same as text.
pub fn http_date(at: Timestamp) -> String {
    http_date_bytes(at).into_iter().map(char::from).collect()
}

fn write(at: Timestamp) -> HttpDate {
    const DAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
    const MONTHS: [&[u8; 3]; 12] = [
        b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov",
        b"Dec",
    ];
    let [y1, y2, y3, y4, _, m1, m2, _, d1, d2, _, h1, h2, _, n1, n2, _, s1, s2, _] =
        at.seconds_text();
    let weekday = usize::try_from(at.as_secs().div_euclid(86_400).rem_euclid(7)).unwrap_or(0);
    let month = usize::from(m1 - b'0') * 10 + usize::from(m2 - b'0');
    let [w1, w2, w3] = **DAYS.get(weekday).unwrap_or(&b"Thu");
    let [o1, o2, o3] = **MONTHS.get(month.wrapping_sub(1)).unwrap_or(&b"Jan");
    [
        w1, w2, w3, b',', b' ', d1, d2, b' ', o1, o2, o3, b' ', y1, y2, y3, y4, b' ', h1, h2, b':',
        n1, n2, b':', s1, s2, b' ', b'G', b'M', b'T',
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_http_wants_them() {
        for (at, expected) in [
            ("1994-11-06T08:49:37Z", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("1994-11-06T08:49:37.999Z", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("1994-11-06T08:49:38Z", "Sun, 06 Nov 1994 08:49:38 GMT"),
            ("2028-02-29T23:59:59Z", "Tue, 29 Feb 2028 23:59:59 GMT"),
            ("1969-12-31T00:00:00Z", "Wed, 31 Dec 1969 00:00:00 GMT"),
        ] {
            assert_eq!(http_date(Timestamp::parse(at).unwrap()), expected);
        }
    }
}
