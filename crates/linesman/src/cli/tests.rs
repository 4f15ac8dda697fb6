//! The command lines of the operator's contract, and wrong ones.

use std::num::NonZeroU32;

use super::replay::parse_speed;
use super::*;

fn parse(line: &str) -> Result<Cli, Stop> {
    Cli::parse(line.split_whitespace().map(OsString::from))
}

fn command(line: &str) -> Command {
    match parse(line) {
        Ok(cli) => cli.command,
        Err(stop) => panic!("{line}: {stop:?}"),
    }
}

fn misuse(line: &str) -> String {
    match parse(line) {
        Err(Stop::Misuse(sentence)) => sentence,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_definition_is_sound() {
    Given::command().debug_assert();
}

#[test]
fn without_a_verb_the_service_is_run() {
    for line in ["linesman", "linesman serve"] {
        let cli = parse(line).unwrap();
        assert!(matches!(
            cli.command,
            Command::Serve(ServeArgs { listen: None, role: Role::All, new_accounts: false })
        ));
        assert_eq!(cli.data, PathBuf::from("./data"));
        assert_eq!(cli.config, None);
    }
}

#[test]
fn listen_is_taken_with_and_without_serve() {
    for line in [
        "linesman --listen 127.0.0.1:0",
        "linesman serve --listen 127.0.0.1:0",
        "linesman --listen :0 serve",
        "linesman --listen 127.0.0.1:1 serve --listen localhost:0",
    ] {
        let Command::Serve(args) = command(line) else { panic!("{line}") };
        assert_eq!(args.listen, Some(SocketAddr::from(([127, 0, 0, 1], 0))), "{line}");
    }
    assert!(misuse("linesman --listen :0 keys list").starts_with("--listen is only for"));
    assert!(misuse("linesman --listen here").contains("not an address such as"));
}

#[test]
fn data_and_config_go_before_or_after_every_verb() {
    for words in [
        "serve",
        "keys list",
        "keys create --kind sandbox",
        "keys revoke x",
        "keys rotate x",
        "feeds create x",
        "feeds list",
        "feeds revoke x",
        "feeds drop x",
        "maintenance on",
        "maintenance off",
        "match a",
        "replay a --to http://h --token fk_x",
        "record --world live",
        "backup b",
        "config",
        "openapi",
        "init",
        "completions zsh",
        "man",
    ] {
        for line in [
            format!("linesman --data d --config c {words}"),
            format!("linesman {words} --data d --config c"),
        ] {
            let cli = parse(&line).unwrap_or_else(|stop| panic!("{line}: {stop:?}"));
            assert_eq!((cli.data, cli.config), ("d".into(), Some("c".into())), "{line}");
        }
    }
}

#[test]
fn a_key_is_described_by_its_flags() {
    let Command::Keys(KeysCommand::Create(args)) = command(
        "linesman keys create --kind production --name N --groups combat,golf --burst-per-minute 5 \
         --requests-per-day 100 --requests-per-month 2000 --permissions none --json",
    ) else {
        panic!()
    };
    assert_eq!(args.kind, KeyKind::Production);
    assert_eq!(args.name.as_deref(), Some("N"));
    assert_eq!(args.groups, ["combat", "golf"]);
    assert_eq!(args.burst_per_minute, Some(5));
    assert_eq!(args.requests_per_day, Some(100));
    assert_eq!(args.requests_per_month, Some(2000));
    assert_eq!(args.permissions, [Permission::None]);
    assert!(args.json);

    let Command::Keys(KeysCommand::Create(args)) = command("linesman keys create --kind sandbox")
    else {
        panic!()
    };
    assert_eq!((&*args.permissions, args.json), (&[Permission::OddsRead][..], false));
    assert!(args.groups.is_empty());
    let both = command("linesman keys create --kind sandbox --permissions odds:read,export:read");
    let Command::Keys(KeysCommand::Create(args)) = both else { panic!() };
    assert_eq!(args.permissions, [Permission::OddsRead, Permission::ExportRead]);
}

#[test]
fn the_rest_of_a_keys_life() {
    assert!(matches!(
        command("linesman keys list --json"),
        Command::Keys(KeysCommand::List(ListArgs { json: true }))
    ));
    let Command::Keys(KeysCommand::Revoke(args)) = command("linesman keys revoke k_1") else {
        panic!()
    };
    assert_eq!(args.key.reveal(), "k_1");
    let Command::Keys(KeysCommand::Rotate(args)) =
        command("linesman keys rotate k_1 --overlap 24h")
    else {
        panic!()
    };
    assert_eq!(args.overlap, Some(Duration::from_secs(86_400)));
    assert!(misuse("linesman keys rotate k_1 --overlap 169h").contains("longer than 7d"));
}

#[test]
fn feeds_and_maintenance() {
    let Command::Feeds(FeedsCommand::Create(args)) =
        command("linesman feeds create a --bookmaker b")
    else {
        panic!()
    };
    assert_eq!((args.name.as_str(), args.bookmaker.as_deref()), ("a", Some("b")));
    let Command::Maintenance(MaintenanceCommand::On(args)) =
        command("linesman maintenance on --retry-after 90s")
    else {
        panic!()
    };
    assert_eq!(args.retry_after, Duration::from_secs(90));
    assert!(matches!(
        command("linesman maintenance off"),
        Command::Maintenance(MaintenanceCommand::Off)
    ));
    assert!(misuse("linesman maintenance off --retry-after 1m").contains("--retry-after"));
}

#[test]
fn recordings_are_matched_and_replayed() {
    let Command::Match(args) = command("linesman match a.ndjson b.ndjson --json") else { panic!() };
    assert_eq!((args.files.len(), args.json), (2, true));
    let Command::Replay(args) =
        command("linesman replay a b --to http://127.0.0.1:8080/ --token fk_abc --speed 10x")
    else {
        panic!()
    };
    assert_eq!(args.files.len(), 2);
    assert_eq!(args.to, "http://127.0.0.1:8080");
    assert_eq!(args.token().unwrap().reveal(), "fk_abc");
    assert_eq!(args.speed, Speed::Times(NonZeroU32::new(10).unwrap()));
    assert!(misuse("linesman replay --to http://h --token fk_x").contains("<FILE>"));
    assert!(misuse("linesman replay a --to ftp://h --token fk_x").contains("http://"));
}

#[test]
fn a_recording_is_of_a_world_between_two_instants() {
    let Command::Record(args) = command(
        "linesman record --world sandbox --from 2026-11-14T18:00:00Z --to 2026-11-14T19:00:00Z",
    ) else {
        panic!()
    };
    assert_eq!(World::from(args.world), World::Sandbox);
    assert_eq!(args.from.map(|from| from.to_string()).as_deref(), Some("2026-11-14T18:00:00Z"));
    let Command::Record(args) = command("linesman record --world live") else { panic!() };
    assert_eq!((World::from(args.world), args.from, args.to), (World::Live, None, None));
    assert!(misuse("linesman record").contains("--world"));
    assert!(misuse("linesman record --world moon").contains("live, sandbox"));
    assert!(misuse("linesman record --world live --from today").contains("RFC 3339"));
    let turned =
        "linesman record --world live --from 2026-11-14T19:00:00Z --to 2026-11-14T18:00:00Z";
    assert!(misuse(turned).contains("later than --to"));
}

#[test]
fn speeds_are_times_or_max() {
    let times = |n| Speed::Times(NonZeroU32::new(n).unwrap());
    for (text, speed) in [("1x", times(1)), ("10x", times(10)), ("max", Speed::Max)] {
        assert_eq!(parse_speed(text), Ok(speed));
    }
    for bad in ["", "x", "0x", "10", "-1x", "+1x", "1.5x", "10 x", "MAX"] {
        assert!(parse_speed(bad).is_err(), "{bad}");
    }
}

#[test]
fn wrong_use_is_reported_in_one_sentence_with_the_fix() {
    for (line, expected) in [
        ("linesman serv", "unrecognized subcommand 'serv'"),
        ("linesman keys", "requires a subcommand"),
        ("linesman keys create", "--kind <KIND>"),
        ("linesman keys create --kind live", "[possible values: sandbox, production]"),
        (
            "linesman keys create --kind sandbox --burst-per-minute 0",
            "'--burst-per-minute <N>': must be a whole number from 1 to 4294967295",
        ),
        ("linesman keys create --kind sandbox --groups combat,,golf", "a name is required"),
        ("linesman keys create --kind sandbox --permissions all", "odds:read, export:read, none"),
        ("linesman config --chek", "--check"),
        ("linesman match", "<FILE>"),
    ] {
        let sentence = misuse(line);
        assert!(sentence.contains(expected), "{line}: {sentence}");
        assert!(!sentence.contains('\n') && sentence.contains("--help"), "{sentence}");
    }
}

#[test]
fn wrong_use_names_the_help_of_its_own_command() {
    for (line, expected) in [
        ("linesman serv", "`linesman --help`"),
        ("linesman --lisen :0", "`linesman --help`"),
        ("linesman keys", "`linesman keys --help`"),
        ("linesman keys creat", "`linesman keys --help`"),
        ("linesman keys create --kind live", "`linesman keys create --help`"),
        ("linesman --data keys keys --json create", "`linesman keys create --help`"),
        ("linesman record --world live --data serve --fro x", "`linesman record --help`"),
        ("linesman replay a --to http://h --token x", "`linesman replay --help`"),
    ] {
        let sentence = misuse(line);
        assert!(sentence.ends_with(&format!("see {expected}")), "{line}: {sentence}");
    }
}

#[test]
fn a_feed_token_may_come_from_a_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "fk_abc\n").unwrap();
    let line = format!("linesman replay a --to http://h --token-file {}", file.path().display());
    let Command::Replay(args) = command(&line) else { panic!() };
    assert_eq!(args.token().unwrap().reveal(), "fk_abc");
    std::fs::write(&file, "hunter2").unwrap();
    let refused = format!("{:#}", args.token().unwrap_err());
    assert!(refused.contains("must be a feed token") && !refused.contains("hunter2"), "{refused}");
    assert!(misuse("linesman replay a --to http://h").contains("--token"));
    assert!(misuse(&format!("{line} --token fk_x")).contains("cannot be used with"));
}

#[test]
fn completions_and_the_manual_name_every_command() {
    let man = man_page().unwrap();
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let script = completions(shell);
        for word in ["serve", "init", "keys", "rotate", "token-file", "completions"] {
            assert!(script.contains(word), "{shell:?}: {word}");
        }
    }
    for section in
        ["LINESMAN SERVE", "LINESMAN KEYS CREATE", "LINESMAN FEEDS PAUSE", "LINESMAN MAN"]
    {
        assert!(man.contains(&format!(".SH \"{section}\"")), "{section}");
    }
    assert!(man.starts_with(".ie") || man.contains(".TH linesman 1"), "{:?}", man.get(..200));
}

#[test]
fn wrong_use_never_repeats_a_key_or_token() {
    for line in [
        "linesman replay a --to http://h --token sk_live_hunter2",
        "linesman replay a --to http://h --token hunter2",
        "linesman replay a --to http://h --tokn fk_hunter2",
        "linesman keys revoke k_1 sk_test_hunter2",
    ] {
        assert!(!misuse(line).contains("hunter2"), "{line}");
    }
    let shown = format!("{:?}", command("linesman keys revoke sk_live_hunter2"));
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn the_help_of_every_verb_shows_an_example() {
    fn check(command: &clap::Command) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains("Example") && help.contains("linesman"), "{}", command.get_name());
        command.get_subcommands().for_each(check);
    }
    check(&Given::command());
    for line in ["linesman --help", "linesman keys create --help", "linesman --version"] {
        assert!(matches!(parse(line), Err(Stop::Shown(_))), "{line}");
    }
}
