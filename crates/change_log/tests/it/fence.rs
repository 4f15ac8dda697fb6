//! A writer of a log that another writer has continued.

use async_nats::jetstream;
use change_log::{Entry, Log, LogError, StreamLog};
use test_servers::Nats;
use tokio::runtime::Runtime;

use crate::{
    at_ms,
    conformance::{append_one, on, read_all, stream_place},
    payload, version,
};

#[test]
fn who_lets_go_of_old_entries_does_not_thereby_know_what_others_have_written() {
    let runtime = Runtime::new().unwrap();
    let nats = Nats::start(1).unwrap();
    let place = on(&runtime, &nats.url(), "live", 1);
    let (handle, stream) = stream_place(&place);
    let mut old = StreamLog::open(handle, stream).unwrap();
    for seq in 1..=5 {
        old.append(at_ms(seq), [(version(seq), payload(seq).as_slice())]).unwrap();
    }
    old.write_checkpoint(3, 1, b"one").unwrap();
    old.write_checkpoint(4, 1, b"two").unwrap();
    // It is paused here, and another one takes over.
    let mut new = Log::open(&place).unwrap();
    assert_eq!(append_one(&mut new), 6);
    assert_eq!(old.retain(i64::MAX, u64::MAX).unwrap(), 2);
    assert_eq!((old.first_seq(), old.last_seq()), (3, 5), "nothing of what it has not read");
    assert!(old.tip().unwrap().overtaken);
    let refused = old.append(1, [(1, b"too late".as_slice())]);
    assert!(matches!(refused, Err(LogError::Overtaken)), "{refused:?}");
    assert_eq!(append_one(&mut new), 7);
    assert_eq!(read_all(&new, 3), [3, 4, 5, 6, 7]);
}

#[test]
fn a_first_batch_that_was_given_up_does_not_decide_where_a_log_begins() {
    let runtime = Runtime::new().unwrap();
    let nats = Nats::start(1).unwrap();
    let [elsewhere, place] = ["elsewhere", "live"].map(|name| on(&runtime, &nats.url(), name, 1));
    let large = vec![7; 600 * 1024];
    Log::open(&elsewhere).unwrap().append(1, [(1, large.as_slice())]).unwrap();
    let (handle, stream) = stream_place(&place);
    StreamLog::open(handle, stream).unwrap();
    // Only its first part has arrived.
    runtime.block_on(async {
        let client = async_nats::connect(nats.url()).await.unwrap();
        let context = jetstream::new(client);
        let held = context.get_stream("linesman-elsewhere").await.unwrap();
        let part = held.get_raw_message(1).await.unwrap().payload;
        context.publish("linesman.live.log", part).await.unwrap().await.unwrap();
    });
    let mut log = StreamLog::open(handle, stream).unwrap();
    assert_eq!(log.last_seq(), 0);
    log.begin_after(41).unwrap();
    let entries = [42, 43].map(|seq| {
        let (at_ms, version, payload) = (at_ms(seq), version(seq), payload(seq));
        Entry { seq, at_ms, version, payload }
    });
    log.copy(&entries).unwrap();
    let log = Log::open(&place).unwrap();
    assert_eq!((log.last_seq(), read_all(&log, 42)), (43, vec![42, 43]));
}
