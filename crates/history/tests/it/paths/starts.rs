//! The start of an event, and the remains of one that was listed before retention.

use super::*;

#[test]
fn a_start_is_taken_back_with_the_score_and_comes_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log(vec![]);
    log.list(1, "fanduel", "Ann");
    log.quote(1, "fanduel", 150);
    log.publish();
    log.score(1, Status::Live);
    log.publish();
    log.quote(1, "fanduel", 160);
    log.publish();
    log.score(1, Status::Scheduled);
    log.publish();
    let close = |log: &Log, name: &str| {
        let archive = archive_log(&dir.path().join(name), &log.0, 2);
        check(&Model::of(&log.0), &archive, None);
        let commit = archive.newest().unwrap();
        let paths = past(&archive, &commit, None, &wanted(EventId::from_number(1))).into_paths();
        history_of(&paths[0]).close
    };
    assert_eq!(close(&log, "back"), None);
    // An export has the line, and the row that withdraws it.
    let back = Archive::at(&dir.path().join("back"));
    let (from, to) = (Timestamp::from_millis(0), Timestamp::from_millis(i64::MAX));
    let (table, format) = (Table::Closing, ExportFormat::Csv);
    let export = Export { table, from, to, sport: None, format };
    let mut out = Vec::new();
    back.export(&back.newest().unwrap(), &export, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let started = text.lines().skip(1).filter(|line| line.contains(",live,")).count();
    assert!(started > 0 && text.lines().skip(1).count() > started, "{text}");
    log.score(1, Status::Final);
    log.publish();
    let again = close(&log, "again").unwrap();
    assert_eq!(again.1, "live");
    assert_eq!(again.5[0].1, "160");
}

#[test]
fn an_event_that_is_listed_again_keeps_its_start() {
    let mut log = Log(vec![]);
    let commence = |event| match event {
        2 => FROM.plus(Duration::from_secs(12)),
        4 => FROM.plus(Duration::from_secs(24)),
        _ => FROM.plus(EPOCH * 120),
    };
    // Two go live and one reaches its start before they are withdrawn; the start of the fourth comes after that.
    for event in 1..=4 {
        log.list_for(event, "fanduel", "Ann", commence(event));
        log.quote(event, "fanduel", 150);
    }
    log.publish();
    log.score(1, Status::Live);
    log.score(3, Status::Final);
    log.publish();
    // In play, after the start.
    for event in 1..=3 {
        log.quote(event, "fanduel", 300);
    }
    log.publish();
    for event in 1..=4 {
        log.withdraw(event, "fanduel");
    }
    log.publish();
    // The start of the fourth passes while it is not listed.
    for _ in 0..3 {
        log.publish();
    }
    for event in 1..=4 {
        log.list_for(event, "fanduel", "Ann", commence(event));
        log.quote(event, "fanduel", 400);
    }
    log.publish();
    log.quote(1, "fanduel", 500);
    log.publish();
    let dir = tempfile::tempdir().unwrap();
    check_everywhere(dir.path(), &log.0);
    let archive = archive_log(&dir.path().join("each"), &log.0, 1);
    let model = Model::of(&log.0);
    check(&model, &archive, None);
    let closes: Vec<_> = model.records.values().map(|held| held.close.as_ref().unwrap()).collect();
    assert!(closes.iter().all(|close| close.5[0].1 == "150"), "{closes:?}");
    assert!(!closes[3].2, "withdrawn before its time");
}

#[test]
fn a_start_that_only_a_lost_log_showed_is_taken_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log(vec![]);
    for event in 1..=2 {
        log.list_for(event, "fanduel", "Ann", FROM.plus(EPOCH * 1440));
        log.quote(event, "fanduel", 150);
    }
    log.publish();
    let common = log.0.clone();
    log.quote(1, "fanduel", 160);
    log.publish();
    for event in 1..=2 {
        log.score(event, Status::Live);
    }
    log.publish();
    let archive = archive_log(dir.path(), &log.0, usize::MAX);
    let closes = |archive: &Archive| {
        let commit = archive.newest().unwrap();
        [1, 2].map(|event| {
            let paths = past(archive, &commit, None, &wanted(EventId::from_number(event)));
            history_of(&paths.into_paths()[0]).close.map(|close| (close.0, close.5[0].1.clone()))
        })
    };
    let shown = log.0.last().unwrap().at;
    assert_eq!(closes(&archive), [Some((shown, "160".into())), Some((shown, "150".into()))]);
    // The restored log continues from the first publication, at a later time.
    let commit = archive.newest().unwrap();
    let before = book_at_end(&archive, &commit);
    let mut book = new_book();
    common.iter().for_each(|entry| book.absorb(&entry.change, entry.at));
    let base = u64::try_from(common.len()).unwrap();
    let mut part = Part::founding(&commit, book, base).replacing(&commit, &before);
    let mut restored = Log(common);
    let hour = Duration::from_secs(3600);
    restored.publish_at(shown.plus(hour));
    restored.score(1, Status::Live);
    restored.publish_at(shown.plus(hour * 2));
    for entry in restored.0.iter().filter(|entry| entry.seq > base) {
        part.push(entry, checksum(entry));
    }
    part.commit(&archive, &commit).unwrap();
    assert_eq!(closes(&archive), [Some((shown.plus(hour * 2), "150".into())), None]);
    // Events that the lost log showed are not new.
    let (from, to) = (shown.plus(EPOCH), Timestamp::from_millis(i64::MAX));
    let (table, format) = (Table::Events, ExportFormat::Csv);
    let export = Export { table, from, to, sport: None, format };
    let mut out = Vec::new();
    archive.export(&archive.newest().unwrap(), &export, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines_with = |what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert_eq!((lines_with(",listed,"), lines_with(",changed,")), (0, 3), "{text}");
}

/// The listing of an event and its first prices are of days past retention.
#[test]
fn an_event_that_was_listed_before_retention_has_what_is_left_of_its_past() {
    let dir = tempfile::tempdir().unwrap();
    let day = |n: u32| FROM.plus(Duration::from_secs(24 * 3600) * n);
    let id = EventId::from_number(1);
    let mut log = Log(vec![]);
    log.list_for(1, "fanduel", "Ann", day(30));
    log.quote(1, "fanduel", 150);
    log.publish_at(day(0));
    for (n, profit) in [(3, 160), (4, 170)] {
        log.quote(1, "fanduel", profit);
        log.publish_at(day(n));
    }
    let archive = archive_log(dir.path(), &log.0, 1);
    let trim = |oldest| {
        let commit = archive.newest().unwrap();
        archive.compact(&commit, &Compact::Due, oldest).unwrap();
        archive.newest().unwrap()
    };
    let commit = trim(day(3));
    assert!(past(&archive, &commit, None, &wanted(id)).is_unknown());
    let mut known = EventPast::default();
    archive.known_event_past(&commit, "mma", &wanted(id), &mut known).unwrap();
    assert_eq!(known.new_at(), None, "its first prices are not known");
    let prices = |past: EventPast| {
        let path = past.into_paths().remove(0);
        let history = history_of(&path);
        let priced = history.points.into_iter().filter_map(|(_, prices)| prices.into_iter().next());
        let points = priced.map(|(_, price, _)| price);
        let open = prices_of(&path.open.unwrap().outcomes)[0].1.clone();
        (open, points.collect::<Vec<_>>(), history.close.map(|close| close.5[0].1.clone()))
    };
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    assert_eq!(prices(known), ("160".into(), texts(&["160", "170"]), None));
    // Its first remaining row says that it is live.
    log.score(1, Status::Live);
    log.publish_at(day(5));
    log.quote(1, "fanduel", 0);
    log.publish_at(day(6));
    go_on(&archive, &log.0, 1).unwrap();
    let begun = past(&archive, &archive.newest().unwrap(), None, &wanted(id));
    assert_eq!(begun.new_at(), None);
    let left = prices(begun);
    assert_eq!((left.0, left.2), ("160".into(), Some("170".into())));
    // Only the closing line is left.
    let commit = trim(day(5));
    let only = wanted(id);
    let alone = past(&archive, &commit, None, &only);
    let closings = archive.closing_pasts(&commit, "mma", &[id], &only).unwrap().remove(&id);
    for past in [alone, closings.unwrap()] {
        assert_eq!(past.new_at(), None);
        let path = past.into_paths().remove(0);
        assert_eq!(prices_of(&path.open.unwrap().outcomes)[0].1, "170");
        assert_eq!(prices_of(&path.closing.unwrap().prices.outcomes)[0].1, "170");
    }
    let other = Wanted { bookmaker: &|key| key == "draftkings", ..wanted(id) };
    assert!(past(&archive, &commit, None, &other).into_paths().is_empty());
}

/// Publications of two days take turns, so neither day comes before the other.
#[test]
fn a_clock_that_was_set_back_over_midnight_hides_no_prices() {
    let dir = tempfile::tempdir().unwrap();
    let midnight = FROM.plus(Duration::from_secs(9600));
    assert_eq!(midnight.as_secs() % 86_400, 0);
    let before = |minutes: u64| midnight.minus(Duration::from_secs(minutes * 60));
    let after = midnight.plus(EPOCH);
    let mut log = Log(vec![]);
    let list = |log: &mut Log, event: u64| {
        log.list_for(event, "fanduel", "Ann", midnight.plus(EPOCH * 1440));
        log.quote(event, "fanduel", 150);
    };
    list(&mut log, 2);
    log.publish_at(before(20));
    list(&mut log, 1);
    log.quote(2, "fanduel", 160);
    log.publish_at(after);
    log.quote(1, "fanduel", 170);
    log.withdraw(2, "fanduel");
    log.publish_at(before(15));
    log.score(1, Status::Live);
    log.publish_at(before(10));
    let archive = archive_log(dir.path(), &log.0, 1);
    for _ in 0..2 {
        let commit = archive.newest().unwrap();
        let [one, two] = [1, 2].map(|event| {
            let paths = past(&archive, &commit, None, &wanted(EventId::from_number(event)));
            history_of(&paths.into_paths()[0])
        });
        let points = |history: &RecordHistory| -> Vec<(Timestamp, Option<String>)> {
            let price = |prices: &Prices| prices.first().map(|(_, price, _)| price.clone());
            history.points.iter().map(|(at, prices)| (*at, price(prices))).collect()
        };
        let price = |price: &str| Some(price.to_owned());
        assert_eq!(points(&one), [(before(15), price("170")), (after, price("150"))]);
        let expected = [(before(20), price("150")), (before(15), None), (after, price("160"))];
        assert_eq!(points(&two), expected);
        let close = one.close.unwrap();
        assert_eq!((close.0, &*close.5[0].1), (before(10), "170"));
        archive.compact(&commit, &Compact::All, FROM).unwrap();
    }
}

/// If the archive waited until a damaged file was restored, the log would grow meanwhile.
#[test]
fn a_damaged_file_costs_the_closing_lines_that_need_it_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log(vec![]);
    log.list(1, "fanduel", "Ann");
    log.quote(1, "fanduel", 150);
    log.publish();
    let archive = archive_log(dir.path(), &log.0, 1);
    let commit = archive.newest().unwrap();
    let odds = commit.files.iter().find(|file| file.table == Table::Odds).unwrap();
    let (path, whole) = (dir.path().join(&odds.path), odds.path.clone());
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    log.list(2, "fanduel", "Bea");
    log.publish();
    for event in [1, 2] {
        log.quote(event, "fanduel", 160);
        log.score(event, Status::Live);
    }
    log.publish();
    log.quote(2, "fanduel", 170);
    log.publish();
    // The second was listed after the damaged entries, and its files are intact.
    let archive = Archive::at(dir.path());
    go_on(&archive, &log.0, 1).unwrap();
    let commit = archive.newest().unwrap();
    assert_eq!(
        commit.files.iter().map(|file| file.last_seq).max(),
        log.0.last().map(|last| last.seq)
    );
    assert!(commit.files.iter().any(|file| file.path == whole), "it is still named");
    let closed = archive.started(&commit, "mma").unwrap();
    assert!(!closed.contains_key(&EventId::from_number(1)));
    // Once the file is restored, the next part adds the missing closing lines.
    log.publish();
    go_on(&archive, &log.0, 1).unwrap();
    // The events in a damaged file are unknown, so both wait for it.
    assert_eq!(
        archive.newest().unwrap().unclosed.len(),
        2,
        "each once, however often it was tried"
    );
    std::fs::write(&path, &bytes).unwrap();
    log.publish();
    let archive = Archive::at(dir.path());
    go_on(&archive, &log.0, 1).unwrap();
    assert!(archive.newest().unwrap().unclosed.is_empty());
    check(&Model::of(&log.0), &archive, None);
    let line = past(&archive, &archive.newest().unwrap(), None, &wanted(EventId::from_number(1)));
    let close = history_of(&line.into_paths()[0]).close.unwrap();
    assert_eq!((close.1, &*close.5[0].1), ("live", "150"));
}
