//! Elements around the table that all pages of the board share.

use domain::{BookmakerSet, Format, Timestamp, World};

use crate::context::Web;
use crate::dashboard::asset;
use crate::dashboard::board::choice::{Choice, Link};
use crate::dashboard::board::filter::Filter;
use crate::dashboard::board::screen::Screen;

/// A bookmaker offered for selection.
#[derive(Debug)]
pub(crate) struct Offered {
    pub(crate) key: String,
    pub(crate) title: String,
    pub(crate) chosen: bool,
}

/// Elements shared by both kinds of page: menus, style and script of the table, address of the stream.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) style: &'static str,
    pub(crate) script: &'static str,
    pub(crate) sandbox: bool,
    pub(crate) market: &'static str,
    pub(crate) markets: Vec<Link>,
    pub(crate) formats: Vec<Link>,
    pub(crate) regions: Vec<Link>,
    /// Target of the bookmaker form, its hidden fields, the bookmakers offered, and the link back to all of them.
    pub(crate) path: String,
    pub(crate) kept: Vec<(&'static str, String)>,
    pub(crate) offered: Vec<Offered>,
    pub(crate) all: String,
    pub(crate) stream: String,
    pub(crate) cut: Timestamp,
    pub(crate) cursor: String,
    pub(crate) cut_text: String,
    /// CSS class for the width of a price: `w1`, or `w2` for fractions.
    pub(crate) width: &'static str,
}

impl Frame {
    pub(crate) fn new(
        web: &Web,
        choice: &Choice,
        path: &str,
        screen: &Screen,
        filter: &Filter,
    ) -> Self {
        let catalogue = &web.api.catalogue;
        let [markets, formats, regions] = choice.switches(catalogue, path, &filter.query());
        let everybody = Choice { bookmakers: None, ..*choice };
        let kept = everybody.fields(catalogue).into_iter().chain(filter.fields());
        Self {
            style: asset::board_style_path(),
            script: asset::board_path(),
            sandbox: web.settings.board == Some(World::Sandbox),
            market: choice.market_title(),
            markets,
            formats,
            regions,
            path: path.to_owned(),
            kept: owned(kept),
            offered: offered(web, choice),
            all: format!("{path}{}{}", everybody.query(catalogue), filter.query()),
            stream: format!("{path}/stream{}", choice.query(catalogue)),
            cut: screen.cut,
            cursor: screen.cursor.clone(),
            cut_text: clock_text(screen.cut),
            width: width(choice.format),
        }
    }

    /// Number of selected bookmakers; 0 if all are shown.
    pub(crate) fn chosen(&self) -> usize {
        self.offered.iter().filter(|own| own.chosen).count()
    }
}

/// Form fields that have a value.
pub(crate) fn owned<'a>(
    fields: impl Iterator<Item = (&'static str, &'a str)>,
) -> Vec<(&'static str, String)> {
    let filled = fields.filter(|(_, value)| !value.is_empty());
    filled.map(|(name, value)| (name, value.to_owned())).collect()
}

/// The bookmakers that price the sport, by name.
fn offered(web: &Web, choice: &Choice) -> Vec<Offered> {
    let Some(world) = web.settings.board else {
        return Vec::new();
    };
    let published = web.api.world(world).published();
    let mut pricing = BookmakerSet::default();
    for source in &published.snapshot.sport(choice.sport).sources {
        pricing.insert(source.bookmaker);
    }
    let all = web.api.catalogue.bookmakers().filter(|(id, _)| pricing.contains(*id));
    let mut offered: Vec<Offered> = all
        .map(|(id, own)| Offered {
            key: own.key.to_string(),
            title: own.title.to_string(),
            chosen: choice.bookmakers.is_some_and(|chosen| chosen.contains(id)),
        })
        .collect();
    offered.sort_by_key(|own| own.title.to_lowercase());
    offered
}

/// The time of day, to the second.
pub(crate) fn clock_text(at: Timestamp) -> String {
    at.to_string().get(11..19).unwrap_or_default().to_owned()
}

fn width(format: Format) -> &'static str {
    match format {
        Format::American | Format::Decimal => "w1",
        Format::Fractional => "w2",
    }
}
