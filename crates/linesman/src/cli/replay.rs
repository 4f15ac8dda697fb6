//! The arguments of `linesman replay`.

use std::fs;
use std::num::NonZeroU32;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use crate::config::Secret;

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Recordings (NDJSON of ingest messages)
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The service, for example `http://127.0.0.1:8080`
    #[arg(long, value_name = "URL", value_parser = parse_service_url)]
    pub(crate) to: String,
    /// The feed's token; other users of the machine see it in the list of processes, so prefer --token-file
    #[arg(long, value_name = "TOKEN", required_unless_present = "token_file")]
    token: Option<Secret>,
    /// A file that holds the feed's token; /dev/stdin reads it from a pipe
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    token_file: Option<PathBuf>,
    /// Speed relative to the recording, or max: without pauses
    #[arg(long, value_name = "10x|max", default_value = "1x", value_parser = parse_speed)]
    pub(crate) speed: Speed,
}

/// The speed of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speed {
    Times(NonZeroU32),
    Max,
}

impl ReplayArgs {
    /// Refuses a malformed token on the command line. Not left to clap, which would repeat it in the message.
    pub(super) fn check_token(&self) -> Result<(), String> {
        let token = self.token.as_ref().map(Secret::reveal);
        token.map_or(Ok(()), |token| check_token(token).map_err(|why| format!("--token {why}")))
    }

    /// The feed's token, from the command line or the file.
    ///
    /// # Errors
    /// The file cannot be read, or holds no token.
    pub(crate) fn token(&self) -> anyhow::Result<Secret> {
        if let Some(token) = &self.token {
            return Ok(token.clone());
        }
        let file = self.token_file.clone().unwrap_or_default();
        let text = fs::read_to_string(&file);
        let text = text.with_context(|| format!("cannot read {}", file.display()))?;
        check_token(text.trim()).map_err(|why| anyhow::anyhow!("{} {why}", file.display()))?;
        Ok(Secret::from(text.trim().to_owned()))
    }
}

fn check_token(token: &str) -> Result<(), &'static str> {
    match token.starts_with("fk_") {
        true => Ok(()),
        false => Err("must be a feed token (fk_…); create one with `linesman feeds create NAME`"),
    }
}

pub(super) fn parse_speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    text.strip_suffix('x')
        .filter(|times| !times.starts_with('+'))
        .and_then(|times| times.parse().ok())
        .map(Speed::Times)
        .ok_or_else(|| "not a speed such as 1x, 10x or max".to_owned())
}

/// The address without its last slash, so that paths can be appended.
pub(super) fn parse_service_url(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match host.map(|host| host.trim_end_matches('/')) {
        Some(host) if !host.is_empty() && !host.contains(['/', '?', '#', ' ']) => {
            Ok(text.trim_end_matches('/').to_owned())
        }
        Some(_) | None => Err("not an address such as http://127.0.0.1:8080".to_owned()),
    }
}
