//! The cursor of a position in a world's log: its holder has seen everything up to that position (H2).
//!
//! Opaque to clients; the same on every node and after restarts and upgrades. It identifies its log entry, so that a
//! cursor of a rolled-back log or of another installation is not accepted; and its selection, so that it is not used
//! for another one. The sandbox has no log, so its positions are times.

use std::fmt::Write;

use data_encoding::BASE64URL_NOPAD;
use domain::{Catalogue, EventId, Region, Status, Timestamp, World};
use engine::Place;
use market::Snapshot;
use market::select::{EventIds, NamePrefix};
use xxhash_rust::xxh3::xxh3_64;

use crate::answers::List;
use crate::v1::region::Regions;

/// First byte of every cursor of this kind, as a version.
const VERSION: u8 = 0x41;
const BYTES: usize = 18;

/// Contents of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogPosition {
    pub(crate) world: World,
    /// Number of the publication's entry; in the sandbox its time in milliseconds.
    pub(crate) at: u64,
    /// Distinguishes the publication's entry from others with the same number.
    pub(crate) check: u32,
    /// Hash of the selection.
    pub(crate) selection: u32,
}

impl LogPosition {
    /// The position of a publication for a list.
    pub(crate) fn of(world: World, snapshot: &Snapshot, list: &List) -> Self {
        let text = list_text(list, snapshot.catalogue());
        let selection = low_half(xxh3_64(text.as_bytes()));
        let (at, check) = place_of(world, snapshot);
        Self { world, at, check, selection }
    }

    pub(crate) fn encode(&self) -> String {
        let mut bytes = Vec::with_capacity(BYTES);
        let world = match self.world {
            World::Live => 0,
            World::Sandbox => 1,
        };
        bytes.extend([VERSION, world]);
        bytes.extend(self.at.to_be_bytes());
        bytes.extend(self.check.to_be_bytes());
        bytes.extend(self.selection.to_be_bytes());
        BASE64URL_NOPAD.encode(&bytes)
    }

    /// Decodes the text of [`LogPosition::encode`].
    pub(crate) fn decode(text: &str) -> Option<Self> {
        if text.len() != BASE64URL_NOPAD.encode_len(BYTES) {
            return None;
        }
        let bytes: [u8; BYTES] = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?.try_into().ok()?;
        let [VERSION, world, rest @ ..] = bytes else { return None };
        let world = match world {
            0 => World::Live,
            1 => World::Sandbox,
            _ => return None,
        };
        let (at, rest) = rest.split_first_chunk::<8>()?;
        let (check, rest) = rest.split_first_chunk::<4>()?;
        let (selection, []) = rest.split_first_chunk::<4>()? else { return None };
        Some(Self {
            world,
            at: u64::from_be_bytes(*at),
            check: u32::from_be_bytes(*check),
            selection: u32::from_be_bytes(*selection),
        })
    }
}

/// Position of a publication in its world's log, with the check of its entry.
pub type LogPlace = (u64, u32);

/// The place of a publication.
pub fn place_of(world: World, snapshot: &Snapshot) -> LogPlace {
    match world {
        // Publications, and the states between them, depend only on the world and the time.
        World::Sandbox => {
            let check = low_half(xxh3_64(&snapshot.writer.to_be_bytes()));
            (u64::try_from(snapshot.cut_at.as_millis()).unwrap_or(0), check)
        }
        World::Live => (snapshot.seq, publication_check(snapshot)),
    }
}

/// The engine's form of a place.
pub(crate) fn sought(world: World, at: u64) -> Place {
    match world {
        World::Live => Place::Entry(at),
        World::Sandbox => {
            Place::Time(Timestamp::from_millis(i64::try_from(at).unwrap_or(i64::MAX)))
        }
    }
}

/// Distinguishes a publication from others whose entry has the same number.
fn publication_check(snapshot: &Snapshot) -> u32 {
    let mut bytes = [0; 24];
    let parts = [
        snapshot.seq.to_be_bytes(),
        snapshot.writer.to_be_bytes(),
        snapshot.cut_at.as_millis().to_be_bytes(),
    ];
    for (place, part) in bytes.chunks_exact_mut(8).zip(parts) {
        place.copy_from_slice(&part);
    }
    low_half(xxh3_64(&bytes))
}

/// Hash of the selection of several lists. For one list it equals the list's own, so that cursors are valid for both.
pub(crate) fn lists_check<'a>(lists: impl Iterator<Item = &'a List>, catalogue: &Catalogue) -> u32 {
    let mut texts: Vec<String> = lists.map(|list| list_text(list, catalogue)).collect();
    // Another catalogue may order its sports differently.
    texts.sort_unstable();
    low_half(xxh3_64(texts.join("\n").as_bytes()))
}

/// A list as text with keys, which are the same in every process. It identifies the rows, not the page size.
fn list_text(list: &List, catalogue: &Catalogue) -> String {
    let sport = &catalogue.sport(list.sport()).key;
    let mut text = SelectionText(String::new());
    match list {
        List::Odds(odds, format, terms) => {
            text.begin("odds", sport);
            let bookmaker = odds.bookmaker.map(|id| &catalogue.bookmaker(id).key);
            text.field("bookmakers", bookmaker);
            text.regions(terms.regions);
            // The catalogue decides which market `totals` means; the cursor identifies the name as it was requested.
            let market = odds.market.map(domain::Market::key);
            text.field("market", if terms.is_totals { Some("totals") } else { market });
            text.events(&odds.events);
            text.field("format", Some(format.key()));
        }
        List::Scores(scores) => {
            text.begin("scores", sport);
            text.field("status", scores.status.map(Status::key));
            text.events(&scores.events);
        }
        List::Events(events) => {
            text.begin("events", sport);
            text.field("status", events.status.map(Status::key));
            text.events(&events.events);
            text.field("from", events.from.map(Timestamp::as_millis));
            text.field("to", events.to.map(Timestamp::as_millis));
            text.field("name", events.name.as_ref().map(NamePrefix::as_str));
        }
    }
    text.0
}

struct SelectionText(String);

impl SelectionText {
    fn begin(&mut self, what: &str, sport: &str) {
        self.0.push_str(what);
        self.field("sport", Some(sport));
    }

    fn field(&mut self, name: &str, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _written = write!(self.0, " {name}={value}");
        }
    }

    fn regions(&mut self, regions: Option<Regions>) {
        let keys = regions.map(|regions| regions.iter().map(Region::key).collect::<Vec<_>>());
        self.field("regions", keys.map(|keys| keys.join(",")));
    }

    fn events(&mut self, events: &EventIds) {
        let ids = events.as_ref().map(|ids| {
            let ids: Vec<String> = ids.iter().map(EventId::to_string).collect();
            ids.join(",")
        });
        self.field("events", ids);
    }
}

fn low_half(hash: u64) -> u32 {
    u32::try_from(hash & u64::from(u32::MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::Arc;
    use std::time::Duration;

    use domain::{BookmakerSet, Format};
    use market::{Book, Ids, OddsSelection};

    use crate::answers::CatalogueTerms;

    #[test]
    fn a_cursor_is_read_back_and_nothing_else_is_one() {
        for world in World::ALL {
            let position = LogPosition { world, at: u64::MAX - 1, check: 7, selection: u32::MAX };
            let text = position.encode();
            assert!(text.len() <= 64, "{text}");
            assert_eq!(LogPosition::decode(&text), Some(position));
            for (end, _) in text.char_indices() {
                assert_eq!(text.get(..end).and_then(LogPosition::decode), None);
            }
            assert_eq!(LogPosition::decode(&format!("{text}A")), None);
            assert_eq!(LogPosition::decode(&text.replacen('Q', "R", 1)), None);
        }
        assert_eq!(LogPosition::decode("AAAAAAAAAAAAAAAAAAAAAAAA"), None);
    }

    /// Clients keep cursors over upgrades, and take them to other nodes: neither their layout nor their checks may
    /// change.
    #[test]
    fn the_layout_of_a_cursor_and_the_check_of_a_publication_are_persisted_formats() {
        let live = LogPosition {
            world: World::Live,
            at: 0x0102_0304_0506_0708,
            check: 0x090a_0b0c,
            selection: 0x0d0e_0f10,
        };
        assert_eq!(live.encode(), "QQABAgMEBQYHCAkKCwwNDg8Q");
        let sandbox = LogPosition { world: World::Sandbox, ..live };
        assert_eq!(sandbox.encode(), "QQEBAgMEBQYHCAkKCwwNDg8Q");

        let book = Book::new(Arc::new(Catalogue::load(None).unwrap()), Ids::Minted { salt: 0 });
        let cut_at = Timestamp::from_millis(1_794_657_630_250);
        let stale_after = Duration::from_secs(90);
        let mut snapshot = Snapshot::cut(&book, 28_811, cut_at, stale_after, &[]);
        snapshot.writer = 0x1122_3344_5566_7788;
        assert_eq!(publication_check(&snapshot), 0xc3ed_b9fc);
        assert_eq!(place_of(World::Live, &snapshot), (28_811, 0xc3ed_b9fc));
        assert_eq!(place_of(World::Sandbox, &snapshot), (1_794_657_630_250, 0x392a_c8d5));
    }

    /// Clients keep cursors over upgrades: the hashed text of a selection must not change.
    #[test]
    fn the_text_of_a_selection_is_a_persisted_format() {
        let catalogue = Catalogue::load(None).unwrap();
        let sport = catalogue.sport_id("mma").unwrap();
        let bookmaker = catalogue.bookmaker_id("fanduel").unwrap();
        let odds = OddsSelection {
            sport,
            bookmakers: BookmakerSet::just(bookmaker),
            bookmaker: Some(bookmaker),
            market: Some(domain::Market::Moneyline),
            events: Some([EventId::from_number(5)].into()),
            limit: 7,
            after: None,
        };
        let of = |odds: &OddsSelection, format, terms| {
            list_text(&List::Odds(odds.clone(), format, terms), &catalogue)
        };
        let text = |odds: &OddsSelection, format| of(odds, format, CatalogueTerms::default());
        let id = EventId::from_number(5);
        let expected = format!(
            "odds sport=mma bookmakers=fanduel market=moneyline events={id} format=american"
        );
        assert_eq!(text(&odds, Format::American), expected);
        assert_eq!(low_half(xxh3_64(b"odds sport=mma bookmakers=fanduel")), 0x66cd_bfdc);
        let more = OddsSelection { limit: 500, ..odds.clone() };
        assert_eq!(text(&more, Format::American), expected, "a page is not a selection");
        assert_ne!(text(&odds, Format::Decimal), expected);
        let mut regions = Regions::just(Region::Uk);
        regions.insert(Region::Us);
        let terms = CatalogueTerms { regions: Some(regions), is_totals: true };
        let of_regions = OddsSelection { bookmaker: None, events: None, ..odds.clone() };
        let expected_of_regions = "odds sport=mma regions=us,uk market=totals format=american";
        assert_eq!(of(&of_regions, Format::American, terms), expected_of_regions);
        let all = OddsSelection { events: None, market: None, ..odds };
        assert_ne!(text(&all, Format::American), expected);
    }
}
