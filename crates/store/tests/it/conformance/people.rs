//! Cases about people: their accounts, sessions, links, codes and requests.

use store::{
    AccessRow, AccessState, AccountQuota, AccountRow, AuditEntry, AuditFilter, KeyEnd, KeyInsert,
    KeyRow, LinkPurpose, Role, Stage, Store, Totp,
};

use crate::test_database::{
    TestDatabase, access, account, audit_entry, digest, key, link, session,
};

pub(crate) async fn an_address_has_one_account(database: TestDatabase) {
    let store = database.open().await;
    let ann = account("ann");
    assert!(store.insert_account(&ann, &audit_entry(1, None)).await.unwrap());
    let twin = AccountRow { id: String::from("twin"), ..ann.clone() };
    assert!(!store.insert_account(&twin, &audit_entry(1, None)).await.unwrap());
    assert_eq!(store.account("ann").await.unwrap().as_ref(), Some(&ann));
    assert_eq!(store.account_by_email("ann@example.com").await.unwrap(), Some(ann.clone()));
    assert_eq!(store.account_by_email("Ann@example.com").await.unwrap(), None);
    let bob = AccountRow { role: Role::Operator, password: None, created_ms: 6, ..account("bob") };
    assert!(store.insert_account(&bob, &audit_entry(1, None)).await.unwrap());
    assert_eq!(store.accounts(9).await.unwrap(), [bob, ann]);
    assert_eq!(store.count_accounts(Role::Operator).await.unwrap(), 1);
    store.set_password("bob", "$new", None, &audit_entry(1, None)).await.unwrap();
    let password = store.account("bob").await.unwrap().unwrap().password;
    assert_eq!(password.as_deref(), Some("$new"));
}

pub(crate) async fn a_suspended_account_loses_sessions_and_keys_and_gets_the_keys_back(
    database: TestDatabase,
) {
    let store = database.open().await;
    store.insert_account(&account("ann"), &audit_entry(1, None)).await.unwrap();
    let own = KeyRow {
        account_id: Some(String::from("ann")),
        account_quota: Some(AccountQuota::default()),
        ..key(1)
    };
    store.insert_keys(&[own.clone(), key(2)], &[]).await.unwrap();
    store.insert_session(&session(1, "ann"), None, 5, None).await.unwrap();
    store.suspend_account("ann", Some(77), &audit_entry(1, None)).await.unwrap();
    assert_eq!(store.sessions_of("ann").await.unwrap(), []);
    assert_eq!(store.account("ann").await.unwrap().unwrap().suspended_ms, Some(77));
    assert_eq!(store.count_accounts(Role::Developer).await.unwrap(), 0);
    let suspended: Vec<_> =
        store.keys().await.unwrap().into_iter().map(|key| key.suspended_ms).collect();
    assert_eq!(suspended, [Some(77), None]);
    store.suspend_account("ann", None, &audit_entry(1, None)).await.unwrap();
    assert_eq!(store.keys_of("ann").await.unwrap(), [own]);
}

pub(crate) async fn no_key_of_a_suspended_account_comes_into_force(database: TestDatabase) {
    let store = database.open().await;
    store.insert_account(&account("ann"), &audit_entry(1, None)).await.unwrap();
    let own = |n| KeyRow { account_id: Some(String::from("ann")), ..key(n) };
    store.insert_key(&own(1), None, &audit_entry(1, None)).await.unwrap();
    // On two nodes at once, and afterwards.
    let other = database.open().await;
    let twin = own(2);
    let entry = audit_entry(1, None);
    let (suspended, made) = tokio::join!(
        store.suspend_account("ann", Some(50), &entry),
        other.insert_key(&twin, None, &entry)
    );
    assert!(suspended.unwrap());
    assert_eq!(made.unwrap(), KeyInsert::Inserted);
    store.insert_key(&own(3), None, &audit_entry(1, None)).await.unwrap();
    let successor = KeyRow { rotated_from: Some(String::from("key_1")), ..own(4) };
    assert_eq!(
        store
            .rotate_key(KeyEnd::AtOnce { now_ms: 60 }, &successor, None, &audit_entry(1, None))
            .await
            .unwrap(),
        KeyInsert::NothingToReplace
    );
    let keys = store.keys().await.unwrap();
    assert_eq!(keys.iter().map(|k| k.suspended_ms).collect::<Vec<_>>(), [Some(50); 3]);
}

pub(crate) async fn sessions_are_bounded_and_end_one_by_one_or_together(database: TestDatabase) {
    let store = database.open().await;
    store.insert_account(&account("ann"), &audit_entry(1, None)).await.unwrap();
    store.insert_account(&account("bob"), &audit_entry(1, None)).await.unwrap();
    store.insert_session(&session(9, "bob"), None, 3, None).await.unwrap();
    let half = |n| store::SessionRow { stage: Stage::Password, ..session(n, "ann") };
    store.insert_session(&half(1), None, 3, None).await.unwrap();
    store.insert_session(&session(2, "ann"), Some(&digest(1)), 3, None).await.unwrap();
    assert_eq!(store.session(&digest(1)).await.unwrap(), None);
    for n in 3..=5 {
        store.insert_session(&session(n, "ann"), None, 3, None).await.unwrap();
    }
    let ids = |rows: Vec<store::SessionRow>| rows.into_iter().map(|s| s.id).collect::<Vec<_>>();
    assert_eq!(ids(store.sessions_of("ann").await.unwrap()), ["ses_5", "ses_4", "ses_3"]);
    store.touch_session(&digest(3), 99).await.unwrap();
    assert_eq!(ids(store.sessions_of("ann").await.unwrap()), ["ses_3", "ses_5", "ses_4"]);
    assert!(!store.end_session("bob", "ses_4", None).await.unwrap(), "not bob's");
    assert!(store.end_session("ann", "ses_4", None).await.unwrap());
    assert_eq!(
        store.end_sessions("ann", Some(&digest(5)), &audit_entry(1, None)).await.unwrap(),
        1
    );
    assert_eq!(ids(store.sessions_of("ann").await.unwrap()), ["ses_5"]);
    store.set_password("ann", "$new", None, &audit_entry(1, None)).await.unwrap();
    assert_eq!(store.sessions_of("ann").await.unwrap(), []);
    assert_eq!(store.end_sessions("bob", None, &audit_entry(1, None)).await.unwrap(), 1);
}

pub(crate) async fn only_the_newest_link_works_and_only_once(database: TestDatabase) {
    let store = database.open().await;
    store.insert_account(&account("ann"), &audit_entry(1, None)).await.unwrap();
    let reset = |n| link(n, LinkPurpose::PasswordReset, Some("ann"));
    store.insert_link(&reset(1), None).await.unwrap();
    store.insert_link(&reset(2), None).await.unwrap();
    store.insert_link(&link(3, LinkPurpose::FirstOperator, None), None).await.unwrap();
    store.insert_link(&link(4, LinkPurpose::FirstOperator, None), None).await.unwrap();
    store.insert_link(&link(5, LinkPurpose::Invitation, None), None).await.unwrap();
    store.insert_link(&link(6, LinkPurpose::Invitation, None), None).await.unwrap();
    store.insert_link(&link(7, LinkPurpose::Confirmation, Some("ann")), None).await.unwrap();
    let mut there = Vec::new();
    for n in 1..=7 {
        there.push(store.link(&digest(n)).await.unwrap().is_some());
    }
    assert_eq!(there, [false, true, false, true, true, true, true]);
    let entry = audit_entry(1, Some("ann"));
    let confirm = async |store: &Store, now_ms| {
        store.confirm_account_by_link((&digest(2), now_ms), "ann", &entry).await.unwrap()
    };
    assert!(!confirm(&store, 100).await, "expired");
    let lines = store.audit(None, None, 99).await.unwrap().len();
    let other = database.open().await;
    let (one, another) = tokio::join!(confirm(&store, 50), confirm(&other, 51));
    assert_eq!(u8::from(one) + u8::from(another), 1);
    assert_eq!(
        store.audit(None, None, 99).await.unwrap().len(),
        lines + 1,
        "written with the action"
    );
    assert_eq!(store.prune_sessions(0, 0, 100).await.unwrap(), 5);
}

pub(crate) async fn who_make_links_at_once_leave_one_in_force(database: TestDatabase) {
    let stores = [
        database.open().await,
        database.open().await,
        database.open().await,
        database.open().await,
    ];
    let making = (1..).zip(stores.clone()).map(|(n, store)| {
        tokio::spawn(async move {
            store.insert_link(&link(n, LinkPurpose::FirstOperator, None), None).await.unwrap();
        })
    });
    for made in making.collect::<Vec<_>>() {
        made.await.unwrap();
    }
    let mut in_force = 0;
    for n in 1..=4 {
        in_force += usize::from(stores[0].link(&digest(n)).await.unwrap().is_some());
    }
    assert_eq!(in_force, 1);
}

pub(crate) async fn a_code_is_good_once(database: TestDatabase) {
    let store = database.open().await;
    store.insert_account(&account("ann"), &audit_entry(1, None)).await.unwrap();
    let totp = Totp { secret: vec![0, 255, 7], confirmed_ms: Some(3), step: None };
    store.set_totp("ann", Some(&totp), &[digest(1), digest(2)], None).await.unwrap();
    assert_eq!(store.account("ann").await.unwrap().unwrap().totp, Some(totp));
    assert!(store.use_totp_step("ann", 10).await.unwrap());
    assert!(!store.use_totp_step("ann", 10).await.unwrap());
    assert!(!store.use_totp_step("ann", 9).await.unwrap());
    assert!(store.use_totp_step("ann", 11).await.unwrap());
    assert!(store.use_recovery_code("ann", &digest(1), &audit_entry(1, None)).await.unwrap());
    assert!(!store.use_recovery_code("ann", &digest(1), &audit_entry(1, None)).await.unwrap());
    assert_eq!(store.count_recovery_codes("ann").await.unwrap(), 1);
    store.set_totp("ann", None, &[], None).await.unwrap();
    assert_eq!(store.count_recovery_codes("ann").await.unwrap(), 0);
    assert_eq!(store.account("ann").await.unwrap().unwrap().totp, None);
}

pub(crate) async fn an_access_request_is_open_once_and_decided_once(database: TestDatabase) {
    let store = database.open().await;
    for id in ["ann", "bob", "op"] {
        store.insert_account(&account(id), &audit_entry(1, None)).await.unwrap();
    }
    assert!(store.insert_access(&access("req_1", "ann"), &audit_entry(1, None)).await.unwrap());
    assert!(!store.insert_access(&access("req_2", "ann"), &audit_entry(1, None)).await.unwrap());
    assert!(store.insert_access(&access("req_3", "bob"), &audit_entry(1, None)).await.unwrap());
    assert_eq!(store.count_pending_access().await.unwrap(), 2);
    let decided = AccessRow {
        state: AccessState::Approved,
        decided_ms: Some(30),
        decided_by: Some(String::from("op")),
        note: Some(String::from("fine")),
        ..access("req_1", "ann")
    };
    assert_eq!(
        store.decide_access(&decided, audit_entry(1, None)).await.unwrap().as_ref(),
        Some(&decided)
    );
    assert_eq!(store.decide_access(&decided, audit_entry(1, None)).await.unwrap(), None);
    assert_eq!(store.account("ann").await.unwrap().unwrap().production_ms, Some(30));
    let listed = store.access_requests(None, 9).await.unwrap();
    assert_eq!(listed.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["req_3", "req_1"]);
    assert_eq!(store.access_requests(Some("ann"), 9).await.unwrap(), [decided]);
}

pub(crate) async fn accounts_and_deeds_are_found_by_a_text_in_any_case(database: TestDatabase) {
    let store = database.open().await;
    let named = |id: &str, name: &str| AccountRow { name: String::from(name), ..account(id) };
    for row in [named("ann", "Ann 100%"), named("bob", "Bob_É"), named("cy", "Cy !")] {
        assert!(store.insert_account(&row, &audit_entry(1, None)).await.unwrap());
    }
    for (text, found) in [
        ("ANN", vec!["ann"]),
        ("100%", vec!["ann"]),
        ("0%x", vec![]),
        ("b_é", vec![]),
        ("b_É", vec!["bob"]),
        ("_", vec!["bob"]),
        ("!", vec!["cy"]),
        ("@EXAMPLE", vec!["ann", "bob", "cy"]),
    ] {
        let rows = store.find_accounts(text, 9).await.unwrap();
        let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, found, "{text}");
    }
    assert_eq!(store.accounts_of(Role::Developer, 2).await.unwrap().len(), 2);
    for (n, now_ms) in [(61, 7), (62, 8)] {
        store.insert_link(&link(n, LinkPurpose::Confirmation, Some("ann")), None).await.unwrap();
        let link = (&digest(n), now_ms);
        assert!(store.confirm_account_by_link(link, "ann", &audit_entry(1, None)).await.unwrap());
    }
    assert_eq!(store.account("ann").await.unwrap().unwrap().confirmed_ms, Some(7));

    let told = AuditEntry { detail: String::from("From Élan"), ..audit_entry(1, Some("ann")) };
    store.append_audit(&[told]).await.unwrap();
    store
        .append_audit(&[AuditEntry { action: String::from("other"), ..audit_entry(2, None) }])
        .await
        .unwrap();
    for (filter, count) in [
        (AuditFilter { text: Some("FROM"), ..AuditFilter::default() }, 1),
        (AuditFilter { text: Some("Élan"), ..AuditFilter::default() }, 1),
        (AuditFilter { text: Some("KEY_1"), ..AuditFilter::default() }, 7),
        (AuditFilter { text: Some("KEY_1"), action: Some("other"), ..AuditFilter::default() }, 1),
        (AuditFilter { account_id: Some("ann"), ..AuditFilter::default() }, 1),
    ] {
        assert_eq!(store.find_audit(&filter, 9).await.unwrap().len(), count, "{filter:?}");
    }
}
