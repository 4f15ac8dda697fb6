//! One test for each rule of the configuration.

mod bucket;
mod map;

use std::path::PathBuf;

use adapters::settings::KINDS;

use super::{print::reference_page, schema::Setting, *};

fn assemble(file: &str, environment: &[(&str, &str)]) -> Result<Config, Faults> {
    let file = (Path::new("linesman.toml"), Ok(file.to_owned()));
    Config::assemble(file, &variables(environment), &Flags::default())
}

fn variables(variables: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn faults(file: &str, environment: &[(&str, &str)]) -> Vec<String> {
    assemble(file, environment).unwrap_err().0.iter().map(ToString::to_string).collect()
}

fn defaults() -> Config {
    assemble("", &[]).unwrap()
}

#[test]
fn the_embedded_defaults_are_the_documented_ones() {
    let config = defaults();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.server.ingest_listen, None);
    assert_eq!(config.server.ops_listen.to_string(), "127.0.0.1:9464");
    assert!(config.server.tls().is_none());
    assert_eq!(config.server.workers, None);
    assert_eq!(config.market.refresh_interval, Duration::from_secs(30));
    assert_eq!(config.market.stale_after, Duration::from_secs(90));
    assert_eq!(config.market.final_retention, Duration::from_secs(72 * 3600));
    assert_eq!(config.market.forget_after, Duration::from_secs(168 * 3600));
    assert!(config.sandbox.enabled);
    assert!(config.api.query_key_enabled);
    assert_eq!(config.catalogue.file, None);
    assert_eq!(config.log.filter, "info");
    assert_eq!(config.log.format, LogFormat::Auto);
}

fn known() -> Vec<Setting> {
    Reader::read::<Sections>(&Node::default()).1.settings
}

/// `config.default.toml` without its introduction; `with_examples`: settings without a default are also set.
fn reference(with_examples: bool) -> String {
    print::to_file(&known(), |name, Setting { path, about, kind, takes, .. }| {
        assert!(!about.meaning.is_empty(), "{path} has a meaning");
        let meaning: String = about.meaning.iter().map(|line| format!("#{line}\n")).collect();
        let value = print::to_toml(*kind, about.default.or(about.example).unwrap());
        let set = if about.default.is_some() || with_examples { "" } else { "# " };
        format!("{meaning}# Value: {takes}.\n{set}{name} = {value}\n")
    })
}

#[test]
fn the_default_file_is_made_from_the_declarations() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config.default.toml");
    let found = fs::read_to_string(&path).unwrap();
    let introduction = found.split_once("\n[").unwrap().0.trim_end();
    let expected = format!("{introduction}\n\n{}", reference(false));
    if found != expected {
        fs::write(&path, expected).unwrap();
        panic!(
            "config.default.toml was not up to date; it is now: look at it and run the test again"
        );
    }
}

#[test]
fn the_configuration_reference_is_made_from_the_declarations() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations/configuration.md");
    let (found, expected) = (fs::read_to_string(&path).unwrap(), reference_page());
    if found != expected {
        fs::write(&path, expected).unwrap();
        panic!("configuration.md was not up to date; it is now: look at it and run the test again");
    }
}

#[test]
fn the_examples_of_the_reference_are_valid() {
    let config = assemble(&reference(true), &[]).unwrap();
    assert!(!config.to_toml().contains("is not set"), "{}", config.to_toml());
}

#[test]
fn a_setting_is_explained() {
    let text = explain("server.connections_per_source_max").unwrap();
    for part in [
        "Maximum number of connections from one address",
        "a whole number from 1 to 1000000",
        "unset; for example 2500",
        "LINESMAN_SERVER__CONNECTIONS_PER_SOURCE_MAX",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(explain("log.format").unwrap().contains("Default: \"auto\""));
    let section = explain("log").unwrap();
    assert!(
        section.starts_with("log.filter\n") && section.contains("\n\nlog.format\n"),
        "{section}"
    );
    for (wrong, right) in [
        ("server.lsten", "server.listen"),
        ("seed", "sandbox.seed"),
        ("app_key", "adapters.NAME.app_key"),
        ("adapters.toa.resreve", "adapters.toa.reserve"),
    ] {
        let refusal = explain(wrong).unwrap_err();
        assert!(refusal.contains(&format!("did you mean `{right}`?")), "{refusal}");
    }
}

#[test]
fn a_key_of_adapters_is_explained_under_any_name_and_none() {
    let text = explain("adapters.toa.reserve").unwrap();
    for part in [
        "adapters.toa.reserve\n",
        "Credits that are never spent",
        "Kind: the_odds_api",
        "Default: 500",
        "LINESMAN_ADAPTERS__TOA__RESERVE",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(explain("adapters.reserve").unwrap().starts_with("adapters.NAME.reserve\n"));
    let secret = explain("adapters.betfair.app_key").unwrap();
    assert!(
        secret.contains(
            "Default: unset\n  Environment: LINESMAN_ADAPTERS__BETFAIR__APP_KEY__ENV, \
             LINESMAN_ADAPTERS__BETFAIR__APP_KEY__FILE"
        ),
        "{secret}"
    );
    // The name of a kind selects only its keys, another name those of all kinds.
    let kind = explain("adapters.betfair").unwrap();
    assert!(kind.contains("adapters.betfair.horizon\n") && !kind.contains("reserve"), "{kind}");
    assert!(kind.contains("adapters.betfair.timeout\n"), "{kind}");
    let named = explain("adapters.exchange").unwrap();
    assert!(named.contains("adapters.exchange.horizon\n") && named.contains(".reserve\n"));
    let all = explain("adapters").unwrap();
    // Every key of every kind has a meaning.
    for kind in &KINDS {
        for key in kind.keys() {
            let (_, after) = all.split_once(&format!("adapters.NAME.{key}\n")).unwrap();
            let meaning = after.lines().next().unwrap();
            assert!(!meaning.trim_start().starts_with("Value:"), "{key}: {meaning}");
            assert!(!meaning.trim_start().starts_with("Kind:"), "{key}: {meaning}");
        }
    }
}

#[test]
fn a_later_layer_wins_and_each_value_knows_its_origin() {
    let file =
        "[market]\nstale_after = \"2m\"\nrefresh_interval = \"1s\"\n[server]\nlisten = \":1\"";
    let environment = variables(&[
        ("LINESMAN_MARKET__REFRESH_INTERVAL", "100ms"),
        ("LINESMAN_SERVER__LISTEN", ":2"),
    ]);
    let flags = Flags { listen: Some(([127, 0, 0, 1], 3).into()) };
    let file = (Path::new("linesman.toml"), Ok(file.to_owned()));
    let config = Config::assemble(file, &environment, &flags).unwrap();
    assert_eq!(config.server.listen.port(), 3);
    assert_eq!(config.reader.origin("server.listen"), Some(&Origin::Flag("--listen")));
    assert_eq!(config.market.refresh_interval, Duration::from_millis(100));
    assert_eq!(
        config.reader.origin("market.refresh_interval").unwrap().to_string(),
        "environment LINESMAN_MARKET__REFRESH_INTERVAL"
    );
    assert_eq!(config.market.stale_after, Duration::from_secs(120));
    assert_eq!(
        config.reader.origin("market.stale_after").unwrap().to_string(),
        "linesman.toml line 2"
    );
    assert_eq!(config.reader.origin("market.final_retention"), Some(&Origin::Default));
    assert_eq!(config.reader.origin("server.workers"), None);
}

#[test]
fn unknown_names_in_a_file_are_refused_with_line_and_nearest_name() {
    for (file, expected) in [
        (
            "[market]\n\nrefresh_intervall = \"1s\"",
            "linesman.toml line 3: unknown key `market.refresh_intervall`; did you mean `market.refresh_interval`?",
        ),
        (
            "[markets]\nx = 1\ny = 2",
            "linesman.toml line 1: unknown section `[markets]`; did you mean `[market]`?",
        ),
        (
            "listen = \":0\"",
            "linesman.toml line 1: unknown key `listen` outside a section; did you mean `server.listen`?",
        ),
        (
            "[market]\nseed = 1",
            "linesman.toml line 2: unknown key `market.seed`; did you mean `sandbox.seed`?",
        ),
        (
            "[server.tls]\ncert = \"x\"",
            "linesman.toml line 1: unknown key `server.tls`; did you mean `server.tls_key`?",
        ),
        (
            "server = 1",
            "linesman.toml line 1: `server` is a section: write `[server]` and its keys below",
        ),
    ] {
        assert_eq!(faults(file, &[]), [expected]);
    }
}

#[test]
fn proxies_are_a_list_in_a_file_and_a_text_in_the_environment() {
    assert!(defaults().server.trusted_proxies.is_none());
    let shown = |config: &Config| -> Vec<String> {
        config.server.trusted_proxies.iter().flatten().map(ToString::to_string).collect()
    };
    let expected = ["127.0.0.1/32", "10.0.0.0/8"];
    let file = "[server]\ntrusted_proxies = [\"127.0.0.1\", \"10.0.0.0/8\"]";
    let config = assemble(file, &[]).unwrap();
    assert_eq!(shown(&config), expected);
    assert_eq!(shown(&assemble(&config.to_toml(), &[]).unwrap()), expected, "as it is printed");
    let variable = ("LINESMAN_SERVER__TRUSTED_PROXIES", "127.0.0.1, 10.0.0.0/8");
    assert_eq!(shown(&assemble("", &[variable]).unwrap()), expected);
    let none = ("LINESMAN_SERVER__TRUSTED_PROXIES", "");
    assert!(shown(&assemble(file, &[none]).unwrap()).is_empty());
    assert_eq!(
        faults("[server]\ntrusted_proxies = [\"10.0.0.0/40\"]", &[]),
        [
            "linesman.toml line 2: `server.trusted_proxies` is `10.0.0.0/40`, not an address or network such as \
          10.0.0.0/8"
        ]
    );
    assert_eq!(
        faults("[server]\ntrusted_proxies = [1]", &[]),
        [
            "linesman.toml line 2: `server.trusted_proxies` must be a list in which each item is an address or \
             network such as 10.0.0.0/8"
        ]
    );
}

#[test]
fn unknown_variables_are_refused_with_the_nearest_name() {
    assert_eq!(
        faults("", &[("LINESMAN_MARKET__REFRESH", "1s")]),
        [
            "environment LINESMAN_MARKET__REFRESH: unknown variable; did you mean `LINESMAN_MARKET__REFRESH_INTERVAL`?"
        ]
    );
    assert_eq!(
        faults("", &[("LINESMAN_SERVR__LISTEN", ":0")]),
        [
            "environment LINESMAN_SERVR__LISTEN: unknown variable; did you mean `LINESMAN_SERVER__LISTEN`?"
        ]
    );
    for (wrong, right) in [
        ("LINESMAN_SERVER_LISTEN", "LINESMAN_SERVER__LISTEN"),
        ("LINESMAN_DATABASE_URL", "LINESMAN_DATABASE__URL"),
        ("LINESMAN_LOG__Format", "LINESMAN_LOG__FORMAT"),
        ("LINESMAN_CATALOGUE", "LINESMAN_CATALOGUE__FILE"),
    ] {
        let listed = faults("", &[(wrong, "x")]);
        let expected = format!("environment {wrong}: unknown variable; did you mean `{right}`?");
        assert_eq!(listed, [expected]);
    }
    assert!(assemble("", &[("OTHER__LISTEN", "x"), ("LINESMAN", "x")]).is_ok());
}

#[test]
fn variables_with_the_prefix_that_others_set_are_left_alone() {
    assert!(assemble("", &[("LINESMAN_KEY", "sk_test_x"), ("LINESMAN_URL", "x")]).is_ok());
    let of_services = [
        ("LINESMAN_SERVICE_HOST", "10.0.0.1"),
        ("LINESMAN_SERVICE_PORT_HTTP", "80"),
        ("LINESMAN_PORT", "tcp://10.0.0.1:80"),
        ("LINESMAN_PORT_80_TCP_ADDR", "10.0.0.1"),
        ("LINESMAN_API_SERVICE_HOST", "10.0.0.2"),
        ("LINESMAN_API_PORT_80_TCP", "tcp://10.0.0.2:80"),
    ];
    assert!(assemble("", &of_services).is_ok());
    // Without its host there is no such Service.
    assert_eq!(faults("", &of_services[1..4]).len(), 3);
}

#[test]
fn variables_are_read_as_their_keys_type() {
    let config = assemble(
        "",
        &[
            ("LINESMAN_SANDBOX__ENABLED", "false"),
            ("LINESMAN_SANDBOX__SEED", "18446744073709551615"),
            ("LINESMAN_API__QUERY_KEY_SUNSET", "2027-01-01"),
            ("LINESMAN_LOG__FORMAT", "json"),
            ("LINESMAN_SERVER__WORKERS", "2"),
        ],
    )
    .unwrap();
    assert!(!config.sandbox.enabled);
    assert_eq!(config.sandbox.seed, u64::MAX);
    assert_eq!(config.api.query_key_sunset.to_string(), "2027-01-01T00:00:00Z");
    assert_eq!(config.log.format, LogFormat::Json);
    assert_eq!(config.server.workers, Some(2));
    assert_eq!(
        faults("", &[("LINESMAN_SANDBOX__ENABLED", "")]),
        [
            "environment LINESMAN_SANDBOX__ENABLED: `sandbox.enabled` is empty; it must be true or false"
        ]
    );
}

#[test]
fn all_faults_are_listed() {
    let listed = faults(
        "[server]\nlisten = \"x\"\nlisen = 1\ntls_cert = \"c.pem\"\n[market]\nstale_after = 90",
        &[("LINESMAN_MARKET__REFRESH_INTERVAL", "99ms"), ("LINESMAN_X__Y", "1")],
    );
    assert_eq!(listed.len(), 6, "{listed:#?}");
}

#[test]
fn an_overridden_value_must_still_be_right() {
    let listed = faults("[server]\nlisten = \"x\"", &[("LINESMAN_SERVER__LISTEN", ":0")]);
    assert_eq!(
        listed,
        ["linesman.toml line 2: `server.listen` is `x`, not an address such as 127.0.0.1:8080"]
    );
}

#[test]
fn values_of_the_wrong_toml_type_are_refused() {
    for (file, expected) in [
        ("[market]\nstale_after = 90", "must be a duration from 100ms to 3650d, in quotes"),
        ("[sandbox]\nenabled = \"true\"", "must be true or false, without quotes"),
        (
            "[server]\nconnections_max = \"10\"",
            "must be a whole number from 1 to 1000000, without quotes",
        ),
        (
            "[server]\nconnections_max = 1.5",
            "must be a whole number from 1 to 1000000, without quotes",
        ),
        ("[server]\nconnections_max = -5", "is `-5`, not a whole number from 1"),
        ("[server]\nlisten = 8080", "must be an address such as 127.0.0.1:8080, in quotes"),
        ("[log]\nfilter = [\"info\"]", "must be a level (off, error, "),
    ] {
        let listed = faults(file, &[]);
        assert!(listed.len() == 1 && listed[0].contains(expected), "{file}: {listed:?}");
    }
    assert_eq!(assemble("[sandbox]\nseed = 0xff", &[]).unwrap().sandbox.seed, 255);
}

#[test]
fn a_file_that_is_no_toml_is_refused_with_its_lines() {
    let listed = faults("[server]\nlisten = \n[market\n", &[]);
    assert!(listed[0].starts_with("linesman.toml line 2: not TOML: "), "{listed:?}");
    let repeated = faults("[log]\nfilter = \"info\"\nfilter = \"warn\"\n", &[]);
    assert!(repeated[0].starts_with("linesman.toml line 3: not TOML: duplicate"), "{repeated:?}");
}

#[test]
fn prices_that_are_late_before_anybody_sees_them_are_refused() {
    assert!(assemble("[market]\nstale_after = \"30s\"", &[]).is_ok());
    for text in ["[market]\nstale_after = \"29s\"", "[market]\nrefresh_interval = \"91s\""] {
        let listed = faults(text, &[]);
        assert!(listed[0].contains("line 2: `market.stale_after` is shorter"), "{listed:?}");
    }
}

#[test]
fn a_refresh_interval_below_100_ms_is_refused() {
    assert!(assemble("[market]\nrefresh_interval = \"100ms\"", &[]).is_ok());
    let listed = faults("[market]\nrefresh_interval = \"99ms\"", &[]);
    assert_eq!(
        listed,
        [
            "linesman.toml line 2: `market.refresh_interval` is `99ms`, not a duration from 100ms to 1h"
        ]
    );
}

#[test]
fn a_certificate_without_its_key_is_refused() {
    for (file, missing) in [
        ("[server]\ntls_cert = \"c.pem\"", "`server.tls_key`"),
        ("[server]\ntls_key = \"k.pem\"", "`server.tls_cert`"),
    ] {
        let listed = faults(file, &[]);
        assert!(listed.len() == 1 && listed[0].contains(missing), "{listed:?}");
    }
    let config = assemble("[server]\ntls_cert = \"c.pem\"\ntls_key = \"k.pem\"", &[]).unwrap();
    assert!(config.server.tls().is_some());
}

#[test]
fn many_nodes_need_a_database_and_a_log_on_servers_and_neither_password_is_shown() {
    const DATABASE: &str = "[database]\nurl = \"postgres://u:hunter2@db/x\"";
    let bus = |url| [("LINESMAN_CLUSTER__NATS_URL", url)];
    for (file, environment, needed) in [
        (DATABASE, &[][..], "`cluster.nats_url`"),
        ("", &bus("nats://hunter2@bus:4222")[..], "`database.url`"),
        ("", &[("LINESMAN_CLUSTER__REPLICAS", "3")][..], "`cluster.nats_url`"),
        ("[database]\nurl = \"mysql://u:hunter2@db\"", &bus("nats://bus")[..], "postgres://"),
        (DATABASE, &bus("nats://hunter2@b us")[..], "nats://one.example.com:4222"),
    ] {
        let listed = faults(file, environment);
        assert!(listed.len() == 1 && listed[0].contains(needed), "{needed}: {listed:?}");
        assert!(!listed[0].contains("hunter2"), "{listed:?}");
    }
    assert!(defaults().cluster.is_none());
    let both = assemble(DATABASE, &bus("nats://hunter2@one:4222, nats://two:4222")).unwrap();
    let cluster = both.cluster.as_ref().unwrap();
    assert!(
        cluster.database_url.reveal().ends_with("@db/x")
            && cluster.nats_url.reveal().ends_with("two:4222")
    );
    assert_eq!((cluster.replicas, cluster.key_trust), (None, Duration::from_secs(5)));
    let hasty = faults(DATABASE, &[bus("nats://one")[0], ("LINESMAN_CLUSTER__KEY_TRUST", "1s")]);
    assert!(hasty.len() == 1 && hasty[0].contains("not a duration from 2s to 1h"), "{hasty:?}");
    assert!(!format!("{both:?}").contains("hunter2"), "{both:?}");
    assert!(!both.to_toml().contains("hunter2"), "{}", both.to_toml());
}

#[test]
fn mail_needs_a_server_a_sender_and_an_address_of_ours_and_its_password_is_never_shown() {
    const URL: &str = "[mail]\nurl = \"smtps://odds:hunter2@mail.example.com\"\n";
    assert!(defaults().mail.is_none());
    let listed = faults(URL, &[]);
    assert!(
        listed[0].contains("`mail.from`") && listed[1].contains("`dashboard.public_url`"),
        "{listed:?}"
    );
    let rest = [
        ("LINESMAN_MAIL__FROM", "Linesman <odds@example.com>"),
        ("LINESMAN_DASHBOARD__PUBLIC_URL", "https://odds.example.com"),
    ];
    let config = assemble(URL, &rest).unwrap();
    assert_eq!(config.mail.as_ref().unwrap().public_url, "https://odds.example.com");
    assert!(config.to_toml().contains("url = \"smtps://odds:***@mail.example.com\""));
    for text in [config.to_toml(), format!("{:?}", config.mail)] {
        assert!(!text.contains("hunter2"), "{text}");
    }
    let listed = faults("[mail]\nurl = \"https://odds:hunter2@mail\"", &rest);
    assert!(
        listed.len() == 1 && listed[0].contains("smtps://") && !listed[0].contains("hunter2"),
        "{listed:?}"
    );
}

#[test]
fn the_ops_listener_knows_whether_it_was_chosen() {
    assert!(matches!(defaults().ops_listen(), OpsListen::Default(_)));
    // The same address, but set explicitly: it must not be replaced by another one.
    let chosen = assemble("[server]\nops_listen = \"127.0.0.1:9464\"", &[]).unwrap();
    assert!(matches!(chosen.ops_listen(), OpsListen::Chosen(_)));
}

#[test]
fn a_named_file_must_exist() {
    let missing = Config::load(Some(Path::new("no/such/file.toml")), &Flags::default());
    let listed = missing.unwrap_err().to_string();
    assert!(listed.starts_with("no/such/file.toml: no such file"), "{listed}");
}

#[test]
fn files_that_the_configuration_names_are_looked_for() {
    let config = assemble("[catalogue]\nfile = \"no/such/catalogue.toml\"", &[]).unwrap();
    let listed = config.check_service().unwrap_err().to_string();
    assert!(listed.starts_with("linesman.toml line 2: `catalogue.file`: cannot read"), "{listed}");
    assert!(defaults().check_service().is_ok());
}

#[test]
fn the_printed_configuration_is_a_file_that_gives_the_same_configuration() {
    let file = "[server]\nlisten = \":0\"\nworkers = 3\n[catalogue]\nfile = \"a\\\"b\\n.toml\"\n\
                [sandbox]\nseed = 0xffff_ffff_ffff_ffff\n[market]\nstale_after = \"7d\"";
    let config = assemble(file, &[("LINESMAN_LOG__FILTER", "warn")]).unwrap();
    let printed = config.to_toml();
    for line in [
        "listen = \"127.0.0.1:0\" # linesman.toml line 2\n",
        "# ingest_listen is not set\n",
        "stale_after = \"7d\" # linesman.toml line 9\n",
        "final_retention = \"72h\" # default\n",
        "filter = \"warn\" # environment LINESMAN_LOG__FILTER\n",
        "query_key_sunset = 2027-12-31 # default\n",
    ] {
        assert!(printed.contains(line), "{line} in {printed}");
    }
    let again = assemble(&printed, &[]).unwrap();
    assert_eq!(format!("{:?}", sections(&again)), format!("{:?}", sections(&config)));
}

fn sections(config: &Config) -> impl fmt::Debug {
    let Config {
        server,
        market,
        sandbox,
        history,
        bucket,
        stream,
        api,
        v4,
        mcp,
        dashboard,
        mail,
        cluster,
        catalogue,
        log,
        adapters,
        reader: _,
    } = config;
    // `ops_listen` becomes a chosen address because it is written explicitly.
    let server = (server.listen, server.ops_listen, server.workers);
    format!(
        "{server:?} {market:?} {sandbox:?} {history:?} {bucket:?} {stream:?} {api:?} {v4:?} {mcp:?} {dashboard:?} {mail:?} {cluster:?} {catalogue:?} {log:?} {adapters:?}"
    )
}

#[test]
fn a_path_can_not_smuggle_lines_into_the_printed_file() {
    let file = (Path::new("a\n[evil]"), Ok("[log]\nfilter = \"warn\"".to_owned()));
    let printed = Config::assemble(file, &[], &Flags::default()).unwrap().to_toml();
    assert!(printed.contains("filter = \"warn\" # a\\n[evil] line 2\n"), "{printed}");
}

/// The documents and the files needed to run their commands.
fn operators_texts() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = ["docs", "deploy", "README.md", "Dockerfile", "compose.yaml"]
        .map(|name| root.join(name))
        .to_vec();
    let mut texts = Vec::new();
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(fs::read_dir(&path).unwrap().map(|item| item.unwrap().path()));
        } else if let Ok(text) = fs::read_to_string(&path) {
            texts.push((path, text));
        }
    }
    texts
}

#[test]
fn every_setting_that_the_documents_name_is_there() {
    let (mut variables, mut paths) = (0, 0);
    let known = known();
    for (file, text) in operators_texts() {
        let file = file.display();
        let part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let words = text.split(|c: char| !part(c));
        for word in words.filter(|word| word.starts_with("LINESMAN_") && word.contains("__")) {
            let is_adapters = || {
                let key =
                    word.strip_prefix("LINESMAN_ADAPTERS__")?.split_once("__")?.1.to_lowercase();
                let key = key.split("__").next()?;
                KINDS.iter().find(|kind| kind.takes(key))
            };
            let is_known = known.iter().any(|known| known.variable() == word);
            assert!(is_known || is_adapters().is_some(), "{file} has {word}");
            variables += 1;
        }
        for word in text.split('`') {
            let of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            let is_name = |part: &str| part.chars().all(of_name);
            let Some((section, name)) = word.split_once('.') else { continue };
            // `catalogue.toml` and `log.jsonl` are files.
            let is_file = matches!(name, "toml" | "jsonl");
            if is_name(name)
                && !is_file
                && known.iter().any(|known| known.path.starts_with(&format!("{section}.")))
            {
                assert!(known.iter().any(|known| known.path == word), "{file} has {word}");
                paths += 1;
            }
        }
    }
    assert!(variables > 10 && paths > 10, "{variables} {paths}");
}
