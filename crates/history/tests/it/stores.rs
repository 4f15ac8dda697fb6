//! Folders and buckets behave alike: the same steps, and failures on the way.

use std::error::Error as _;
use std::time::{Duration, Instant};

use archive::{
    Archive, ArchiveError, Blob, BucketOptions, Commit, Compact, Credentials, Location, Outcome,
    Table, TableFile,
};
use domain::Timestamp;
use market::Change;
use test_servers::{Proxy, S3, WriteFault};
use tokio::runtime::Runtime;

use crate::log::{LOG, assert_holds, go_on, next_part};

const DEADLINE: Duration = Duration::from_secs(60);
const LONG_AGO: Timestamp = Timestamp::from_millis(0);

/// A bucket behind a proxy. Fields are dropped in this order.
struct Bucket {
    proxy: Proxy,
    server: S3,
    runtime: Runtime,
}

impl Bucket {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (server, proxy) = runtime.block_on(async {
            let server = S3::start().await.unwrap();
            let proxy = Proxy::start(server.port()).await.unwrap();
            (server, proxy)
        });
        Self { proxy, server, runtime }
    }

    fn options(&self) -> BucketOptions {
        BucketOptions {
            bucket: S3::BUCKET.to_owned(),
            prefix: "a=b/live".to_owned(),
            endpoint: format!("http://127.0.0.1:{}", self.proxy.port()),
            region: "eu-central-1".to_owned(),
            credentials: Credentials {
                access_key_id: S3::ACCESS_KEY_ID.to_owned(),
                secret_access_key: S3::SECRET_ACCESS_KEY.to_owned(),
                session_token: None,
            },
        }
    }

    fn location(&self) -> Location {
        Location::Bucket(Box::new(self.options()))
    }

    fn archive(&self) -> Archive {
        Archive::create_in(&self.location()).unwrap()
    }
}

/// Environment variable with the endpoint of another server with the same bucket, which `cargo xtask clients` starts.
const OTHER_SERVER: &str = "LINESMAN_TEST_S3_ENDPOINT";

/// Runs a check in a folder and in a bucket.
fn in_each(check: impl Fn(&Location)) {
    let dir = tempfile::tempdir().unwrap();
    check(&Location::Folder(dir.path().join("a=b/live")));
    let bucket = Bucket::start();
    check(&bucket.location());
    #[expect(clippy::disallowed_methods, reason = "a setting of the tests, not of the program")]
    let other = std::env::var(OTHER_SERVER);
    if let Ok(endpoint) = other {
        // All tests share this server.
        let place = dir.path().file_name().unwrap().display().to_string();
        let prefix = format!("{}/a=b/live", place.trim_start_matches('.'));
        check(&Location::Bucket(Box::new(BucketOptions { endpoint, prefix, ..bucket.options() })));
    }
}

/// Entries of the log up to its `n`th publication.
fn until_cut(n: usize) -> &'static [archive::Entry] {
    let cuts =
        LOG.iter().enumerate().filter(|(_, entry)| matches!(entry.change, Change::Cut { .. }));
    let end = cuts.map(|(at, _)| at + 1).nth(n - 1).unwrap();
    &LOG[..end]
}

#[test]
fn what_goes_in_comes_back_and_others_read_it() {
    in_each(|location| {
        let archive = Archive::create_in(location).unwrap();
        assert_eq!(archive.newest_number().unwrap(), 0);
        go_on(&archive, until_cut(2), 1).unwrap();
        go_on(&archive, &LOG, 1000).unwrap();
        let other = Archive::of(location);
        assert_holds(&other, &LOG);
        let commit = other.newest().unwrap();
        assert_eq!(other.publications(&commit).unwrap().len(), 6);
        // Large files of a bucket are read in ranges.
        assert_holds(&Archive::of(location).with_whole_max(0), &LOG);
        let copy = tempfile::tempdir().unwrap();
        let copied = other.copy_to(&copy.path().join("live")).unwrap();
        assert_eq!((copied.files, copied.faults.len()), (commit.paths().count(), 0));
        assert_holds(&Archive::at(&copy.path().join("live")), &LOG);
    });
}

/// Damage is skipped, an unavailable store is waited for.
#[test]
fn a_missing_file_is_damage_and_a_store_that_is_away_is_not() {
    let is_damage = |archive: &Archive, commit: &Commit| {
        let read = archive.publications(commit);
        read.unwrap_err().is_damage()
    };
    in_each(|location| {
        let archive = Archive::create_in(location).unwrap();
        go_on(&archive, &LOG, 1000).unwrap();
        let mut commit = archive.newest().unwrap();
        commit.files.iter_mut().for_each(|file| file.path = format!("{}-gone", file.path));
        for whole_max in [u64::MAX, 0] {
            assert!(is_damage(&Archive::of(location).with_whole_max(whole_max), &commit));
        }
    });
    let bucket = Bucket::start();
    let archive = bucket.archive();
    go_on(&archive, &LOG, 1000).unwrap();
    let commit = archive.newest().unwrap();
    bucket.proxy.cut();
    for whole_max in [u64::MAX, 0] {
        let away = Archive::of(&bucket.location()).with_whole_max(whole_max);
        assert!(!is_damage(&away, &commit));
    }
}

#[test]
fn of_two_writers_one_loses_and_goes_on_after_the_other() {
    in_each(|location| {
        let one = Archive::create_in(location).unwrap();
        let other = Archive::create_in(location).unwrap();
        go_on(&one, until_cut(2), 1).unwrap();
        let base = other.newest().unwrap();
        let early = next_part(&one, &base, until_cut(3), 1).unwrap();
        let late = next_part(&other, &base, until_cut(4), usize::MAX).unwrap();
        assert_eq!(early.commit(&one, &base).unwrap().1, Outcome::Committed);
        assert_eq!(late.commit(&other, &base).unwrap().1, Outcome::Lost);
        assert_holds(&other, until_cut(3));
        go_on(&other, &LOG, 1).unwrap();
        assert_holds(&one, &LOG);
    });
}

#[test]
fn writers_that_race_commit_every_number_once() {
    in_each(|location| {
        let won = std::thread::scope(|scope| {
            let race = || {
                let archive = Archive::create_in(location).unwrap();
                let mut won = 0;
                loop {
                    let commit = archive.newest().unwrap();
                    let Some(part) = next_part(&archive, &commit, &LOG, 1) else { return won };
                    won += usize::from(
                        part.commit(&archive, &commit).unwrap().1 == Outcome::Committed,
                    );
                }
            };
            let racers: Vec<_> = (0..4).map(|_| scope.spawn(race)).collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).sum::<usize>()
        });
        let archive = Archive::of(location);
        assert_holds(&archive, &LOG);
        let commits = usize::try_from(archive.newest_number().unwrap()).unwrap();
        // A commit is not counted if another one followed before its writer checked.
        assert!(won <= commits && commits == 6, "{won} of {commits}");
    });
}

#[test]
fn what_was_replaced_stays_for_a_while_and_then_goes() {
    in_each(|location| {
        let archive = Archive::create_in(location).unwrap();
        go_on(&archive, &LOG, 1).unwrap();
        let before = archive.newest().unwrap();
        let left = archive.put("odds/sport=mma/date=2026-01-01/left", ".parquet", b"left").unwrap();
        let compacted = archive.compact(&before, &Compact::All, LONG_AGO).unwrap().unwrap();
        assert_eq!(compacted.outcome, Outcome::Committed);
        assert_holds(&archive, &LOG);
        // Readers of the previous commit find its files.
        let soon = Archive::of(location);
        assert_eq!(soon.clean(&compacted.commit).unwrap(), 0);
        assert!(soon.verify(&before).faults.is_empty());
        // Without a retention time, files older than the newest commit are deleted; a store's times may be whole
        // seconds.
        let later = Archive::of(location).with_unused_kept(Duration::ZERO);
        let begun = Instant::now();
        let mut gone = 0;
        while !later.verify(&before).faults.iter().any(|fault| !fault.to_string().is_empty()) {
            assert!(begun.elapsed() < DEADLINE, "nothing is deleted");
            // Each commit provides the store's current time.
            let newest = archive.newest().unwrap();
            let next = Commit { commit: newest.commit + 1, ..newest };
            assert_eq!(archive.commit(&next).unwrap(), Outcome::Committed);
            gone += later.clean(&next).unwrap();
        }
        assert!(gone > 0, "{left:?}");
        assert_holds(&Archive::of(location), &LOG);
    });
}

#[test]
fn any_range_of_a_file_is_read_and_nothing_beyond_its_end() {
    in_each(|location| {
        let archive = Archive::create_in(location).unwrap();
        go_on(&archive, &LOG, usize::MAX).unwrap();
        let commit = archive.newest().unwrap();
        let file = commit.files.iter().max_by_key(|file| file.bytes).unwrap();
        let whole = archive.read_range(file, 0..u64::MAX).unwrap();
        assert_eq!(u64::try_from(whole.len()).unwrap(), file.bytes);
        assert_eq!(archive.read_range(file, 4..9).unwrap(), whole.slice(4..9));
        assert!(archive.read_range(file, file.bytes..file.bytes + 9).unwrap().is_empty());
        // A file with another length than was committed is not read.
        let longer = TableFile { bytes: file.bytes + 1, ..file.clone() };
        let wrong = archive.read_range(&longer, 0..4);
        assert!(wrong.is_err() || location.folder().is_some(), "{wrong:?}");
    });
}

#[test]
fn a_large_file_goes_into_the_bucket_in_parts() {
    const PARTS: [usize; 3] = [8 << 20, (8 << 20) + 1, 20_000_000];
    let whole: Vec<u8> = (0..20_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    in_each(|location| {
        let archive = Archive::create_in(location).unwrap();
        for bytes in PARTS.map(|length| &whole[..length]) {
            let blob = archive.put("images/large", ".image", bytes).unwrap();
            let held = archive.read_range(&named(blob), 0..u64::MAX).unwrap();
            assert!(held == bytes, "{} bytes instead of {}", held.len(), bytes.len());
        }
    });
}

/// An image described like a file of rows.
fn named(Blob { path, bytes, sha256 }: Blob) -> TableFile {
    let (table, rows, first_seq, last_seq, lineage) = (Table::Internal, 0, 0, 0, 0);
    TableFile { table, path, rows, bytes, sha256, first_seq, last_seq, lineage }
}

/// A part that was sent would take space invisibly.
#[test]
fn of_a_large_file_that_is_not_finished_nothing_stays() {
    let bucket = Bucket::start();
    let archive = bucket.archive();
    let files = || std::fs::read_dir(bucket.server.folder().join("..")).unwrap().count();
    let before = files();
    // The first request starts the upload, the next two send parts.
    bucket.server.choose_write(3, WriteFault::Refused(403));
    let error = archive.put("images/large", ".image", &vec![7; 20 << 20]).unwrap_err();
    let told = format!("{error}: {}", error.source().unwrap());
    assert!(told.contains("it answers 403"), "{told}");
    assert_eq!(files(), before);
    assert!(!bucket.server.folder().join("a=b/live/images").exists());

    // In an outage, once the bucket answers again.
    bucket.server.choose_write(3, WriteFault::NotExecuted);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            bucket.runtime.block_on(bucket.server.chosen_write_arrived());
            bucket.proxy.cut();
        });
        archive.put("images/large", ".image", &vec![7; 20 << 20]).unwrap_err();
    });
    assert!(files() > before, "the parts cannot be deleted yet");
    bucket.server.refuse(u32::MAX, 503);
    bucket.proxy.restore();
    eventually(|| match archive.newest() {
        Err(error) if error.to_string().contains("503") => Ok(()),
        newest => newest.map(drop),
    });
    assert!(files() > before, "neither while it refuses everything");
    bucket.server.refuse(0, 503);
    eventually(|| archive.newest().map(drop));
    assert_eq!(files(), before);
}

#[test]
fn a_bucket_without_conditional_writes_is_refused() {
    let bucket = Bucket::start();
    bucket.server.ignore_conditions();
    let error = Archive::create_in(&bucket.location()).unwrap_err();
    assert!(error.is_not_exclusive(), "{error}");
    assert!(error.to_string().contains("s3://odds/a=b/live"), "{error}");
}

#[test]
fn a_bucket_that_says_it_knows_no_conditions_is_refused() {
    let bucket = Bucket::start();
    bucket.server.refuse(1, 501);
    assert!(Archive::create_in(&bucket.location()).unwrap_err().is_not_exclusive());
}

#[test]
fn a_bucket_that_refuses_conditions_as_bad_requests_is_refused() {
    let bucket = Bucket::start();
    for status in [400, 405, 422] {
        bucket.server.refuse_conditions(status);
        assert!(Archive::create_in(&bucket.location()).unwrap_err().is_not_exclusive(), "{status}");
    }
    bucket.server.refuse_conditions(0);
    // A store that refuses everything, or only temporarily, may still support conditions.
    bucket.server.refuse(2, 400);
    assert!(!Archive::create_in(&bucket.location()).unwrap_err().is_not_exclusive());
    bucket.server.refuse(1, 400);
    Archive::create_in(&bucket.location()).unwrap();
    // The answer to the first attempt is lost, so it meets its own object.
    bucket.server.lose_answers(1);
    Archive::create_in(&bucket.location()).unwrap();
}

#[test]
fn errors_of_a_moment_are_tried_again_and_lasting_ones_are_told() {
    let bucket = Bucket::start();
    let archive = bucket.archive();
    go_on(&archive, until_cut(2), 1).unwrap();
    bucket.server.refuse(2, 503);
    assert_holds(&archive, until_cut(2));
    bucket.server.refuse(u32::MAX, 503);
    let error = archive.newest().unwrap_err();
    assert!(error.to_string().contains("503"), "{error}");
    // It gets no requests for a while.
    let before = bucket.server.requests();
    archive.newest().unwrap_err();
    assert_eq!(bucket.server.requests(), before);
    bucket.server.refuse(0, 503);
    eventually(|| go_on(&archive, &LOG, 1));
    assert_holds(&archive, &LOG);
}

#[test]
fn a_commit_whose_answer_was_lost_is_made_once() {
    for lost in [1, 2] {
        let bucket = Bucket::start();
        let archive = bucket.archive();
        go_on(&archive, until_cut(2), 1).unwrap();
        let base = archive.newest().unwrap();
        let next = Commit { commit: base.commit + 1, ..base };
        bucket.server.lose_answers(lost);
        assert_eq!(archive.commit(&next).unwrap(), Outcome::Committed, "{lost}");
        go_on(&archive, &LOG, 1).unwrap();
        assert_holds(&archive, &LOG);
    }
}

#[test]
fn a_bucket_that_is_cut_off_or_silent_fails_and_works_again_when_it_is_back() {
    let bucket = Bucket::start();
    let archive = bucket.archive();
    go_on(&archive, until_cut(2), 1).unwrap();
    for (n, fail) in [Proxy::cut, Proxy::stall].into_iter().enumerate() {
        fail(&bucket.proxy);
        let error = go_on(&archive, until_cut(n + 3), 1).unwrap_err();
        assert!(matches!(error, ArchiveError::Bucket { .. }), "{error}");
        bucket.proxy.restore();
        eventually(|| go_on(&archive, until_cut(n + 3), 1));
        assert_holds(&archive, until_cut(n + 3));
    }
}

#[test]
fn a_wrong_key_is_told_without_any_secret() {
    let bucket = Bucket::start();
    let secret = "another-secret".to_owned();
    let mut options = bucket.options();
    options.credentials.secret_access_key.clone_from(&secret);
    options.credentials.session_token = Some("a-token".to_owned());
    let error = Archive::create_in(&Location::Bucket(Box::new(options.clone()))).unwrap_err();
    let told = format!("{error} {error:?} {options:?}");
    assert!(told.contains("403 SignatureDoesNotMatch"), "{told}");
    assert!(!told.contains(&secret) && !told.contains("a-token"), "{told}");
    assert!(!told.contains(S3::ACCESS_KEY_ID), "{told}");
}

/// Retries until it succeeds.
fn eventually(mut attempt: impl FnMut() -> Result<(), ArchiveError>) {
    let begun = Instant::now();
    while let Err(error) = attempt() {
        assert!(begun.elapsed() < DEADLINE, "{error}");
        std::thread::park_timeout(Duration::from_millis(50));
    }
}
