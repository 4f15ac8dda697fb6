//! `linesman config`: the effective values, their sources, and faults.

use crate::harness::TestProgram;

#[tokio::test]
async fn the_printed_configuration_loads_back_to_the_same() {
    let program = TestProgram::new();
    program.write("mine.toml", "[market]\nstale_after = \"2m\"\n\n[log]\nfilter = \"warn\"\n");
    let printed = program.ok(&["--config", "mine.toml", "config"]).await;
    let table: toml::Table = printed.parse().unwrap();
    assert_eq!(table["market"]["refresh_interval"].as_str(), Some("100ms"));
    assert_eq!(table["market"]["stale_after"].as_str(), Some("2m"));
    assert_eq!(table["sandbox"]["enabled"].as_bool(), Some(false));
    let line = |start: &str| printed.lines().find(|line| line.starts_with(start)).unwrap();
    assert!(line("stale_after").contains("# mine.toml"), "{printed}");
    assert!(
        line("refresh_interval").contains("# environment LINESMAN_MARKET__REFRESH_INTERVAL"),
        "{printed}"
    );
    assert!(line("final_retention").contains("# default"), "{printed}");

    program.write("printed.toml", &printed);
    let fresh = TestProgram::new()
        .unset("LINESMAN_MARKET__REFRESH_INTERVAL")
        .unset("LINESMAN_SERVER__OPS_LISTEN")
        .unset("LINESMAN_SERVER__WORKERS")
        .unset("LINESMAN_SANDBOX__ENABLED");
    let path = program.path().join("printed.toml");
    let again = fresh.ok(&["--config", path.to_str().unwrap(), "config"]).await;
    assert_eq!(again.parse::<toml::Table>().unwrap(), table);
    let checked = fresh.ok(&["--config", path.to_str().unwrap(), "config", "--check"]).await;
    assert_eq!(checked, "configuration OK");
}

#[tokio::test]
async fn a_file_in_the_current_folder_is_read_without_being_named() {
    let program = TestProgram::new();
    program.write("linesman.toml", "[sandbox]\nseed = 7\n");
    let table: toml::Table = program.ok(&["config"]).await.parse().unwrap();
    assert_eq!(table["sandbox"]["seed"].as_integer(), Some(7));
}

#[tokio::test]
async fn every_fault_is_reported_with_its_place_and_the_nearest_name() {
    let program = TestProgram::new().set("LINESMAN_MARKET__REFRESH_INTERVALL", "1s");
    program.write(
        "bad.toml",
        "[server]\nlissten = \"127.0.0.1:1\"\n\n[markt]\nx = 1\n\n[market]\nstale_after = \"soon\"\nrefresh_interval = \"1ms\"\n",
    );
    for check in [&["config", "--check"][..], &["config"], &["serve"], &["keys", "list"]] {
        let done = program.run(&[&["--config", "bad.toml"], check].concat()).await;
        assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""));
        let lines: Vec<&str> = done.stderr.lines().collect();
        assert_eq!(lines.len(), 5, "{}", done.stderr);
        for expected in [
            "`server.listen`",
            "`[market]`",
            "`soon`",
            "100ms",
            "LINESMAN_MARKET__REFRESH_INTERVALL",
        ] {
            let told =
                lines.iter().any(|line| line.starts_with("linesman: ") && line.contains(expected));
            assert!(told, "{expected}: {}", done.stderr);
        }
    }
    assert!(!program.data().join("accounts.db").exists(), "nothing is made on a bad configuration");
}

#[tokio::test]
async fn check_looks_at_the_files_that_are_named() {
    let program = TestProgram::new().set("LINESMAN_CATALOGUE__FILE", "catalogue.toml");
    let missing = program.run(&["config", "--check"]).await;
    assert!(missing.sentence(1).contains("catalogue.toml"), "{}", missing.stderr);
    program.write("catalogue.toml", "[[bookmaker]]\nkey = \"corner_shop\"\n");
    let wrong = program.run(&["config", "--check"]).await;
    assert!(wrong.sentence(1).contains("catalogue.toml"), "{}", wrong.stderr);
    program.write(
        "catalogue.toml",
        "[[bookmaker]]\nkey = \"corner_shop\"\ntitle = \"Corner Shop\"\nregions = [\"uk\"]\n",
    );
    assert_eq!(program.ok(&["config", "--check"]).await, "configuration OK");
    // And it takes effect: it is in the OpenAPI document, a feed can be bound to it, and clients see it.
    assert!(program.ok(&["openapi"]).await.contains("\"corner_shop\""));
    program.init().await;
    program.ok(&["feeds", "create", "corner", "--bookmaker", "corner_shop"]).await;
    let key = program.live_key().await;
    let service = program.start().await;
    assert!(service.get("/v1/books", &key).await.text().contains("Corner Shop"));
    let half = TestProgram::new().set("LINESMAN_SERVER__TLS_CERT", "cert.pem");
    let refused = half.run(&["config", "--check"]).await;
    assert!(refused.sentence(1).contains("server.tls_key"), "{}", refused.stderr);
}

#[tokio::test]
async fn only_commands_that_use_the_archive_need_the_keys_of_its_bucket() {
    let program = TestProgram::new();
    program.write("linesman.toml", "[history]\nstore = \"s3://odds/archive\"\n");
    let key = program.live_key().await;
    for verb in
        [&["keys", "revoke", &key][..], &["feeds", "list"], &["maintenance", "off"], &["config"]]
    {
        program.ok(verb).await;
    }
    let times = ["--from", "2020-01-01T00:00:00Z", "--to", "2020-01-02T00:00:00Z"];
    let export = [&["export", "--table", "odds"][..], &times].concat();
    for verb in
        [&["serve"][..], &["config", "--check"], &["history", "status"], &export, &["backup", "to"]]
    {
        let done = program.run(verb).await;
        let sentence = done.sentence(1);
        assert!(sentence.starts_with("linesman.toml line 2: `history.store` names"), "{sentence}");
        assert!(sentence.contains("`history.s3_access_key_id`"), "{sentence}");
    }
}

#[tokio::test]
async fn secrets_in_addresses_are_not_repeated() {
    let program =
        TestProgram::new().set("LINESMAN_DATABASE__URL", "postgres://me:hunter2@db/linesman");
    for verb in [&["config"][..], &["config", "--check"], &["serve"]] {
        let done = program.run(verb).await;
        assert!(
            done.sentence(1).contains("`database.url` needs `cluster.nats_url`"),
            "{}",
            done.stderr
        );
        assert!(!done.stderr.contains("hunter2"), "{}", done.stderr);
    }
}

#[tokio::test]
async fn a_variable_with_one_underscore_too_few_is_refused() {
    let program = TestProgram::new().set("LINESMAN_SERVER_LISTEN", "127.0.0.1:0");
    for verb in [&["config"][..], &["config", "--check"], &["serve"]] {
        let done = program.run(verb).await;
        let sentence = done.sentence(1);
        assert!(sentence.contains("did you mean `LINESMAN_SERVER__LISTEN`?"), "{}", done.stderr);
    }
}

#[tokio::test]
async fn a_setting_is_explained_whatever_the_configuration() {
    let program = TestProgram::new();
    program.write("linesman.toml", "[markt]\n");
    let text = program.ok(&["config", "--explain", "market.stale_after"]).await;
    assert!(text.contains("a duration from 100ms") && text.contains("Default: \"90s\""), "{text}");
    let unknown = program.run(&["config", "--explain", "market.stale"]).await;
    assert!(unknown.sentence(1).contains("`market.stale_after`"), "{}", unknown.stderr);
}
