//! Properties of both databases. `sqlite.rs` and `postgres.rs` run every case of [`for_each_case`].

mod change;
mod hostile;
mod people;
mod stream;

use std::{collections::BTreeMap, sync::Arc};

use store::{
    AccessRow, AccessState, Allowance, CountRow, KeyEnd, KeyInsert, KeyKind, KeyRow, KeyUse,
    LeaseRequest, LinkPurpose, Outcome, Step, StoreError, Unspent, Window, WindowStarts,
};

use crate::test_database::{
    TestDatabase, access, account, ask, audit_entry, digest, feed, key, link, session,
};

/// Passes every case's name to a macro.
macro_rules! for_each_case {
    ($take:ident) => {
        $take! {
            a_key_comes_back_as_it_was_kept
            keys_are_kept_all_or_none
            keys_are_ordered_byte_by_byte
            the_first_revocation_stands
            a_key_is_rotated_once
            the_latest_use_of_a_key_stands
            a_feed_name_is_free_again_once_its_token_is_revoked
            slices_shrink_to_one_and_end_at_the_limit
            what_is_released_can_be_leased_again
            old_windows_are_pruned_by_their_kind
            who_lease_at_once_get_the_limit_and_not_one_more
            leases_given_back_while_others_are_taken_are_not_lost
            a_setting_outlives_a_restart
            the_audit_log_cannot_be_rewritten_or_shortened
            the_audit_log_is_read_backwards_in_pages
            an_address_has_one_account
            a_suspended_account_loses_sessions_and_keys_and_gets_the_keys_back
            no_key_of_a_suspended_account_comes_into_force
            sessions_are_bounded_and_end_one_by_one_or_together
            only_the_newest_link_works_and_only_once
            who_make_links_at_once_leave_one_in_force
            a_code_is_good_once
            an_access_request_is_open_once_and_decided_once
            a_newer_program_may_add_columns_meanwhile
            accounts_and_deeds_are_found_by_a_text_in_any_case
            an_allowance_reaches_the_accounts_live_production_keys
            requests_are_counted_by_hour_and_day_from_many_nodes
            an_alert_is_given_once
            a_lead_has_one_holder_and_changes_hands_with_a_new_term
            the_ends_of_the_numbers_come_back
            every_change_of_keys_raises_the_number_and_marks_what_changed
            who_change_keys_at_once_are_seen_by_whoever_follows_the_number
            nodes_are_behind_until_they_confirm_or_go
            silent_nodes_whose_right_has_run_out_are_not_behind_until_they_confirm
            a_number_that_was_set_back_is_raised_and_never_lowered
            streams_of_a_key_are_counted_over_nodes_and_never_beyond_its_limit
            streams_of_a_node_whose_right_has_expired_are_free
            who_open_streams_at_once_get_the_limit_and_not_one_more
            a_key_is_given_a_number_of_streams
            hostile_keys_made_at_once_never_pass_what_the_account_may_have
            hostile_keys_made_again_and_again_are_counted_by_the_hour
            hostile_a_key_made_after_one_ended_goes_on_with_its_meters
            hostile_ended_keys_are_not_read_at_a_start_and_go_in_time
            hostile_the_last_operators_cannot_suspend_each_other
            hostile_an_action_that_is_not_written_down_is_not_done
            hostile_accounts_that_nobody_confirmed_go_in_time
        }
    };
}
pub(crate) use change::*;
pub(crate) use for_each_case;
pub(crate) use hostile::*;
pub(crate) use people::*;
pub(crate) use stream::*;

pub(crate) async fn a_key_comes_back_as_it_was_kept(database: TestDatabase) {
    let store = database.open().await;
    let kept = KeyRow {
        requests_per_month: Some(u32::MAX),
        streams: Some(u32::MAX),
        name: String::from("Ünïcode 🥊"),
        ..key(1)
    };
    store.insert_key(&kept, None, &audit_entry(1, None)).await.unwrap();
    assert_eq!(store.key("key_1").await.unwrap().as_ref(), Some(&kept));
    assert_eq!(store.key_by_digest(&kept.digest).await.unwrap().as_ref(), Some(&kept));
    assert_eq!(store.key("key_2").await.unwrap(), None);
    assert!(matches!(
        store.insert_key(&kept, None, &audit_entry(1, None)).await,
        Err(StoreError::Conflict(_))
    ));
    assert!(!format!("{kept:?}").contains("1, 1, 1"), "the digest is not printed");
}

pub(crate) async fn keys_are_kept_all_or_none(database: TestDatabase) {
    let store = database.open().await;
    store.insert_key(&key(2), None, &audit_entry(1, None)).await.unwrap();
    let twice = store.insert_keys(&[key(1), key(2), key(3)], &[]).await;
    assert!(matches!(twice, Err(StoreError::Conflict(_))));
    assert_eq!(store.keys().await.unwrap(), [key(2)]);
    store.insert_keys(&[key(1), key(3)], &[]).await.unwrap();
    assert_eq!(store.keys().await.unwrap(), [key(1), key(2), key(3)]);
}

pub(crate) async fn keys_are_ordered_byte_by_byte(database: TestDatabase) {
    let store = database.open().await;
    // Each locale orders these differently.
    let mut ids = ["key_b", "key_A", "key_é", "key_Z", "key_a1", "key-a", "key_a"];
    for (n, id) in (1..).zip(ids) {
        let id = String::from(id);
        store
            .insert_key(&KeyRow { id, created_ms: 7, ..key(n) }, None, &audit_entry(1, None))
            .await
            .unwrap();
        assert!(
            store
                .insert_feed(&feed(ids[usize::from(n - 1)], n), &audit_entry(1, None))
                .await
                .unwrap()
        );
    }
    ids.sort_unstable();
    let keys = store.keys().await.unwrap();
    assert_eq!(keys.iter().map(|key| key.id.as_str()).collect::<Vec<_>>(), ids);
    let feeds = store.feeds().await.unwrap();
    assert_eq!(feeds.iter().map(|feed| feed.name.as_str()).collect::<Vec<_>>(), ids);
}

pub(crate) async fn the_first_revocation_stands(database: TestDatabase) {
    let store = database.open().await;
    store.insert_key(&key(1), None, &audit_entry(1, None)).await.unwrap();
    assert_eq!(
        store.revoke_key("key_1", 50, &audit_entry(1, None)).await.unwrap().unwrap().revoked_ms,
        Some(50)
    );
    assert_eq!(
        store.revoke_key("key_1", 90, &audit_entry(1, None)).await.unwrap().unwrap().revoked_ms,
        Some(50)
    );
    assert_eq!(store.revoke_key("key_2", 90, &audit_entry(1, None)).await.unwrap(), None);
}

pub(crate) async fn a_key_is_rotated_once(database: TestDatabase) {
    let store = database.open().await;
    store.insert_key(&key(1), None, &audit_entry(1, None)).await.unwrap();
    let successor = |n| KeyRow { rotated_from: Some(String::from("key_1")), ..key(n) };
    let end = KeyEnd::At { expires_ms: 70 };
    let (two, three) = (successor(2), successor(3));
    // On two nodes at once: one of them succeeds.
    let other = database.open().await;
    let entry = audit_entry(1, None);
    let (one, another) = tokio::join!(
        store.rotate_key(end, &two, None, &entry),
        other.rotate_key(end, &three, None, &entry)
    );
    let made = [one.unwrap(), another.unwrap()];
    assert_eq!(made.iter().filter(|made| **made == KeyInsert::Inserted).count(), 1);
    assert_eq!(
        store.rotate_key(end, &successor(4), None, &audit_entry(1, None)).await.unwrap(),
        KeyInsert::NothingToReplace
    );
    let keys = store.keys().await.unwrap();
    assert_eq!(
        keys.iter().map(|k| (k.revoked_ms, k.expires_ms)).collect::<Vec<_>>(),
        [(None, Some(70)), (None, None)]
    );
}

pub(crate) async fn the_latest_use_of_a_key_stands(database: TestDatabase) {
    let store = database.open().await;
    store.insert_keys(&[key(1), key(2)], &[]).await.unwrap();
    let used = |id: &str, used_ms, agent: Option<&str>| KeyUse {
        id: String::from(id),
        used_ms,
        agent: agent.map(String::from),
    };
    let first = [used("key_2", 40, None), used("key_1", 50, Some("curl")), used("nobody", 1, None)];
    store.record_key_uses(&first).await.unwrap();
    let next = [used("key_1", 45, Some("old")), used("key_2", 60, Some("wget"))];
    store.record_key_uses(&next).await.unwrap();
    store.record_key_uses(&[used("key_2", 61, None)]).await.unwrap();
    let keys = store.keys().await.unwrap();
    let noted: Vec<_> =
        keys.iter().map(|key| (key.last_used_ms, key.last_agent.as_deref())).collect();
    assert_eq!(noted, [(Some(50), Some("curl")), (Some(61), Some("wget"))]);
}

pub(crate) async fn a_feed_name_is_free_again_once_its_token_is_revoked(database: TestDatabase) {
    let store = database.open().await;
    let named = |n| feed("pinnacle", n);
    assert!(store.insert_feed(&named(1), &audit_entry(1, None)).await.unwrap());
    assert!(!store.insert_feed(&named(2), &audit_entry(1, None)).await.unwrap());
    assert_eq!(store.feeds().await.unwrap(), [named(1)]);
    let paused =
        store.pause_feed("pinnacle", Some(5), &audit_entry(1, None)).await.unwrap().unwrap();
    assert_eq!(paused.paused_ms, Some(5));
    let again =
        store.pause_feed("pinnacle", Some(6), &audit_entry(1, None)).await.unwrap().unwrap();
    assert_eq!(again.paused_ms, Some(5), "a paused feed keeps its first instant");
    assert_eq!(store.pause_feed("nobody", Some(6), &audit_entry(1, None)).await.unwrap(), None);
    assert_eq!(
        store.revoke_feed("pinnacle", 9, &audit_entry(1, None)).await.unwrap().unwrap().revoked_ms,
        Some(9)
    );
    assert_eq!(
        store.pause_feed("pinnacle", None, &audit_entry(1, None)).await.unwrap(),
        None,
        "it has no live token"
    );
    assert!(store.insert_feed(&named(3), &audit_entry(1, None)).await.unwrap());
    assert_eq!(store.feeds().await.unwrap(), [named(3)]);
    assert!(matches!(
        store.insert_feed(&feed("other", 3), &audit_entry(1, None)).await,
        Err(StoreError::Conflict(_))
    ));
}

pub(crate) async fn slices_shrink_to_one_and_end_at_the_limit(database: TestDatabase) {
    let store = database.open().await;
    let mut slices = Vec::new();
    loop {
        let lease = store.lease(&[ask(20)]).await.unwrap()[0];
        assert_eq!(lease.granted, slices.iter().sum::<u32>() + lease.given);
        if lease.given == 0 {
            break;
        }
        slices.push(lease.given);
    }
    assert_eq!(slices.iter().sum::<u32>(), 20);
    assert_eq!((slices[0], slices[slices.len() - 1]), (5, 1));
    // A limit lowered below the leased units gives no lease and takes none back.
    assert_eq!(store.lease(&[ask(10)]).await.unwrap()[0].granted, 20);
}

pub(crate) async fn what_is_released_can_be_leased_again(database: TestDatabase) {
    let store = database.open().await;
    let given = store.lease(&[ask(4), ask(4)]).await.unwrap();
    assert_eq!(given.iter().map(|l| l.granted).collect::<Vec<_>>(), [1, 2]);
    let back =
        |left| Unspent { meter_id: "m".into(), window: Window::Day, start_ms: 86_400_000, left };
    store.release(&[back(1), back(1)]).await.unwrap();
    let starts = WindowStarts { minute_ms: 0, day_ms: 86_400_000, month_ms: 0 };
    assert_eq!(store.usage(starts, Some("m")).await.unwrap()[0].granted, 0);
    assert_eq!(store.usage(starts, Some("other")).await.unwrap(), []);
    // More than was ever leased is not returned.
    store.release(&[back(1)]).await.unwrap();
    assert_eq!(store.lease(&[ask(4)]).await.unwrap()[0].granted, 1);
    assert_eq!(store.lease(&[]).await.unwrap(), []);
}

pub(crate) async fn old_windows_are_pruned_by_their_kind(database: TestDatabase) {
    let store = database.open().await;
    let asks = [Window::Minute, Window::Day, Window::Month]
        .map(|window| LeaseRequest { window, ..ask(4) });
    store.lease(&asks).await.unwrap();
    assert_eq!(store.prune_usage(i64::MAX, 0).await.unwrap(), 1);
    assert_eq!(store.prune_usage(i64::MAX, i64::MAX).await.unwrap(), 2);
}

/// Nodes that lease for the same meters at once, each in another order.
pub(crate) async fn who_lease_at_once_get_the_limit_and_not_one_more(database: TestDatabase) {
    const LIMIT: u32 = 300;
    let meters = ["m1", "m2", "m3"];
    let mut nodes = Vec::new();
    for turn in 0..6 {
        let store = database.open().await;
        nodes.push(tokio::spawn(async move {
            let mut got: BTreeMap<Box<str>, u32> = BTreeMap::new();
            loop {
                let mut asks =
                    meters.map(|meter| LeaseRequest { meter_id: meter.into(), ..ask(LIMIT) });
                asks.rotate_left(turn % 3);
                if turn >= 3 {
                    asks.reverse();
                }
                let leases = store.lease(&asks).await.unwrap();
                for (ask, lease) in asks.iter().zip(&leases) {
                    assert!(lease.granted <= LIMIT);
                    *got.entry(ask.meter_id.clone()).or_default() += lease.given;
                }
                if leases.iter().all(|lease| lease.given == 0) {
                    store.close().await;
                    return got;
                }
            }
        }));
    }
    let mut all: BTreeMap<Box<str>, u32> = BTreeMap::new();
    for node in nodes {
        for (meter, got) in node.await.unwrap() {
            *all.entry(meter).or_default() += got;
        }
    }
    assert_eq!(all.into_values().collect::<Vec<_>>(), [LIMIT; 3]);
}

pub(crate) async fn leases_given_back_while_others_are_taken_are_not_lost(database: TestDatabase) {
    let database = Arc::new(database);
    let mut nodes = Vec::new();
    for _ in 0..4 {
        let database = Arc::clone(&database);
        nodes.push(tokio::spawn(async move {
            let store = database.open().await;
            let mut kept = 0;
            for _ in 0..25 {
                let given = store.lease(&[ask(1_000_000)]).await.unwrap()[0].given;
                kept += given;
                let left = given / 2;
                let LeaseRequest { meter_id, window, start_ms, .. } = ask(0);
                let unspent = Unspent { meter_id, window, start_ms, left };
                store.release(&[unspent]).await.unwrap();
                kept -= left;
            }
            store.close().await;
            kept
        }));
    }
    let mut kept = 0;
    for node in nodes {
        kept += node.await.unwrap();
    }
    assert_eq!(database.open().await.lease(&[ask(0)]).await.unwrap()[0].granted, kept);
}

pub(crate) async fn a_setting_outlives_a_restart(database: TestDatabase) {
    let store = database.open().await;
    store.set_setting("maintenance", Some("600")).await.unwrap();
    store.set_setting("maintenance", Some("700")).await.unwrap();
    store.close().await;
    assert!(store.setting("maintenance").await.is_err(), "a closed store answers nothing");
    let store = database.open().await;
    assert_eq!(store.setting("maintenance").await.unwrap().as_deref(), Some("700"));
    store.set_setting("maintenance", None).await.unwrap();
    assert_eq!(store.setting("maintenance").await.unwrap(), None);
}

pub(crate) async fn the_audit_log_cannot_be_rewritten_or_shortened(database: TestDatabase) {
    let store = database.open().await;
    store.append_audit(&[audit_entry(1, None)]).await.unwrap();
    for statement in ["UPDATE audit SET who = 'nobody'", "DELETE FROM audit"] {
        let refused = database.run(statement).await.unwrap_err();
        assert!(refused.to_string().contains("append-only"), "{refused}");
    }
    let kept = store.audit(None, None, 10).await.unwrap();
    assert_eq!(kept.into_iter().map(|row| row.entry).collect::<Vec<_>>(), [audit_entry(1, None)]);
}

pub(crate) async fn the_audit_log_is_read_backwards_in_pages(database: TestDatabase) {
    let store = database.open().await;
    for at_ms in 1..=5 {
        let whose = (at_ms % 2 == 0).then_some("acc_1");
        store.append_audit(&[audit_entry(at_ms, whose)]).await.unwrap();
    }
    let page = store.audit(None, None, 2).await.unwrap();
    assert_eq!(page.iter().map(|row| row.entry.at_ms).collect::<Vec<_>>(), [5, 4]);
    let next = store.audit(None, Some(page[1].seq), 9).await.unwrap();
    assert_eq!(next.iter().map(|row| row.entry.at_ms).collect::<Vec<_>>(), [3, 2, 1]);
    let own = store.audit(Some("acc_1"), None, 9).await.unwrap();
    assert_eq!(own.iter().map(|row| row.entry.at_ms).collect::<Vec<_>>(), [4, 2]);
}

/// A rolling upgrade: columns are added while this program has the tables open and its statements prepared.
pub(crate) async fn a_newer_program_may_add_columns_meanwhile(database: TestDatabase) {
    let store = database.open().await;
    store.insert_account(&account("ann"), &audit_entry(1, None)).await.unwrap();
    let go_on = async |n: u8| {
        store.insert_key(&key(n), None, &audit_entry(1, None)).await.unwrap();
        store.insert_feed(&feed(&format!("f{n}"), n), &audit_entry(1, None)).await.unwrap();
        store.insert_session(&session(n, "ann"), None, 9, None).await.unwrap();
        store.insert_link(&link(n, LinkPurpose::Invitation, None), None).await.unwrap();
        store.append_audit(&[audit_entry(1, None)]).await.unwrap();
        let request = access(&format!("req_{n}"), "ann");
        store.insert_access(&request, &audit_entry(1, None)).await.unwrap();
        store
            .decide_access(
                &AccessRow { state: AccessState::Refused, ..request },
                audit_entry(1, None),
            )
            .await
            .unwrap();
        store.lease(&[ask(50)]).await.unwrap();
        assert!(
            store
                .revoke_key(&format!("key_{n}"), 5, &audit_entry(1, None))
                .await
                .unwrap()
                .is_some()
        );
        assert!(
            store.revoke_feed(&format!("f{n}"), 5, &audit_entry(1, None)).await.unwrap().is_some()
        );
        let n = usize::from(n);
        assert_eq!(store.keys().await.unwrap().len(), n);
        assert_eq!(store.feeds().await.unwrap().len(), n);
        assert_eq!(store.sessions_of("ann").await.unwrap().len(), n);
        assert_eq!(store.audit(None, None, 99).await.unwrap().len(), 1 + 7 * n);
        assert_eq!(store.access_requests(None, 99).await.unwrap().len(), n);
        assert_eq!(store.accounts(9).await.unwrap().len(), 1);
        assert!(store.link(&digest(1)).await.unwrap().is_some());
    };
    go_on(1).await;
    for statement in [
        "ALTER TABLE api_key ADD COLUMN later TEXT",
        "ALTER TABLE feed ADD COLUMN later TEXT",
        "ALTER TABLE usage ADD COLUMN later TEXT",
        "ALTER TABLE account ADD COLUMN later TEXT",
        "ALTER TABLE session ADD COLUMN later TEXT",
        "ALTER TABLE link ADD COLUMN later TEXT",
        "ALTER TABLE access_request ADD COLUMN later TEXT",
        "ALTER TABLE audit ADD COLUMN later TEXT",
    ] {
        database.run(statement).await.unwrap();
    }
    go_on(2).await;
}

pub(crate) async fn the_ends_of_the_numbers_come_back(database: TestDatabase) {
    let store = database.open().await;
    let extreme = KeyRow {
        created_ms: i64::MIN,
        last_used_ms: None,
        expires_ms: Some(i64::MAX),
        burst_per_minute: u32::MAX,
        requests_per_day: u32::MAX,
        ..key(1)
    };
    store.insert_key(&extreme, None, &audit_entry(1, None)).await.unwrap();
    let used = KeyUse { id: String::from("key_1"), used_ms: i64::MIN, agent: None };
    store.record_key_uses(&[used]).await.unwrap();
    let kept = store.key("key_1").await.unwrap().unwrap();
    assert_eq!(kept, KeyRow { last_used_ms: Some(i64::MIN), ..extreme });
    let huge = LeaseRequest { lease_max: u32::MAX, divisor: 1, ..ask(u32::MAX) };
    let lease = store.lease(&[huge.clone(), huge]).await.unwrap();
    assert_eq!((lease[0].given, lease[1].given, lease[1].granted), (u32::MAX, 0, u32::MAX));
}

pub(crate) async fn an_allowance_reaches_the_accounts_live_production_keys(database: TestDatabase) {
    let store = database.open().await;
    store.insert_account(&account("ann"), &audit_entry(1, None)).await.unwrap();
    let own = |n| KeyRow { account_id: Some(String::from("ann")), ..key(n) };
    let sandbox = KeyRow { kind: KeyKind::Sandbox, ..own(3) };
    store.insert_keys(&[own(1), own(2), sandbox, key(4)], &[]).await.unwrap();
    store.revoke_key("key_2", 1, &audit_entry(1, None)).await.unwrap();
    let allowance =
        Allowance { keys_max: Some(0), requests_per_month: Some(u32::MAX), ..Allowance::default() };
    store.allow_account("ann", &allowance, (7, 8), &audit_entry(1, None)).await.unwrap();
    assert_eq!(store.account("ann").await.unwrap().unwrap().allowance, allowance);
    let keys = store.keys().await.unwrap();
    let limits: Vec<_> = keys.iter().map(|k| (k.burst_per_minute, k.requests_per_day)).collect();
    assert_eq!(limits, [(7, 8), (60, 10_000), (60, 10_000), (60, 10_000)]);
    assert_eq!(keys[0].requests_per_month, Some(u32::MAX));
}

pub(crate) async fn requests_are_counted_by_hour_and_day_from_many_nodes(database: TestDatabase) {
    let store = database.open().await;
    store.insert_account(&account("ann"), &audit_entry(1, None)).await.unwrap();
    let own = |n| KeyRow { account_id: Some(String::from("ann")), ..key(n) };
    store.insert_keys(&[own(1), own(2), key(3)], &[]).await.unwrap();
    let count = |id: &str, hour: i64, outcome| CountRow {
        key_id: String::from(id),
        start_ms: hour * Step::Hour.millis(),
        endpoint: String::from("odds"),
        outcome,
        requests: 2,
    };
    let mut nodes = Vec::new();
    for turn in 0..4 {
        let store = database.open().await;
        let mut rows = vec![
            count("key_1", 1, Outcome::Ok),
            count("key_1", 2, Outcome::Ok),
            count("key_2", 1, Outcome::Limited),
            count("key_3", 1, Outcome::Ok),
        ];
        rows.rotate_left(turn);
        nodes.push(tokio::spawn(async move {
            for _ in 0..10 {
                store.add_counts(&rows).await.unwrap();
            }
            store.close().await;
        }));
    }
    for node in nodes {
        node.await.unwrap();
    }
    let told = |rows: Vec<CountRow>| {
        let mut told: Vec<_> =
            rows.into_iter().map(|row| (row.key_id, row.start_ms, row.requests)).collect();
        told.sort_unstable();
        told
    };
    let hour = Step::Hour.millis();
    let hours = store.counts("ann", None, Step::Hour, 0).await.unwrap();
    let key = |n: u8| format!("key_{n}");
    assert_eq!(told(hours), [(key(1), hour, 80), (key(1), 2 * hour, 80), (key(2), hour, 80)]);
    let days = store.counts("ann", Some("key_1"), Step::Day, 0).await.unwrap();
    assert_eq!(told(days), [(key(1), 0, 160)]);
    assert_eq!(store.prune_counts(2 * hour, 0).await.unwrap(), 3);
    assert_eq!(store.counts("ann", None, Step::Hour, 0).await.unwrap().len(), 1);
}

pub(crate) async fn an_alert_is_given_once(database: TestDatabase) {
    let store = database.open().await;
    let note =
        async |percents: &[u32]| store.record_alerts("m", Window::Day, 5, percents).await.unwrap();
    assert_eq!(note(&[50, 80]).await, Some(80));
    assert_eq!(note(&[50, 80]).await, None);
    assert_eq!(note(&[50, 80, 100]).await, Some(100));
}

pub(crate) async fn a_lead_has_one_holder_and_changes_hands_with_a_new_term(
    database: TestDatabase,
) {
    let (one, two) = (database.open().await, database.open().await);
    assert!(!one.has_leader("live").await.unwrap());
    // Both at once: one of them gets it.
    let (first, second) = tokio::join!(
        one.acquire_leadership("live", "one", 60_000),
        two.acquire_leadership("live", "two", 60_000)
    );
    let (first, second) = (first.unwrap(), second.unwrap());
    let (holder, waiting) = if first.is_some() { ("one", "two") } else { ("two", "one") };
    assert_eq!((first.is_some(), second.is_some()), (holder == "one", holder == "two"));
    assert_eq!(first.or(second).map(|lead| lead.term), Some(1));
    // A prolongation is the same leadership; another world has its own.
    let again = one.acquire_leadership("live", holder, 60_000).await.unwrap();
    assert_eq!(again.map(|lead| lead.term), Some(1));
    assert_eq!(one.acquire_leadership("live", waiting, 60_000).await.unwrap(), None);
    assert!(two.has_leader("live").await.unwrap() && !two.has_leader("sandbox").await.unwrap());
    assert_eq!(two.acquire_leadership("sandbox", waiting, 60_000).await.unwrap().unwrap().term, 1);
    // A release by another node changes nothing; a release by the holder frees it.
    two.release_leadership("live", waiting).await.unwrap();
    assert_eq!(one.acquire_leadership("live", waiting, 60_000).await.unwrap(), None);
    one.release_leadership("live", holder).await.unwrap();
    assert!(!two.has_leader("live").await.unwrap());
    let taken = one.acquire_leadership("live", waiting, 60_000).await.unwrap();
    assert_eq!(taken.map(|lead| lead.term), Some(2));
    assert_eq!(one.acquire_leadership("live", holder, 60_000).await.unwrap(), None);
    // Not prolonged, it expires by itself, as if a minute had passed.
    database.run("UPDATE lead SET ends_ms = ends_ms - 60000").await.unwrap();
    assert!(!two.has_leader("live").await.unwrap());
    let back = one.acquire_leadership("live", holder, 60_000).await.unwrap();
    assert_eq!(back.map(|lead| lead.term), Some(3));
    assert_eq!(
        two.acquire_leadership("live", waiting, 150).await.unwrap(),
        None,
        "who slept is refused"
    );
    // A leadership acquired while the clock was an hour ahead does not keep others out for an hour.
    database.run("UPDATE lead SET ends_ms = ends_ms + 3600000").await.unwrap();
    assert!(!two.has_leader("live").await.unwrap());
    let freed = two.acquire_leadership("live", waiting, 150).await.unwrap();
    assert_eq!(freed.map(|lead| lead.term), Some(4));
    // It expires by itself after the requested time.
    let begun = std::time::Instant::now();
    while one.has_leader("live").await.unwrap() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "it never runs out");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
