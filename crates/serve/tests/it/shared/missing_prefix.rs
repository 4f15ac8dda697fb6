//! A log without its beginning, and without a checkpoint that covers it: as after a restore of one stream without the
//! other.

use change_log::StreamLog;
use domain::World;

use crate::harness::{Joining, TestApp, TestLog};

#[tokio::test]
async fn a_log_without_its_beginning_is_not_taken_for_a_whole_one() {
    let test_log = TestLog::start();
    let joining = Joining::new(&test_log);
    let servers = joining.servers.clone();
    let begin_late = move || {
        let mut log = StreamLog::open(&servers.runtime, &servers.place(World::Live)).unwrap();
        log.begin_after(41).unwrap();
        log.append(1, [(1, b"never read".as_slice())]).unwrap();
    };
    std::thread::spawn(begin_late).join().unwrap();
    let (electable, leadership) = joining.electable();
    let standby = TestApp::builder().joining(electable).start().await;
    leadership.grant(1);
    let live = standby.service.api.world(World::Live);
    let begun = std::time::Instant::now();
    while !standby.get_operator("/readyz").await.text().contains("the log begins with entry 42") {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "the reason is missing");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(!live.leads() && !leadership.is_healthy());
    assert_eq!(standby.get_operator("/readyz").await.status, 503);
}
