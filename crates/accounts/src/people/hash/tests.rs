use super::*;

fn password(text: &str) -> Password {
    Password::typed(text.to_owned()).unwrap()
}

#[tokio::test]
async fn a_password_is_known_again_and_another_is_not() {
    let hasher = Hasher::new().unwrap();
    let stored = hasher.hash(password("correct horse"), Requester::Known).await.unwrap().unwrap();
    assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
    assert!(
        hasher.verify(password("correct horse"), Some(&stored), Requester::Known).await.unwrap()
    );
    assert!(
        !hasher.verify(password("correct horsf"), Some(&stored), Requester::Known).await.unwrap()
    );
    assert!(!hasher.verify(password("correct horse"), None, Requester::Anonymous).await.unwrap());
    let again = hasher.hash(password("correct horse"), Requester::Known).await.unwrap().unwrap();
    assert_ne!(stored, again, "every hash has its own salt");
}

/// Made with the reference implementation: a change of parameters or format must not lock people out.
#[test]
fn a_hash_of_the_reference_program_is_understood() {
    let reference =
        "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
    assert!(matches(reference, b"password", &mut Vec::new()));
    assert!(!matches(reference, b"passwore", &mut Vec::new()));
}

#[test]
fn a_damaged_hash_lets_nobody_in_and_takes_no_memory() {
    for damaged in [
        "",
        "$argon2id$v=19$m=4294967295,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
        "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65",
        "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
    ] {
        assert!(!matches(damaged, b"password", &mut Vec::new()), "{damaged}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hostile_many_at_once_are_hashed_in_the_memory_of_two() {
    let hasher = Hasher::new().unwrap();
    let all = (0..24).map(|n| {
        let hasher = hasher.clone();
        let guest = if n % 2 == 0 { Requester::Known } else { Requester::Anonymous };
        tokio::spawn(async move { hasher.hash(password("correct horse"), guest).await.unwrap() })
    });
    let mut hashed = 0;
    for one in all.collect::<Vec<_>>() {
        hashed += usize::from(one.await.unwrap().is_ok());
    }
    assert!(hashed > 0);
    let memory = hasher.memory.lock().unwrap();
    assert!(memory.len() <= AT_ONCE_MAX, "{}", memory.len());
    let blocks = usize::try_from(MEMORY_KIB).unwrap();
    assert!(memory.iter().all(|blocks_of_one| blocks_of_one.capacity() <= blocks));
}

#[tokio::test]
async fn hostile_strangers_leave_a_turn_to_who_is_known() {
    let hasher = Hasher::new().unwrap();
    // An anonymous hash that never ends.
    let _held = Arc::clone(&hasher.strangers).acquire_owned().await.unwrap();
    let _turn = Arc::clone(&hasher.turns).acquire_owned().await.unwrap();
    let known = hasher.verify(password("correct horse"), None, Requester::Known).await;
    assert!(matches!(known, Ok(false)));
    assert!(hasher.strangers.try_acquire().is_err(), "no other anonymous client has one");
}
