//! A checkpoint: the whole book as bytes, so that a start need not replay the log from its beginning.
//!
//! It has full keys and no catalogue numbers: a checkpoint survives a changed catalogue. Data of a sport or bookmaker
//! that is no longer there is dropped when it is read.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use domain::message::Fixture;
use domain::{BookmakerId, Catalogue, EventId, Market, Score, Timestamp};

use crate::book::event::{Counted, Event, Outcome, Record, Slot};
use crate::book::field::Field;
use crate::book::{Book, Feed, FeedIx, Offer, Placed, slot_key_of};
use crate::change::{Configured, Ids};
use crate::freshness::Source;
use crate::matching::{Alias, Contest, Doubt, Evidence, NameSignature};

/// Version of the images written now.
pub const IMAGE_VERSION: u8 = 6;

/// A checkpoint that this program cannot read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    #[error("checkpoint has version {0}; this program reads up to {IMAGE_VERSION}")]
    Version(u8),
    #[error("checkpoint cannot be decoded")]
    Undecodable,
}

/// The part of an image to read.
#[derive(Clone, Copy, Debug)]
pub enum ImagePart<'a> {
    All,
    /// Only these events.
    Events(&'a [EventId]),
    /// All events without their prices.
    WithoutPrices,
}

#[derive(Serialize, Deserialize)]
struct Head {
    ids: Ids,
    events_made: u64,
    feeds: u32,
    events: u32,
    sources: u32,
}

#[derive(Serialize, Deserialize)]
struct FeedImage<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    offers: Vec<(Cow<'a, str>, OfferImage<'a>)>,
}

#[derive(Serialize, Deserialize)]
struct OfferImage<'a> {
    event: EventId,
    swapped: bool,
    active: bool,
    ts: Timestamp,
    #[serde(borrow)]
    competition: Cow<'a, str>,
    commence_time: Timestamp,
    fixture: Cow<'a, Fixture>,
}

#[derive(Serialize, Deserialize)]
struct EventImage<'a> {
    id: EventId,
    #[serde(borrow)]
    sport: Cow<'a, str>,
    #[serde(borrow)]
    competition: Cow<'a, str>,
    commence_time: Timestamp,
    fixture: Cow<'a, Fixture>,
    entrants: Vec<Cow<'a, str>>,
    listed_by: Vec<(u32, Cow<'a, str>)>,
    first_known: Timestamp,
    mentioned_at: Timestamp,
    score: Cow<'a, Score>,
    score_ts: Option<Timestamp>,
    score_changed: Timestamp,
    slots: Vec<SlotImage<'a>>,
}

/// Feed, ref, the reason for its event, and its former event.
type PlacedImage<'a> = (u32, Cow<'a, str>, Cow<'a, Placed>, Option<EventId>);

/// Added by version 2, after everything that version 1 has.
#[derive(Serialize, Deserialize)]
struct MemoryImage<'a> {
    born: Vec<(EventId, u64)>,
    placed: Vec<PlacedImage<'a>>,
    merged: Vec<(EventId, EventId)>,
    doubts: Vec<((EventId, EventId), (Doubt, Evidence))>,
    apart: Vec<(EventId, EventId)>,
    aliases: Vec<Alias>,
}

/// Added by version 3 for each event, after that: the feed it is charged to, and the arrival time of its final score.
type EventNote = (EventId, Option<u32>, Option<Timestamp>);

/// Added by version 4, at the end: how long reads keep sources fresh, by sport and bookmaker.
type PaceImage<'a> = (Cow<'a, str>, Cow<'a, str>, u32);

/// Added by version 5, at the end: the feeds that have quoted a bookmaker, by sport and bookmaker.
type QuotedByImage<'a> = (Cow<'a, str>, Cow<'a, str>, Vec<u32>);

/// Added by version 6, at the end: the configuration of the latest publication.
type ConfiguredImage<'a> = Option<Cow<'a, Configured>>;

#[derive(Serialize, Deserialize)]
struct SlotImage<'a> {
    #[serde(borrow)]
    bookmaker: Cow<'a, str>,
    market: Market,
    group: Option<Cow<'a, str>>,
    feed: u32,
    ts: Timestamp,
    beat_seen: Timestamp,
    open: Option<Cow<'a, [Outcome]>>,
}

#[derive(Serialize, Deserialize)]
struct SourceImage<'a> {
    #[serde(borrow)]
    sport: Cow<'a, str>,
    #[serde(borrow)]
    bookmaker: Cow<'a, str>,
    read_at: Timestamp,
    beat_at: Timestamp,
    latency_ms: u32,
}

impl Book {
    /// The book as bytes, to be stored with [`IMAGE_VERSION`].
    pub fn to_image(&self) -> Vec<u8> {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let mut out = Vec::new();
        push(
            &mut out,
            &Head {
                ids: self.ids,
                events_made: self.events_made,
                feeds: count(self.feeds.len()),
                events: count(self.events.len()),
                sources: count(self.sources.len()),
            },
        );
        for feed in &self.feeds {
            push(&mut out, &feed_image(feed));
        }
        for event in self.events.values() {
            push(&mut out, &event_image(event, &self.catalogue));
        }
        for ((sport, bookmaker), source) in &self.sources {
            push(
                &mut out,
                &SourceImage {
                    sport: Cow::Borrowed(&self.catalogue.sport(*sport).key),
                    bookmaker: Cow::Borrowed(&self.catalogue.bookmaker(*bookmaker).key),
                    read_at: source.read_at,
                    beat_at: source.beat_at,
                    latency_ms: source.latency_ms,
                },
            );
        }
        push(&mut out, &self.memory_image());
        let note = |event: &Event| (event.id, event.owner.map(|ix| ix.0), event.finished_at);
        push(&mut out, &self.events().map(note).collect::<Vec<EventNote>>());
        let paces = self.paces.iter().map(|((sport, bookmaker), pace)| {
            let sport = Cow::Borrowed(&*self.catalogue.sport(*sport).key);
            (sport, Cow::Borrowed(&*self.catalogue.bookmaker(*bookmaker).key), *pace)
        });
        push(&mut out, &paces.collect::<Vec<PaceImage<'_>>>());
        let quoted_by = self.quoted_by.iter().map(|((sport, bookmaker), feeds)| {
            let sport = Cow::Borrowed(&*self.catalogue.sport(*sport).key);
            let bookmaker = Cow::Borrowed(&*self.catalogue.bookmaker(*bookmaker).key);
            (sport, bookmaker, feeds.iter().map(|feed| feed.0).collect())
        });
        push(&mut out, &quoted_by.collect::<Vec<QuotedByImage<'_>>>());
        let configured: ConfiguredImage<'_> = self.configured.as_ref().map(Cow::Borrowed);
        push(&mut out, &configured);
        out
    }

    fn memory_image(&self) -> MemoryImage<'_> {
        let offers = (0..).zip(&self.feeds).flat_map(|(ix, feed)| {
            feed.offers.iter().map(move |(reference, offer)| (ix, reference, offer))
        });
        let placed_later =
            offers.filter(|(_, _, o)| o.placed != Placed::First || o.came_from.is_some());
        let placed = placed_later.map(|(ix, reference, offer)| {
            (ix, Cow::Borrowed(&**reference), Cow::Borrowed(&offer.placed), offer.came_from)
        });
        MemoryImage {
            born: self.events.values().map(|event| (event.id, event.born)).collect(),
            placed: placed.collect(),
            merged: self.memory.merged.iter().map(|(younger, elder)| (*younger, *elder)).collect(),
            doubts: self.memory.doubts.iter().collect(),
            apart: self.memory.parted().collect(),
            aliases: self.memory.aliases.all().into_iter().cloned().collect(),
        }
    }

    /// Reads what [`Book::to_image`] wrote.
    ///
    /// # Errors
    /// The version is unknown or the bytes are not an image.
    pub fn from_image(
        version: u8,
        bytes: &[u8],
        catalogue: Arc<Catalogue>,
    ) -> Result<Self, ImageError> {
        Self::from_image_of(version, bytes, catalogue, ImagePart::All)
    }

    /// Reads a part of an image.
    ///
    /// Absorbing changes affects this part as it would affect the whole book, except for merges and splits: the
    /// events involved must be in the part together.
    ///
    /// # Errors
    /// The version is unknown or the bytes are not an image.
    pub fn from_image_of(
        version: u8,
        mut bytes: &[u8],
        catalogue: Arc<Catalogue>,
        part: ImagePart<'_>,
    ) -> Result<Self, ImageError> {
        if !(1..=IMAGE_VERSION).contains(&version) {
            return Err(ImageError::Version(version));
        }
        let head: Head = take(&mut bytes)?;
        let mut book = Self::new(catalogue, head.ids);
        book.events_made = head.events_made;
        let mut feeds = Vec::new();
        for _ in 0..head.feeds {
            feeds.push(take::<FeedImage<'_>>(&mut bytes)?);
        }
        for _ in 0..head.events {
            let mut image: EventImage<'_> = take(&mut bytes)?;
            match part {
                ImagePart::All => {}
                ImagePart::Events(events) if events.contains(&image.id) => {}
                ImagePart::Events(_) => continue,
                ImagePart::WithoutPrices => image.slots.clear(),
            }
            book.insert_image(image);
        }
        for image in feeds {
            let feed = book.feed_from(image);
            book.add_feed(feed);
        }
        for _ in 0..head.sources {
            let image: SourceImage<'_> = take(&mut bytes)?;
            if let Some(key) = book.source_key(&image.sport, &image.bookmaker) {
                let SourceImage { read_at, beat_at, latency_ms, .. } = image;
                let source = Source { read_at, beat_at, latency_ms, fresh_for_s: 0 };
                book.sources.insert(key, source);
            }
        }
        if version == 1 {
            book.remember_nothing();
        } else {
            book.remember(take(&mut bytes)?);
        }
        book.note_withdrawn();
        let notes: Option<Vec<EventNote>> =
            if version < 3 { None } else { Some(take(&mut bytes)?) };
        book.note_events(notes);
        let paces: Vec<PaceImage<'_>> = if version < 4 { Vec::new() } else { take(&mut bytes)? };
        for (sport, bookmaker, pace) in paces {
            if let Some(key) = book.source_key(&sport, &bookmaker) {
                book.paces.insert(key, pace);
            }
        }
        if version < 5 {
            book.note_quoted_by();
        } else {
            for (sport, bookmaker, feeds) in take::<Vec<QuotedByImage<'_>>>(&mut bytes)? {
                if let Some(key) = book.source_key(&sport, &bookmaker) {
                    book.quoted_by.insert(key, feeds.into_iter().map(FeedIx).collect());
                }
            }
        }
        if version >= 6 {
            book.configured = take::<ConfiguredImage<'_>>(&mut bytes)?.map(Cow::into_owned);
        }
        book.count_everything();
        let ids: Vec<EventId> = book.events.keys().copied().collect();
        for id in ids {
            book.reindex(id);
        }
        book.note_calendar();
        Ok(book)
    }

    /// Version 1 had no identities beyond the listings; the elder of two events is the one known first.
    fn remember_nothing(&mut self) {
        let mut by_age: Vec<(Timestamp, EventId)> =
            self.events.values().map(|event| (event.first_known, event.id)).collect();
        by_age.sort_unstable();
        for (born, (_, id)) in (0..).zip(by_age) {
            if let Some(event) = self.events.get_mut(&id) {
                event.born = born;
            }
        }
    }

    fn note_calendar(&mut self) {
        for (ix, feed) in (0..).zip(&self.feeds) {
            for (reference, offer) in feed.offers.iter().filter(|(_, offer)| offer.active) {
                let lister = (FeedIx(ix), &**reference);
                self.calendar.insert(lister, &offer.competition, offer.commence_time);
            }
        }
    }

    /// Adds to each event the withdrawn refs that meant it.
    fn note_withdrawn(&mut self) {
        for (ix, feed) in (0..).zip(&self.feeds) {
            for (reference, offer) in feed.offers.iter().filter(|(_, offer)| !offer.active) {
                if let Some(event) = self.events.get_mut(&offer.event) {
                    event.withdrawn.insert((FeedIx(ix), reference.clone()));
                }
            }
        }
    }

    /// Before version 5 only the held prices show which feeds have quoted a bookmaker.
    fn note_quoted_by(&mut self) {
        for event in self.events.values() {
            for (key, slot) in &event.slots {
                let feeds = self.quoted_by.entry((event.sport, key.bookmaker)).or_default();
                feeds.insert(slot.feed);
            }
        }
    }

    /// Before version 3 the arrival of a final score is unknown, so the last mention of the event is used; and an
    /// unlisted event is charged to a feed that listed it.
    fn note_events(&mut self, notes: Option<Vec<EventNote>>) {
        if let Some(notes) = notes {
            for (id, owner, finished_at) in notes {
                if let Some(event) = self.events.get_mut(&id) {
                    (event.owner, event.finished_at) = (owner.map(FeedIx), finished_at);
                }
            }
            return;
        }
        for event in self.events.values_mut() {
            event.owner = event.withdrawn.first().map(|(feed, _)| *feed);
            event.finished_at = event.is_final().then_some(event.mentioned_at);
        }
    }

    fn remember(&mut self, image: MemoryImage<'_>) {
        for (id, born) in image.born {
            if let Some(event) = self.events.get_mut(&id) {
                event.born = born;
            }
        }
        for (feed, reference, placed, came_from) in image.placed {
            let offers = self.feed_mut(FeedIx(feed)).map(|feed| &mut feed.offers);
            if let Some(offer) = offers.and_then(|offers| offers.get_mut(&*reference)) {
                (offer.placed, offer.came_from) = (placed.into_owned(), came_from);
            }
        }
        for (younger, elder) in image.merged {
            self.memory.stand_in(younger, elder);
        }
        for (pair, why) in image.doubts {
            self.memory.doubts.insert(pair, why);
        }
        for (one, other) in image.apart {
            self.memory.part(one, other);
        }
        for alias in &image.aliases {
            self.memory.aliases.teach(alias);
        }
    }

    /// A feed without its listings of a sport that is gone.
    fn feed_from(&self, image: FeedImage<'_>) -> Feed {
        let offer = |offer: OfferImage<'_>| {
            let sport = self.event(offer.event)?.sport;
            let fixture = offer.fixture.into_owned();
            let contest = Contest::parse(&self.lexicon, sport, &fixture);
            Some(Box::new(Offer {
                event: offer.event,
                swapped: offer.swapped,
                active: offer.active,
                ts: offer.ts,
                competition: offer.competition.into_owned().into(),
                commence_time: offer.commence_time,
                fixture,
                signature: NameSignature::of(&contest),
                contest,
                placed: Placed::First,
                came_from: None,
            }))
        };
        let offers = image.offers.into_iter();
        let offers = offers.filter_map(|(reference, listed)| {
            Some((reference.into_owned().into(), offer(listed)?))
        });
        Feed { offers: offers.collect(), ..Feed::new(image.name.into_owned().into()) }
    }

    fn insert_image(&mut self, image: EventImage<'_>) {
        let Some(sport) = self.catalogue.sport_id(&image.sport) else {
            return;
        };
        let field = Field::restore(image.entrants.iter().map(|name| &**name));
        let mut slots = Vec::with_capacity(image.slots.len());
        // Slots of one bookmaker are consecutive.
        let mut last: Option<(Cow<'_, str>, Option<BookmakerId>)> = None;
        for slot in image.slots {
            let bookmaker = match &last {
                Some((key, bookmaker)) if *key == slot.bookmaker => *bookmaker,
                Some(_) | None => self.catalogue.bookmaker_id(&slot.bookmaker),
            };
            last = Some((slot.bookmaker, bookmaker));
            let Some(bookmaker) = bookmaker else { continue };
            let group = slot.group.as_deref();
            let key = slot_key_of(image.id, &self.catalogue, bookmaker, slot.market, group);
            let open = slot.open.map(|o| Arc::new(Record::new(o.into_owned().into())));
            let group = slot.group.map(|group| group.into_owned().into());
            let (ts, beat_seen) = (slot.ts, slot.beat_seen);
            let feed = FeedIx(slot.feed);
            slots.push((key, Slot { group, feed, ts, beat_seen, open, weight: 0 }));
        }
        // They are nearly always in order: then this is faster than inserting them one by one.
        let slots: BTreeMap<_, _> = slots.into_iter().collect();
        let fixture = image.fixture.into_owned();
        let listed_by = image
            .listed_by
            .into_iter()
            .map(|(ix, r)| (FeedIx(ix), r.into_owned().into()))
            .collect();
        let event = Event {
            id: image.id,
            sport,
            competition: image.competition.into_owned().into(),
            commence_time: image.commence_time,
            fixture,
            field,
            listed_by,
            withdrawn: BTreeSet::new(),
            owner: None,
            counted: Counted::default(),
            first_known: image.first_known,
            born: 0,
            mentioned_at: image.mentioned_at,
            score: Arc::new(image.score.into_owned()),
            score_ts: image.score_ts,
            score_changed: image.score_changed,
            finished_at: None,
            slots,
            details: OnceLock::new(),
        };
        self.events.insert(event.id, Box::new(event));
    }
}

fn feed_image(feed: &Feed) -> FeedImage<'_> {
    let offers = feed.offers.iter().map(|(reference, offer)| {
        let image = OfferImage {
            event: offer.event,
            swapped: offer.swapped,
            active: offer.active,
            ts: offer.ts,
            competition: Cow::Borrowed(&offer.competition),
            commence_time: offer.commence_time,
            fixture: Cow::Borrowed(&offer.fixture),
        };
        (Cow::Borrowed(&**reference), image)
    });
    FeedImage { name: Cow::Borrowed(&feed.name), offers: offers.collect() }
}

fn event_image<'a>(event: &'a Event, catalogue: &'a Catalogue) -> EventImage<'a> {
    let slots = event.slots.iter().map(|(key, slot)| SlotImage {
        bookmaker: Cow::Borrowed(&catalogue.bookmaker(key.bookmaker).key),
        market: key.market,
        group: slot.group.as_deref().map(Cow::Borrowed),
        feed: slot.feed.0,
        ts: slot.ts,
        beat_seen: slot.beat_seen,
        open: slot.open.as_ref().map(|record| Cow::Borrowed(&*record.outcomes)),
    });
    EventImage {
        id: event.id,
        sport: Cow::Borrowed(&catalogue.sport(event.sport).key),
        competition: Cow::Borrowed(&event.competition),
        commence_time: event.commence_time,
        fixture: Cow::Borrowed(&event.fixture),
        entrants: event.field.names().iter().map(|name| Cow::Borrowed(&**name)).collect(),
        listed_by: event.listed_by.iter().map(|(ix, r)| (ix.0, Cow::Borrowed(&**r))).collect(),
        first_known: event.first_known,
        mentioned_at: event.mentioned_at,
        score: Cow::Borrowed(&*event.score),
        score_ts: event.score_ts,
        score_changed: event.score_changed,
        slots: slots.collect(),
    }
}

fn push<T: Serialize>(out: &mut Vec<u8>, value: &T) {
    // Serialising plain data into a growing vector has no way to fail.
    if let Ok(bytes) = postcard::to_extend(value, std::mem::take(out)) {
        *out = bytes;
    }
}

fn take<'a, T: Deserialize<'a>>(bytes: &mut &'a [u8]) -> Result<T, ImageError> {
    let (value, rest) = postcard::take_from_bytes(bytes).map_err(|_| ImageError::Undecodable)?;
    *bytes = rest;
    Ok(value)
}
