//! Emails to a minimal mail server that accepts, defers or refuses them, or is absent.

use std::sync::{Arc, Mutex};

use accounts::{EmailAddress, NewAccount, Origin, Password, People, PeopleRules, Profile};
use domain::{Clock, ManualClock, Timestamp};
use store::Store;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// The server's replies to consecutive emails; the last one is repeated.
type Verdicts = Vec<&'static str>;
type Mails = Arc<Mutex<Vec<String>>>;

async fn converse(stream: TcpStream, verdicts: &Mutex<Verdicts>, mails: &Mails) -> Option<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    let mut put_off = false;
    write.write_all(b"220 test\r\n").await.ok()?;
    while let Some(line) = lines.next_line().await.ok()? {
        let verb = line.get(..4).unwrap_or_default().to_ascii_uppercase();
        let answer = match verb.as_str() {
            "EHLO" => "250 test\r\n".to_owned(),
            "RCPT" => {
                put_off = line.contains("<late");
                "250 ok\r\n".to_owned()
            }
            "DATA" => {
                write.write_all(b"354 go on\r\n").await.ok()?;
                let mut mail = String::new();
                while let Some(line) = lines.next_line().await.ok()?.filter(|line| line != ".") {
                    mail.push_str(&line);
                    mail.push('\n');
                }
                let verdict = if put_off {
                    "451 later"
                } else {
                    let mut verdicts = verdicts.lock().unwrap();
                    if verdicts.len() > 1 { verdicts.remove(0) } else { verdicts[0] }
                };
                if verdict.starts_with('2') {
                    mails.lock().unwrap().push(mail);
                }
                format!("{verdict}\r\n")
            }
            "QUIT" => "221 bye\r\n".to_owned(),
            _ => "250 ok\r\n".to_owned(),
        };
        write.write_all(answer.as_bytes()).await.ok()?;
    }
    Some(())
}

async fn server(verdicts: Verdicts) -> (String, Mails) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("smtp://{}", listener.local_addr().unwrap());
    let (verdicts, mails) = (Arc::new(Mutex::new(verdicts)), Mails::default());
    let kept = Arc::clone(&mails);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (verdicts, mails) = (Arc::clone(&verdicts), Arc::clone(&kept));
            tokio::spawn(async move { converse(stream, &verdicts, &mails).await });
        }
    });
    (url, mails)
}

/// Accounts that send one email to a server at that address, retried after these waits.
async fn write_to(url: &str, waits: &[u64]) -> (People, tempfile::TempDir) {
    let sender = sender(url, waits, WAITING_MAX);
    let (people, dir) = people(sender).await;
    let begun = Instant::now();
    sign_up(&people, "ann@example.com").await;
    assert!(begun.elapsed() < Duration::from_secs(15), "nobody waits for the mail server");
    (people, dir)
}

fn sender(url: &str, waits: &[u64], waiting_max: usize) -> Sender {
    Sender {
        transport: transport(url).unwrap(),
        from: "Linesman <odds@example.com>".parse().unwrap(),
        waits: waits.iter().map(|ms| Duration::from_millis(*ms)).collect(),
        waiting_max,
    }
}

async fn people(sender: Sender) -> (People, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("accounts.db")).await.unwrap();
    let now = Timestamp::parse("2026-11-14T12:00:00Z").unwrap();
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(now));
    let (outbox, queue) = accounts::outbox("https://odds.example.com/");
    tokio::spawn(sender.run(queue));
    let people = People::new(store, clock, PeopleRules::default()).unwrap().with_mail(Some(outbox));
    (people, dir)
}

/// Causes an email to this address.
async fn sign_up(people: &People, address: &str) {
    let email = EmailAddress::parse(address).unwrap();
    let password = Password::choose("correct horse battery".to_owned(), &email).unwrap();
    let profile = Profile::try_new(email, "Ann").unwrap();
    let from = Origin { address: None, agent: String::new(), device: None };
    let attempt = people.sign_up(NewAccount { profile, password }, &from).await.unwrap();
    assert_eq!(attempt, accounts::Attempt::Done);
}

async fn until(people: &People, what: impl Fn(accounts::MailStats) -> bool) {
    let done = async {
        while !what(people.mail_stats()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), done).await;
    assert!(waited.is_ok(), "{:?}", people.mail_stats());
}

#[tokio::test]
async fn a_letter_arrives_whole() {
    let (url, mails) = server(vec!["250 taken"]).await;
    let (people, _dir) = write_to(&url, &[]).await;
    until(&people, |figures| figures.sent == 1 && figures.queued == 0).await;
    let mails = mails.lock().unwrap();
    for part in [
        "From: Linesman <odds@example.com>",
        "To: ann@example.com",
        "Subject: Confirm your address for Linesman",
        "https://odds.example.com/link/",
    ] {
        assert!(mails[0].contains(part), "{part} is not in {}", mails[0]);
    }
}

#[tokio::test]
async fn a_letter_that_is_put_off_is_tried_again_and_arrives_once() {
    let (url, mails) = server(vec!["451 later", "451 later", "250 taken"]).await;
    let (people, _dir) = write_to(&url, &[1, 1, 1]).await;
    until(&people, |figures| figures.sent == 1).await;
    assert_eq!((mails.lock().unwrap().len(), people.mail_stats().failed), (1, 0));
}

#[tokio::test]
async fn a_letter_that_is_refused_is_given_up_at_once() {
    let (url, mails) = server(vec!["550 no such mailbox"]).await;
    let (people, _dir) = write_to(&url, &[60_000]).await;
    until(&people, |figures| figures.failed == 1).await;
    assert_eq!(mails.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn a_dead_mail_server_harms_nobody_and_is_counted() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("smtp://{}", listener.local_addr().unwrap());
    drop(listener);
    let (people, _dir) = write_to(&url, &[1, 1]).await;
    until(&people, |figures| figures.failed == 1 && figures.queued == 0).await;
}

#[tokio::test]
async fn a_letter_that_is_put_off_holds_up_no_other() {
    let (url, mails) = server(vec!["250 taken"]).await;
    let (people, _dir) = people(sender(&url, &[1, 3_600_000], WAITING_MAX)).await;
    for address in ["late1@example.com", "late2@example.com", "ann@example.com"] {
        sign_up(&people, address).await;
    }
    until(&people, |figures| figures.sent == 1).await;
    assert!(mails.lock().unwrap()[0].contains("To: ann@example.com"));
    sign_up(&people, "bea@example.com").await;
    until(&people, |figures| figures.sent == 2).await;
    let figures = people.mail_stats();
    assert_eq!((figures.queued, figures.failed), (2, 0), "both are tried again, in an hour");
}

#[tokio::test]
async fn letters_put_off_are_bounded_and_the_rest_is_given_up() {
    let (url, mails) = server(vec!["250 taken"]).await;
    let (people, _dir) = people(sender(&url, &[3_600_000], 1)).await;
    for address in ["late1@example.com", "late2@example.com", "late3@example.com"] {
        sign_up(&people, address).await;
    }
    until(&people, |figures| figures.failed == 2).await;
    sign_up(&people, "ann@example.com").await;
    until(&people, |figures| figures.sent == 1).await;
    assert_eq!((mails.lock().unwrap().len(), people.mail_stats().queued), (1, 1));
}

#[test]
fn only_a_mail_servers_address_is_one() {
    for good in [
        "smtp://localhost",
        "smtps://user:p%40ss@mail.example.com:465",
        "smtp://h:587?tls=required",
    ] {
        assert!(transport(good).is_ok(), "{good}");
    }
    for bad in ["", "mail.example.com", "https://mail.example.com", "smtp://"] {
        assert!(transport(bad).is_err(), "{bad}");
    }
}
