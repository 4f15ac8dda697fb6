//! Maps of tables, as `[adapters.NAME]` is one.

use std::collections::BTreeMap;

use super::super::form::{Count, DatabaseUrl, Span};
use super::super::schema::settings;
use super::*;

settings! {
    /// A configuration with a map of tables.
    Sources {
        refresh: Span<100, 60_000> = "1s";
        adapters: BTreeMap<String, Adapter>;
    }

    /// A table of the map.
    Adapter {
        /// The address it reads from.
        url: DatabaseUrl;
        /// Maximum number of requests at the same time.
        requests_max: Count<u32, 1, 100> = 4;
        /// How long it waits.
        timeout: Option<Span<1, 60_000>>, such as "5s";
    }
}

fn sources(file: &str, environment: &[(&str, &str)]) -> (Option<Sources>, Reader) {
    let (mut tree, mut faults) = (Node::default(), Vec::new());
    tree.add_file(Path::new("s.toml"), file, &mut faults);
    tree.add_environment(&variables(environment), &mut faults);
    assert!(faults.is_empty(), "{faults:?}");
    Reader::read::<Sources>(&tree)
}

#[test]
fn a_map_of_tables_is_overlaid_and_each_value_knows_its_origin() {
    let file = "[adapters.north]\nurl = \"postgres://n\"\nrequests_max = 7\n[adapters.south-2]\n";
    let environment = [
        ("LINESMAN_ADAPTERS__NORTH__REQUESTS_MAX", "8"),
        ("LINESMAN_ADAPTERS__SOUTH-2__URL", "postgres://s"),
        ("LINESMAN_ADAPTERS__EAST__URL", "postgres://e"),
    ];
    let (sources, reader) = sources(file, &environment);
    let sources = sources.unwrap();
    assert_eq!(sources.refresh, Duration::from_secs(1));
    let adapters: Vec<_> = sources
        .adapters
        .iter()
        .map(|(name, adapter)| {
            (&**name, adapter.url.reveal(), adapter.requests_max, adapter.timeout)
        })
        .collect();
    assert_eq!(
        adapters,
        [
            ("east", "postgres://e", 4, None),
            ("north", "postgres://n", 8, None),
            ("south-2", "postgres://s", 4, None)
        ]
    );
    let origin = |path: &str| reader.origin(path).unwrap().to_string();
    assert_eq!(origin("adapters.north.url"), "s.toml line 2");
    assert_eq!(
        origin("adapters.north.requests_max"),
        "environment LINESMAN_ADAPTERS__NORTH__REQUESTS_MAX"
    );
    assert_eq!(origin("adapters.east.requests_max"), "default");
    let printed: Vec<&str> = reader.settings.iter().map(|setting| &*setting.path).collect();
    assert_eq!(printed[..3], ["refresh", "adapters.east.url", "adapters.east.requests_max"]);
}

#[test]
fn faults_in_a_map_of_tables_name_their_path() {
    let file = "[adapters.north]\nurl = \"mysql://n:hunter2@x\"\nrequest_max = 1\n[adapters.south]\n\
                requests_max = 0\n[adapters.\"a.b\"]\n[adapters]\nwest = 1\n";
    let (_, mut reader) = sources(file, &[("LINESMAN_ADAPTERS__NORTH__TIMEOUT", "soon")]);
    reader.faults.sort_by(|Fault(one, _), Fault(other, _)| one.cmp(other));
    let listed: Vec<String> = reader.faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        listed,
        [
            "s.toml line 2: `adapters.north.url` is not an address such as \
             postgres://linesman@db.example.com/linesman",
            "s.toml line 3: unknown key `adapters.north.request_max`; did you mean \
             `adapters.north.requests_max`?",
            "s.toml line 4: `adapters.south.url` is missing; it must be an address such as \
             postgres://linesman@db.example.com/linesman",
            "s.toml line 5: `adapters.south.requests_max` is `0`, not a whole number from 1 to 100",
            "s.toml line 6: `a.b` cannot name a table: use lowercase letters, digits, `-` and single `_`",
            "s.toml line 8: `adapters.west` is a section: write `[adapters.west]` and its keys below",
            "environment LINESMAN_ADAPTERS__NORTH__TIMEOUT: `adapters.north.timeout` is `soon`, not a duration \
             from 1ms to 1m",
        ]
    );
}
