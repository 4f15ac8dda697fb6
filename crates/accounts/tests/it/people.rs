//! People: signing up and in, sessions, links, the second factor, access, the audit log.

use std::net::IpAddr;

use accounts::{
    AccessDecision, AccessState, Actor, Attempt, AuditAction, EmailAddress, LinkPurpose,
    NewAccount, Origin, Password, People, PeopleError, PeopleRules, Profile, Role, Session,
    SessionToken, SignIn, SignUp, Stage,
};

use super::*;

const PASSWORD: &str = "correct horse battery";

pub(crate) fn from(address: &str) -> Origin {
    let address = Some(address.parse::<IpAddr>().unwrap());
    Origin { address, agent: "a browser".to_owned(), device: None }
}

fn home() -> Origin {
    from("192.0.2.1")
}

pub(crate) fn email(text: &str) -> EmailAddress {
    EmailAddress::parse(text).unwrap()
}

pub(crate) fn typed(text: &str) -> Password {
    Password::typed(text.to_owned()).unwrap()
}

pub(crate) fn new_account(address: &str) -> NewAccount {
    let email = email(address);
    let password = Password::choose(PASSWORD.to_owned(), &email).unwrap();
    NewAccount { profile: Profile::try_new(email, "Ann").unwrap(), password }
}

impl TestStore {
    pub(crate) async fn people(&self) -> People {
        self.people_with(PeopleRules::default()).await
    }

    pub(crate) async fn people_with(&self, rules: PeopleRules) -> People {
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        People::new(self.store().await, clock, rules).unwrap()
    }
}

pub(crate) async fn sign_in(people: &People, address: &str, password: &str) -> SignIn {
    people.sign_in(&email(address), typed(password), &home(), None).await.unwrap()
}

pub(crate) async fn signed_in(people: &People, address: &str) -> (SessionToken, Session) {
    let SignIn::Complete(token) = sign_in(people, address, PASSWORD).await else {
        panic!("{address} was not let in");
    };
    let session = people.session(&token).await.unwrap().unwrap();
    (token, session)
}

async fn ann(people: &People) -> (SessionToken, Session) {
    let attempt = people.sign_up(new_account("ann@example.com"), &home()).await.unwrap();
    assert_eq!(attempt, Attempt::Done);
    signed_in(people, "ann@example.com").await
}

async fn actions(people: &People) -> Vec<String> {
    let mut actions: Vec<_> =
        people.audit(None, None).await.unwrap().into_iter().map(|row| row.action).collect();
    actions.reverse();
    actions
}

#[tokio::test]
async fn signing_up_and_in_gives_a_session_of_a_developer() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let people = test.people().await;
    let (_, session) = ann(&people).await;
    assert_eq!((session.account.role, session.stage), (Role::Developer, Stage::Full));
    assert_eq!(session.account.email, "ann@example.com");
    assert_eq!(session.account.production_since, None);
    assert_eq!(actions(&people).await, ["account.created", "session.started"]);
}

#[tokio::test]
async fn signing_up_twice_answers_the_same_and_changes_nothing() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let people = test.people().await;
    ann(&people).await;
    let other = Password::choose("somebody else's words".to_owned(), &email("ann@example.com"));
    let profile = Profile::try_new(email("ANN@example.com"), "Mallory").unwrap();
    let new = NewAccount { profile, password: other.unwrap() };
    assert_eq!(people.sign_up(new, &home()).await.unwrap(), Attempt::Done);
    let refused = sign_in(&people, "ann@example.com", "somebody else's words").await;
    assert!(matches!(refused, SignIn::Failed(Attempt::Refused)));
    let (_, session) = signed_in(&people, "ann@example.com").await;
    assert_eq!(session.account.name, "Ann");
}

#[tokio::test]
async fn sign_up_is_open_only_where_the_operator_opened_it() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    for sign_up in [SignUp::Invitation, SignUp::Closed] {
        let people = test.people_with(PeopleRules { sign_up, ..PeopleRules::default() }).await;
        let attempt = people.sign_up(new_account("ann@example.com"), &home()).await.unwrap();
        assert_eq!(attempt, Attempt::Refused);
    }
}

#[tokio::test]
async fn a_wrong_password_an_unknown_and_a_suspended_account_are_answered_alike() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let people = test.people().await;
    let (_, session) = ann(&people).await;
    people.suspend(&session.account.id, &Actor::command_line()).await.unwrap();
    for (address, password) in [
        ("ann@example.com", "wrong words here"),
        ("nobody@example.com", PASSWORD),
        ("ann@example.com", PASSWORD),
    ] {
        let answer = sign_in(&people, address, password).await;
        assert!(matches!(answer, SignIn::Failed(Attempt::Refused)), "{address}: {answer:?}");
    }
}

#[tokio::test]
async fn guessing_is_throttled_for_known_and_unknown_accounts_alike() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let people = test.people().await;
    ann(&people).await;
    let mut answers = Vec::new();
    for (n, address) in ["ann@example.com", "nobody@example.com"].into_iter().enumerate() {
        let mut refused = 0;
        loop {
            // From a different source each time: the account itself is guarded.
            let source = from(&format!("198.51.{n}.{refused}"));
            let answer =
                people.sign_in(&email(address), typed("a wrong guess"), &source, None).await;
            match answer.unwrap() {
                SignIn::Failed(Attempt::Refused) => refused += 1,
                SignIn::Failed(Attempt::Throttled { retry_after_s }) => {
                    answers.push((refused, retry_after_s));
                    break;
                }
                other @ (SignIn::Complete(_)
                | SignIn::NeedsCode(_)
                | SignIn::Unconfirmed
                | SignIn::Failed(_)) => {
                    panic!("{other:?}")
                }
            }
        }
    }
    assert_eq!(answers, [(40, 16), (40, 16)]);
    let right = sign_in(&people, "ann@example.com", PASSWORD).await;
    assert!(
        matches!(right, SignIn::Failed(Attempt::Throttled { .. })),
        "not even with the right one"
    );
    test.clock.advance(16 * SECOND);
    signed_in(&people, "ann@example.com").await;
}

#[tokio::test]
async fn a_stranger_keeps_nobody_out() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let people = test.people().await;
    let (token, session) = ann(&people).await;
    let device = people.remember_device(&email("ann@example.com")).await.unwrap();
    let guess = async |from: &Origin| {
        people.sign_in(&email("ann@example.com"), typed("a wrong guess"), from, None).await.unwrap()
    };
    // A client that tries endlessly, as fast as it is allowed, reaches a fixed number.
    let stranger = from("203.0.113.9");
    let mut refused = 0;
    for _ in 0..40 {
        match guess(&stranger).await {
            SignIn::Failed(Attempt::Refused) => refused += 1,
            SignIn::Failed(Attempt::Throttled { .. }) => test.clock.advance(10 * SECOND),
            other @ (SignIn::Complete(_)
            | SignIn::NeedsCode(_)
            | SignIn::Unconfirmed
            | SignIn::Failed(_)) => {
                panic!("{other:?}")
            }
        }
    }
    assert!((10..25).contains(&refused), "{refused}");
    let elsewhere = people
        .sign_in(&email("ann@example.com"), typed(PASSWORD), &from("192.0.2.77"), None)
        .await
        .unwrap();
    assert!(matches!(elsewhere, SignIn::Complete(_)), "{elsewhere:?}");
    // Many sources do keep anonymous clients out, but neither a known browser, even at the same source, nor a
    // signed-in person.
    let mut n = 0;
    while !matches!(
        guess(&from(&format!("198.51.100.{n}"))).await,
        SignIn::Failed(Attempt::Throttled { .. })
    ) {
        n += 1;
    }
    assert!(matches!(
        sign_in(&people, "ann@example.com", PASSWORD).await,
        SignIn::Failed(Attempt::Throttled { .. })
    ));
    let known = Origin { device: device.clone(), ..from("198.51.100.0") };
    let entered = people.sign_in(&email("ann@example.com"), typed(PASSWORD), &known, None).await;
    assert!(matches!(entered.unwrap(), SignIn::Complete(_)));
    let words = (typed(PASSWORD), typed("quite another phrase"));
    let changed = people.change_password(&session, &token, words, &home()).await.unwrap();
    assert_eq!(changed, Attempt::Done);
    // After a password change, browsers known under the old one are no longer known; nor are they to another account.
    assert!(matches!(guess(&known).await, SignIn::Failed(Attempt::Throttled { .. })));
    let known = Origin {
        device: people.remember_device(&email("ann@example.com")).await.unwrap(),
        ..known
    };
    let mut tried = 0;
    while matches!(guess(&known).await, SignIn::Failed(Attempt::Refused)) {
        tried += 1;
    }
    assert_eq!(tried, 10, "a browser that is known has tries of its own, and no more");
}

#[tokio::test]
async fn one_source_cannot_try_many_accounts() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let people = test.people().await;
    let mut refused = 0;
    // One customer's IPv6 network is one source.
    while let SignIn::Failed(Attempt::Refused) = people
        .sign_in(
            &email(&format!("user{refused}@example.com")),
            typed("a wrong guess"),
            &from(&format!("2001:db8::{refused}")),
            None,
        )
        .await
        .unwrap()
    {
        refused += 1;
    }
    assert_eq!(refused, 30);
    let elsewhere = people
        .sign_in(&email("a@example.com"), typed("a wrong guess"), &from("2001:db8:1::1"), None)
        .await
        .unwrap();
    assert!(matches!(elsewhere, SignIn::Failed(Attempt::Refused)));
}

#[tokio::test]
async fn a_session_ends_when_idle_and_when_old_whatever_it_is_used_for() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let people = test.people().await;
    let (idle, _) = ann(&people).await;
    test.clock.advance(DAY - SECOND);
    assert!(people.session(&idle).await.unwrap().is_some());
    test.clock.advance(DAY);
    assert!(people.session(&idle).await.unwrap().is_none());

    let (busy, _) = signed_in(&people, "ann@example.com").await;
    for _ in 0..59 {
        test.clock.advance(DAY / 2);
        assert!(people.session(&busy).await.unwrap().is_some());
    }
    test.clock.advance(DAY / 2);
    assert!(people.session(&busy).await.unwrap().is_none(), "30 days are the end");
    assert_eq!(people.prune().await.unwrap(), 2);
}

#[tokio::test]
async fn signing_in_gives_a_new_token_and_ends_the_one_before() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let people = test.people().await;
    let (old, _) = ann(&people).await;
    let again = people
        .sign_in(&email("ann@example.com"), typed(PASSWORD), &home(), Some(&old))
        .await
        .unwrap();
    let SignIn::Complete(new) = again else { panic!("not let in") };
    assert_ne!(new.expose(), old.expose());
    assert!(people.session(&old).await.unwrap().is_none());
    assert!(people.session(&new).await.unwrap().is_some());
}

#[tokio::test]
async fn sessions_are_listed_and_ended_one_by_one_or_all_at_once() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let people = test.people().await;
    let (first, _) = ann(&people).await;
    test.clock.advance(SECOND);
    let (second, session) = signed_in(&people, "ann@example.com").await;
    let listed = people.sessions(&session).await.unwrap();
    let current: Vec<bool> = listed.iter().map(|row| row.current).collect();
    assert_eq!(current, [true, false]);
    assert_eq!((listed[1].address.as_str(), listed[1].agent.as_str()), ("192.0.2.1", "a browser"));
    assert!(people.end_session(&session, &listed[1].id, &home()).await.unwrap());
    assert!(people.session(&first).await.unwrap().is_none());
    assert!(!people.end_session(&session, &listed[1].id, &home()).await.unwrap());

    people.sign_up(new_account("bob@example.com"), &home()).await.unwrap();
    let (bob, bobs) = signed_in(&people, "bob@example.com").await;
    assert!(!people.end_session(&session, &bobs.id, &home()).await.unwrap(), "not somebody else's");
    people.end_sessions(&session, &home()).await.unwrap();
    assert!(people.session(&second).await.unwrap().is_none());
    assert!(people.session(&bob).await.unwrap().is_some());
}

#[tokio::test]
async fn a_new_password_ends_the_other_sessions_and_needs_the_old_one() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let people = test.people().await;
    let (other, _) = ann(&people).await;
    let (token, session) = signed_in(&people, "ann@example.com").await;
    let change = async |old: &str| {
        let passwords = (typed(old), typed("quite another phrase"));
        people.change_password(&session, &token, passwords, &home()).await.unwrap()
    };
    assert_eq!(change("not the old one").await, Attempt::Refused);
    assert!(people.session(&other).await.unwrap().is_some());
    assert_eq!(change(PASSWORD).await, Attempt::Done);
    assert!(people.session(&other).await.unwrap().is_none());
    assert!(people.session(&token).await.unwrap().is_some());
    let old = sign_in(&people, "ann@example.com", PASSWORD).await;
    assert!(matches!(old, SignIn::Failed(Attempt::Refused)));
}

#[tokio::test]
async fn the_first_operators_link_works_once_and_only_the_newest_one() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let people = test.people().await;
    let older = people.first_operator_link().await.unwrap().unwrap();
    let link = people.first_operator_link().await.unwrap().unwrap();
    assert!(people.link_info(&older).await.unwrap().is_none());
    let seen = people.link_info(&link).await.unwrap();
    assert_eq!(seen, Some((LinkPurpose::FirstOperator, None)));
    let entered =
        people.sign_up_by_link(&link, new_account("op@example.com"), &home(), None).await.unwrap();
    let SignIn::Complete(token) = entered else { panic!("not let in") };
    let session = people.session(&token).await.unwrap().unwrap();
    assert_eq!(session.account.role, Role::Operator);
    let again =
        people.sign_up_by_link(&link, new_account("op2@example.com"), &home(), None).await.unwrap();
    assert!(matches!(again, SignIn::Failed(Attempt::Refused)));
    assert!(people.first_operator_link().await.unwrap().is_none(), "there is one now");
    let last = people.suspend(&session.account.id, &Actor::command_line()).await;
    assert!(matches!(last, Err(PeopleError::LastOperator)));
}

#[tokio::test]
async fn an_invitation_is_for_its_address_for_a_week_and_not_lost_to_a_slip() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let rules = PeopleRules { sign_up: SignUp::Invitation, ..PeopleRules::default() };
    let people = test.people_with(rules).await;
    let actor = Actor::command_line();
    let link = people.invite(Some(&email("ann@example.com")), &actor).await.unwrap();
    let enter = async |address: &str| {
        people.sign_up_by_link(&link, new_account(address), &home(), None).await.unwrap()
    };
    assert!(matches!(enter("mallory@example.com").await, SignIn::Failed(Attempt::Refused)));
    assert!(matches!(enter("Ann@Example.com").await, SignIn::Complete(_)));
    let late = people.invite(None, &actor).await.unwrap();
    test.clock.advance(7 * DAY);
    assert!(people.link_info(&late).await.unwrap().is_none());
}

#[tokio::test]
async fn a_reset_link_sets_the_password_and_ends_every_session() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let people = test.people().await;
    let (token, session) = ann(&people).await;
    let link = people.reset_link(&session.account.id, &Actor::command_line()).await.unwrap();
    let seen = people.link_info(&link).await.unwrap();
    assert_eq!(seen, Some((LinkPurpose::PasswordReset, Some("ann@example.com".to_owned()))));
    let reset = async |to: &str| people.reset_by_link(&link, typed(to), &home()).await.unwrap();
    assert_eq!(reset("quite another phrase").await, Attempt::Done);
    assert_eq!(reset("a second phrase here").await, Attempt::Refused);
    assert!(people.session(&token).await.unwrap().is_none());
    let with_new = sign_in(&people, "ann@example.com", "quite another phrase").await;
    assert!(matches!(with_new, SignIn::Complete(_)));
}

#[tokio::test]
async fn the_second_factor_is_asked_for_and_each_code_is_good_once() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let people = test.people().await;
    let (_, session) = ann(&people).await;
    let secret = people.offer_second_factor(&session).await.unwrap().unwrap();
    let again = people.offer_second_factor(&session).await.unwrap().unwrap();
    assert_eq!(secret.expose(), again.expose());
    let code = || secret.code(test.now().as_secs() / 30);
    let wrong = people.confirm_second_factor(&session, "000000x", &home()).await.unwrap();
    assert_eq!(wrong.unwrap_err(), Attempt::Refused);
    assert!(matches!(sign_in(&people, "ann@example.com", PASSWORD).await, SignIn::Complete(_)));
    let recovery = people.confirm_second_factor(&session, &code(), &home()).await.unwrap().unwrap();
    assert_eq!(recovery.len(), 10);

    let half = async || {
        let SignIn::NeedsCode(token) = sign_in(&people, "ann@example.com", PASSWORD).await else {
            panic!("the second factor was not asked for");
        };
        let session = people.session(&token).await.unwrap().unwrap();
        assert_eq!(session.stage, Stage::Password);
        (token, session)
    };
    let (token, session) = half().await;
    let finish =
        async |code: &str| people.finish_sign_in(&session, &token, code, &home()).await.unwrap();
    assert!(matches!(finish(&code()).await, SignIn::Failed(Attempt::Refused)), "used to confirm");
    test.clock.advance(30 * SECOND);
    let used = code();
    let SignIn::Complete(full) = finish(&used).await else { panic!("not let in") };
    assert_eq!(people.session(&full).await.unwrap().unwrap().stage, Stage::Full);
    assert!(people.session(&token).await.unwrap().is_none(), "the half session is gone");

    let (token, session) = half().await;
    let finish =
        async |code: &str| people.finish_sign_in(&session, &token, code, &home()).await.unwrap();
    assert!(matches!(finish(&used).await, SignIn::Failed(Attempt::Refused)), "a code is good once");
    assert!(matches!(finish(&recovery[0].expose()).await, SignIn::Complete(_)));
    let (token, session) = half().await;
    let again = people.finish_sign_in(&session, &token, &recovery[0].expose(), &home()).await;
    assert!(matches!(again.unwrap(), SignIn::Failed(Attempt::Refused)), "so is a recovery code");
    assert_eq!(people.recovery_codes_left(&session).await.unwrap(), 9);
    test.clock.advance(10 * MINUTE);
    assert!(people.session(&token).await.unwrap().is_none(), "half-way is not for long");
}

#[tokio::test]
async fn a_sign_in_half_way_does_not_survive_a_new_password() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let people = test.people().await;
    let (token, session) = ann(&people).await;
    let secret = people.offer_second_factor(&session).await.unwrap().unwrap();
    let code = || secret.code(test.now().as_secs() / 30);
    people.confirm_second_factor(&session, &code(), &home()).await.unwrap().unwrap();
    let half = async |password: &str| {
        let SignIn::NeedsCode(token) = sign_in(&people, "ann@example.com", password).await else {
            panic!("the second factor was not asked for");
        };
        (people.session(&token).await.unwrap().unwrap(), token)
    };
    let finish = async |(half, token): (Session, SessionToken)| {
        test.clock.advance(30 * SECOND);
        people.finish_sign_in(&half, &token, &code(), &home()).await.unwrap()
    };
    // Each session has a correct password; the password is then changed before the code is checked.
    let under_way = half(PASSWORD).await;
    let link = people.reset_link(&session.account.id, &Actor::command_line()).await.unwrap();
    let reset = people.reset_by_link(&link, typed("quite another phrase"), &home()).await;
    assert_eq!(reset.unwrap(), Attempt::Done);
    assert!(matches!(finish(under_way).await, SignIn::Failed(Attempt::Refused)));

    let under_way = half("quite another phrase").await;
    let words = (typed("quite another phrase"), typed("the third phrase of all"));
    let changed = people.change_password(&session, &token, words, &home()).await.unwrap();
    assert_eq!(changed, Attempt::Done);
    assert!(matches!(finish(under_way).await, SignIn::Failed(Attempt::Refused)));
    assert!(matches!(finish(half("the third phrase of all").await).await, SignIn::Complete(_)));
}

#[tokio::test]
async fn codes_cannot_be_guessed_by_trying_them_all() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let people = test.people().await;
    let (_, session) = ann(&people).await;
    let secret = people.offer_second_factor(&session).await.unwrap().unwrap();
    let code = secret.code(test.now().as_secs() / 30);
    people.confirm_second_factor(&session, &code, &home()).await.unwrap().unwrap();
    let mut tried = 0;
    while people.disable_second_factor(&session, "0", &home()).await.unwrap() == Attempt::Refused {
        tried += 1;
    }
    assert_eq!(tried, 5);
    test.clock.advance(61 * SECOND);
    let code = secret.code(test.now().as_secs() / 30);
    assert_eq!(
        people.disable_second_factor(&session, &code, &home()).await.unwrap(),
        Attempt::Done
    );
    assert!(matches!(sign_in(&people, "ann@example.com", PASSWORD).await, SignIn::Complete(_)));
}

#[tokio::test]
async fn access_is_asked_for_once_and_granted_by_an_operator() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let people = test.people().await;
    let (token, session) = ann(&people).await;
    let purpose = "A price comparison page for our readers.";
    let ask = async |purpose: &str| people.request_access(&session, purpose, &home()).await;
    assert!(matches!(ask("too short").await, Err(PeopleError::BadPurpose)));
    ask(purpose).await.unwrap();
    assert!(matches!(ask(purpose).await, Err(PeopleError::AlreadyRequested)));
    assert_eq!(people.pending_requests().await.unwrap(), 1);
    let pending = people.access_requests(None).await.unwrap();
    let actor = Actor::command_line();
    let refuse = AccessDecision::Refuse;
    people.decide_access(&pending[0].id, refuse, "say more", &actor).await.unwrap();
    let twice = people.decide_access(&pending[0].id, AccessDecision::Approve, "", &actor).await;
    assert!(matches!(twice, Err(PeopleError::UnknownRequest)));
    ask(purpose).await.unwrap();
    let pending = people.access_requests(Some(&session.account.id)).await.unwrap();
    let states: Vec<AccessState> = pending.iter().map(|request| request.state).collect();
    assert_eq!(states, [AccessState::Pending, AccessState::Refused]);
    assert_eq!(pending[1].note.as_deref(), Some("say more"));
    people.decide_access(&pending[0].id, AccessDecision::Approve, "", &actor).await.unwrap();
    let session = people.session(&token).await.unwrap().unwrap();
    assert_eq!(session.account.production_since, Some(test.now()));
}

#[tokio::test]
async fn a_suspended_accounts_keys_are_refused_until_it_is_let_in_again() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let people = test.people().await;
    let node = test.node().await;
    let (_, session) = ann(&people).await;
    let id = session.account.id.clone();
    let new = NewKey { account_id: Some(id.clone()), ..NewKey::of_kind(KeyKind::Sandbox) };
    let (key, _) = node.accounts.create_key(new, &Actor::command_line()).await.unwrap();
    let others = test.issue(Limits::DEFAULT).await;
    node.accounts.reload().await.unwrap();
    let entered = |key: &KeySecret| {
        node.accounts.keys.authenticate(key.expose().as_bytes(), test.now()).is_ok()
    };
    assert!(entered(&key));
    let held = node.entry(&key, test.now());
    let actor = Actor::command_line();
    people.suspend(&id, &actor).await.unwrap();
    node.accounts.reload().await.unwrap();
    assert!(!entered(&key) && !held.is_active(test.now()));
    assert!(entered(&others));
    people.resume(&id, &actor).await.unwrap();
    node.accounts.reload().await.unwrap();
    assert!(entered(&key));
}

#[tokio::test]
async fn an_accounts_keys_are_seen_with_their_last_use_across_a_restart() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let people = test.people().await;
    let (_, session) = ann(&people).await;
    let id = session.account.id;
    let node = test.node().await;
    let new = NewKey { account_id: Some(id.clone()), ..NewKey::of_kind(KeyKind::Sandbox) };
    let (key, _) = node.accounts.create_key(new, &Actor::command_line()).await.unwrap();
    test.issue(Limits::DEFAULT).await;
    let seen = node.accounts.keys_of(&id).await.unwrap();
    assert_eq!((seen.len(), seen[0].last_used), (1, None));
    let entry = node.entry(&key, test.now());
    node.accounts.charge_quota(&entry, test.now()).await;
    let used_at = test.now();
    node.accounts.record_key_uses().await.unwrap();
    node.shut_down().await;
    test.clock.advance(MINUTE);
    let node = test.node().await;
    let seen = node.accounts.keys_of(&id).await.unwrap();
    assert_eq!(seen[0].last_used, Some(used_at));
    assert_eq!(seen[0].today.map(|day| day.used), Some(1));
}

#[tokio::test]
async fn what_is_written_down_says_who_what_and_from_where() {
    let test = TestStore::at("2026-11-14T12:00:00Z");
    let people = test.people().await;
    let (_, session) = ann(&people).await;
    let actor = Actor::account(&session.account, &from("203.0.113.9"));
    people.note(&actor, AuditAction::KeyCreated, "key_1", &"long ".repeat(1000)).await.unwrap();
    let log = people.audit(Some(&session.account.id), None).await.unwrap();
    assert_eq!(log.len(), 3);
    assert_eq!(log[0].who, "ann@example.com");
    assert_eq!((log[0].action.as_str(), log[0].subject.as_str()), ("key.created", "key_1"));
    assert_eq!((log[0].address.as_str(), log[0].at), ("203.0.113.9", test.now()));
    assert!(log[0].detail.len() <= 500);
    let older = people.audit(None, Some(log[0].seq)).await.unwrap();
    assert_eq!(older.len(), 2);
}
