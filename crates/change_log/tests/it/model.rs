//! Random operations on a log, compared with a plain list.

use std::fs;

use proptest::prelude::*;

use crate::{files, open};

#[derive(Debug, Clone)]
enum Step {
    Append(Vec<Vec<u8>>),
    Reopen,
    /// A crash that loses this many bytes of the last segment's end.
    Truncate(usize),
    /// A crash that leaves these bytes of an unfinished frame.
    Tear(Vec<u8>),
    Checkpoint,
}

fn step() -> impl Strategy<Value = Step> {
    let payload = prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        5 => prop::collection::vec(payload, 0..5).prop_map(Step::Append),
        1 => Just(Step::Reopen),
        1 => (0_usize..120).prop_map(Step::Truncate),
        1 => prop::collection::vec(any::<u8>(), 1..24).prop_map(Step::Tear),
        1 => Just(Step::Checkpoint),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_random_life_agrees_with_a_list(steps in prop::collection::vec(step(), 1..30)) {
        let dir = tempfile::tempdir().unwrap();
        let mut log = open(dir.path()).0;
        let mut model: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut checkpoint = 0;
        for step in steps {
            match step {
                Step::Append(payloads) => {
                    let batch = payloads.iter().map(|payload| (1, payload.as_slice()));
                    let range = log.append(0, batch).unwrap();
                    prop_assert_eq!(range.clone().count(), payloads.len());
                    model.extend(range.zip(payloads));
                }
                Step::Reopen => log = open(dir.path()).0,
                Step::Truncate(bytes) => {
                    let last = files(dir.path(), ".log").pop().unwrap();
                    let content = fs::read(&last).unwrap();
                    // Headers were synced before anything was appended, so they survive a crash.
                    let left = content.len().saturating_sub(bytes).max(32);
                    fs::write(&last, &content[..left]).unwrap();
                    log = open(dir.path()).0;
                    // The model drops only the entries within the lost bytes.
                    let kept = log.read_from(1).unwrap().count();
                    prop_assert!(model.len() - kept <= bytes.div_ceil(25));
                    model.truncate(kept);
                }
                Step::Tear(bytes) => {
                    let last = files(dir.path(), ".log").pop().unwrap();
                    let mut content = fs::read(&last).unwrap();
                    content.extend(bytes);
                    fs::write(&last, content).unwrap();
                    let before = log.last_seq();
                    log = open(dir.path()).0;
                    prop_assert_eq!(log.last_seq(), before);
                }
                Step::Checkpoint => {
                    checkpoint = log.last_seq();
                    log.write_checkpoint(checkpoint, 1, b"state").unwrap();
                }
            }
            let entries: Result<Vec<_>, _> = log.read_from(1).unwrap().collect();
            let entries: Vec<_> = entries.unwrap().into_iter().map(|e| (e.seq, e.payload)).collect();
            prop_assert_eq!(&entries, &model);
            let spent = model.last().map_or(0, |(seq, _)| *seq).max(checkpoint);
            prop_assert!(log.last_seq() >= spent);
        }
    }
}
