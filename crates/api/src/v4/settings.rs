//! Operator settings of `/v4`.

/// Operator settings of `/v4`.
#[derive(Clone, Debug)]
pub struct V4Settings {
    pub enabled: bool,
    pub credits: Credits,
    pub allow_origins: Origins,
    /// The page that explains errors; an absolute URL if the service knows its own address.
    pub docs_url: String,
}

/// Path of the page that explains errors.
pub const DOCS_PATH: &str = "/docs/v4";

impl Default for V4Settings {
    fn default() -> Self {
        Self {
            enabled: true,
            credits: Credits::Prior,
            allow_origins: Origins::default(),
            docs_url: DOCS_PATH.to_owned(),
        }
    }
}

/// How credits are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credits {
    /// As in the prior interface: by markets and regions.
    Prior,
    /// One credit for every response that is not free.
    Flat,
}

/// Origins whose pages may read responses in a browser.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(pub Vec<String>);

impl Origins {
    /// True if the allowed origin depends on the request.
    pub(super) fn depend_on_request(&self) -> bool {
        !self.0.is_empty() && !self.allow_all()
    }

    fn allow_all(&self) -> bool {
        self.0.iter().any(|allowed| allowed == "*")
    }

    /// Value of the header for a page of this origin.
    pub(super) fn allow<'a>(&'a self, origin: Option<&'a [u8]>) -> Option<&'a str> {
        if self.allow_all() {
            return Some("*");
        }
        let origin = std::str::from_utf8(origin?).ok()?;
        self.0.iter().find(|allowed| *allowed == origin).map(String::as_str)
    }
}
