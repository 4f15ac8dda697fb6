//! The forms of values: how each is parsed, and which values are valid.

use std::{
    fmt,
    marker::PhantomData,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use accounts::SignUp;
use api::v4::Credits;
use archive::BucketOptions;
use domain::{Timestamp, World};
use http::{Network, ProxyHeader};
use lettre::{AsyncSmtpTransport, Tokio1Executor, message::Mailbox};

use crate::config::{
    duration::{parse_duration, show_ms},
    source::Kind,
};

/// Maximum number of characters of an invalid value that a message repeats.
const ECHO_MAX: usize = 60;

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The valid values of a setting, and how they are parsed.
pub(crate) trait Form {
    type Value;
    const KIND: Kind = Kind::Text;

    /// A description of the valid values; completes "must be …".
    fn takes() -> String;

    /// `None` if the text is not valid.
    fn parse(text: &str) -> Option<Self::Value>;

    /// The text as it is printed.
    fn show(text: &str, _: &Self::Value) -> String {
        text.to_owned()
    }

    /// Reads a value.
    ///
    /// # Errors
    /// The value is not valid. The message completes "`PATH` …".
    fn check(text: &str) -> Result<Self::Value, String> {
        Self::parse(text).ok_or_else(|| {
            let short: String = text.chars().take(ECHO_MAX).flat_map(char::escape_debug).collect();
            let more = if text.chars().nth(ECHO_MAX).is_some() { "…" } else { "" };
            match (matches!(Self::KIND, Kind::Secret | Kind::Key), text) {
                (true, _) => format!("is not {}", Self::takes()),
                (false, "") => format!("is empty; it must be {}", Self::takes()),
                (false, _) => format!("is `{short}{more}`, not {}", Self::takes()),
            }
        })
    }

    /// The valid values, and their notation in TOML.
    fn in_toml() -> String {
        let quotes = match Self::KIND {
            Kind::Text | Kind::File | Kind::Secret | Kind::Key => ", in quotes",
            Kind::Number | Kind::Switch => ", without quotes",
            Kind::Date | Kind::List | Kind::Inline | Kind::Other => "",
        };
        format!("{}{quotes}", Self::takes())
    }
}

/// A text that is a key or token, or may contain a password: never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

/// Any text that is not empty.
pub(crate) struct Text;

impl Form for Text {
    type Value = String;

    fn takes() -> String {
        "a text".to_owned()
    }

    fn parse(text: &str) -> Option<String> {
        (!text.trim().is_empty()).then(|| text.to_owned())
    }
}

impl Secret {
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// Parses `IP:PORT`, or `localhost:PORT` and `:PORT`, which mean 127.0.0.1.
///
/// # Errors
/// The text is not an address. The message completes the sentence "`TEXT` is …".
pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let local_port = text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':'));
    let address = match local_port {
        // `u16::from_str` accepts a leading plus sign; an address does not.
        Some(port) if !port.starts_with('+') => {
            port.parse().ok().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        }
        Some(_) => None,
        None => text.parse().ok(),
    };
    address.ok_or_else(|| "not an address such as 127.0.0.1:8080".to_owned())
}

/// A whole number within bounds.
pub(crate) struct Count<T, const MIN: u64, const MAX: u64>(PhantomData<T>);

impl<T: TryFrom<u64>, const MIN: u64, const MAX: u64> Form for Count<T, MIN, MAX> {
    type Value = T;
    const KIND: Kind = Kind::Number;

    fn takes() -> String {
        format!("a whole number from {MIN} to {MAX}")
    }

    fn parse(text: &str) -> Option<T> {
        let count = text.parse().ok().filter(|count| (MIN..=MAX).contains(count))?;
        T::try_from(count).ok()
    }
}

/// A duration within bounds, in milliseconds.
pub(crate) struct Span<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Form for Span<MIN, MAX> {
    type Value = Duration;

    fn takes() -> String {
        format!("a duration from {} to {}", show_ms(MIN), show_ms(MAX))
    }

    fn parse(text: &str) -> Option<Duration> {
        let bounds = Duration::from_millis(MIN)..=Duration::from_millis(MAX);
        parse_duration(text).ok().filter(|duration| bounds.contains(duration))
    }
}

/// One of a few words.
pub(crate) struct OneOf<T>(PhantomData<T>);

/// A type whose values have names in the configuration.
pub(crate) trait Choice: Copy + 'static {
    const CHOICES: &'static [(&'static str, Self)];
}

impl<T: Choice> Form for OneOf<T> {
    type Value = T;

    fn takes() -> String {
        let names: Vec<&str> = T::CHOICES.iter().map(|(name, _)| *name).collect();
        format!("one of {}", names.join(", "))
    }

    fn parse(text: &str) -> Option<T> {
        T::CHOICES.iter().find(|(name, _)| *name == text).map(|(_, value)| *value)
    }
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Human on a terminal, JSON otherwise.
    Auto,
    Human,
    Json,
}

impl Choice for LogFormat {
    const CHOICES: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("human", Self::Human), ("json", Self::Json)];
}

impl Choice for SignUp {
    const CHOICES: &'static [(&'static str, Self)] =
        &[("open", Self::Open), ("invitation", Self::Invitation), ("closed", Self::Closed)];
}

/// The market shown on the board, if there is a board.
impl Choice for Option<World> {
    const CHOICES: &'static [(&'static str, Self)] =
        &[("off", None), ("sandbox", Some(World::Sandbox)), ("live", Some(World::Live))];
}

impl Choice for ProxyHeader {
    const CHOICES: &'static [(&'static str, Self)] =
        &[("x-forwarded-for", Self::XForwardedFor), ("forwarded", Self::Forwarded)];
}

impl Choice for Credits {
    const CHOICES: &'static [(&'static str, Self)] =
        &[("prior", Self::Prior), ("flat", Self::Flat)];
}

/// Any number of values whose texts contain no comma.
pub(crate) struct List<F>(PhantomData<F>);

impl<F: Form> Form for List<F> {
    type Value = Vec<F::Value>;
    const KIND: Kind = Kind::List;

    fn takes() -> String {
        format!("a list in which each item is {}", F::takes())
    }

    fn parse(text: &str) -> Option<Vec<F::Value>> {
        items(text).map(F::parse).collect()
    }

    /// Only the invalid item is repeated.
    fn check(text: &str) -> Result<Vec<F::Value>, String> {
        items(text).map(F::check).collect()
    }
}

/// The items of a list written as one text.
pub(crate) fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// Forms in a table: the name, the kind, the type of the value, the valid values and the parser.
macro_rules! forms {
    ($($(#[$about:meta])* $form:ident: $kind:ident, $value:ty, $takes:expr, $parse:expr $(, $show:expr)?;)+) => {$(
        $(#[$about])*
        pub(crate) struct $form;

        impl Form for $form {
            type Value = $value;
            const KIND: Kind = Kind::$kind;

            fn takes() -> String {
                $takes.to_owned()
            }

            fn parse(text: &str) -> Option<$value> {
                $parse(text)
            }
            $(
                fn show(_: &str, value: &$value) -> String {
                    $show(value)
                }
            )?
        }
    )+};
}

forms! {
    /// An address to listen on; the short forms are printed in full.
    Address: Text, SocketAddr, "an address such as 127.0.0.1:8080",
        |text| parse_address(text).ok(), |address: &SocketAddr| address.to_string();
    Switch: Switch, bool, "true or false", |text: &str| text.parse().ok();
    /// A day; its value is its first instant, UTC.
    Date: Date, Timestamp, "a date such as 2027-12-31",
        |text| Timestamp::parse(&format!("{text}T00:00:00Z")).ok();
    /// A file that must exist when the service starts.
    File: File, PathBuf, "the path of a file", |text: &str| (!text.is_empty()).then(|| text.into());
    /// A folder that need not exist yet.
    ArchivePath: Text, ArchivePlace, "the path of a folder, or a bucket such as s3://odds/archive", archive_place;
    /// A key of a bucket.
    BucketKey: Key, Secret, "a key, without spaces",
        |text: &str| secret_if(!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()), text);
    BucketRegion: Text, String, "the name of a region such as eu-central-1",
        |text: &str| (!text.is_empty() && text.bytes().all(of_region)).then(|| text.to_owned());
    IpNetwork: Text, Network, "an address or network such as 10.0.0.0/8", |text: &str| text.parse().ok();
    MailUrl: Secret, Secret,
        "an address such as smtps://user:password@mail.example.com or smtp://localhost:25",
        |text| secret_if(AsyncSmtpTransport::<Tokio1Executor>::from_url(text).is_ok(), text);
    DatabaseUrl: Secret, Secret, "an address such as postgres://linesman@db.example.com/linesman",
        |text| secret_if(is_database_url(text), text);
    /// Servers, separated by commas.
    NatsUrl: Secret, Secret,
        "an address such as nats://one.example.com:4222,nats://two.example.com:4222",
        |text| secret_if(change_log::check_addresses(text).is_ok(), text);
    /// Scheme and host, as a browser shows them: no path, no password.
    PublicUrl: Text, String, "a scheme and host such as https://odds.example.com",
        |text| is_origin(text).then(|| text.to_owned());
    /// The origin of a page, as a browser sends it, or `*` for all.
    Origin: Text, String, "an origin such as https://app.example.com, or *",
        |text| (text == "*" || is_origin(text)).then(|| text.to_owned());
    /// An email address, with or without a name before it.
    Sender: Text, String, "an email address such as Linesman <odds@example.com>",
        |text: &str| text.parse::<Mailbox>().is_ok().then(|| text.to_owned());
    /// A list of `level` and `module=level`.
    LogFilter: Text, String,
        format!("a level ({}) or a list such as info,serve=debug", LEVELS.join(", ")),
        |text| is_filter(text).then(|| text.to_owned());
}

/// The location of the archive, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ArchivePlace {
    Folder(PathBuf),
    Bucket { bucket: String, prefix: String },
}

fn archive_place(text: &str) -> Option<ArchivePlace> {
    if text.starts_with("s3:") {
        let (bucket, prefix) = BucketOptions::parse_address(text)?;
        return Some(ArchivePlace::Bucket { bucket, prefix });
    }
    // An unknown scheme is not meant as a folder.
    (!text.is_empty() && !text.contains("://")).then(|| ArchivePlace::Folder(text.into()))
}

fn of_region(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn secret_if(is_right: bool, text: &str) -> Option<Secret> {
    is_right.then(|| Secret(text.to_owned()))
}

/// Whether an address may be that of a database.
pub(crate) fn is_database_url(url: &str) -> bool {
    ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme))
}

/// Whether a text is `http` or `https`, a host and optionally a port, and nothing more.
fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
    host.is_some_and(|host| !host.is_empty() && host.len() <= 255 && host.chars().all(plain))
}

fn is_filter(text: &str) -> bool {
    text.split(',').all(|directive| {
        let (module, level) = directive.split_once('=').unwrap_or(("all", directive));
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        !module.is_empty() && module.chars().all(plain) && LEVELS.contains(&level)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<F: Form>(good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(F::check(text).is_ok(), "{text}: {}", F::takes());
        }
        for text in bad {
            assert!(F::check(text).is_err(), "{text}: {}", F::takes());
        }
    }

    #[test]
    fn each_form_reads_its_values_and_refuses_others() {
        check::<Address>(
            &["[::1]:0", "localhost:80", "0.0.0.0:80"],
            &["8080", "localhost:99999", ":+80"],
        );
        check::<File>(&["a b/c.pem"], &[""]);
        check::<Count<u64, 1, 9>>(&["1", "9"], &["10", "-1", "0", ""]);
        check::<Count<u8, 1, 999>>(&["255"], &["256"]);
        check::<Span<100, 3_600_000>>(&["100ms", "1h"], &["99ms", "61m", "10"]);
        check::<Switch>(&["false"], &["no"]);
        check::<Date>(&["2028-02-29"], &["2027-02-29", "2027-12-31T00:00:00Z"]);
        check::<LogFilter>(&["info,api::v1=debug", "off"], &["info,=debug", "loud"]);
        check::<OneOf<LogFormat>>(&["json"], &["JSON"]);
        check::<OneOf<Option<World>>>(&["sandbox"], &["true"]);
        check::<OneOf<SignUp>>(&["invitation"], &["invite"]);
        check::<OneOf<ProxyHeader>>(&["forwarded"], &["Forwarded"]);
        check::<List<IpNetwork>>(
            &["127.0.0.1, 10.0.0.0/8,::1", ""],
            &["127.0.0.1 10.0.0.0/8", "10.0.0.0/8,proxy.example.com"],
        );
        check::<Sender>(
            &["Linesman <odds@example.com>", "odds@example.com"],
            &["odds", "a@b.c\r\nBcc: x@y.z"],
        );
        check::<ArchivePath>(
            &["archive", "/srv/a b", "s3://odds/archive", "s3://odds"],
            &["", "s3://", "s3:/odds", "s3://odds/../x", "gs://odds/archive"],
        );
        check::<BucketKey>(&["wJalr/K7+="], &["", "two words"]);
        check::<BucketRegion>(&["eu-central-1", "auto"], &["", "eu/central"]);
        check::<PublicUrl>(
            &["https://odds.example.com:8443", "http://[::1]:80"],
            &["https://odds.example.com/", "https://user:password@example.com"],
        );
    }

    #[test]
    fn only_a_port_means_this_machine() {
        assert_eq!(parse_address(":0"), Ok(SocketAddr::from(([127, 0, 0, 1], 0))));
        assert_eq!(parse_address("localhost:80"), Ok(SocketAddr::from(([127, 0, 0, 1], 80))));
    }

    #[test]
    fn a_long_bad_value_is_repeated_in_part_and_on_one_line() {
        let refusal = Switch::check(&"x\n".repeat(10_000)).unwrap_err();
        assert!(refusal.chars().count() < 200, "{refusal}");
        assert!(!refusal.contains('\n'));
    }
}
