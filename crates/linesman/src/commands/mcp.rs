//! `linesman mcp`: serves any server's API to agents through the Rust client, over standard input and output.
//! Everything but the protocol goes to stderr.

use std::sync::Arc;

use anyhow::Context as _;
use domain::Catalogue;
use linesman_client::{Client, Error};
use mcp::{Answering, Call, Page, Reader, Refused};
use serde_json::json;

use crate::cli::Server;
use crate::commands::get;

/// The status that the protocol gets for a request that never reached the server.
const UNREACHED: u16 = 503;

pub(crate) fn run(server: &Server) -> anyhow::Result<()> {
    let reader = Remote { client: get::client(server)? };
    let catalogue = Catalogue::load(None)?;
    let server = serve::agent_server(&catalogue);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let serving =
        mcp::serve(Arc::new(server), Arc::new(reader), tokio::io::stdin(), tokio::io::stdout());
    let served = runtime.block_on(serving);
    // A read of standard input cannot be interrupted, and its result is no longer needed.
    runtime.shutdown_background();
    served.context("the agent cannot be answered")
}

/// Reads from a server.
struct Remote {
    client: Client,
}

impl Reader for Remote {
    fn get<'a>(&'a self, call: &'a Call) -> Answering<'a, Result<Page, Refused>> {
        Box::pin(async move {
            let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
            let request = call
                .query
                .iter()
                .fold(self.client.path(&path), |request, (name, value)| request.param(name, value));
            let (page, next_cursor) = request.page().await.map_err(|error| refused(&error))?;
            Ok(Page { body: page.data, next_cursor })
        })
    }

    fn count(&self) -> Answering<'_, Result<(), Refused>> {
        Box::pin(async { Ok(()) })
    }
}

fn refused(error: &Error) -> Refused {
    let mut details = json!({ "code": error.code().as_str(), "message": error.message() });
    if let Some(details) = details.as_object_mut() {
        let more = [("param", error.param()), ("request_id", error.request_id())];
        let more = more.into_iter().filter_map(|(name, text)| Some((name, text?)));
        details.extend(more.map(|(name, text)| (name.to_owned(), text.into())));
    }
    Refused {
        status: error.status().unwrap_or(UNREACHED),
        error: details,
        retry_after_s: error.retry_after().and_then(|seconds| {
            std::time::Duration::try_from_secs_f64(seconds.ceil()).ok().map(|wait| wait.as_secs())
        }),
    }
}
