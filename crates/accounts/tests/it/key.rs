//! A key's life: created, found, revoked, rotated; and the same for feeds and maintenance.

use std::sync::Arc;

use accounts::{AccountError, Actor, KeyKind, Maintenance, NewKey, Rotated, Scores};

use crate::{DAY, MINUTE, SECOND, TestStore, limits};

const NOON: &str = "2026-11-14T12:00:00Z";

#[tokio::test]
async fn a_key_carries_its_grant() {
    let test = TestStore::at(NOON);
    let node = test.node().await;
    let new = NewKey {
        groups: Some(vec![String::from("golf"), String::from("combat"), String::from("golf")]),
        odds_read: false,
        export_read: true,
        limits: limits(7, 8, Some(9)),
        streams: Some(3),
        ..NewKey::of_kind(KeyKind::Sandbox)
    };
    let (key, record) = node.create_key(new, &Actor::command_line()).await.unwrap();
    let grant = &node.entry(&key, test.now()).grant;
    assert_eq!((grant.kind, grant.odds_read), (KeyKind::Sandbox, false));
    assert!(grant.export_read, "as it was asked for");
    assert_eq!(record.permissions, ["export:read"]);
    assert_eq!((grant.limits, grant.streams), (limits(7, 8, Some(9)), Some(3)));
    assert_eq!(grant.key_id, record.id);
    assert!(grant.covers_group("golf") && !grant.covers_group("tennis"));
    assert_eq!(record.groups.as_deref().unwrap(), ["combat", "golf"]);
}

#[tokio::test]
async fn only_issued_keys_are_let_in() {
    let test = TestStore::at(NOON);
    let node = test.node().await;
    let elsewhere = TestStore::at(NOON).issue(limits(1, 1, None)).await;
    for text in [elsewhere.expose().as_bytes(), b"", b"sk_test_", b"key_0123456789abcdef"] {
        assert!(node.keys.authenticate(text, test.now()).is_err());
    }
}

#[tokio::test]
async fn a_revoked_key_is_refused_at_once() {
    let test = TestStore::at(NOON);
    let node = test.node().await;
    let (key, record) = node
        .create_key(NewKey::of_kind(KeyKind::Production), &Actor::command_line())
        .await
        .unwrap();
    let held = node.entry(&key, test.now());
    let revoked = node.revoke_key(record.id.as_str(), &Actor::command_line()).await.unwrap();
    assert_eq!(revoked.revoked_at, Some(test.now()));
    assert!(!held.is_active(test.now()), "a holder of the entry sees it, too");
    // Not even for a request whose time is before the revocation.
    let before = test.now().minus(DAY);
    assert!(node.keys.authenticate(key.expose().as_bytes(), before).is_err());
    test.clock.advance(MINUTE);
    assert_eq!(
        node.revoke_key(key.expose(), &Actor::command_line()).await.unwrap(),
        revoked,
        "twice changes nothing"
    );
}

#[tokio::test]
async fn what_a_command_line_process_wrote_is_in_force_after_a_refresh() {
    let test = TestStore::at(NOON);
    let node = test.node().await;
    let command_line = test.command_line().await;
    let (key, record) = command_line
        .create_key(NewKey::of_kind(KeyKind::Sandbox), &Actor::command_line())
        .await
        .unwrap();
    node.keys.refresh_key(record.id.as_str()).await.unwrap();
    let held = node.entry(&key, test.now());

    // That process's clock is ahead of the node's.
    test.clock.advance(MINUTE);
    command_line.revoke_key(key.expose(), &Actor::command_line()).await.unwrap();
    let behind = test.now().minus(MINUTE);
    node.reload().await.unwrap();
    assert!(node.keys.authenticate(key.expose().as_bytes(), behind).is_err());
    assert!(!held.is_active(behind));
}

/// Not its limits alone.
#[tokio::test]
async fn a_grant_that_was_changed_in_the_store_is_in_force_after_a_reload() {
    let test = TestStore::at(NOON);
    let node = test.node().await;
    let key = test.issue(limits(9, 9, None)).await;
    node.reload().await.unwrap();
    let held = node.entry(&key, test.now());
    node.charge_quota(&held, test.now()).await;
    for (statement, odds_read, tennis) in [
        ("UPDATE api_key SET sport_groups = 'golf', change_number = NULL", true, false),
        ("UPDATE api_key SET permissions = '', change_number = NULL", false, false),
    ] {
        test.sql(statement).await;
        node.reload().await.unwrap();
        assert!(!held.is_active(test.now()), "a holder has to look it up again");
        let now = node.keys.confirm(&held, test.now()).unwrap();
        assert!(Arc::ptr_eq(&now, &node.entry(&key, test.now())));
        assert_eq!((now.grant.odds_read, now.grant.covers_group("tennis")), (odds_read, tennis));
        assert!(now.grant.covers_group("golf"));
        assert_eq!(now.meters.standing(test.now()).quota.used, 1);
        // What has not changed is not replaced.
        node.reload().await.unwrap();
        assert!(now.is_active(test.now()));
    }
}

#[tokio::test]
async fn a_rotated_key_overlaps_its_successor_and_shares_its_meters() {
    let test = TestStore::at(NOON);
    let node = test.node().await;
    let new = NewKey { limits: limits(60, 10, None), ..NewKey::of_kind(KeyKind::Production) };
    let (old, old_record) = node.create_key(new, &Actor::command_line()).await.unwrap();
    let entry = node.entry(&old, test.now());
    for _ in 0..4 {
        node.charge_quota(&entry, test.now()).await;
    }
    let Rotated { secret: new, record, .. } =
        node.rotate_key(old.expose(), Some(MINUTE), &Actor::command_line()).await.unwrap();
    assert_eq!(record.rotated_from.as_ref(), Some(&old_record.id));
    let successor = node.entry(&new, test.now());
    assert_eq!(successor.meters.standing(test.now()).quota.used, 4);
    node.charge_quota(&successor, test.now()).await;
    assert_eq!(entry.meters.standing(test.now()).quota.used, 5);

    test.clock.advance(MINUTE - SECOND);
    assert!(node.keys.authenticate(old.expose().as_bytes(), test.now()).is_ok());
    test.clock.advance(SECOND);
    assert!(node.keys.authenticate(old.expose().as_bytes(), test.now()).is_err());
    node.entry(&new, test.now());
    node.shut_down().await;
    let node = test.node().await;
    assert_eq!(node.entry(&new, test.now()).meters.standing(test.now()).quota.used, 5);
}

#[tokio::test]
async fn rotation_without_overlap_ends_the_old_key_and_is_done_once() {
    let test = TestStore::at(NOON);
    let node = test.node().await;
    let (old, record) = node
        .create_key(NewKey::of_kind(KeyKind::Production), &Actor::command_line())
        .await
        .unwrap();
    let new =
        node.rotate_key(record.id.as_str(), None, &Actor::command_line()).await.unwrap().secret;
    assert!(node.keys.authenticate(old.expose().as_bytes(), test.now()).is_err());
    node.entry(&new, test.now());
    let again = node.rotate_key(old.expose(), None, &Actor::command_line()).await;
    assert!(matches!(again, Err(AccountError::RotateRevoked(_))));
    node.rotate_key(new.expose(), Some(DAY), &Actor::command_line()).await.unwrap();
    let again = node.rotate_key(new.expose(), Some(DAY), &Actor::command_line()).await;
    assert!(matches!(again, Err(AccountError::RotateTwice(_))));
    let long = node.rotate_key(new.expose(), Some(8 * DAY), &Actor::command_line()).await;
    assert!(matches!(long, Err(AccountError::OverlapTooLong)));
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_with_its_reason() {
    let test = TestStore::at(NOON);
    let registry = test.command_line().await;
    let plain = NewKey::of_kind(KeyKind::Sandbox);
    let groups = |group: &str| Some(vec![String::from(group)]);
    let check = async |new: NewKey, reason: &str| {
        let error = registry.create_key(new, &Actor::command_line()).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    };
    check(NewKey { limits: limits(0, 1, None), ..plain.clone() }, "burst_per_minute").await;
    check(NewKey { limits: limits(1, 1, Some(0)), ..plain.clone() }, "requests_per_month").await;
    check(NewKey { streams: Some(0), ..plain.clone() }, "streams").await;
    check(NewKey { groups: groups("a,b"), ..plain.clone() }, "\"a,b\"").await;
    check(NewKey { groups: Some(Vec::new()), ..plain.clone() }, "at least one").await;
    check(NewKey { name: "x".repeat(101), ..plain.clone() }, "100").await;
    assert_eq!(registry.list_keys().await.unwrap(), []);

    let (key, _) = registry.create_key(plain, &Actor::command_line()).await.unwrap();
    let mistyped = key.expose().to_ascii_uppercase();
    let error = registry.revoke_key(&mistyped, &Actor::command_line()).await.unwrap_err();
    assert!(matches!(error, AccountError::NotAKey) && !error.to_string().contains(&mistyped));
    let unknown = registry.revoke_key("key_nobody", &Actor::command_line()).await;
    assert!(matches!(unknown, Err(AccountError::UnknownKey)));
}

#[tokio::test]
async fn no_secret_is_printed_or_kept() {
    let test = TestStore::at(NOON);
    let node = test.node().await;
    let (key, record) =
        node.create_key(NewKey::of_kind(KeyKind::Sandbox), &Actor::command_line()).await.unwrap();
    let (token, _) = node
        .create_feed("pinnacle", None, Scores::OfUnbound, &Actor::command_line())
        .await
        .unwrap();
    let printed = format!("{:?} {key:?} {record:?} {token:?}", node.accounts);
    node.shut_down().await;
    let kept = std::fs::read(test.database()).unwrap();
    for secret in [key.expose(), token.expose()] {
        let random = &secret[secret.len() - 28..];
        assert!(!printed.contains(random));
        assert!(!kept.windows(random.len()).any(|bytes| bytes == random.as_bytes()));
    }
}

#[tokio::test]
async fn a_record_is_json_with_its_id_and_instants_as_text() {
    let test = TestStore::at(NOON);
    let new = NewKey { name: String::from("site"), ..NewKey::of_kind(KeyKind::Production) };
    let (key, record) =
        test.command_line().await.create_key(new, &Actor::command_line()).await.unwrap();
    let json = serde_json::to_value(&record).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "id": record.id.as_str(), "name": "site", "kind": "production",
            "hint": format!("{}…", &key.expose()[..10]), "groups": null,
            "permissions": ["odds:read"], "burst_per_minute": 60, "requests_per_day": 10_000,
            "requests_per_month": null, "streams": null, "created_at": NOON, "revoked_at": null,
            "rotated_from": null, "account_id": null,
        })
    );
}

#[tokio::test]
async fn a_feed_token_lives_until_it_is_revoked_and_its_name_can_be_taken_again() {
    let test = TestStore::at(NOON);
    let node = test.node().await;
    let (token, _) = node
        .create_feed("pinnacle", Some("pinnacle"), Scores::OfUnbound, &Actor::command_line())
        .await
        .unwrap();
    let grant = node.feeds.authenticate(token.expose().as_bytes()).unwrap();
    assert_eq!((grant.name.as_str(), grant.bookmaker.as_deref()), ("pinnacle", Some("pinnacle")));
    let taken = node.create_feed("pinnacle", None, Scores::OfUnbound, &Actor::command_line()).await;
    assert!(matches!(taken, Err(AccountError::FeedExists(_))));

    node.revoke_feed("pinnacle", &Actor::command_line()).await.unwrap();
    assert!(node.feeds.authenticate(token.expose().as_bytes()).is_err());
    let (next, _) = node
        .create_feed("pinnacle", None, Scores::OfUnbound, &Actor::command_line())
        .await
        .unwrap();
    assert!(node.feeds.authenticate(token.expose().as_bytes()).is_err());
    assert!(node.feeds.authenticate(next.expose().as_bytes()).is_ok());
    assert_eq!(node.list_feeds().await.unwrap().len(), 1);

    for name in ["", "Pinnacle", "a b", &"x".repeat(65)] {
        assert!(matches!(
            node.create_feed(name, None, Scores::OfUnbound, &Actor::command_line()).await,
            Err(AccountError::BadFeedName)
        ));
    }
    assert!(matches!(
        node.revoke_feed("nobody", &Actor::command_line()).await,
        Err(AccountError::UnknownFeed(_))
    ));
}

#[tokio::test]
async fn maintenance_outlives_a_restart() {
    let test = TestStore::at(NOON);
    let node = test.node().await;
    assert_eq!(node.maintenance(), Maintenance::Off);
    let on = Maintenance::On { retry_after_s: 600 };
    test.command_line().await.set_maintenance(on, &Actor::command_line()).await.unwrap();
    node.reload().await.unwrap();
    assert_eq!(node.maintenance(), on);
    node.crash().await;
    let node = test.node().await;
    assert_eq!(node.maintenance(), on);
    node.set_maintenance(Maintenance::Off, &Actor::command_line()).await.unwrap();
    assert_eq!(node.maintenance(), Maintenance::Off);
    assert_eq!(test.command_line().await.maintenance().await.unwrap(), Maintenance::Off);
}
