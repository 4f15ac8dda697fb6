//! Signatures of requests to a bucket: AWS Signature Version 4.

use std::fmt::{self, Write as _};

use domain::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::durable::hex;

/// What proves who asks. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub access_key_id: String,
    pub secret_access_key: String,
    /// For credentials that end.
    pub session_token: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}

/// A request as it is signed.
#[derive(Debug)]
pub(super) struct Signed<'a> {
    pub(super) method: &'a str,
    /// Encoded, as it is sent.
    pub(super) path: &'a str,
    /// Encoded and sorted, as it is sent.
    pub(super) query: &'a str,
    /// Names in lower case and sorted, with what is sent for them.
    pub(super) headers: &'a [(&'a str, &'a str)],
    /// The checksum of the body in hexadecimal.
    pub(super) payload: &'a str,
    pub(super) at: Timestamp,
    pub(super) region: &'a str,
}

impl Signed<'_> {
    /// The value of the header `authorization`.
    pub(super) fn authorization(&self, credentials: &Credentials) -> String {
        let time = compact_time(self.at);
        let day = time.get(..8).unwrap_or_default();
        let mut request = format!("{}\n{}\n{}\n", self.method, self.path, self.query);
        for (name, value) in self.headers {
            // Writing to a text does not fail.
            writeln!(request, "{name}:{}", value.trim()).unwrap_or_default();
        }
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        write!(request, "\n{names}\n{}", self.payload).unwrap_or_default();
        let scope = format!("{day}/{}/s3/aws4_request", self.region);
        let digest = hex(&Sha256::digest(request.as_bytes()));
        let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{digest}");
        let mut key = format!("AWS4{}", credentials.secret_access_key).into_bytes();
        for part in [day, self.region, "s3", "aws4_request", &text] {
            key = keyed(&key, part.as_bytes());
        }
        let (id, signature) = (&credentials.access_key_id, hex(&key));
        format!(
            "AWS4-HMAC-SHA256 Credential={id}/{scope},SignedHeaders={names},Signature={signature}"
        )
    }
}

fn keyed(key: &[u8], text: &[u8]) -> Vec<u8> {
    // A key of any length is taken.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Vec::new() };
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

/// A time such as `20261114T233800Z`.
pub(super) fn compact_time(at: Timestamp) -> String {
    let text = at.seconds_text();
    text.iter().filter(|byte| !matches!(byte, b'-' | b':')).map(|byte| char::from(*byte)).collect()
}

/// A text as it is signed and sent in a path (`keep` is `/`) or a query.
pub(super) fn encode(text: &str, keep: Option<u8>, out: &mut String) {
    for byte in text.bytes() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
        if plain || keep == Some(byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    /// The key of the examples in AWS's documentation of this signature.
    fn example() -> Credentials {
        Credentials {
            access_key_id: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: None,
        }
    }

    fn signature(
        method: &str,
        (path, query): (&str, &str),
        headers: &[(&str, &str)],
        payload: &str,
    ) -> String {
        let at = Timestamp::parse("2013-05-24T00:00:00Z").unwrap();
        let region = "us-east-1";
        let signed = Signed { method, path, query, headers, payload, at, region };
        let header = signed.authorization(&example());
        let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
        let begin = format!(
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders={},Signature=",
            names.join(";")
        );
        header.strip_prefix(&begin).unwrap().to_owned()
    }

    #[test]
    fn the_examples_of_the_documentation_have_their_signatures() {
        let host = ("host", "examplebucket.s3.amazonaws.com");
        let (date, empty) = (("x-amz-date", "20130524T000000Z"), ("x-amz-content-sha256", EMPTY));
        let get = [host, ("range", "bytes=0-9"), empty, date];
        assert_eq!(
            signature("GET", ("/test.txt", ""), &get, EMPTY),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        let payload = hex(&Sha256::digest("Welcome to Amazon S3."));
        let put = [
            ("date", "Fri, 24 May 2013 00:00:00 GMT"),
            host,
            ("x-amz-content-sha256", &*payload),
            date,
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ];
        let mut path = String::new();
        encode("/test$file.text", Some(b'/'), &mut path);
        assert_eq!(path, "/test%24file.text");
        assert_eq!(
            signature("PUT", (&path, ""), &put, &payload),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
        );
        let plain = [host, empty, date];
        assert_eq!(
            signature("GET", ("/", "lifecycle="), &plain, EMPTY),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
        );
        assert_eq!(
            signature("GET", ("/", "max-keys=2&prefix=J"), &plain, EMPTY),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
    }

    #[test]
    fn no_credential_is_printed() {
        let printed = format!("{:?}", example());
        assert!(!printed.contains("AKIA") && !printed.contains("wJalr"), "{printed}");
    }
}
