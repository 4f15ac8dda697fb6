use std::sync::Arc;

use proptest::prelude::*;

use super::*;

struct Ring {
    catalogue: Arc<Catalogue>,
    lexicon: Lexicon,
}

impl Ring {
    fn new() -> Self {
        let catalogue = Arc::new(Catalogue::load(None).unwrap());
        let lexicon = Lexicon::new(&catalogue);
        Self { catalogue, lexicon }
    }

    fn contest(&self, sport: &str, text: &str) -> Contest {
        let fixture = match text.split_once(" v ") {
            Some((home, away)) => Fixture::HeadToHead { home: home.into(), away: away.into() },
            None => Fixture::Field { title: text.into() },
        };
        let sport = self.catalogue.sport_id(sport).unwrap();
        Contest::parse(&self.lexicon, sport, &fixture)
    }

    fn compare(&self, sport: &str, one: &str, other: &str) -> Agreement {
        let (one, other) = (self.contest(sport, one), self.contest(sport, other));
        let (agreement, back) = (one.compare(&other), other.compare(&one));
        let sorted = |agreement: Agreement| {
            let mut sides = agreement.sides;
            sides.sort_unstable();
            sides
        };
        assert_eq!(sorted(agreement), sorted(back));
        agreement
    }

    fn weaker(&self, sport: &str, one: &str, other: &str) -> Likeness {
        self.compare(sport, one, other).sides.into_iter().min().unwrap()
    }

    #[track_caller]
    fn firm(&self, sport: &str, pairs: &[(&str, &str)]) {
        for (one, other) in pairs {
            let weaker = self.weaker(sport, one, other);
            assert!(weaker.is_firm(), "{one} / {other}: {weaker:?}");
        }
    }

    /// Checks that at least one side is different.
    #[track_caller]
    fn others(&self, sport: &str, pairs: &[(&str, &str)]) {
        for (one, other) in pairs {
            let weaker = self.weaker(sport, one, other);
            assert!(weaker <= Likeness::Shared, "{one} / {other}: {weaker:?}");
        }
    }
}

#[test]
fn order_is_free_and_noted() {
    let ring = Ring::new();
    for (sport, one, other) in [
        ("mma", "Tomas Veldt v Oren Castellane", "Castellane O. v Veldt, Tomas"),
        ("american_football", "LA Rams v Seattle Seahawks", "SEA v LAR"),
        ("tennis", "Djokovic N. v Alcaraz C.", "Carlos Alcaraz v Novak Djokovic"),
    ] {
        let agreement = ring.compare(sport, one, other);
        assert!(agreement.swapped, "{one}");
        assert!(agreement.sides.iter().all(|side| side.is_firm()), "{one}");
        assert!(!ring.compare(sport, one, one).swapped);
    }
}

#[test]
fn every_form_of_a_club_is_that_club() {
    let ring = Ring::new();
    ring.firm(
        "american_football",
        &[
            ("Los Angeles Rams v Seattle Seahawks", "LA Rams v Seahawks"),
            ("Los Angeles Rams v Seattle Seahawks", "Rams v Seattle"),
            ("LAR v SEA", "Los Angeles Rams v Seattle Seahawks"),
            ("lar v sea", "RAMS v SEAHAWKS"),
            ("Los Angeles v Seattle", "Rams v Seahawks"),
            ("LA v SEA", "Los Angeles Chargers v Seattle Seahawks"),
            ("NY Giants v Washington Football Team", "NYG v Commanders"),
            ("Oakland Raiders v K.C. Chiefs", "Las Vegas Raiders v Kansas City"),
            ("St. Louis Rams v 49ers", "LA Rams v San Francisco"),
            ("LAR (NFC) v SEA [home]", "Rams v Seahawks"),
        ],
    );
    ring.others(
        "american_football",
        &[
            ("Los Angeles Rams v Seattle Seahawks", "Los Angeles Chargers v Seattle Seahawks"),
            ("LA Rams v Denver", "LAC v Denver"),
            ("New York Jets v Miami", "New York Giants v Miami"),
            ("LA v LAC", "LAC v SEA"),
            ("Rams v Seahawks", "Rams v Cardinals"),
        ],
    );
    // An unknown form is not certain to be the club whose name it resembles.
    for other in ["NYG v SF 49es", "Miami Hurricanes v Houston Cougars"] {
        let known = if other.starts_with("NYG") { "NYG v SF 49ers" } else { "Miami v Houston" };
        let sides = ring.compare("american_football", known, other).sides;
        assert!(sides.iter().all(|side| *side <= Likeness::Near), "{other} {sides:?}");
    }
    // Two clubs of one city against each other: neither is the other.
    let derby = ring.compare("american_football", "LA v LAC", "Chargers v Rams");
    assert!(derby.swapped && derby.sides == [Likeness::Same; 2]);
}

#[test]
fn teams_of_one_place_are_told_apart_by_what_they_are_called_besides() {
    let ring = Ring::new();
    ring.others(
        "american_football",
        &[
            ("Washington State v Oregon", "Washington v Oregon State"),
            ("Washington State v Oregon", "Washington v Oregon"),
            ("Miami Ohio v Toledo Tech", "Miami Ohio v Toledo"),
            ("North Veldt v Castellane", "South Veldt v Castellane"),
            ("Veldt City v Orsk United", "Veldt United v Orsk City"),
        ],
    );
    ring.firm(
        "american_football",
        &[
            ("Washington State v Oregon State", "Washington State v Oregon State"),
            ("Washington State Cougars v Oregon Ducks", "Oregon Ducks v Washington State Cougars"),
        ],
    );
}

#[test]
fn a_pair_is_nobody_alone() {
    let ring = Ring::new();
    ring.firm(
        "tennis",
        &[
            (
                "Rajeev Ram & Joe Salisbury v Neal Skupski & Wesley Koolhof",
                "Salisbury J. / Ram R. v Koolhof W. / Skupski N.",
            ),
            ("Ana Veldt and Ida Orsk v Eva Roth + Mia Dray", "Orsk I./Veldt A. v Dray M./Roth E."),
        ],
    );
    let surnames = ring.weaker(
        "tennis",
        "Ram R./Salisbury J. v Koolhof W./Skupski N.",
        "Koolhof / Skupski v Salisbury / Ram",
    );
    assert_eq!(surnames, Likeness::OneWord);
    ring.others(
        "tennis",
        &[
            ("Ram R./Salisbury J. v Koolhof W./Skupski N.", "Ram R. v Koolhof W."),
            (
                "Ram R./Salisbury J. v Koolhof W./Skupski N.",
                "Ram R./Murray J. v Koolhof W./Skupski N.",
            ),
            ("Ana Veldt/Ida Orsk v Eva Roth/Mia Dray", "Ana Veldt v Eva Roth"),
            ("Ana Veldt/Ida Orsk v Eva Roth/Mia Dray", "Ana Veldt/Ida Sommer v Eva Roth/Mia Dray"),
        ],
    );
}

#[test]
fn a_replaced_opponent_makes_another_contest() {
    let ring = Ring::new();
    ring.others(
        "mma",
        &[
            ("Warlley Alves v Jeremiah Wells", "Warlley Alves v Ramazan Emeev"),
            ("Alves v Wells", "Alves v Emeev"),
            ("Tomas Veldt v Oren Castellane", "Tomas Veldt v Pavel Orsk"),
            ("Tomas Veldt v Oren Castellane", "Tomas Veldt v TBD"),
        ],
    );
}

#[test]
fn two_of_one_surname_in_one_draw_are_told_apart() {
    let ring = Ring::new();
    ring.others(
        "tennis",
        &[
            ("Zverev A. v Sinner J.", "Mischa Zverev v Jannik Sinner"),
            ("Cerundolo F. v Isner J.", "Juan Manuel Cerundolo v John Isner"),
            ("Zverev A. v Sinner J.", "Zverev A. v Isner J."),
            ("Zhang Ze v Veldt T.", "Zhang Zh. v Veldt T."),
            ("Anton Veldt v Pavel Orsk", "T. Veldt v P. Orsk"),
        ],
    );
    let brothers =
        ring.compare("tennis", "A. Zverev v M. Zverev", "Mischa Zverev v Alexander Zverev");
    assert!(brothers.swapped && brothers.sides == [Likeness::Initials; 2]);
}

#[test]
fn a_learnt_meaning_stands_beside_the_name() {
    let ring = Ring::new();
    let sport = ring.catalogue.sport_id("mma").unwrap();
    let fixture =
        Fixture::HeadToHead { home: "Kimbo Slice".into(), away: "Houston Alexander".into() };
    let theirs = ring.contest("mma", "Kevin Ferguson v Houston Alexander");
    let plain = Contest::parse(&ring.lexicon, sport, &fixture);
    assert_eq!(plain.compare(&theirs).sides, [Likeness::Nothing, Likeness::Same]);
    let learnt = plain.meaning(|name| (name.folded() == "kimbo slice").then_some("Kevin Ferguson"));
    assert_eq!(learnt.compare(&theirs).sides, [Likeness::Same; 2]);
    assert_eq!(learnt.compare(&plain).sides, [Likeness::Same; 2]);
}

#[test]
fn a_tournament_is_its_title_without_year_and_sponsors_words() {
    let ring = Ring::new();
    ring.firm(
        "golf",
        &[
            ("The Open Championship", "Open Championship 2026"),
            ("2026 Masters Tournament", "The Masters"),
            ("Harbour Open", "The Harbour Open presented by Veldt"),
            ("The Harbour Open", "Harbour Championship"),
            ("PGA Tour: Désert Classic", "Desert Classic"),
        ],
    );
    for (one, other) in [
        ("Harbour Open", "Desert Open"),
        ("US Open", "The Open Championship"),
        ("The Masters", "Harbour Masters"),
        ("Scottish Harbour Open", "Irish Harbour Open"),
    ] {
        let weaker = ring.weaker("golf", one, other);
        assert!(!weaker.is_firm(), "{one} / {other}: {weaker:?}");
    }
    assert_eq!(ring.weaker("golf", "···", "···"), Likeness::Same);
    assert_eq!(ring.weaker("golf", "···", "—"), Likeness::Nothing);
}

#[test]
fn a_bout_is_no_tournament() {
    let ring = Ring::new();
    let sides = ring.contest("mma", "Tomas Veldt v Oren Castellane");
    let field = ring.contest("golf", "Tomas Veldt");
    assert_eq!(sides.compare(&field).sides, [Likeness::Nothing; 2]);
}

proptest! {
    #[test]
    fn comparing_has_no_direction_and_never_panics(
        one in ("\\PC{0,20}", "\\PC{0,20}"),
        other in ("\\PC{0,20}", "\\PC{0,20}"),
        sport in proptest::sample::select(vec!["mma", "tennis", "american_football"]),
    ) {
        let ring = Ring::new();
        let sport = ring.catalogue.sport_id(sport).unwrap();
        let contest = |(home, away): &(String, String)| {
            let fixture = Fixture::HeadToHead { home: home.as_str().into(), away: away.as_str().into() };
            Contest::parse(&ring.lexicon, sport, &fixture)
        };
        let (first, second) = (contest(&one), contest(&other));
        let agreed = Some(first.compare(&second)).filter(|found| found.weaker() > Likeness::Conflict);
        prop_assert_eq!(first.agree(&second), agreed);
        let mut there = first.compare(&second).sides;
        let mut back = second.compare(&first).sides;
        there.sort_unstable();
        back.sort_unstable();
        prop_assert_eq!(there, back);
    }
}
