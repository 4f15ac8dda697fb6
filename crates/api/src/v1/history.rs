//! Responses as of a past instant (H4 to H9).

use std::sync::Arc;

use domain::{Catalogue, Timestamp};
use engine::{HistoryError, PastPublication, PathError, Published};
use http::Reply;
use xxhash_rust::xxh3::xxh3_64;

use super::{Admitted, Answered, wire};
use crate::admission::refusal::{not_yet, refused_by_history};
use crate::answers::{Answer, HashedSelector, Selector};
use crate::error::{ApiError, ErrorCode};
use crate::operation::Operation;
use crate::response_head::begin_head;
use crate::v1::param::Param;
use crate::v1::parsed_target::ParsedTarget;
use crate::v1::query::event_not_found;
use crate::v1::wire::path::{closing_lines, price_paths};
use crate::v1::wire::path_selection::{ClosingSelection, PathSelection};

impl Admitted<'_> {
    /// The response as of an instant.
    pub(super) async fn select_as_of(
        &self,
        operation: Operation,
        parsed: Option<&ParsedTarget>,
        at: Timestamp,
    ) -> Answered {
        let past = self.past_at(at).await?;
        let then = past.published.snapshot.catalogue();
        let read;
        // Names have the meaning they had at that time.
        let asked = match parsed.filter(|_| Arc::ptr_eq(then, &self.api.catalogue)) {
            Some(parsed) => &parsed.asked,
            None => {
                read = self.read_with(then)?;
                &read.asked
            }
        };
        self.select(operation, asked, &past.published, Some(&past)).await
    }

    async fn past_at(&self, at: Timestamp) -> Result<PastPublication, ApiError> {
        let world = self.api.world(self.world());
        if at > world.latest(self.now) {
            let text = "`as_of` is later than now; leave it out for the present";
            return Err(ApiError::param(Param::AsOf.name(), text));
        }
        let past = world.as_of(at, self.key()).await;
        past.map_err(|error| refused_by_history(&error))
    }

    /// The response to a request with names that the current catalogue does not have, if it asks for a time of another
    /// catalogue. `error` is the refusal otherwise.
    pub(super) async fn select_as_of_then(
        &self,
        operation: Operation,
        error: ApiError,
    ) -> Answered {
        let values = self.query.values(operation, self.api.settings.query_key_enabled);
        // A malformed id is unknown at any time, but whether history has the time is checked first (H6).
        if error.code == ErrorCode::EventNotFound {
            if let Some(at) = values?.as_of()? {
                self.past_at(at).await?;
            }
            return Err(error);
        }
        if !matches!(error.code, ErrorCode::SportNotFound | ErrorCode::InvalidParameter) {
            return Err(error);
        }
        let at = values.ok().and_then(|values| values.as_of().ok().flatten());
        let world = self.api.world(self.world());
        let latest = world.latest(self.now);
        let Some(at) = at.filter(|at| *at <= latest) else { return Err(error) };
        let then = match world.other_catalogue(at).await {
            Ok(Some(then)) => then,
            Err(unread @ (HistoryError::Unreadable(_) | HistoryError::Busy)) => {
                return Err(refused_by_history(&unread));
            }
            Ok(None) | Err(_) => return Err(error),
        };
        // Checked before a publication is rebuilt.
        self.read_with(&then)?;
        self.select_as_of(operation, None, at).await
    }

    /// The history of prices. Names may be those of any catalogue in history.
    pub(super) async fn past_prices(&self, operation: Operation) -> Answered {
        let world = self.api.world(self.world());
        let asked = self.read_known(|known| Ok(self.read_with(known)?.asked)).await;
        // A malformed id is an unknown event too, but whether there is history is checked first (H6).
        let is_unknown = |error: &ApiError| error.code == ErrorCode::EventNotFound;
        if asked.as_ref().is_err_and(is_unknown) && !world.history.is_on() {
            return Err(refused_by_history(&HistoryError::Off));
        }
        let asked = asked?;
        if !world.has_begun() {
            return Err(not_yet());
        }
        if let Selector::Path(selection) = &*asked {
            return self.price_path(operation, &asked, selection).await;
        }
        if let Selector::Closing(selection) = &*asked {
            return self.closing(operation, &asked, selection).await;
        }
        Err(ApiError::internal())
    }

    /// Reads names with the current catalogue and all kept catalogues of the past.
    pub(super) async fn read_known<T>(
        &self,
        read: impl Fn(&Catalogue) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let (own, history) = (&self.api.catalogue, &self.api.world(self.world()).history);
        let names_unknown = |error: &ApiError| {
            let bookmaker = error.param.as_deref() == Some(Param::Bookmaker.name());
            error.code == ErrorCode::SportNotFound
                || (error.code == ErrorCode::InvalidParameter && bookmaker)
        };
        let known = history.known_at_once(own);
        if let Some(read) = known.map(|known| read(&known)) {
            // Another node may have started with another catalogue in the meantime.
            if !read.as_ref().is_err_and(names_unknown) {
                return read;
            }
        }
        match history.known(own).await {
            Ok(known) => read(&known),
            // With the current catalogue alone, removed names would be missing.
            Err(unread) => match read(own) {
                Err(error) if !names_unknown(&error) => Err(error),
                Ok(_) | Err(_) => Err(refused_by_history(&unread)),
            },
        }
    }

    /// The price history of an event.
    async fn price_path(
        &self,
        operation: Operation,
        asked: &HashedSelector,
        selection: &PathSelection,
    ) -> Answered {
        let world = self.api.world(self.world());
        let published = world.published();
        let answers = self.api.answers(self.world(), &published);
        let answer = match answers.find(asked) {
            Ok(ready) => ready.answer,
            Err(missing) => {
                let found =
                    world.event_paths(selection.request.clone(), &published, self.key()).await;
                let found = found.map_err(|error| no_path(&error))?;
                let (selection, cut_at) = (selection.clone(), published.snapshot.cut_at);
                let answer =
                    on_blocking_thread(move || price_paths(&selection, &found, cut_at)).await?;
                answers.make(asked, missing, || answer)
            }
        };
        self.send(operation, &answer, &published).await
    }

    /// Closing lines of started events.
    async fn closing(
        &self,
        operation: Operation,
        asked: &HashedSelector,
        selection: &ClosingSelection,
    ) -> Answered {
        let world = self.api.world(self.world());
        let published = world.published();
        let answers = self.api.answers(self.world(), &published);
        let answer = match answers.find(asked) {
            Ok(ready) => ready.answer,
            Err(missing) => {
                let found = world.closings(selection.request.clone(), &published, self.key()).await;
                let found = found.map_err(|error| no_path(&error))?;
                let (selection, cut_at) = (selection.clone(), published.snapshot.cut_at);
                let answer =
                    on_blocking_thread(move || closing_lines(&selection, &found, cut_at)).await?;
                answers.make(asked, missing, || answer)
            }
        };
        self.send(operation, &answer, &published).await
    }

    /// Sends an answer of the history of prices. It may be large, so it is not compressed on this thread.
    async fn send(
        &self,
        operation: Operation,
        answer: &Arc<Answer>,
        published: &Published,
    ) -> Answered {
        let accepted = self.request.accept_encoding.as_deref();
        if !answer.is_encoded(accepted) {
            let (answer, accepted) = (Arc::clone(answer), accepted.map(<[u8]>::to_vec));
            on_blocking_thread(move || {
                answer.encoded(accepted.as_deref());
            })
            .await?;
        }
        let encoded = answer.encoded(accepted);
        let head = begin_head(published, encoded, self.now);
        self.deliver(operation, head, (answer, encoded), None).await
    }

    /// Id of the caller for lookups in history.
    pub(super) fn key(&self) -> u64 {
        xxh3_64(self.entry.grant.key_id.as_str().as_bytes())
    }

    /// The range of history.
    pub(super) async fn history(&self) -> Result<Reply, ApiError> {
        let world = self.api.world(self.world());
        let current = world.published().snapshot.cut_at;
        let reach =
            world.history.reach(current).await.map_err(|error| refused_by_history(&error))?;
        let mut reply = Reply::new(200, "application/json", wire::history(&reach));
        reply.head.put("cache-control", "no-store");
        Ok(reply)
    }
}

/// Does work that takes longer than a request thread may be occupied.
async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| ApiError::internal())
}

fn no_path(error: &PathError) -> ApiError {
    match error {
        PathError::Unknown => event_not_found(),
        PathError::History(error) => refused_by_history(error),
    }
}
