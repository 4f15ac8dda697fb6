//! A log on servers when there are several writers, and when servers and networks fail.

use std::time::{Duration, Instant};

use linesman_log::{Log, LogError, Place, StreamLog, StreamPlace};
use rig::{Nats, Proxy};
use tokio::runtime::Runtime;

use crate::{
    at_ms,
    conformance::{append_one, on, read_all},
    payload, version,
};

fn stream_place(place: &Place) -> (&tokio::runtime::Handle, &StreamPlace) {
    match place {
        Place::Stream { runtime, place } => (runtime, place),
        Place::Folder { .. } | Place::Nowhere => panic!("not on servers"),
    }
}

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
    // The old one wakes up.
    for _ in 0..2 {
        let refused = old.append(1, [(1, b"too late".as_slice())]);
        assert!(matches!(refused, Err(LogError::Overtaken | LogError::Poisoned)), "{refused:?}");
    }
    assert_eq!(append_one(&mut new), 3);
    assert_eq!(read_all(&new, 1), [1, 2, 3]);
    // A checkpoint of the old one stands in nobody's way either.
    new.write_checkpoint(3, 1, b"new").unwrap();
    let refused = old.write_checkpoint(1, 1, b"old");
    assert!(matches!(refused, Err(LogError::Overtaken)), "{refused:?}");
    assert_eq!(new.latest_checkpoint().unwrap().unwrap().payload, b"new");
    // Once it has read on, it may write.
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
            let entry = follower.next(Duration::from_secs(10)).unwrap().unwrap();
            assert_eq!((entry.seq, entry.payload), (seq, payload(seq)));
        }
        assert_eq!(follower.next(Duration::from_millis(50)).unwrap(), None);
    }
    append_one(&mut log);
    assert_eq!(early.next(Duration::from_secs(10)).unwrap().unwrap().seq, 11);
}

/// The wire is cut and held again and again while one writer appends, and follows its own rule: what failed is looked
/// at again before anything else is written.
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
            tokio::time::sleep(Duration::from_millis(150)).await;
            proxy.cut();
            tokio::time::sleep(Duration::from_millis(60)).await;
            proxy.mend();
            tokio::time::sleep(Duration::from_millis(150)).await;
            proxy.hold();
            tokio::time::sleep(Duration::from_millis(60)).await;
            proxy.mend();
        }
        proxy
    });
    let mut acknowledged: Vec<(u64, u32)> = Vec::new();
    let mut token = 0_u32;
    while !storm.is_finished() {
        token += 1;
        match log.append(5, [(1, token.to_le_bytes().as_slice())]) {
            Ok(range) => acknowledged.push((*range.start(), token)),
            Err(_) => log = Log::open(&place).unwrap(),
        }
    }
    let _proxy = runtime.block_on(storm).unwrap();
    assert!(acknowledged.len() > 20, "{}", acknowledged.len());
    let held: Vec<(u64, Vec<u8>)> = Log::open(&place)
        .unwrap()
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
    let mut log = Log::open(&place).unwrap();
    for dead in 0..3 {
        for _ in 0..20 {
            append_one(&mut log);
        }
        nats.kill(dead).unwrap();
        let begun = Instant::now();
        // The same writer goes on; where an election takes longer than it waits, it looks again.
        let mut last = log.last_seq();
        for _ in 0..20 {
            let seq = log.last_seq() + 1;
            if log.append(at_ms(seq), [(version(seq), payload(seq).as_slice())]).is_err() {
                log = Log::open(&place).unwrap();
                assert!(log.last_seq() >= last, "nothing acknowledged is lost");
            }
            last = log.last_seq();
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
        nats.start_again(dead).unwrap();
    }
    let log = Log::open(&place).unwrap();
    assert_eq!(read_all(&log, 1), (1..=log.last_seq()).collect::<Vec<_>>());
    assert!(log.last_seq() >= 100, "{}", log.last_seq());
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
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(matches!(log.append(1, [(1, b"x".as_slice())]), Err(LogError::Poisoned)));
    nats.start_again(0).unwrap();
    let Log::Stream(stream) = &mut log else { panic!("not on servers") };
    stream.refresh().unwrap();
    // What was on its way may have arrived after all; either way the numbers go on without a hole.
    let after = append_one(&mut log);
    let seqs: Vec<u64> = log.read_from(1).unwrap().map(|entry| entry.unwrap().seq).collect();
    assert_eq!(seqs, (1..=after).collect::<Vec<_>>());
}
