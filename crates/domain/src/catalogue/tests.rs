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

#[test]
fn bookmakers_have_the_keys_titles_and_regions_of_the_prior_interface() {
    let catalogue = Catalogue::load(None).unwrap();
    let entry = |key: &str| {
        let found = catalogue.v4().bookmakers().find(|(_, held)| &*held.key == key);
        found.map(|(_, held)| (&*catalogue.bookmaker(held.bookmaker).key, &*held.title))
    };
    for (key, ours, title) in [
        ("sport888", "888sport", "888sport"),
        ("betfair_ex_au", "betfair", "Betfair"),
        ("williamhill_us", "caesars", "Caesars"),
        ("unibet", "unibet_au", "Unibet"),
        ("unibet_uk", "unibet", "Unibet (UK)"),
        ("fanduel", "fanduel", "FanDuel"),
    ] {
        assert_eq!(entry(key), Some((ours, title)), "{key}");
    }
    for gone in ["888sport", "betfair", "caesars", "unibet_au", "betonline", "hardrock"] {
        assert_eq!(entry(gone), None, "{gone}");
    }
    let keys: Vec<&str> = catalogue.v4().bookmakers().map(|(_, held)| &*held.key).collect();
    assert!(keys.is_sorted());
    let count = |key: &str| {
        let found = catalogue.v4().find_bookmakers(&catalogue, key)?;
        Some(catalogue.v4().bookmakers().filter(|(id, _)| found.contains(*id)).count())
    };
    // A `/v4` key, one of our own, one in both lists, one known but not carried, and an unknown one.
    let keys = ["betfair_ex_uk", "betfair", "unibet", "novig", "corner_shop"];
    assert_eq!(keys.map(count), [Some(1), Some(3), Some(1), Some(0), None]);
    let us2: v4::RegionSet = [v4::Region::Us2].into_iter().collect();
    let in_us2 = catalogue.v4().bookmakers_in(us2);
    let keys: Vec<&str> = catalogue
        .v4()
        .bookmakers()
        .filter(|(id, _)| in_us2.contains(*id))
        .map(|(_, held)| &*held.key)
        .collect();
    assert_eq!(keys, ["betanysports", "espnbet", "fliff", "hardrockbet"]);
}

#[test]
fn the_files_of_the_guide_are_good_catalogues() {
    let guide = include_str!("../../../../docs/guides/catalogue.md");
    let blocks: Vec<&str> =
        guide.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let [first, v4, _settings] = blocks.as_slice() else { panic!("{blocks:?}") };
    assert!(Catalogue::load(Some(first)).unwrap().sport_id("snooker").is_some());
    let sport = first.split("\n\n").find(|part| part.starts_with("[[sport]]")).unwrap();
    let catalogue = Catalogue::load(Some(&format!("{v4}\n{sport}"))).unwrap();
    let snooker = catalogue.sport_id("snooker").unwrap();
    let named = ("World Snooker Championship 2026", None);
    let name = v4::sport_name(&catalogue, crate::World::Live, snooker, named);
    assert_eq!(name.key, "snooker_world_championship");
    let other = v4::sport_name(&catalogue, crate::World::Live, snooker, ("The Masters", None));
    assert_eq!(other.key, "snooker_the_masters");
}

#[test]
fn an_operators_file_names_sports_and_bookmakers_of_the_prior_interface() {
    let file = r#"
            v4_also_known = ["old_shop"]
            [[bookmaker]]
            key = "corner_shop"
            title = "Corner Shop"
            regions = ["uk"]
            v4 = [
                { key = "corner_uk", title = "Corner (UK)", regions = ["uk"] },
                { key = "corner_fr", title = "Corner (FR)", regions = ["fr"] },
            ]
            # Known before: keeps what it is on /v4.
            [[bookmaker]]
            key = "unibet"
            title = "Unibet Plus"
            regions = ["uk"]
            # Its key was another's on /v4.
            [[bookmaker]]
            key = "everygame"
            title = "Every Game"
            regions = ["us"]
            [[sport]]
            key = "ice_hockey"
            title = "Ice Hockey"
            group = "ice"
            [[v4_sport]]
            sport = "ice_hockey"
            key = "nhl"
            title = "NHL"
            names = ["NHL", "National Hockey League"]
            description = "US Ice Hockey"
        "#;
    let catalogue = Catalogue::load(Some(file)).unwrap();
    let keys: Vec<&str> = catalogue.v4().bookmakers().map(|(_, held)| &*held.key).collect();
    assert!(["corner_uk", "corner_fr", "unibet_uk"].iter().all(|key| keys.contains(key)));
    assert!(!keys.contains(&"corner_shop"));
    let everygame = catalogue.v4().bookmakers().find(|(_, held)| &*held.key == "everygame");
    assert_eq!(&*everygame.unwrap().1.title, "Every Game");
    assert!(catalogue.v4().find_bookmakers(&catalogue, "old_shop").is_some());
    let hockey = catalogue.sport_id("ice_hockey").unwrap();
    let key = |competition| {
        v4::sport_name(&catalogue, crate::World::Live, hockey, (competition, None)).key.into_owned()
    };
    assert_eq!(key("National Hockey League 2026"), "icehockey_nhl");
    assert_eq!(key("Kvartsit Liga"), "icehockey_kvartsit_liga");
    for (wrong, fault) in [
        ("[[v4_sport]]\nsport = \"chess\"\nkey = \"x\"\ntitle = \"X\"", "no sport"),
        ("[[v4_sport]]\nsport = \"tennis\"\nkey = \"x\"\ntitle = \"X\"", "tours"),
        ("[[v4_sport]]\nsport = \"golf\"\nkey = \"X\"\ntitle = \"X\"", "key `X`"),
        ("v4_also_known = [\"A B\"]", "v4_also_known"),
    ] {
        let error = Catalogue::load(Some(wrong)).unwrap_err().to_string();
        assert!(error.contains(fault), "{error}");
    }
    let twice = |key: &str| {
        format!(
            "[[bookmaker]]\nkey = \"{key}\"\ntitle = \"x\"\nregions = [\"uk\"]\n\
             v4 = [{{ key = \"same\", title = \"x\", regions = [\"uk\"] }}]\n"
        )
    };
    let error = Catalogue::load(Some(&(twice("one") + &twice("two")))).unwrap_err().to_string();
    assert!(error.contains("`same`"), "{error}");
}
