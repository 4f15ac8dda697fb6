//! Upstreams of the kind `mapped`: addresses whose answers are translated by a mapping.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::Timestamp;
use feeds::adapter::mapped::{Mapped, Mapping};
use feeds::adapter::{Drift, Settings, Translator as _};
use reqwest::Url;

use crate::fetch::{Fetched, Request};
use crate::poll::{Received, UnitSpec, Upstream, unit_of};
use crate::settings::{Secret, Value};

#[derive(Debug)]
pub(crate) struct MappedUpstream {
    mapped: Mapped,
    mapping: Arc<Mapping>,
    /// Units and their addresses.
    urls: Vec<(Box<str>, String)>,
    headers: BTreeMap<String, Value>,
    /// The value of the page that was last requested, if pages are counted.
    step: u64,
}

impl MappedUpstream {
    pub(crate) fn new(
        mapping: &Arc<Mapping>,
        translation: Settings,
        urls: &[String],
        headers: &BTreeMap<String, Value>,
    ) -> Self {
        let mut units: Vec<(Box<str>, String)> = Vec::new();
        for url in urls {
            let mut unit = unit_of(url);
            // Addresses that differ only in their query are distinguished by number.
            let same = units.iter().filter(|(own, _)| own.split('#').next() == Some(&unit)).count();
            if same > 0 {
                unit = format!("{unit}#{}", same + 1).into();
            }
            units.push((unit, url.clone()));
        }
        let own =
            mapping.headers().iter().map(|(name, text)| (name.clone(), Value::Plain(text.clone())));
        let mut all: BTreeMap<String, Value> = own.collect();
        all.extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        Self {
            mapped: Mapped::new(Arc::clone(mapping), translation),
            mapping: Arc::clone(mapping),
            urls: units,
            headers: all,
            step: 0,
        }
    }
}

impl Upstream for MappedUpstream {
    fn units(&self) -> Vec<UnitSpec> {
        let unit = |(name, _): &(Box<str>, String)| UnitSpec { name: name.clone(), every: None };
        self.urls.iter().map(unit).collect()
    }

    fn request(&self, unit: &str, page: Option<&str>) -> Result<Request, String> {
        let (_, url) =
            self.urls.iter().find(|(name, _)| &**name == unit).ok_or("there is no such unit")?;
        let mut url = Url::parse(url).map_err(|_| "the address cannot be read".to_owned())?;
        if let (Some(page), Some(value)) = (self.mapping.page(), page) {
            let kept: Vec<(String, String)> =
                url.query_pairs().into_owned().filter(|(name, _)| *name != page.param).collect();
            url.query_pairs_mut().clear().extend_pairs(kept).append_pair(&page.param, value);
        }
        let mut headers: Vec<(String, Secret)> = Vec::new();
        for (name, value) in &self.headers {
            headers.push((name.clone(), value.read()?));
        }
        Ok(Request { url: url.into(), headers, body: None })
    }

    fn receive(&mut self, unit: &str, fetched: &Fetched, at: Timestamp) -> Result<Received, Drift> {
        let read = self.mapped.translate(unit, &fetched.body, at)?;
        let next = match self.mapping.page().map(|page| page.step) {
            Some(Some(step)) if read.items > 0 => {
                self.step += step;
                Some(self.step.to_string())
            }
            Some(Some(_)) | None => None,
            Some(None) => self.mapped.next_page().map(ToOwned::to_owned),
        };
        if next.is_none() {
            self.step = 0;
        }
        Ok(Received { read: Some(read), next })
    }

    fn begin(&mut self) {
        self.step = 0;
    }
}
