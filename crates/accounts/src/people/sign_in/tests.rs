use std::sync::Arc;

use domain::{Clock, ManualClock};
use store::Store;

use super::*;
use crate::{Actor, PeopleRules, people::Profile};

const NOW: &str = "2026-11-14T12:00:00Z";

async fn people() -> (People, Store, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("accounts.db")).await.unwrap();
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(Timestamp::parse(NOW).unwrap()));
    let people = People::new(store.clone(), clock, PeopleRules::default()).unwrap();
    (people, store, dir)
}

fn ann() -> Profile {
    Profile::try_new(EmailAddress::parse("ann@example.com").unwrap(), "Ann").unwrap()
}

fn nowhere() -> Origin {
    Origin { address: None, agent: String::new(), device: None }
}

#[tokio::test]
async fn a_new_and_a_known_address_are_answered_after_the_same_time() {
    let (mut people, _store, _dir) = people().await;
    // Much longer than either takes by itself.
    people.sign_up_time = Duration::from_secs(3);
    for _ in 0..2 {
        let password = Password::typed("correct horse battery".to_owned()).unwrap();
        let begun = Instant::now();
        let new = NewAccount { profile: ann(), password };
        assert_eq!(people.sign_up(new, &nowhere()).await.unwrap(), Attempt::Done);
        assert!(begun.elapsed() >= people.sign_up_time);
    }
}

#[tokio::test]
async fn a_sign_in_that_a_new_password_overtakes_lets_nobody_in() {
    let (people, store, _dir) = people().await;
    let now = Timestamp::parse(NOW).unwrap();
    let row = account_row(&ann(), Role::Developer, "old".to_owned(), now).unwrap();
    let entry = people.entry(&Actor::service(), AuditAction::AccountCreated, &row.id, "");
    store.insert_account(&row, &entry).await.unwrap();
    let from = nowhere();
    let enter = async || people.start_session(&row, Stage::Password, &from, None).await.unwrap();
    assert!(enter().await.is_some());
    // The password was checked, and changes before the session begins.
    store.set_password(&row.id, "new", None, &entry).await.unwrap();
    assert!(enter().await.is_none());
    assert!(store.sessions_of(&row.id).await.unwrap().is_empty());
}
