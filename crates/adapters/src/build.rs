//! Builds runnable adapters from the configuration: resolves bookmakers, compiles mappings, checks addresses.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::suggest::did_you_mean;
use domain::{BookmakerId, BookmakerSet, Catalogue, Format};
use feeds::adapter::betfair::{Betfair, Options};
use feeds::adapter::mapped::{Mapped, Mapping, Recipe};
use feeds::adapter::the_odds_api::{TheOddsApi, odds_format};
use feeds::adapter::{Names, Settings, Translator};
use feeds::push::Rights;

use crate::exec::Exec;
use crate::fetch::check_url;
use crate::files::Files;
use crate::mapped::MappedUpstream;
use crate::poll::{Poll, Upstream};
use crate::report::State;
use crate::runner::Context;
use crate::settings::{AdapterSettings, KindSettings, MappedSettings};
use crate::stream::Stream;
use crate::the_odds_api::TheOddsApiUpstream;

/// An adapter that can be run any number of times.
#[derive(Clone, Debug)]
pub struct Adapter {
    pub settings: Arc<AdapterSettings>,
    pub kind: Kind,
}

/// The prepared settings of each kind.
#[derive(Clone, Debug)]
pub enum Kind {
    Exec(Rights),
    Mapped { mapping: Arc<Mapping>, urls: Vec<String>, translation: Settings },
    TheOddsApi { translation: Settings, format: Format },
    Betfair { translation: Settings, options: Options },
}

impl Adapter {
    /// The translator for its input; `None` if a program prints messages, which need none.
    pub fn translator(&self) -> Option<Box<dyn Translator>> {
        match &self.kind {
            Kind::Exec(_) => None,
            Kind::Mapped { mapping, translation, .. } => {
                Some(Box::new(Mapped::new(Arc::clone(mapping), translation.clone())))
            }
            Kind::TheOddsApi { translation, format } => {
                Some(Box::new(TheOddsApi::new(translation.clone(), *format)))
            }
            Kind::Betfair { translation, options } => {
                Some(Box::new(Betfair::new(translation.clone(), *options)))
            }
        }
    }
}

/// A fault in a key of an adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildFault {
    pub adapter: String,
    pub key: &'static str,
    /// Completes "`adapters.NAME.KEY` …".
    pub why: String,
}

/// Prepares adapters.
///
/// # Errors
/// All faults of all adapters.
pub fn build(
    all: &[AdapterSettings],
    catalogue: &Arc<Catalogue>,
) -> Result<Vec<Adapter>, Vec<BuildFault>> {
    let mut faults = Vec::new();
    let mut adapters = Vec::new();
    for settings in all {
        let mut builder = Builder { settings, catalogue, faults: &mut faults };
        let translation = builder.translation(all);
        if let Some(kind) = builder.kind(translation) {
            adapters.push(Adapter { settings: Arc::new(settings.clone()), kind });
        }
    }
    if faults.is_empty() { Ok(adapters) } else { Err(faults) }
}

struct Builder<'a> {
    settings: &'a AdapterSettings,
    catalogue: &'a Arc<Catalogue>,
    faults: &'a mut Vec<BuildFault>,
}

impl Builder<'_> {
    fn refuse(&mut self, key: &'static str, why: String) {
        self.faults.push(BuildFault { adapter: self.settings.name.clone(), key, why });
    }

    fn bookmaker(&mut self, key: &'static str, name: &str) -> Option<BookmakerId> {
        let found = self.catalogue.bookmaker_id(name);
        if found.is_none() {
            let near = did_you_mean(name, self.catalogue.bookmakers().map(|(_, held)| &*held.key));
            self.refuse(
                key,
                format!("has an unknown bookmaker `{name}`{near}; add it with a catalogue file"),
            );
        }
        found
    }

    /// The settings that translators of all kinds take.
    fn translation(&mut self, all: &[AdapterSettings]) -> Settings {
        let mut settings = Settings::new(Arc::clone(self.catalogue));
        settings.bookmaker =
            self.settings.bookmaker.as_deref().and_then(|name| self.bookmaker("bookmaker", name));
        let mut owned = BookmakerSet::default();
        let others = all.iter().filter(|other| other.enabled && other.name != self.settings.name);
        for id in
            others.filter_map(|other| self.catalogue.bookmaker_id(other.bookmaker.as_deref()?))
        {
            owned.insert(id);
        }
        settings.owned = owned;
        let mut ours: BTreeMap<&str, &str> = BTreeMap::new();
        for (upstream, own) in self.settings.bookmakers.iter().filter(|(_, own)| !own.is_empty()) {
            self.bookmaker("bookmakers", own);
            if let Some(other) = ours.insert(own, upstream) {
                self.refuse(
                    "bookmakers",
                    format!("maps `{other}` and `{upstream}` to one bookmaker, `{own}`"),
                );
            }
        }
        for own in self.settings.sports.values().filter(|own| !own.is_empty()) {
            if self.catalogue.sport_id(own).is_none() {
                let near = did_you_mean(own, self.catalogue.sports().map(|(_, sport)| &*sport.key));
                self.refuse("sports", format!("has an unknown sport `{own}`{near}"));
            }
        }
        settings.names = Names {
            bookmakers: self.settings.bookmakers.clone(),
            sports: self.settings.sports.clone(),
            markets: self.settings.markets_map.clone(),
        };
        settings
    }

    fn kind(&mut self, translation: Settings) -> Option<Kind> {
        match &self.settings.kind {
            KindSettings::Exec(_) => {
                Some(Kind::Exec(Rights { bookmaker: translation.bookmaker, scores: true }))
            }
            KindSettings::Mapped(settings) => self.mapped(settings, translation),
            KindSettings::TheOddsApi(settings) => {
                let format = odds_format(settings.regions.iter().map(String::as_str));
                self.check_base_url();
                Some(Kind::TheOddsApi { translation, format })
            }
            KindSettings::Betfair(settings) => {
                for (key, url) in
                    [("login_url", &settings.login_url), ("api_url", &settings.api_url)]
                {
                    if let Some(Err(why)) = url.as_deref().map(check_url) {
                        self.refuse(key, why);
                    }
                }
                let options =
                    Options { min_size: settings.min_size.into(), emit_every: settings.emit_every };
                Some(Kind::Betfair { translation, options })
            }
        }
    }

    fn check_base_url(&mut self) {
        if let Some(Err(why)) = self.settings.access.base_url.as_deref().map(check_url) {
            self.refuse("base_url", why);
        }
    }

    fn mapped(&mut self, settings: &MappedSettings, translation: Settings) -> Option<Kind> {
        let (key, compiled) = match (&settings.recipe, &settings.mapping) {
            (Some(name), None) => {
                ("recipe", Recipe::find(name).and_then(|recipe| recipe.compile(&settings.vars)))
            }
            (None, Some(path)) => match std::fs::read_to_string(path) {
                Ok(text) => ("mapping", Mapping::compile(&text)),
                Err(error) => {
                    self.refuse("mapping", format!("cannot be read: {error}"));
                    return None;
                }
            },
            _ => {
                self.refuse("mapping", "and `recipe` exclude each other".to_owned());
                return None;
            }
        };
        let mut mapping = match compiled {
            Ok(mapping) => mapping,
            Err(faults) => {
                faults
                    .0
                    .into_iter()
                    .for_each(|fault| self.refuse(key, format!("is wrong: {fault}")));
                return None;
            }
        };
        if let Some(page) = &settings.page
            && let Err(faults) = mapping.set_page(&page.to_toml())
        {
            self.refuse("page", format!("is wrong: {faults}"));
        }
        if mapping.needs_bookmaker() && translation.bookmaker.is_none() {
            self.refuse(
                "bookmaker",
                "is missing: the mapping does not name a bookmaker".to_owned(),
            );
        }
        let urls =
            if settings.urls.is_empty() { mapping.urls().to_vec() } else { settings.urls.clone() };
        for why in urls.iter().filter_map(|url| check_url(url).err()) {
            self.refuse("urls", why);
        }
        if !settings.files.is_empty() && !settings.urls.is_empty() {
            self.refuse("files", "and `urls` exclude each other".to_owned());
        }
        Some(Kind::Mapped { mapping: Arc::new(mapping), urls, translation })
    }
}

/// Runs an adapter until it is dropped. An adapter that cannot run reports the failure and stays idle.
pub async fn run_adapter(adapter: Adapter, context: Context) {
    let clock = Arc::clone(&context.clock);
    let reporter = context.reporter.clone();
    let ran: Result<(), String> = match (&adapter.kind, &adapter.settings.kind) {
        (Kind::Exec(rights), KindSettings::Exec(settings)) => {
            Exec::new(context, settings.clone(), *rights).run().await;
            Ok(())
        }
        (Kind::Mapped { mapping, translation, .. }, KindSettings::Mapped(settings))
            if !settings.files.is_empty() && adapter.settings.tape.is_none() =>
        {
            let mapped = Box::new(Mapped::new(Arc::clone(mapping), translation.clone()));
            Files::new(context, settings.files.clone(), mapped).run().await;
            Ok(())
        }
        (Kind::Mapped { mapping, urls, translation }, KindSettings::Mapped(settings)) => {
            let upstream =
                MappedUpstream::new(mapping, translation.clone(), urls, &settings.headers);
            poll(context, upstream).await
        }
        (Kind::TheOddsApi { translation, format }, KindSettings::TheOddsApi(settings)) => {
            let translator = TheOddsApi::new(translation.clone(), *format);
            let base_url = adapter.settings.access.base_url.as_deref();
            let upstream = TheOddsApiUpstream::new(translator, settings, base_url, format.key());
            poll(context, upstream).await
        }
        (Kind::Betfair { translation, options }, KindSettings::Betfair(settings)) => {
            let translator = Betfair::new(translation.clone(), *options);
            Stream::new(context, settings.clone(), translator).run().await;
            Ok(())
        }
        (_, _) => Err("its kind does not fit its settings".to_owned()),
    };
    if let Err(why) = ran {
        reporter.note_failed(State::Failed, why, clock.now());
        std::future::pending::<()>().await;
    }
}

async fn poll(context: Context, upstream: impl Upstream) -> Result<(), String> {
    Poll::new(context, upstream, None)?.run().await;
    Ok(())
}
