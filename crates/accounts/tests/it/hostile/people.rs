//! Anonymous clients: their actions are logged, bounded, and not attributed to other people.

use accounts::{Actor, Attempt, AuditAction, LinkPurpose, Origin, Role, SignIn};

use crate::people::{email, from, new_account, sign_in, signed_in, typed};
use crate::*;

const NOW: &str = "2026-11-14T12:00:00Z";

async fn lines(people: &accounts::People, action: AuditAction) -> Vec<accounts::AuditRecord> {
    let filter = accounts::AuditFilter { action: Some(action.as_str()), ..Default::default() };
    people.find_audit(&filter).await.unwrap()
}

#[tokio::test]
async fn refused_sign_ins_are_in_the_audit_log_as_a_strangers() {
    let test = TestStore::at(NOW);
    let people = test.people().await;
    assert_eq!(
        people.sign_up(new_account("ann@example.com"), &from("192.0.2.7")).await.unwrap(),
        Attempt::Done
    );
    for (address, count) in [("ann@example.com", 12), ("nobody@example.com", 1)] {
        for _ in 0..count {
            let outcome = sign_in(&people, address, "wrong horse battery").await;
            assert!(matches!(outcome, SignIn::Failed(_)));
        }
    }
    let written = lines(&people, AuditAction::SignInRefused).await;
    assert_eq!(written.len(), 2, "the rest is counted");
    assert_eq!(
        (written[1].subject.as_str(), written[1].address.as_str()),
        ("ann@example.com", "192.0.2.1")
    );
    assert_eq!(written[1].who, "somebody not signed in");
    assert_eq!(written[0].subject, "nobody@example.com");
    test.clock.advance(MINUTE);
    people.prune().await.unwrap();
    let written = lines(&people, AuditAction::SignInRefused).await;
    assert_eq!((written.len(), written[0].detail.as_str()), (3, "11 more within a minute"));
    assert!(
        people.audit(None, None).await.unwrap().iter().all(|line| line.action != "session.started")
    );
}

#[tokio::test]
async fn a_wrong_second_factor_is_in_the_audit_log() {
    let test = TestStore::at(NOW);
    let people = test.people().await;
    assert_eq!(
        people.sign_up(new_account("ann@example.com"), &from("192.0.2.7")).await.unwrap(),
        Attempt::Done
    );
    let (_, session) = signed_in(&people, "ann@example.com").await;
    let secret = people.offer_second_factor(&session).await.unwrap().unwrap();
    let code = secret.code(test.now().as_secs() / 30);
    people.confirm_second_factor(&session, &code, &from("192.0.2.1")).await.unwrap().unwrap();
    let SignIn::NeedsCode(token) =
        sign_in(&people, "ann@example.com", "correct horse battery").await
    else {
        panic!("the second factor was not asked for");
    };
    let half = people.session(&token).await.unwrap().unwrap();
    for _ in 0..2 {
        let outcome =
            people.finish_sign_in(&half, &token, "000000", &from("198.51.100.9")).await.unwrap();
        assert!(matches!(outcome, SignIn::Failed(Attempt::Refused)));
    }
    let written = lines(&people, AuditAction::SecondFactorRefused).await;
    assert_eq!(written.len(), 1);
    assert_eq!(
        (written[0].subject.as_str(), written[0].address.as_str()),
        ("ann@example.com", "198.51.100.9")
    );
    assert_eq!(lines(&people, AuditAction::SignedIn).await.len(), 1, "half a sign-in is none");
}

#[tokio::test]
async fn a_reset_that_anybody_can_ask_for_is_not_written_down_as_the_accounts_own() {
    let test = TestStore::at(NOW);
    let (outbox, mut email_queue) = accounts::outbox("https://odds.example.com");
    let people = test.people().await.with_mail(Some(outbox));
    let actor = Actor::command_line();
    let link = people.invite(Some(&email("ann@example.com")), &actor).await.unwrap();
    let here = from("192.0.2.1");
    let entered = people.sign_up_by_link(&link, new_account("ann@example.com"), &here, None).await;
    assert!(matches!(entered.unwrap(), SignIn::Complete(_)));
    people.mail_reset(&email("ann@example.com"), &from("198.51.100.9")).await.unwrap();
    assert!(email_queue.next().await.unwrap().body.contains("/link/"));
    let written = lines(&people, AuditAction::LinkIssued).await;
    assert_eq!(
        (written[0].who.as_str(), written[0].address.as_str()),
        ("somebody not signed in", "198.51.100.9")
    );
    let account = people.accounts().await.unwrap().remove(0);
    assert_eq!(written[0].subject, account.id);
    let own = people.audit(Some(&account.id), None).await.unwrap();
    assert!(own.iter().all(|line| line.action != "link.issued"));
}

#[tokio::test]
async fn the_first_operators_link_is_in_the_audit_log() {
    let test = TestStore::at(NOW);
    let people = test.people().await;
    let link = people.first_operator_link().await.unwrap().unwrap();
    assert_eq!(people.link_info(&link).await.unwrap(), Some((LinkPurpose::FirstOperator, None)));
    let written = lines(&people, AuditAction::LinkIssued).await;
    assert_eq!((written.len(), written[0].who.as_str()), (1, "the service"));
    let here = from("192.0.2.1");
    let entered = people.sign_up_by_link(&link, new_account("op@example.com"), &here, None).await;
    assert!(matches!(entered.unwrap(), SignIn::Complete(_)));
    let made = lines(&people, AuditAction::AccountCreated).await;
    assert_eq!((made.len(), made[0].detail.as_str()), (1, "operator's link"));
    assert_eq!(people.operators().await.unwrap()[0].role, Role::Operator);
}

#[tokio::test]
async fn sign_ups_from_everywhere_are_bounded_and_keep_nobody_out() {
    let test = TestStore::at(NOW);
    let (outbox, _queue) = accounts::outbox("https://odds.example.com");
    let people = Arc::new(test.people().await.with_mail(Some(outbox)));
    let origin = |n: u32| Origin {
        address: Some(std::net::IpAddr::from((0x0a00_0000 + n).to_be_bytes())),
        agent: String::new(),
        device: None,
    };
    let actor = Actor::command_line();
    let link = people.invite(Some(&email("ann@example.com")), &actor).await.unwrap();
    let here = from("192.0.2.1");
    let entered = people.sign_up_by_link(&link, new_account("ann@example.com"), &here, None).await;
    assert!(matches!(entered.unwrap(), SignIn::Complete(_)));
    let ann = email("ann@example.com");
    let device = people.remember_device(&ann).await.unwrap();
    let known = Origin { device, ..from("192.0.2.1") };

    let all = (0..400).map(|n| {
        let (people, from) = (Arc::clone(&people), origin(n));
        tokio::spawn(async move {
            people.sign_up(new_account(&format!("n{n}@example.com")), &from).await.unwrap()
        })
    });
    let flood: Vec<_> = all.collect();
    // A known browser is accepted meanwhile.
    let outcome = people.sign_in(&ann, typed("correct horse battery"), &known, None).await;
    assert!(matches!(outcome.unwrap(), SignIn::Complete(_)));
    let mut refused = 0;
    for one in flood {
        refused += usize::from(matches!(one.await.unwrap(), Attempt::Throttled { .. }));
    }
    assert_eq!(refused, 200, "whoever comes first");
    let store = test.store().await;
    let made = store.accounts(1000).await.unwrap().len();
    assert!((2..=201).contains(&made), "{made}");
    // An unconfirmed account is deleted, and its address is free again.
    test.clock.advance(8 * DAY);
    people.prune().await.unwrap();
    assert_eq!(store.accounts(1000).await.unwrap().len(), 1);
}
