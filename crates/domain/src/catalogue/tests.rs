use super::*;

#[test]
fn the_embedded_catalogue_has_the_five_sports_and_their_groups() {
    let catalogue = Catalogue::load(None).unwrap();
    let sports: Vec<(&str, &str)> = catalogue.sports().map(|(_, s)| (&*s.key, &*s.group)).collect();
    assert_eq!(
        sports,
        [
            ("mma", "combat"),
            ("boxing", "combat"),
            ("tennis", "tennis"),
            ("american_football", "football"),
            ("golf", "golf"),
        ]
    );
    assert!(catalogue.bookmakers().count() >= 20);
    for (id, bookmaker) in catalogue.bookmakers() {
        assert_eq!(catalogue.bookmaker_id(&bookmaker.key), Some(id));
    }
    let totals = |key| catalogue.sport(catalogue.sport_id(key).unwrap()).totals;
    assert_eq!(totals("mma"), Some(Market::TotalRounds));
    assert_eq!(totals("boxing"), Some(Market::TotalRounds));
    assert_eq!(totals("tennis"), Some(Market::TotalPoints));
    assert_eq!(totals("american_football"), Some(Market::TotalPoints));
    assert_eq!(totals("golf"), None);
}

#[test]
fn an_operators_file_adds_and_overrides() {
    let file = r#"
            [[bookmaker]]
            key = "fanduel"
            title = "FanDuel Canada"
            regions = ["us", "eu"]
            [[bookmaker]]
            key = "corner_shop"
            title = "Corner Shop"
            regions = ["uk"]
            [[sport]]
            key = "darts"
            title = "Darts"
            group = "pub"
            shape = "head_to_head"
            markets = ["moneyline"]
            same_event_within_hours = 12
        "#;
    let catalogue = Catalogue::load(Some(file)).unwrap();
    let title = |key| &*catalogue.bookmaker(catalogue.bookmaker_id(key).unwrap()).title;
    assert_eq!(title("fanduel"), "FanDuel Canada");
    assert_eq!(title("corner_shop"), "Corner Shop");
    assert!(catalogue.sport_id("darts").is_some());
    assert!(catalogue.has_group("pub"));
}

#[test]
fn a_sport_needs_no_more_than_its_name_and_group() {
    let file = "[[sport]]\nkey = \"darts\"\ntitle = \"Darts\"\ngroup = \"pub\"";
    let catalogue = Catalogue::load(Some(file)).unwrap();
    let darts = catalogue.sport(catalogue.sport_id("darts").unwrap());
    assert_eq!(darts.markets, [Market::Moneyline, Market::Spread, Market::TotalPoints]);
    assert_eq!((darts.shape, darts.totals), (Shape::HeadToHead, Some(Market::TotalPoints)));
}

#[test]
fn the_32_clubs_are_known_and_an_operators_file_adds_its_own() {
    let file = r#"
            [[club]]
            sport = "american_football"
            name = "London Monarchs"
            forms = ["Monarchs"]
            [[club]]
            sport = "american_football"
            name = "Chicago Bears"
            forms = ["Da Bears"]
            [[sport]]
            key = "american_football"
            title = "Gridiron"
            group = "football"
        "#;
    let clubs = |file| {
        let catalogue = Catalogue::load(file).unwrap();
        catalogue.sport(catalogue.sport_id("american_football").unwrap()).clubs.clone()
    };
    assert_eq!(clubs(None).len(), 32);
    let clubs = clubs(Some(file));
    assert_eq!(clubs.len(), 33);
    let forms = |name: &str| &*clubs.iter().find(|club| &*club.name == name).unwrap().forms;
    assert_eq!(forms("Chicago Bears"), [Box::from("Da Bears")]);
    assert!(forms("Los Angeles Rams").contains(&"LAR".into()));
    let stranger = "[[club]]\nsport = \"curling\"\nname = \"Sweepers\"";
    assert!(Catalogue::load(Some(stranger)).is_err());
}

#[test]
fn every_fault_of_a_file_is_told() {
    let file = r#"
            [[bookmaker]]
            key = "Corner Shop"
            title = "x"
            regions = ["uk"]
            [[sport]]
            key = "darts"
            title = "Darts"
            group = "pub"
            shape = "head_to_head"
            markets = ["outright"]
            same_event_within_hours = 12
        "#;
    let error = Catalogue::load(Some(file)).unwrap_err();
    assert_eq!(error.0.len(), 2, "{error}");
    assert!(Catalogue::load(Some("[[sport]]\nkee = 1")).is_err());
    assert!(Catalogue::load(Some("not toml")).is_err());
}
