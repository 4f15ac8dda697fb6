//! An answer before it meets a connection: a status, header lines as HTTP/1.1 writes them, a body.
//!
//! Header names are lower case, so the same lines serve HTTP/2.

use bytes::Bytes;

use crate::error::ErrorCode;

/// Header lines, each `name: value` and a line break.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head(Vec<u8>);

impl Head {
    /// Appends a header. Line breaks cannot get in: the byte that would end the line is dropped.
    pub(crate) fn put(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b": ");
        self.0.extend(value.as_ref().iter().filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)));
        self.0.extend_from_slice(b"\r\n");
    }

    pub(crate) fn put_number(&mut self, name: &str, value: impl itoa::Integer) {
        self.put(name, itoa::Buffer::new().format(value));
    }

    /// Appends lines made before.
    pub(crate) fn put_lines(&mut self, lines: &[u8]) {
        self.0.extend_from_slice(lines);
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Names and values, for a connection that writes headers its own way.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.split(|byte| *byte == b'\n').filter_map(|line| {
            let line = line.strip_suffix(b"\r")?;
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((line.get(..colon)?, line.get(colon + 2..)?))
        })
    }
}

/// A whole answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The error's code, where it is one.
    pub(crate) code: Option<ErrorCode>,
    pub(crate) head: Head,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        let mut head = Head::default();
        head.put("content-type", content_type);
        Self { status, code: None, head, body: body.into() }
    }
}

/// The words after a status number in HTTP/1.1.
pub(crate) const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        303 => "See Other",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_one_by_one_and_cannot_be_smuggled() {
        let mut head = Head::default();
        head.put("a", "1");
        head.put("link", "</x>\r\nevil: yes; rel=\"next\"");
        head.put_number("n", 7_u32);
        let lines: Vec<(&[u8], &[u8])> = head.iter().collect();
        assert_eq!(
            lines,
            [(&b"a"[..], &b"1"[..]), (b"link", b"</x>evil: yes; rel=\"next\""), (b"n", b"7"),]
        );
    }
}
