//! Requests that are sent when they are awaited, and lists that are read page by page.

mod delta;

use std::collections::VecDeque;
use std::fmt::{self, Display};
use std::future::{IntoFuture, poll_fn};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_util::stream::try_unfold;
use serde::de::DeserializeOwned;

use crate::error::Result;
use crate::http::Response;
use crate::macros::parameters;
use crate::price::OddsFormat;
use crate::query::add;
use crate::reader::{Meta, Reader};
use crate::types::{
    Arbitrage, Arbitrages, BestLine, BestLines, Bookmaker, Bout, ClosingRecord, Coverage, Event,
    Explanation, FairLine, FairLines, GroupedBouts, HistoryReach, Middle, Middles, OddsRecord,
    PricePath, ScoreRecord, ServiceStatus, Sport, SportList, Value, Values,
};

/// One response.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Answer<B> {
    /// The whole body.
    pub data: B,
    pub meta: Meta,
}

/// The body of a response.
pub trait Body: DeserializeOwned + Send {
    /// Completes it with properties that only the request has.
    #[doc(hidden)]
    fn complete(&mut self, _format: Option<&OddsFormat>) {}

    /// The value of a response without a body, if that is a valid answer.
    #[doc(hidden)]
    fn unchanged(_cursor: String, _published_at: String) -> Option<Self> {
        None
    }
}

/// The body of a list, page by page.
pub trait Page: Body {
    type Item: Send;

    /// The items of the page.
    fn items(&self) -> &[Self::Item];

    /// The items without the rest of the page.
    fn into_items(self) -> Vec<Self::Item>;
}

macro_rules! bodies {
    ($($body:ty $(, $field:ident of $item:ty)?;)*) => {
        $(impl Body for $body {}
        $(impl Page for $body {
            type Item = $item;

            fn items(&self) -> &[$item] {
                &self.$field
            }

            fn into_items(self) -> Vec<$item> {
                self.$field
            }
        })?)*
    };
}

bodies! {
    SportList, sports of Sport;
    BestLines, lines of BestLine;
    FairLines, lines of FairLine;
    Arbitrages, arbitrages of Arbitrage;
    Values, values of Value;
    Middles, middles of Middle;
    ServiceStatus;
    HistoryReach;
    Event;
    Coverage;
    Explanation;
}

impl<T: DeserializeOwned + Send> Body for Vec<T> {}

impl<T: DeserializeOwned + Send> Page for Vec<T> {
    type Item = T;

    fn items(&self) -> &[T] {
        self
    }

    fn into_items(self) -> Self {
        self
    }
}

impl Body for GroupedBouts {
    fn complete(&mut self, format: Option<&OddsFormat>) {
        format.into_iter().for_each(|format| self.in_format(format));
    }
}

impl Page for GroupedBouts {
    type Item = Bout;

    fn items(&self) -> &[Bout] {
        &self.bouts
    }

    fn into_items(self) -> Vec<Bout> {
        self.bouts
    }
}

/// A request that is sent when it is awaited.
#[must_use = "nothing is requested before it is awaited or read"]
pub struct Request<B> {
    reader: Arc<Reader>,
    path: String,
    query: String,
    format: Option<OddsFormat>,
    max_items: Option<usize>,
    is_cached: bool,
    body: PhantomData<fn() -> B>,
}

impl<B> fmt::Debug for Request<B> {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(text, "Request({}{}{})", self.reader.http.url, self.path, self.query)
    }
}

impl<B> Clone for Request<B> {
    fn clone(&self) -> Self {
        Self {
            reader: Arc::clone(&self.reader),
            path: self.path.clone(),
            query: self.query.clone(),
            format: self.format.clone(),
            max_items: self.max_items,
            is_cached: self.is_cached,
            body: PhantomData,
        }
    }
}

impl<B> Request<B> {
    pub(crate) fn new(reader: &Arc<Reader>, path: String) -> Self {
        Self {
            reader: Arc::clone(reader),
            path,
            query: String::new(),
            format: None,
            max_items: None,
            is_cached: true,
            body: PhantomData,
        }
    }

    /// Any parameter, by its name in the API.
    pub fn param(mut self, name: &str, value: impl Display) -> Self {
        if name == "odds_format" {
            self.format = Some(OddsFormat::from(value.to_string().as_str()));
        }
        add(&mut self.query, name, &value);
        self
    }

    /// The same request for another body type.
    pub(crate) fn with_body<C>(self) -> Request<C> {
        let Self { reader, path, query, format, max_items, is_cached, .. } = self;
        Request { reader, path, query, format, max_items, is_cached, body: PhantomData }
    }

    async fn get(&self, query: &str) -> Result<(Arc<Response>, Meta)> {
        let target = format!("{}{query}", self.path);
        if self.is_cached {
            self.reader.get(&target).await
        } else {
            self.reader.fetch(&target).await
        }
    }
}

impl<B: Body> Request<B> {
    /// Sends the request; for a list it returns the first page.
    ///
    /// # Errors
    /// Those of the API; no response; a response that is not one of the API.
    pub async fn send(self) -> Result<Answer<B>> {
        let (response, meta) = self.get(&self.query).await?;
        self.answer(&response, meta)
    }

    fn answer(&self, response: &Response, meta: Meta) -> Result<Answer<B>> {
        let mut data: B = match (response.status, &meta.cursor) {
            (204, Some(cursor)) => {
                let published_at = response.header("x-published-at").unwrap_or_default();
                B::unchanged(cursor.clone(), published_at.to_owned())
                    .ok_or_else(|| response.unexpected("has no body"))?
            }
            _ => response.parse()?,
        };
        data.complete(self.format.as_ref());
        Ok(Answer { data, meta })
    }
}

impl<B: Body + 'static> IntoFuture for Request<B> {
    type Output = Result<Answer<B>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

impl<B: Page + 'static> Request<B> {
    /// Ends the list after this number of items.
    pub fn max_items(mut self, items: usize) -> Self {
        self.max_items = Some(items);
        self
    }

    /// Page by page, each requested when it is reached; the last page is complete, even if `max_items` ends within
    /// it.
    pub fn pages(self) -> Items<Answer<B>> {
        let left = self.max_items.unwrap_or(usize::MAX);
        let first = (Some(self.query.clone()), left);
        Items::new(try_unfold((self, first), |(request, (query, left))| async move {
            let Some(query) = query.filter(|_| left > 0) else { return Ok(None) };
            let (page, next) = request.page(&query).await?;
            let count = page.data.items().len();
            Ok(Some((page, (request, (next, left.saturating_sub(count))))))
        }))
    }

    /// All items; pages are requested when they are reached.
    pub fn items(self) -> Items<B::Item> {
        let left = self.max_items.unwrap_or(usize::MAX);
        let state = (Some(self.query.clone()), VecDeque::new(), left);
        Items::new(try_unfold((self, state), |(request, (mut query, mut page, left))| async move {
            if left == 0 {
                return Ok(None);
            }
            while page.is_empty() {
                let Some(wanted) = query.take() else { return Ok(None) };
                let (read, next) = request.page(&wanted).await?;
                page = VecDeque::from(read.data.into_items());
                query = next;
            }
            let Some(item) = page.pop_front() else { return Ok(None) };
            Ok(Some((item, (request, (query, page, left - 1)))))
        }))
    }

    /// All items at once.
    ///
    /// # Errors
    /// As [`Request::send`].
    pub async fn all(self) -> Result<Vec<B::Item>> {
        let (mut reading, mut all) = (self.items(), Vec::new());
        while let Some(item) = reading.next().await {
            all.push(item?);
        }
        Ok(all)
    }

    /// A page, and the query of the next page.
    async fn page(&self, query: &str) -> Result<(Answer<B>, Option<String>)> {
        let (response, meta) = self.get(query).await?;
        let next = next_query(&response, query)?;
        Ok((self.answer(&response, meta)?, next))
    }
}

/// The query of the next page. Only the query is used: the key is sent to no other address, whatever `Link` contains.
fn next_query(response: &Response, query: &str) -> Result<Option<String>> {
    let link = response.header("link").unwrap_or_default();
    let next = link.split(',').find_map(|link| {
        let (target, relation) = link.trim().strip_prefix('<')?.split_once('>')?;
        let relation = relation.trim_start_matches([';', ' ']).replace('"', "");
        relation.to_ascii_lowercase().starts_with("rel=next").then_some(target)
    });
    let Some(next) = next else { return Ok(None) };
    match next.find('?').and_then(|at| next.get(at..)) {
        Some(found) if found != query => Ok(Some(found.to_owned())),
        Some(_) | None => Err(response.unexpected("names itself as the next page")),
    }
}

/// Items that arrive one after the other: a `Stream`; [`Items::next`] works without the trait.
pub struct Items<T>(Pin<Box<dyn Stream<Item = Result<T>> + Send>>);

impl<T> Items<T> {
    pub(crate) fn new(stream: impl Stream<Item = Result<T>> + Send + 'static) -> Self {
        Self(Box::pin(stream))
    }

    /// The next one; `None` at the end, and after an error.
    pub async fn next(&mut self) -> Option<Result<T>> {
        poll_fn(|context| self.0.as_mut().poll_next(context)).await
    }
}

impl<T> fmt::Debug for Items<T> {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("Items(…)")
    }
}

impl<T> Stream for Items<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        self.0.as_mut().poll_next(context)
    }
}

/// The bytes of a response in any format.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Raw;

impl Request<Raw> {
    /// The bytes of one page, and the `cursor` of the next page.
    ///
    /// # Errors
    /// As [`Request::send`].
    pub async fn page(&self) -> Result<(Answer<Vec<u8>>, Option<String>)> {
        let (response, meta) = self.get(&self.query).await?;
        let next = next_query(&response, &self.query)?;
        let cursor = next.as_deref().and_then(|query| {
            let mut parameters = query.trim_start_matches('?').split('&');
            parameters.find_map(|parameter| parameter.strip_prefix("cursor=")).map(str::to_owned)
        });
        Ok((Answer { data: response.body.clone(), meta }, cursor))
    }

    /// The bytes of each page, for example of `format=csv`; pages are requested when they are reached.
    pub fn bodies(self) -> Items<Answer<Vec<u8>>> {
        let first = Some(self.query.clone());
        Items::new(try_unfold((self, first), |(request, query)| async move {
            let Some(query) = query else { return Ok(None) };
            let (response, meta) = request.get(&query).await?;
            let next = next_query(&response, &query)?;
            Ok(Some((Answer { data: response.body.clone(), meta }, (request, next))))
        }))
    }
}

impl Request<Vec<OddsRecord>> {
    /// A fight sport's moneyline, bout by bout.
    pub fn group_by_bout(self) -> Request<GroupedBouts> {
        self.param("group_by", "bout").with_body()
    }
}

macro_rules! operations {
    ($($body:ty { $($parameter:tt)* })*) => {
        $(impl Request<$body> {
            parameters! { $($parameter)* }
        })*
    };
}

operations! {
    SportList { as_of }
    Vec<Bookmaker> { as_of }
    Vec<OddsRecord> { market bookmaker [regions] odds_format [event_ids] as_of limit cursor }
    GroupedBouts { market bookmaker [regions] odds_format [event_ids] as_of limit cursor }
    Vec<ScoreRecord> { status [event_ids] as_of limit cursor }
    Vec<Event> { status [event_ids] commence_from commence_to name as_of limit cursor }
    Event { as_of }
    BestLines {
        market [bookmakers] [regions] odds_format [event_ids] status commence_from commence_to max_age as_of limit
        cursor
    }
    FairLines {
        market odds_format [event_ids] status commence_from commence_to max_age method [reference] min_books as_of
        limit cursor
    }
    Arbitrages {
        market [bookmakers] [regions] odds_format [event_ids] status commence_from commence_to max_age min_profit
        stake as_of limit
    }
    Values {
        market [bookmakers] [regions] odds_format [event_ids] status commence_from commence_to max_age method
        [reference] min_books min_ev as_of limit
    }
    Middles {
        market [bookmakers] [regions] odds_format [event_ids] status commence_from commence_to max_age max_cost
        as_of limit
    }
    Coverage { market bookmaker [regions] as_of }
    Explanation { market bookmaker [regions] as_of }
    Vec<ClosingRecord> {
        market bookmaker [regions] odds_format [event_ids] commence_from commence_to limit cursor
    }
    Vec<PricePath> { market bookmaker [regions] odds_format from to changes limit cursor }
}
