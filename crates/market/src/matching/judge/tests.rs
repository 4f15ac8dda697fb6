use std::sync::Arc;

use domain::Catalogue;
use domain::message::Fixture;

use super::super::contest::Lexicon;
use super::*;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

struct Bench {
    catalogue: Arc<Catalogue>,
    lexicon: Lexicon,
}

impl Bench {
    fn new() -> Self {
        let catalogue = Arc::new(Catalogue::load(None).unwrap());
        let lexicon = Lexicon::new(&catalogue);
        Self { catalogue, lexicon }
    }

    /// "Home v Away [competition]".
    fn view<'a>(&self, sport: &str, text: &'a str, secs: i64) -> ListingView<'a> {
        let (names, competition) = text.split_once(" [").unwrap_or((text, ""));
        let fixture = match names.split_once(" v ") {
            Some((home, away)) => Fixture::HeadToHead { home: home.into(), away: away.into() },
            None => Fixture::Field { title: names.into() },
        };
        let sport = self.catalogue.sport_id(sport).unwrap();
        ListingView {
            contest: Cow::Owned(Contest::parse(&self.lexicon, sport, &fixture)),
            commence_time: Timestamp::from_secs(secs),
            competition: competition.trim_end_matches(']'),
            signature: NameSignature::BLANK,
            feed: None,
            event: None,
        }
    }

    fn verdict(&self, sport: &str, one: &str, other: &str, apart_s: i64) -> Verdict {
        let rules = self.catalogue.sport(self.catalogue.sport_id(sport).unwrap());
        let judge = |one: &str, other: &str, apart_s: i64| {
            let start = 1_800_000_000;
            let (one, other) =
                (self.view(sport, one, start), self.view(sport, other, start + apart_s));
            Evidence::gather(&one, &other).verdict(rules)
        };
        let verdict = judge(one, other, apart_s);
        assert_eq!(verdict, judge(other, one, -apart_s), "{one} / {other}");
        verdict
    }

    #[track_caller]
    fn all(&self, expected: Verdict, sport: &str, apart_s: i64, pairs: &[(&str, &str)]) {
        for (one, other) in pairs {
            assert_eq!(self.verdict(sport, one, other, apart_s), expected, "{one} / {other}");
        }
    }
}

const VELDT: (&str, &str) = ("Tomas Veldt v Oren Castellane", "Castellane O. v Veldt T.");
const CHARLO: (&str, &str) = ("Jermell Charlo v Brian Castano", "Jermall Charlo v Brian Castano");

#[test]
fn the_same_two_are_one_event_within_the_window_unsure_beyond_it_and_two_much_later() {
    let bench = Bench::new();
    for (sport, within, after) in [
        ("mma", 336, 1080),
        ("boxing", 336, 1080),
        ("tennis", 48, 372),
        ("american_football", 72, 152),
    ] {
        let names =
            if sport == "american_football" { ("LAR v SEA", "Seahawks v Rams") } else { VELDT };
        bench.all(Verdict::Same, sport, 0, &[names]);
        bench.all(Verdict::Same, sport, within * HOUR, &[names]);
        bench.all(Verdict::Unsure(Doubt::Time), sport, within * HOUR + 60, &[names]);
        bench.all(Verdict::Unsure(Doubt::Time), sport, after * HOUR, &[names]);
        bench.all(Verdict::Different, sport, after * HOUR + 60, &[names]);
    }
    bench.all(Verdict::Same, "golf", 120 * HOUR, &[("The Harbour Open", "Harbour Open 2026")]);
    bench.all(Verdict::Different, "golf", 145 * HOUR, &[("The Harbour Open", "Harbour Open 2026")]);
}

#[test]
fn rematches_are_not_taken_for_one() {
    let bench = Bench::new();
    let names = [("Zverev A. v Sinner J.", "Alexander Zverev v Jannik Sinner"), VELDT];
    // In tennis, a week later may be the next tournament, a month later certainly is.
    bench.all(Verdict::Unsure(Doubt::Time), "tennis", 7 * DAY, &names);
    bench.all(Verdict::Different, "tennis", 30 * DAY, &names);
    bench.all(
        Verdict::Different,
        "american_football",
        7 * DAY,
        &[("LAR v SEA", "Rams v Seahawks")],
    );
    bench.all(Verdict::Unsure(Doubt::Time), "mma", 30 * DAY, &names);
    bench.all(Verdict::Different, "mma", 46 * DAY, &names);
}

#[test]
fn two_numbers_of_one_series_are_two_cards() {
    let bench = Bench::new();
    let names = |one, other| {
        (format!("Veldt T. v Orsk P. [{one}]"), format!("Tomas Veldt v Pavel Orsk [{other}]"))
    };
    let judge = |one, other| {
        let (one, other) = names(one, other);
        bench.verdict("mma", &one, &other, 7 * DAY)
    };
    assert_eq!(judge("UFC 259", "UFC 260"), Verdict::Unsure(Doubt::Time));
    assert_eq!(judge("Northern Cage 12", "NORTHERN CAGE 12: Veldt v Orsk"), Verdict::Same);
    assert_eq!(judge("UFC 260", "UFC on ESPN 21"), Verdict::Same);
    assert_eq!(judge("Boxing", "Title fight"), Verdict::Same);
    assert_eq!(judge("Cage Night 2026", "Cage Night 2027"), Verdict::Same);
}

#[test]
fn twins_are_one_only_in_the_same_session_against_the_same_opponent() {
    let bench = Bench::new();
    let invented = ("Marcell Veldt v Pavel Orsk", "Marcall Veldt v Pavel Orsk");
    bench.all(Verdict::Same, "boxing", 2 * HOUR, &[CHARLO, invented]);
    bench.all(Verdict::Unsure(Doubt::Name), "boxing", 5 * DAY, &[CHARLO, invented]);
    bench.all(Verdict::Different, "boxing", 20 * DAY, &[CHARLO, invented]);
    bench.all(
        Verdict::Different,
        "boxing",
        0,
        &[
            ("Jermell Charlo v Brian Castano", "Jermall Charlo v Juan Macias Montiel"),
            ("Marcell Veldt v Pavel Orsk", "Marcall Veldt v Oren Castellane"),
        ],
    );
    // Against each other it is one bout, in either order.
    bench.all(
        Verdict::Same,
        "boxing",
        HOUR,
        &[("Jermell Charlo v Jermall Charlo", "Jermall Charlo v Jermell Charlo")],
    );
}

#[test]
fn one_participant_in_common_is_not_enough() {
    let bench = Bench::new();
    bench.all(
        Verdict::Different,
        "mma",
        0,
        &[
            ("Warlley Alves v Jeremiah Wells", "Warlley Alves v Ramazan Emeev"),
            ("Tomas Veldt v Oren Castellane", "Tomas Veldt v Pavel Orsk"),
            ("Tomas Veldt v Oren Castellane", "Tomas Veldt v Castellane M."),
            ("Zverev A. v Sinner J.", "Zverev M. v Sinner J."),
            ("Zverev A. v Sinner J.", "Zverev A. v Isner J."),
            ("Roy Jones Jr. v Tomas Veldt", "Roy Jones Sr. v Tomas Veldt"),
            ("Oren Berg v Tomas Veldt", "Ivan Berg v Pavel Veldt"),
        ],
    );
    // One common word on the other side leaves doubt, within a session.
    let halves = [("Tomas Veldt v Kalle Wendt", "Tomas Veldt v Oskar Wendt")];
    bench.all(Verdict::Unsure(Doubt::Name), "mma", HOUR, &halves);
    bench.all(Verdict::Different, "mma", 3 * DAY, &halves);
}

#[test]
fn what_is_only_nearly_the_name_needs_the_session() {
    let bench = Bench::new();
    let near = [
        ("Tomas Veldt v Castellane", "Tomas Veldt v Oren Castellane"),
        ("Tomas Veldt v Nick Diaz", "Tomas Veldt v Nate Diaz"),
        ("Veldt T. v Alex Zverev", "Tomas Veldt v Alexander Zverev"),
        ("Tomas Veldt v Juan Pablo Orsk", "Tomas Veldt v Juan Carlos Orsk"),
    ];
    bench.all(Verdict::Same, "mma", 36 * HOUR, &near);
    bench.all(
        Verdict::Unsure(Doubt::Name),
        "mma",
        0,
        &[("Veldt v Castellane", "Tom Veldt v Ore Castellane")],
    );
    for (one, other) in near {
        let late = bench.verdict("mma", one, other, 5 * DAY);
        assert_ne!(late, Verdict::Same, "{one} / {other}");
    }
}

#[test]
fn a_surer_match_has_more_confidence() {
    let bench = Bench::new();
    let rules = bench.catalogue.sport(bench.catalogue.sport_id("mma").unwrap());
    let confidence = |other: &str, apart_s: i64| {
        let one = bench.view("mma", "Tomas Veldt v Oren Castellane [Cage 12]", 0);
        Evidence::gather(&one, &bench.view("mma", other, apart_s)).confidence(rules)
    };
    let falling = [
        confidence("Tomas Veldt v Oren Castellane [Cage 12]", 0),
        confidence("Veldt T. v Oren Castellane [Cage 12]", 0),
        confidence("Veldt T. v Oren Castellane [Cage 12]", 300 * HOUR),
        confidence("Veldt T. v Oren Castellane [Cage 13]", 300 * HOUR),
        confidence("Veldt T. v Pavel Orsk [Cage 13]", 300 * HOUR),
    ];
    assert_eq!(falling[0], 1000);
    assert!(falling.windows(2).all(|pair| pair[0] > pair[1]), "{falling:?}");
}

#[test]
fn the_evidence_is_told_in_words() {
    let bench = Bench::new();
    let told = |one: &str, other: &str, apart_s: i64| {
        let (one, other) = (bench.view("mma", one, 0), bench.view("mma", other, apart_s));
        Evidence::gather(&one, &other).to_string()
    };
    assert_eq!(
        told(
            "Tomas Veldt v Oren Castellane [Cage 12]",
            "Castellane O. v Veldt T. [Cage 12]",
            90 * 60
        ),
        "both sides: the same surname and initials; home and away the other way round; \
         starts 90 minutes apart; the same competition"
    );
    assert_eq!(
        told(
            "Tomas Veldt v Oren Castellane [Cage 12]",
            "Tomas Veldt v Pavel Orsk [Cage 13]",
            4 * DAY
        ),
        "one side: the same name, the other: another name; starts 4 days apart; another competition"
    );
    for doubt in [Doubt::Time, Doubt::Name, Doubt::Rival] {
        assert!(!doubt.to_string().is_empty());
    }
}
