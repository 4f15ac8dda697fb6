//! Answers of the past, requested during faults and between them.

use super::Finding;
use crate::faults::record::Repeat;

/// The meaning of an answer that was requested again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Same,
    /// The node cannot rebuild it now.
    Unavailable,
    /// No node has answered.
    Unanswered,
    Wrong,
}

/// The same bytes and the same tag, or 503 (H4, H6, H20).
pub(super) fn as_seen(repeats: &[Repeat]) -> Finding {
    let mut finding = Finding::new("as_of during faults gives what was seen then, or 503");
    let (mut same, mut unavailable, mut unanswered) = (0, 0, 0);
    for repeat in repeats {
        match judge(repeat) {
            Verdict::Same => same += 1,
            Verdict::Unavailable => unavailable += 1,
            Verdict::Unanswered => unanswered += 1,
            Verdict::Wrong => finding.violate(|| {
                let node = repeat.node.map_or("nginx".to_owned(), |node| node.to_string());
                let Repeat { path, sent_ms, status, etag, error, .. } = repeat;
                let error = error.as_deref().unwrap_or("another answer");
                format!("{node} at {sent_ms}: {path} is {status}, tag {etag:?}: {error}")
            }),
        }
    }
    finding.figures = format!(
        "{} requests: {same} the same, {unavailable} times 503, {unanswered} not answered",
        repeats.len()
    );
    if same == 0 {
        finding.violate(|| "nothing was compared".to_owned());
    }
    finding
}

fn judge(repeat: &Repeat) -> Verdict {
    let is_same = repeat.body.is_some()
        && (&repeat.body, &repeat.etag) == (&repeat.seen_body, &repeat.seen_etag);
    match repeat.status {
        200 if is_same => Verdict::Same,
        503 => Verdict::Unavailable,
        0 => Verdict::Unanswered,
        // Of the load balancer itself.
        502 | 504 if repeat.node.is_none() => Verdict::Unanswered,
        _ => Verdict::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use crate::cluster::unit::Unit;

    use super::*;

    /// An answer of a node to a request for one that was seen with the tag `a` and the body 1.
    fn repeat(status: u16, etag: &str, body: u64) -> Repeat {
        Repeat {
            node: Some(Unit::Api(1)),
            path: "/v1/books?as_of=2026-11-14T12:00:30.000Z".to_owned(),
            seen_etag: Some("a".to_owned()),
            seen_body: Some(1),
            status,
            etag: Some(etag.to_owned()),
            body: (status == 200).then_some(body),
            ..Repeat::default()
        }
    }

    #[test]
    fn the_same_answer_or_none_at_the_moment_is_right() {
        let cut_off = Repeat { etag: None, ..repeat(0, "", 0) };
        let of_nginx = |status| Repeat { node: None, etag: None, ..repeat(status, "", 0) };
        let all = [repeat(200, "a", 1), repeat(503, "", 0), cut_off, of_nginx(502), of_nginx(504)];
        let finding = as_seen(&all);
        assert!(finding.holds(), "{finding:?}");
        let figures = "5 requests: 1 the same, 1 times 503, 3 not answered";
        assert_eq!(finding.figures, figures);
    }

    #[test]
    fn any_other_answer_is_told() {
        let same = repeat(200, "a", 1);
        let others = [
            repeat(200, "a", 2),
            repeat(200, "b", 1),
            repeat(404, "", 0),
            repeat(400, "", 0),
            repeat(500, "", 0),
            repeat(401, "", 0),
            repeat(304, "a", 1),
            repeat(502, "", 0),
        ];
        for other in others {
            assert_eq!(as_seen(&[same.clone(), other.clone()]).broken_count, 1, "{other:?}");
        }
    }

    #[test]
    fn requests_without_any_answer_show_nothing() {
        assert!(!as_seen(&[]).holds());
        assert!(!as_seen(&[repeat(503, "", 0)]).holds());
    }
}
