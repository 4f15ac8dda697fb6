//! QR codes as the path of an SVG, generated here so that a secret is never sent to another service.
use qrcodegen::{QrCode, QrCodeEcc};

/// Quiet zone around the code, in modules; readers need it to find the corners.
const QUIET: i32 = 4;

/// A code in units of one module.
pub(crate) struct Qr {
    pub(crate) size: i32,
    pub(crate) path: String,
}

impl Qr {
    /// Returns `None` if the text is too long for a code.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let code = QrCode::encode_text(text, QrCodeEcc::Medium).ok()?;
        let mut path = String::new();
        for y in 0..code.size() {
            let mut x = 0;
            while x < code.size() {
                let run =
                    i32::try_from((x..code.size()).take_while(|x| code.get_module(*x, y)).count());
                let run = run.unwrap_or_default();
                if run > 0 {
                    path.push_str(&format!("M{} {}h{run}v1h-{run}z", x + QUIET, y + QUIET));
                }
                x += run.max(1);
            }
        }
        Some(Self { size: code.size() + 2 * QUIET, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drawing_has_exactly_the_dark_modules_of_the_code() {
        let text =
            "otpauth://totp/Linesman:ann@example.com?secret=GEZDGNBVGY3TQOJQ&issuer=Linesman";
        let code = QrCode::encode_text(text, QrCodeEcc::Medium).unwrap();
        let dark: i32 = (0..code.size())
            .flat_map(|y| (0..code.size()).map(move |x| (x, y)))
            .map(|(x, y)| i32::from(code.get_module(x, y)))
            .sum();
        let qr = Qr::new(text).unwrap();
        let drawn: i32 = qr
            .path
            .split('M')
            .filter(|run| !run.is_empty())
            .map(|run| {
                run.split('h').nth(1).unwrap().split('v').next().unwrap().parse::<i32>().unwrap()
            })
            .sum();
        assert_eq!((qr.size, drawn), (code.size() + 8, dark));
        // The upper left corner of a code is a horizontal dark line of seven modules.
        assert!(qr.path.starts_with("M4 4h7v1h-7z"), "{}", qr.path);
        assert!(Qr::new(&"x".repeat(5000)).is_none());
    }
}
