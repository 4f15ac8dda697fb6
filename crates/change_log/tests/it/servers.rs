//! A log on servers with several writers, and with failing servers and networks.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use change_log::{
    Entry, LeaderClient, Log, LogError, LogLocation, NoAnswer, StreamLocation, StreamLog, Tip,
};
use test_servers::{Nats, Proxy};
use tokio::runtime::Runtime;

use crate::{
    at_ms,
    conformance::{append_one, on, read_all, stream_place, try_read_all},
    payload, version,
};

#[test]
fn of_two_writers_the_one_who_has_not_read_on_is_refused() {
    let runtime = Runtime::new().unwrap();
    let nats = Nats::start(1).unwrap();
    let place = on(&runtime, &nats.url(), "live", 1);
    let mut old = Log::open(&place).unwrap();
    append_one(&mut old);
    // The old leader is paused here; another one takes over and writes.
    let mut new = Log::open(&place).unwrap();
    assert_eq!(append_one(&mut new), 2);
    // The old one resumes.
    for _ in 0..2 {
        let refused = old.append(1, [(1, b"too late".as_slice())]);
        assert!(matches!(refused, Err(LogError::Overtaken | LogError::Poisoned)), "{refused:?}");
    }
    assert_eq!(append_one(&mut new), 3);
    assert_eq!(read_all(&new, 1), [1, 2, 3]);
    // A checkpoint of the old leader does not interfere either.
    new.write_checkpoint(3, 1, b"new").unwrap();
    let refused = old.write_checkpoint(1, 1, b"old");
    assert!(matches!(refused, Err(LogError::Overtaken)), "{refused:?}");
    assert_eq!(new.latest_checkpoint().unwrap().unwrap().payload, b"new");
    // After it has read the new entries, it may write.
    let mut old = Log::open(&place).unwrap();
    assert_eq!(append_one(&mut old), 4);
}

#[test]
fn a_follower_gets_what_is_written_later_in_order_and_from_anywhere() {
    let runtime = Runtime::new().unwrap();
    let nats = Nats::start(1).unwrap();
    let place = on(&runtime, &nats.url(), "live", 1);
    let (handle, stream) = stream_place(&place);
    let mut log = Log::open(&place).unwrap();
    let reader = StreamLog::open(handle, stream).unwrap();
    let mut early = reader.follow_from(1).unwrap();
    assert_eq!(early.next(Duration::from_millis(50)).unwrap(), None);
    for _ in 0..10 {
        append_one(&mut log);
    }
    let mut late = reader.follow_from(8).unwrap();
    for (follower, from) in [(&mut early, 1), (&mut late, 8)] {
        for seq in from..=10 {
            let entry = follower.next(PATIENCE).unwrap().unwrap();
            assert_eq!((entry.seq, entry.payload), (seq, payload(seq)));
        }
        assert_eq!(follower.next(Duration::from_millis(50)).unwrap(), None);
    }
    append_one(&mut log);
    assert_eq!(early.next(PATIENCE).unwrap().unwrap().seq, 11);
}

/// The connection is cut and stalled repeatedly while one writer appends and follows its own rule: after a failure it
/// reads the end of the log before it writes again.
#[test]
fn acknowledged_entries_are_there_once_whatever_the_network_did() {
    let runtime = Runtime::new().unwrap();
    let nats = Nats::start(1).unwrap();
    let proxy = runtime.block_on(Proxy::start(nats.port(0).unwrap())).unwrap();
    let url = format!("nats://127.0.0.1:{}", proxy.port());
    let place = on(&runtime, &url, "live", 1);
    let mut log = Log::open(&place).unwrap();
    let storm = runtime.spawn(async move {
        for _ in 0..12 {
            // Not in step with the timeout of one attempt.
            tokio::time::sleep(Duration::from_millis(170)).await;
            proxy.cut();
            tokio::time::sleep(Duration::from_millis(60)).await;
            proxy.restore();
            tokio::time::sleep(Duration::from_millis(150)).await;
            proxy.stall();
            tokio::time::sleep(Duration::from_millis(60)).await;
            proxy.restore();
        }
        proxy
    });
    let mut acknowledged: Vec<(u64, u32)> = Vec::new();
    let mut token = 0_u32;
    // A slow machine needs some of the calm time after it.
    while !storm.is_finished() || acknowledged.len() <= 20 {
        token += 1;
        match log.append(5, [(1, token.to_le_bytes().as_slice())]) {
            Ok(range) => acknowledged.push((*range.start(), token)),
            Err(_) => log = open_patiently(&place),
        }
    }
    let _proxy = runtime.block_on(storm).unwrap();
    let held: Vec<(u64, Vec<u8>)> = open_patiently(&place)
        .read_from(1)
        .unwrap()
        .map(|entry| entry.map(|entry| (entry.seq, entry.payload)).unwrap())
        .collect();
    for (seq, token) in &acknowledged {
        let found: Vec<_> =
            held.iter().filter(|(_, payload)| *payload == token.to_le_bytes()).collect();
        assert_eq!(found.len(), 1, "token {token}");
        assert_eq!(found[0].0, *seq);
    }
    assert_eq!(
        held.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(),
        (1..=held.len() as u64).collect::<Vec<_>>()
    );
}

#[test]
fn one_of_three_servers_may_die_at_any_time() {
    let runtime = Runtime::new().unwrap();
    let mut nats = Nats::start(3).unwrap();
    let place = on(&runtime, &nats.url(), "live", 3);
    let mut log = open_patiently(&place);
    for dead in 0..3 {
        // The same writer continues; if an election takes longer than it waits, it reads the end of the log again.
        let mut last = log.last_seq();
        for written in 0..40 {
            if written == 20 {
                nats.kill(dead).unwrap();
            }
            let seq = log.last_seq() + 1;
            if log.append(at_ms(seq), [(version(seq), payload(seq).as_slice())]).is_err() {
                log = open_with(&place, last);
            }
            last = log.last_seq();
        }
        nats.start_again(dead).unwrap();
    }
    let last = log.last_seq();
    assert_eq!(read_patiently(&place, last), (1..=last).collect::<Vec<_>>());
    assert!(last >= 100, "{last}");
}

#[test]
fn without_servers_the_writer_is_told_in_time_and_goes_on_once_they_are_back() {
    let runtime = Runtime::new().unwrap();
    let mut nats = Nats::start(1).unwrap();
    let place = on(&runtime, &nats.url(), "live", 1);
    let mut log = Log::open(&place).unwrap();
    append_one(&mut log);
    nats.kill(0).unwrap();
    let begun = Instant::now();
    let failed = log.append(1, [(1, b"lost".as_slice())]);
    assert!(matches!(failed, Err(LogError::Unavailable(_))), "{failed:?}");
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    assert!(matches!(log.append(1, [(1, b"x".as_slice())]), Err(LogError::Poisoned)));
    nats.start_again(0).unwrap();
    // Messages in transit may still arrive, even between a read of the end and the next write, which is then refused.
    let begun = Instant::now();
    let after = loop {
        let Log::Stream(stream) = &mut log else { panic!("not on servers") };
        stream.refresh().unwrap();
        let seq = log.last_seq() + 1;
        match log.append(at_ms(seq), [(version(seq), payload(seq).as_slice())]) {
            Ok(_) => break seq,
            Err(LogError::Overtaken) if begun.elapsed() < PATIENCE => {}
            Err(error) => panic!("{error}"),
        }
    };
    // In any case the numbers continue without a gap.
    let seqs: Vec<u64> = log.read_from(1).unwrap().map(|entry| entry.unwrap().seq).collect();
    assert_eq!(seqs, (1..=after).collect::<Vec<_>>());
}

#[test]
fn a_batch_of_nothing_shuts_out_whoever_has_not_read_it_and_spends_no_number() {
    let runtime = Runtime::new().unwrap();
    let nats = Nats::start(1).unwrap();
    let place = on(&runtime, &nats.url(), "live", 1);
    let mut old = Log::open(&place).unwrap();
    old.fence(1).unwrap();
    append_one(&mut old);
    let mut new = Log::open(&place).unwrap();
    new.fence(2).unwrap();
    assert_eq!(new.last_seq(), 1);
    let refused = old.fence(3);
    assert!(matches!(refused, Err(LogError::Overtaken)), "{refused:?}");
    // It does not interfere with numbers, with reading from any position, or with later entries.
    assert_eq!(append_one(&mut new), 2);
    new.fence(4).unwrap();
    let again = Log::open(&place).unwrap();
    assert_eq!((again.first_seq(), again.last_seq()), (1, 2));
    assert_eq!((read_all(&again, 1), read_all(&again, 2)), (vec![1, 2], vec![2]));
    let (handle, stream) = stream_place(&place);
    let reader = StreamLog::open(handle, stream).unwrap();
    let mut follower = reader.follow_from(3).unwrap();
    assert_eq!(append_one(&mut new), 3);
    assert_eq!(follower.next(PATIENCE).unwrap().unwrap().seq, 3);
}

#[test]
fn a_glance_tells_how_far_the_log_reaches_and_whether_somebody_else_wrote() {
    let runtime = Runtime::new().unwrap();
    let mut nats = Nats::start(1).unwrap();
    let place = on(&runtime, &nats.url(), "live", 1);
    let (handle, stream) = stream_place(&place);
    let mut one = StreamLog::open(handle, stream).unwrap();
    assert_eq!(one.tip().unwrap(), Tip { last_seq: 0, overtaken: false });
    one.append(1, [(1, b"a".as_slice()), (1, b"b".as_slice())]).unwrap();
    assert_eq!(one.tip().unwrap(), Tip { last_seq: 2, overtaken: false });
    let mut two = StreamLog::open(handle, stream).unwrap();
    two.append(1, [(1, b"c".as_slice())]).unwrap();
    assert_eq!(one.tip().unwrap(), Tip { last_seq: 3, overtaken: true });
    nats.kill(0).unwrap();
    assert!(matches!(one.tip(), Err(LogError::Unavailable(_))));
}

#[test]
fn a_copy_of_another_log_keeps_its_numbers_times_and_versions_and_goes_on() {
    let runtime = Runtime::new().unwrap();
    let nats = Nats::start(1).unwrap();
    let place = on(&runtime, &nats.url(), "live", 1);
    let (handle, stream) = stream_place(&place);
    let mut log = StreamLog::open(handle, stream).unwrap();
    log.begin_after(41).unwrap();
    let entries: Vec<Entry> = (42..=60)
        .map(|seq| Entry { seq, at_ms: at_ms(seq), version: version(seq), payload: payload(seq) })
        .collect();
    log.copy(&entries[..10]).unwrap();
    assert!(log.begin_after(7).is_err(), "it has begun");
    log.copy(&entries[10..]).unwrap();
    log.write_checkpoint(60, 1, b"all").unwrap();
    let mut again = Log::open(&place).unwrap();
    assert_eq!((again.first_seq(), again.last_seq()), (42, 60));
    let held: Vec<Entry> = again.read_from(42).unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(held, entries);
    assert_eq!(append_one(&mut again), 61);
    assert_eq!(again.latest_checkpoint().unwrap().unwrap().seq, 60);
}

#[test]
fn without_a_word_about_replicas_a_single_server_is_enough_and_three_are_used() {
    let runtime = Runtime::new().unwrap();
    for servers in [1, 3] {
        let mut nats = Nats::start(servers).unwrap();
        let LogLocation::Stream { runtime, location } = on(&runtime, &nats.url(), "live", 1) else {
            panic!("not on servers")
        };
        let place = LogLocation::Stream {
            runtime,
            location: StreamLocation { replicas: None, ..location },
        };
        let mut log = open_patiently(&place);
        append_one(&mut log);
        if servers == 3 {
            nats.kill(0).unwrap();
            assert_eq!(read_patiently(&place, 1), [1], "it is on the others too");
        }
    }
}

/// Three servers may need longer to elect a leader than one attempt waits; the caller tries again.
fn open_patiently(place: &LogLocation) -> Log {
    let begun = Instant::now();
    loop {
        match Log::open(place) {
            Ok(log) => return log,
            Err(LogError::Unavailable(_)) if begun.elapsed() < PATIENCE => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// As [`open_patiently`], until the log reaches the last known entry: a new leader may not know it yet.
fn open_with(place: &LogLocation, last: u64) -> Log {
    let begun = Instant::now();
    loop {
        let log = open_patiently(place);
        if log.last_seq() >= last {
            return log;
        }
        assert!(begun.elapsed() < PATIENCE, "something acknowledged is lost");
    }
}

/// The same for reading: until a server is known to be gone, every third reader is assigned to it.
fn read_patiently(place: &LogLocation, last: u64) -> Vec<u64> {
    let begun = Instant::now();
    loop {
        match try_read_all(&open_with(place, last), 1) {
            Ok(seqs) => return seqs,
            Err(LogError::Unavailable(_)) if begun.elapsed() < PATIENCE => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_question_is_answered_by_the_node_that_serves() {
    let runtime = Runtime::new().unwrap();
    let mut nats = Nats::start(1).unwrap();
    let place = on(&runtime, &nats.url(), "live", 1);
    let (_, stream) = stream_place(&place);
    runtime.block_on(async {
        let (asking, answering) =
            (LeaderClient::open(stream).await.unwrap(), LeaderClient::open(stream).await.unwrap());
        let begun = Instant::now();
        while asking.bytes_max().is_none() || answering.bytes_max().is_none() {
            assert!(begun.elapsed() < PATIENCE, "no connection");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(asking.ask(b"who".to_vec(), PATIENCE).await, Err(NoAnswer::Nobody));
        let mut requests = answering.serve().await.unwrap();
        let serving = tokio::spawn(async move {
            while let Some(question) = requests.next().await {
                let answer = question.payload.to_ascii_uppercase();
                question.answer(answer).await;
            }
        });
        let begun = Instant::now();
        // The servers know the leader's subscription a moment after it was made.
        let mut answer = asking.ask(b"who".to_vec(), PATIENCE).await;
        while answer.is_err() && begun.elapsed() < PATIENCE {
            answer = asking.ask(b"who".to_vec(), PATIENCE).await;
        }
        assert_eq!(answer.unwrap(), "WHO");
        serving.abort();
        nats.kill(0).unwrap();
        // Either the connection is known to be dead, or the answer does not arrive in time.
        assert!(asking.ask(b"who".to_vec(), Duration::from_secs(2)).await.is_err());
    });
}

#[test]
fn what_is_no_entry_ends_a_reader_with_its_place() {
    let runtime = Runtime::new().unwrap();
    let nats = Nats::start(1).unwrap();
    let place = on(&runtime, &nats.url(), "live", 1);
    let (handle, stream) = stream_place(&place);
    let mut log = Log::open(&place).unwrap();
    append_one(&mut log);
    let reader = StreamLog::open(handle, stream).unwrap();
    let mut follower = reader.follow_from(1).unwrap();
    runtime.block_on(async {
        let client = async_nats::connect(nats.url()).await.unwrap();
        client.publish("linesman.live.log", "no entry at all".into()).await.unwrap();
        client.flush().await.unwrap();
    });
    assert_eq!(follower.next(PATIENCE).unwrap().unwrap().seq, 1);
    let refused = follower.next(PATIENCE);
    // A first byte that is no format of ours may be from a newer program.
    assert!(
        matches!(refused, Err(LogError::Corrupt { .. } | LogError::UnknownFormat { .. })),
        "{refused:?}"
    );
}

#[test]
fn what_is_read_of_a_log_is_not_taken_for_all_of_it_where_reading_was_cut_short() {
    let nats = Nats::start(1).unwrap();
    let runtime = Runtime::new().unwrap();
    let place = on(&runtime, &nats.url(), "live", 1);
    let mut log = Log::open(&place).unwrap();
    // More than is read ahead.
    for _ in 0..200 {
        append_one(&mut log);
    }
    let mut reader = log.read_from(1).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().seq, 1);
    // As when the process ends while its thread still reads.
    runtime.shutdown_timeout(Duration::from_secs(10));
    let rest: Vec<_> = reader.by_ref().collect();
    let (last, before) = rest.split_last().unwrap();
    assert!(before.len() < 199 && before.iter().all(Result::is_ok));
    assert!(matches!(last, Err(LogError::Unavailable(_))), "{last:?}");
    assert!(reader.next().is_none(), "that is said once");
}

/// A restarted server does not know its earlier consumers: without a replacement, their readers would wait forever.
#[test]
fn readers_go_on_within_seconds_after_a_cut_and_after_a_server_has_lost_their_consumer() {
    let runtime = Runtime::new().unwrap();
    let mut nats = Nats::start(1).unwrap();
    let proxy = runtime.block_on(Proxy::start(nats.port(0).unwrap())).unwrap();
    let direct = on(&runtime, &nats.url(), "live", 1);
    let mut log = Log::open(&direct).unwrap();
    for _ in 0..300 {
        append_one(&mut log);
    }
    let place = on(&runtime, &format!("nats://127.0.0.1:{}", proxy.port()), "live", 1);
    let (handle, stream) = stream_place(&place);
    let reader = StreamLog::open(handle, stream).unwrap();
    let mut follower = reader.follow_from(301).unwrap();
    let mut entries = reader.read_from(1).unwrap();
    assert_eq!(entries.next().unwrap().unwrap().seq, 1);
    assert_eq!(follower.next(Duration::from_millis(50)).unwrap(), None);
    proxy.cut();
    append_one(&mut log);
    proxy.restore();
    let rest: Vec<u64> = entries.map(|entry| entry.unwrap().seq).collect();
    assert_eq!(rest, (2..=300).collect::<Vec<_>>());
    // Less than the heartbeats with which the client would notice.
    let timeout = Duration::from_secs(25);
    assert_eq!(follower.next(timeout).unwrap().unwrap().seq, 301);

    nats.kill(0).unwrap();
    nats.start_again(0).unwrap();
    let mut log = Log::open(&direct).unwrap();
    append_one(&mut log);
    let begun = Instant::now();
    assert_eq!(follower.next(timeout).unwrap().unwrap().seq, 302);
    eprintln!("what was written after the start came after {:?}", begun.elapsed());
}

#[test]
fn a_log_that_must_be_there_is_not_made() {
    let runtime = Runtime::new().unwrap();
    let nats = Nats::start(1).unwrap();
    let place = on(&runtime, &nats.url(), "live", 1);
    let (handle, stream) = stream_place(&place);
    for _ in 0..2 {
        let missing = StreamLog::find(handle, stream);
        assert!(matches!(missing, Err(LogError::Missing { .. })), "{missing:?}");
    }
    let mut made = StreamLog::open(handle, stream).unwrap();
    made.append(1, [(1, b"one".as_slice())]).unwrap();
    assert_eq!(StreamLog::find(handle, stream).unwrap().last_seq(), 1);
}

#[test]
fn entries_that_took_the_place_of_others_are_told_from_them() {
    let runtime = Runtime::new().unwrap();
    let mut nats = Nats::start(1).unwrap();
    let place = on(&runtime, &nats.url(), "live", 1);
    let (handle, stream) = stream_place(&place);
    let mut log = StreamLog::open(handle, stream).unwrap();
    assert_eq!(log.last_checksum(), None);
    log.append(1, [(1, b"one".as_slice()), (1, b"two".as_slice())]).unwrap();
    let two = log.last_checksum().unwrap();
    assert!(log.holds(2, two).unwrap() && !log.holds(1, two).unwrap());
    assert!(!log.holds(0, two).unwrap() && !log.holds(3, two).unwrap());
    nats.kill(0).unwrap();
    let copy = nats.copy_data(0).unwrap();
    nats.start_again(0).unwrap();
    log.refresh().unwrap();
    assert_eq!(log.last_checksum(), Some(two), "it ends as before");
    log.append(2, [(1, b"lost".as_slice())]).unwrap();
    let lost = log.last_checksum().unwrap();
    let mut follower = log.follow_from(3).unwrap();
    let entry = follower.next(PATIENCE).unwrap().unwrap();
    assert!(entry.checksum() == lost && follower.is_unchanged().unwrap());

    nats.kill(0).unwrap();
    nats.restore_data(0, &copy).unwrap();
    nats.start_again(0).unwrap();
    log.refresh().unwrap();
    assert_eq!(log.last_seq(), 2);
    assert!(log.holds(2, two).unwrap() && !log.holds(3, lost).unwrap());
    assert!(follower.is_unchanged().unwrap(), "there is none in its place yet");
    log.append(2, [(1, b"other".as_slice())]).unwrap();
    assert!(!log.holds(3, lost).unwrap() && !follower.is_unchanged().unwrap());
}

#[test]
fn every_answer_of_a_long_checkpoint_is_told() {
    let runtime = Runtime::new().unwrap();
    let nats = Nats::start(1).unwrap();
    let place = on(&runtime, &nats.url(), "live", 1);
    let (handle, stream) = stream_place(&place);
    let mut log = StreamLog::open(handle, stream).unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&told);
    log.on_answer(move || {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    log.append(1, [(1, b"one".as_slice())]).unwrap();
    assert_eq!(told.swap(0, Ordering::SeqCst), 1);
    log.write_checkpoint(1, 1, &vec![7; 3 * 1024 * 1024]).unwrap();
    assert!(told.load(Ordering::SeqCst) >= 6, "{told:?}");
}

#[test]
fn a_checkpoint_of_entries_that_the_log_has_not_any_more_is_passed_over() {
    let runtime = Runtime::new().unwrap();
    let nats = Nats::start(1).unwrap();
    let place = on(&runtime, &nats.url(), "live", 1);
    let (handle, stream) = stream_place(&place);
    let mut log = StreamLog::open(handle, stream).unwrap();
    log.append(1, [(1, b"one".as_slice()), (1, b"two".as_slice())]).unwrap();
    log.write_checkpoint(1, 1, b"first").unwrap();
    log.append(2, [(1, b"three".as_slice()), (1, b"four".as_slice())]).unwrap();
    log.write_checkpoint(3, 1, b"second").unwrap();
    let payload = |log: &mut StreamLog| log.latest_checkpoint().unwrap().map(|held| held.payload);
    assert_eq!(payload(&mut log).unwrap(), b"second");
    // As if it had been written when the fourth entry was another one.
    log.set_last_checksum(log.last_checksum().map(|checksum| checksum ^ 1));
    log.write_checkpoint(3, 1, b"of another life").unwrap();
    let mut log = StreamLog::open(handle, stream).unwrap();
    assert_eq!(payload(&mut log).unwrap(), b"second");
}
