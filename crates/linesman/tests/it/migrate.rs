//! From a data folder to PostgreSQL, from the command line.

use rig::Postgres;
use store::Store;

use crate::harness::{Home, assert_no_secret};

#[tokio::test(flavor = "multi_thread")]
async fn a_data_folder_moves_into_an_empty_database_once_no_server_runs_on_it() {
    let server = Postgres::start().unwrap();
    let url = server.create_database("db").unwrap();
    let home = Home::new();
    let data = home.data().display().to_string();
    let migrate = ["migrate", "--from", data.as_str(), "--to", url.as_str()];
    assert!(home.run(&migrate).await.sentence(1).contains("no data folder"));

    let service = home.start().await;
    let key = service.first_key().unwrap().to_owned();
    assert_eq!(service.get("/v1/sports", &key).await.status, 200);
    assert!(home.run(&migrate).await.sentence(1).contains("another linesman server runs on"));
    service.stop().await;
    let id = home.ok(&["keys", "list", "--json"]).await;

    assert!(home.ok(&migrate).await.ends_with(" rows moved"));
    let store = Store::connect(&url).await.unwrap();
    let keys = store.keys().await.unwrap();
    assert!(keys.len() == 1 && id.contains(&keys[0].id), "{id}");
    let again = home.run(&migrate).await;
    assert!(again.sentence(1).contains("the database already holds data"));
    assert_no_secret(&home.logs());

    let wrong = home.run(&["migrate", "--from", &data, "--to", "mysql://u:hushhush@h/d"]).await;
    let told = wrong.sentence(1);
    assert!(told.contains("postgres://") && !told.contains("hushhush"), "{told}");
}
