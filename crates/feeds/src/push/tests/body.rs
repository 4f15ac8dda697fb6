//! A body and its lines.

use crate::push::{looks_like_text, split_lines};

#[track_caller]
fn check(body: &[u8], expected: &[(usize, &str)]) {
    let lines: Vec<(usize, &str)> = split_lines(body)
        .map(|(number, line)| (number, std::str::from_utf8(line).unwrap()))
        .collect();
    assert_eq!(lines, expected);
}

#[test]
fn lines_are_counted_from_one_and_blank_ones_are_skipped_but_counted() {
    check(b"", &[]);
    check(b"\n\n", &[]);
    check(b"a", &[(1, "a")]);
    check(b"a\n", &[(1, "a")]);
    check(b"a\r\nb\r\n", &[(1, "a"), (2, "b")]);
    check(b"\na\n \t\r\n\nb", &[(2, "a"), (5, "b")]);
    check(b"\xef\xbb\xbfa\nb", &[(1, "a"), (2, "b")]);
    check(b"a\rb\r\r\n", &[(1, "a\rb\r")]);
}

#[test]
fn a_body_is_text_unless_it_has_a_nul_or_no_line_of_utf8() {
    assert!(looks_like_text(b""));
    assert!(looks_like_text(b"\n\r\n"));
    assert!(looks_like_text(b"not json\nneither is this"));
    assert!(looks_like_text("naïve\n".as_bytes()));
    // A line in Latin-1 is a single bad line.
    assert!(looks_like_text(b"{\"home\":\"Ren\xe9\"}\n{}\n"));
    assert!(!looks_like_text(b"{}\n\0{}"));
    assert!(!looks_like_text(b"\x1f\x8b\x08\x08\xff\xfe"));
    assert!(!looks_like_text(b"\xff\xfe{\0}\0"));
}
