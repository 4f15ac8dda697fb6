//! Agents, and the log as the operator reads it.

use crate::harness::TestProgram;

#[tokio::test]
async fn messages_of_agents_leave_no_lines_in_the_log() {
    let program = TestProgram::new().set("LINESMAN_SANDBOX__ENABLED", "true");
    let service = program.start().await;
    let key = service.first_key().expect("a sandbox key");
    for (message, answer) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, "get_best"),
        (r#"{"jsonrpc":"2.0","id":2,"method":"nothing"}"#, "-32601"),
        (r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"nothing"}}"#, "-32602"),
    ] {
        let request = service.client.post(service.url("/mcp")).header("x-api-key", key);
        let answered = request.body(message).send().await.unwrap().text().await.unwrap();
        assert!(answered.contains(answer), "{answered}");
    }
    service.stop().await;
    let logs = program.logs();
    assert!(!logs.contains("rmcp"), "{logs}");
}
