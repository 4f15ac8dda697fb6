//! Content encodings: negotiation and compression.

use std::io::Write;

/// The encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Identity,
    Zstd,
    Brotli,
    Gzip,
}

/// Minimum size of a body that is compressed; below it, the saving is not worth the client's work.
const COMPRESS_BYTES_MIN: usize = 256;
/// Levels that compress well and still take under a millisecond for an answer of 100 records.
const GZIP_LEVEL: u32 = 6;
const BROTLI_QUALITY: u32 = 4;
const BROTLI_WINDOW_BITS: u32 = 20;
const ZSTD_LEVEL: i32 = 3;

impl Encoding {
    /// In the order of preference if a client has none: zstd compresses as well as the others in a fraction of the
    /// time.
    const OFFERED: [Self; 3] = [Self::Zstd, Self::Brotli, Self::Gzip];

    pub const fn token(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Zstd => "zstd",
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }

    fn is_named(self, name: &str) -> bool {
        name.eq_ignore_ascii_case(self.token())
            || (self == Self::Gzip && name.eq_ignore_ascii_case("x-gzip"))
    }

    /// The best encoding a client accepts for a body of this size.
    pub fn negotiate(accept: Option<&[u8]>, body_bytes: usize) -> Self {
        let Some(accept) = accept.and_then(|accept| std::str::from_utf8(accept).ok()) else {
            return Self::Identity;
        };
        if body_bytes < COMPRESS_BYTES_MIN {
            return Self::Identity;
        }
        let mut best = (0, Self::Identity);
        for (encoding, quality) in Self::OFFERED.into_iter().zip(qualities(accept)) {
            if quality > best.0 {
                best = (quality, encoding);
            }
        }
        best.1
    }

    /// The body in this encoding. Compressing into memory does not fail; if it did, the body would be sent as it is.
    pub fn encode(self, body: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Identity => None,
            Self::Zstd => zstd::bulk::compress(body, ZSTD_LEVEL).ok(),
            Self::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                let mut packer = flate2::write::GzEncoder::new(Vec::new(), level);
                packer.write_all(body).ok()?;
                packer.finish().ok()
            }
            Self::Brotli => {
                let mut packed = Vec::new();
                let (quality, window) = (BROTLI_QUALITY, BROTLI_WINDOW_BITS);
                let mut packer =
                    brotli::CompressorWriter::new(&mut packed, 32 << 10, quality, window);
                packer.write_all(body).ok()?;
                drop(packer);
                Some(packed)
            }
        }
    }
}

/// The weights, in thousandths, of the offered encodings in an `Accept-Encoding` list; 0 for those not accepted.
fn qualities(accept: &str) -> [u32; Encoding::OFFERED.len()] {
    let mut any = 0;
    let mut named = Encoding::OFFERED.map(|_| None);
    for item in accept.split(',') {
        let (name, weight) = item.split_once(';').map_or((item, None), |(n, w)| (n, Some(w)));
        let quality = weight.map_or(1000, |weight| {
            let mut parts = weight.split(';').map(str::trim);
            parts
                .find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")))
                .map_or(1000, thousandths)
        });
        let name = name.trim();
        if name == "*" {
            any = quality;
        }
        for (held, encoding) in named.iter_mut().zip(Encoding::OFFERED) {
            if encoding.is_named(name) {
                held.get_or_insert(quality);
            }
        }
    }
    named.map(|quality| quality.unwrap_or(any))
}

/// `0.5` is 500; an invalid weight is 0.
fn thousandths(text: &str) -> u32 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() != 1 || fraction.len() > 3 || !digits(whole) || !digits(fraction) {
        return 0;
    }
    let thousandths = format!("{whole}{fraction:0<3}").parse().unwrap_or(0);
    u32::min(thousandths, 1000)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn the_client_decides_and_we_choose_among_equals() {
        for (accept, expected) in [
            ("gzip, deflate, br, zstd", Encoding::Zstd),
            ("gzip, deflate", Encoding::Gzip),
            ("br;q=1.0, gzip;q=0.8, *;q=0.1", Encoding::Brotli),
            ("gzip;q=0", Encoding::Identity),
            ("*", Encoding::Zstd),
            ("*;q=0.5, zstd;q=0", Encoding::Brotli),
            ("identity", Encoding::Identity),
            ("", Encoding::Identity),
            ("GZIP", Encoding::Gzip),
            ("gzip;q=nonsense", Encoding::Identity),
            ("zstd;q=0.5,gzip;q=0.501", Encoding::Gzip),
        ] {
            assert_eq!(Encoding::negotiate(Some(accept.as_bytes()), 10_000), expected, "{accept}");
        }
        assert_eq!(Encoding::negotiate(None, 10_000), Encoding::Identity);
        assert_eq!(Encoding::negotiate(Some(b"gzip"), 10), Encoding::Identity);
        assert_eq!(Encoding::negotiate(Some(b"\xff"), 10_000), Encoding::Identity);
    }

    #[test]
    fn what_is_packed_unpacks_to_the_same() {
        let body = "odds and events ".repeat(2000).into_bytes();
        let mut unpacked = Vec::new();
        let gzip = Encoding::Gzip.encode(&body).unwrap();
        flate2::read::GzDecoder::new(&*gzip).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, body);
        let zstd = Encoding::Zstd.encode(&body).unwrap();
        assert_eq!(zstd::bulk::decompress(&zstd, body.len()).unwrap(), body);
        let br = Encoding::Brotli.encode(&body).unwrap();
        unpacked.clear();
        brotli::Decompressor::new(&*br, 4096).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, body);
    }
}
