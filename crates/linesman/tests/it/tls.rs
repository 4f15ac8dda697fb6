//! HTTPS with the operator's certificate, in both versions of HTTP.

use std::fs;

use reqwest::{Certificate, Client, Version};

use crate::harness::{Answer, Service, TestProgram, bout, ndjson};

#[tokio::test]
async fn https_is_served_in_both_versions_of_http() {
    let program = TestProgram::new()
        .set("LINESMAN_SERVER__TLS_CERT", "cert.pem")
        .set("LINESMAN_SERVER__TLS_KEY", "key.pem");
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    program.write("cert.pem", &made.cert.pem());
    program.write("key.pem", &made.signing_key.serialize_pem());
    let service = program.start().await;
    assert!(service.base.starts_with("https://"), "{}", service.base);
    let (key, token) = (program.live_key().await, program.feed("one").await);
    let trusting = || {
        let certificate = Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
        Client::builder().no_proxy().tls_certs_only([certificate])
    };
    for (client, version) in [
        (trusting().http1_only().build().unwrap(), Version::HTTP_11),
        (trusting().build().unwrap(), Version::HTTP_2),
    ] {
        let request = client.get(service.url("/v1/books")).header("X-API-Key", &key);
        let response = request.send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.version()), (200, version));
        let push = client.post(service.url("/ingest/v1/messages")).bearer_auth(&token);
        let pushed = Answer::of(push.body(ndjson(&[bout("a", "Home", "Away")]))).await.unwrap();
        assert_eq!(pushed.status, 200, "{}", pushed.text());
        form_is_taken_from_here_alone(&client, &service).await;
    }
    // A client that does not trust the certificate is not served, and neither is cleartext.
    let stranger = Client::builder().no_proxy().build().unwrap();
    assert!(stranger.get(service.url("/healthz")).send().await.is_err());
    assert!(stranger.get(format!("http://{}/healthz", service.address())).send().await.is_err());
    service.stop().await;

    // A key of another certificate is reported at the start.
    let other = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    fs::write(program.path().join("key.pem"), other.signing_key.serialize_pem()).unwrap();
    let refused = program.run(&["serve", "--listen", "127.0.0.1:0"]).await;
    assert_eq!(refused.code, Some(1));
    let said = refused.stderr.lines().last().unwrap();
    assert!(said.contains("server.tls_cert and server.tls_key do not match"), "{said}");
}

/// A page's cookie is bound to TLS, and its form is recognised as this service's own in both versions of HTTP.
async fn form_is_taken_from_here_alone(client: &Client, service: &Service) {
    let page = client.get(service.url("/signin")).send().await.unwrap();
    let cookie = page.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(
        cookie.starts_with("__Host-linesman_session=") && cookie.contains("; Secure"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let text = page.text().await.unwrap();
    let (_, rest) = text.split_once("name=\"form_token\" value=\"").unwrap();
    let token = rest.split('"').next().unwrap();
    for (origin, expected) in [
        (service.base.as_str(), "Wrong email or password"),
        ("https://evil.example", "the browser says https://evil.example"),
    ] {
        let form = client
            .post(service.url("/signin"))
            .header("cookie", &cookie)
            .header("origin", origin)
            .body(format!("form_token={token}&email=a%40b.c&password=x"));
        let answer = Answer::of(form).await.unwrap();
        assert_eq!(answer.status, 403);
        assert!(answer.text().contains(expected), "{origin}: {}", answer.text());
    }
}
