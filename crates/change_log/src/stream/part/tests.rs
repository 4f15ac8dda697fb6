use super::*;

fn head(writer: u64, first: u64) -> RunHead {
    RunHead { writer, first, last: first + 9, tag: -3 }
}

fn gather(messages: impl IntoIterator<Item = Bytes>) -> Vec<(RunHead, Vec<u8>)> {
    let mut assembler = Assembler::default();
    let whole = messages.into_iter().filter_map(|m| assembler.take(&Part::decode(&m).unwrap()));
    whole.map(|(head, bytes)| (head, bytes.to_vec())).collect()
}

#[test]
fn a_run_is_the_same_after_it_was_cut_and_gathered() {
    for length in [0, 1, 9, 10, 11, 100] {
        let run: Vec<u8> = (0..length).collect();
        let messages = cut(head(7, 1), &run, 10);
        assert_eq!(messages.len(), usize::from(length).div_ceil(10).max(1));
        assert_eq!(gather(messages), [(head(7, 1), run)]);
    }
}

#[test]
fn a_run_that_was_given_up_is_passed_over() {
    let run = vec![1; 35];
    let given_up = cut(head(1, 5), &run, 10);
    let whole = cut(head(2, 5), &run, 10);
    for end in 0..given_up.len() {
        let stream = given_up.iter().take(end).chain(&whole).cloned();
        assert_eq!(gather(stream), [(head(2, 5), run.clone())], "after {end}");
        let begun_within = given_up.iter().skip(end + 1).chain(&whole).cloned();
        assert_eq!(gather(begun_within).len(), 1);
    }
    let mixed = [given_up[0].clone(), whole[1].clone(), given_up[2].clone()];
    assert_eq!(gather(mixed), []);
}

#[test]
fn what_is_no_part_is_told() {
    let message = cut(head(1, 1), b"x", 10).remove(0);
    for end in 0..PART_HEAD_BYTES {
        assert!(Part::decode(&message.slice(..end)).is_err());
    }
    let mut newer = message.to_vec();
    newer[0] = 9;
    assert_eq!(Part::decode(&Bytes::from(newer)), Err(Damage::Format(9)));
    let empty = RunHead { last: 0, ..head(1, 1) };
    assert!(Part::decode(&cut(empty, b"", 10).remove(0)).is_ok(), "a batch of nothing");
    let backwards = RunHead { last: 3, ..head(1, 5) };
    assert!(Part::decode(&cut(backwards, b"x", 10).remove(0)).is_err());
    let mut wrong = message.to_vec();
    wrong[9] = 1;
    assert_eq!(Part::decode(&Bytes::from(wrong)), Err(Damage::Header), "part 1 of 1");
}
