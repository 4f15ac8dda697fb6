//! Converts the sections of adapters to their settings, and checks rules for several keys.

use super::*;

/// The adapters of a configuration, and all their faults.
pub(crate) fn read_adapters(
    sections: &BTreeMap<String, AdapterSection>,
    reader: &Reader,
    environment: &[(OsString, OsString)],
    faults: &mut Vec<Fault>,
) -> Vec<AdapterSettings> {
    let mut check = Check { reader, environment, faults };
    let mut owners: HashMap<&str, &str> = HashMap::new();
    let mut adapters = Vec::new();
    for (name, section) in sections {
        check.keys(name, section);
        if let Some(bookmaker) = &section.bookmaker
            && let Some(other) = owners.insert(bookmaker, name)
        {
            let why = format!(
                "is `{bookmaker}`, which `adapters.{other}` reads already; a bookmaker has one feed"
            );
            check.refuse(name, "bookmaker", &why);
        }
        adapters.push(check.settings(name, section));
    }
    adapters
}

struct Check<'a> {
    reader: &'a Reader,
    environment: &'a [(OsString, OsString)],
    faults: &'a mut Vec<Fault>,
}

impl Check<'_> {
    fn origin(&self, name: &str, key: &str) -> Origin {
        let origin = self.reader.origin(&format!("adapters.{name}.{key}"));
        let kind = || self.reader.origin(&format!("adapters.{name}.kind"));
        origin.or_else(kind).cloned().unwrap_or_default()
    }

    fn refuse(&mut self, name: &str, key: &str, why: &str) {
        let message = format!("`adapters.{name}.{key}` {why}");
        self.faults.push(Fault(self.origin(name, key), message));
    }

    /// Checks that all required keys are given, and only keys of the kind.
    fn keys(&mut self, name: &str, section: &AdapterSection) {
        let row = section.kind;
        if name.len() > NAME_BYTES_MAX {
            let why =
                format!("belongs to an adapter whose name has more than {NAME_BYTES_MAX} bytes");
            self.refuse(name, "kind", &why);
        }
        let prefix = format!("adapters.{name}.");
        let given: Vec<String> = self
            .reader
            .settings
            .iter()
            .filter(
                |setting| matches!(&setting.value, Some((origin, _)) if *origin != Origin::Default),
            )
            .filter_map(|setting| setting.path.strip_prefix(&prefix).map(ToOwned::to_owned))
            .collect();
        for key in given.iter().filter(|key| !row.takes(key)) {
            let near = did_you_mean(key, row.keys());
            let why = format!(
                "is not a key of kind `{}`{near}; `linesman feeds kinds` lists them",
                row.name
            );
            self.refuse(name, key, &why);
        }
        let has = |key: &str| given.iter().any(|given| given == key);
        for one_of in row.needs {
            let replaced = has("tape") && row.tape_replaces(one_of);
            if !replaced && !one_of.iter().any(|key| has(key)) {
                let why = format!("is missing: kind `{}` needs it", row.name);
                self.refuse(name, &one_of.join("` or `"), &why);
            }
        }
        if section.enabled && section.terms_accepted_by.is_none() {
            let why = format!("is missing: write who accepted the terms, and when ({})", row.terms);
            self.refuse(name, "terms_accepted_by", &why);
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        let found = self.environment.iter().find(|(own, _)| own.to_str() == Some(name));
        found.and_then(|(_, value)| value.to_str()).map(ToOwned::to_owned)
    }

    fn secret(&mut self, name: &str, key: &str, secret: &SecretRef, enabled: bool) -> SecretSource {
        match secret {
            SecretRef::File(path) => SecretSource::File(path.clone()),
            SecretRef::Env(variable) => {
                let value = self.variable(variable).unwrap_or_default();
                if value.is_empty() && enabled {
                    let why =
                        format!("names the environment variable {variable}, which is not set");
                    self.refuse(name, key, &why);
                }
                SecretSource::Given(value.into())
            }
        }
    }

    fn values(
        &mut self,
        name: &str,
        key: &str,
        entries: &BTreeMap<String, PlainOrSecretRef>,
        enabled: bool,
    ) -> BTreeMap<String, Value> {
        let mut values = BTreeMap::new();
        for (entry, value) in entries {
            let value = match value {
                PlainOrSecretRef::Plain(text) => Value::Plain(text.clone()),
                PlainOrSecretRef::Secret(secret) => {
                    Value::Secret(self.secret(name, key, secret, enabled))
                }
            };
            values.insert(entry.clone(), value);
        }
        values
    }

    fn settings(&mut self, name: &str, section: &AdapterSection) -> AdapterSettings {
        let enabled = section.enabled;
        if let Some(url) = &section.base_url
            && !url.starts_with("https://")
            && !url.starts_with("http://")
        {
            self.refuse(name, "base_url", "must begin with https://, or http:// for this machine");
        }
        AdapterSettings {
            name: name.to_owned(),
            enabled,
            accepted_by: section.terms_accepted_by.clone(),
            bookmaker: section.bookmaker.clone(),
            bookmakers: section.bookmakers.clone(),
            sports: section.sports.clone(),
            markets_map: section.markets_map.clone(),
            schedule: section.schedule.clone().unwrap_or_default(),
            access: Access {
                timeout: section.timeout,
                rate_per_minute: section.rate_per_minute,
                backoff_max: section.backoff_max,
                base_url: section.base_url.clone(),
                ca_file: section.ca_file.clone(),
            },
            stale_after: section.stale_after,
            remove_after: section.remove_after,
            in_play: section.in_play,
            tape_today: section.tape_today,
            record: section.record.clone().map(PathBuf::from),
            tape: section.tape.clone(),
            speed: section.speed,
            kind: self.kind(name, section),
        }
    }

    fn kind(&mut self, name: &str, section: &AdapterSection) -> KindSettings {
        let enabled = section.enabled;
        let mut secret = |key: &str, secret: &Option<SecretRef>| {
            secret.as_ref().map(|secret| self.secret(name, key, secret, enabled))
        };
        match section.kind.variant {
            Variant::Exec => KindSettings::Exec(ExecSettings {
                command: section.command.clone().unwrap_or_default(),
                env: self.values(name, "env", &section.env, enabled),
                path: self.variable("PATH").unwrap_or_default(),
                every: section.every,
                complete: section.complete,
            }),
            Variant::Mapped => KindSettings::Mapped(MappedSettings {
                mapping: section.mapping.clone(),
                recipe: section.recipe.clone(),
                vars: section.vars.clone(),
                urls: section.urls.clone().unwrap_or_default(),
                files: section.files.clone().unwrap_or_default(),
                headers: self.values(name, "headers", &section.headers, enabled),
                page: section.page.clone(),
            }),
            Variant::TheOddsApi => KindSettings::TheOddsApi(TheOddsApiSettings {
                api_key: secret("api_key", &section.api_key),
                regions: section.regions.clone().unwrap_or_default(),
                bookmakers: section.bookmakers_asked.clone().unwrap_or_default(),
                markets: section.markets.clone().unwrap_or_else(|| {
                    ["h2h", "spreads", "totals", "outrights"].map(str::to_owned).to_vec()
                }),
                reserve: section.reserve,
                scores: section.scores,
                scores_every: section.scores_every,
            }),
            Variant::Betfair => KindSettings::Betfair(BetfairSettings {
                app_key: secret("app_key", &section.app_key),
                username: secret("username", &section.username),
                password: secret("password", &section.password),
                cert: section.cert.clone().zip(section.cert_key.clone()),
                login_url: section.login_url.clone(),
                api_url: section.api_url.clone(),
                stream: section.stream.clone(),
                min_size: section.min_size,
                emit_every: section.emit_every,
                horizon: section.horizon,
            }),
        }
    }
}
