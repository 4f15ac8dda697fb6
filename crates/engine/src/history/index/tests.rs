use super::*;

fn index(cuts: &[(i64, u64)]) -> Index {
    let mut index = Index::default();
    for (at, seq) in cuts {
        let at = Timestamp::from_secs(*at);
        let change = Change::Cut { at };
        index.note(&Logged { seq: *seq, checksum: 0, at, change, bytes: 0 });
    }
    index
}

fn options() -> WorldOptions {
    crate::writer::test_options(change_log::LogLocation::Nowhere)
}

fn seq_at(index: &Index, at: i64) -> Option<u64> {
    index.find(Timestamp::from_secs(at), &options()).ok().map(|found| found.seq)
}

#[test]
fn a_time_that_came_twice_is_the_publication_made_last() {
    let index = index(&[(100, 1), (130, 2), (160, 3), (130, 4), (145, 5), (160, 6), (190, 7)]);
    assert_eq!(seq_at(&index, 99), None);
    assert_eq!(seq_at(&index, 100), Some(1));
    assert_eq!(seq_at(&index, 131), Some(4));
    assert_eq!(seq_at(&index, 150), Some(5));
    assert_eq!(seq_at(&index, 189), Some(6));
    let found = index.find(Timestamp::from_secs(160), &options()).unwrap();
    assert_eq!(found.previous, Some(Timestamp::from_secs(145)));
    assert_eq!(found.next, Some(Timestamp::from_secs(190)));
}

#[test]
fn the_publication_after_an_entry_is_known_also_where_the_clock_was_set_back() {
    let index = index(&[(100, 10), (130, 20), (110, 30), (140, 40)]);
    let after = |seq| index.cut_after(seq).map(|cut| cut.seq);
    assert_eq!(after(10), Some(20));
    assert_eq!(after(20), Some(30));
    assert_eq!(after(25), Some(30));
    assert_eq!(after(40), None);
}

#[test]
fn nothing_is_shown_of_a_time_whose_publications_were_lost() {
    let mut index = index(&[(100, 1), (190, 5)]);
    index.gaps.push((Timestamp::from_secs(130), Timestamp::from_secs(190)));
    assert_eq!(seq_at(&index, 129), Some(1));
    assert_eq!(seq_at(&index, 130), None);
    assert_eq!(seq_at(&index, 189), None);
    assert_eq!(seq_at(&index, 190), Some(5));
}

#[test]
fn what_follows_an_entry_that_the_archive_alone_has_is_in_the_archive() {
    let mut index = Index { base_seq: 880, next_seq: 960, ..Index::default() };
    index.archived.lineages = vec![(1, 500)];
    index.catalogues = vec!["a".into(), "b".into()];
    let cuts =
        [(20, 0, 0), (40, 0, 0), (500, 0, 0), (500, IN_LOG, 0), (900, IN_LOG, 1), (950, IN_LOG, 1)];
    for (seq, lineage, catalogue) in cuts {
        let at = Timestamp::from_secs(i64::try_from(seq).unwrap());
        index.insert(Cut { at, lineage, seq, catalogue: Some(catalogue) });
    }
    assert_eq!(index.cut_after(25).map(|cut| cut.seq), Some(40));
    assert_eq!(index.catalogue_after(25), Some((Some("a".into()), 500)));
    assert_eq!(index.catalogue_after(500), Some((Some("b".into()), 950)));
    assert_eq!(index.cut_after(910).map(|cut| cut.seq), Some(950));
    assert_eq!(index.catalogue_after(950), None);
}

#[test]
fn an_entry_is_that_of_the_log_and_of_the_last_part_of_the_archive_that_has_one() {
    let mut index = Index { base_seq: 600, next_seq: 700, ..Index::default() };
    index.archived.lineages = vec![(1, 900), (301, 650)];
    for (at, lineage, seq) in [
        (1, 0, 290),
        (2, 0, 400),
        (3, 0, 640),
        (4, 0, 800),
        (5, 1, 450),
        (6, 1, 620),
        (6, IN_LOG, 620),
    ] {
        index.insert(Cut { at: Timestamp::from_secs(at), lineage, seq, catalogue: None });
    }
    let at = |seq| index.cut_of(seq).map(|cut| cut.at.as_millis() / 1000);
    assert_eq!([290, 450, 620, 800].map(at), [Some(1), Some(5), Some(6), Some(4)]);
    assert_eq!([400, 640].map(at), [None; 2], "these are other entries by now");
    // A step does not lead to one of those.
    assert_eq!(index.step(250, 10_000), Some(620));
    assert_eq!(index.step(250, 400), Some(620));
    assert_eq!(index.step(250, 60), Some(290));
    index.begin_after(660);
    assert_eq!(index.step(250, 300), Some(290));
}

#[test]
fn publications_are_counted_once_and_found_by_entry_wherever_they_are_held() {
    let mut index = Index::default();
    index.archived.lineages = vec![(0, 45), (30, 80)];
    // In no particular order, and not each in every lineage.
    for n in (0..270_u32).map(|n| n * 7 % 270).filter(|n| n % 5 > 1) {
        let lineage = [0, 1, IN_LOG][usize::try_from(n % 3).unwrap()];
        let (at, seq) = (Timestamp::from_secs(i64::from(n / 3)), u64::from(n / 3));
        index.insert(Cut { at, lineage, seq, catalogue: None });
    }
    let check = |index: &Index| {
        let all = index.cuts.iter().map(|cut| (cut.at, cut.seq));
        let distinct = u64::try_from(all.collect::<HashSet<_>>().len()).unwrap();
        assert_eq!(index.reach(&options()).unwrap().publications, distinct);
        for seq in 0..95 {
            let lineage = index.lineage_with(seq);
            let is_later = |cut: &&Cut| {
                cut.seq > seq && (cut.lineage == IN_LOG || Some(cut.lineage) == lineage)
            };
            let after = index.cuts.iter().filter(is_later).min_by_key(|cut| cut.seq);
            assert_eq!(index.cut_after(seq), after.copied(), "{seq}");
            let is = |cut: &&Cut| cut.seq == seq && Some(cut.lineage) == lineage;
            assert_eq!(index.cut_of(seq), index.cuts.iter().find(is).copied(), "{seq}");
        }
    };
    check(&index);
    index.begin_after(30);
    check(&index);
    index.begin_at(Timestamp::from_secs(10));
    assert_eq!(index.cuts[0].at, Timestamp::from_secs(11), "of 10 there was one in the log");
    check(&index);
}
