//! Mappings that ship with the program. Their `${name}` are replaced with values of `vars`.

use std::collections::BTreeMap;

use domain::suggest::did_you_mean;

use super::compile::{Faults, Mapping};

/// A mapping with addresses and variables.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    pub name: &'static str,
    text: &'static str,
}

/// All recipes.
pub const RECIPES: [Recipe; 3] = [
    Recipe { name: "kambi", text: include_str!("recipes/kambi.toml") },
    Recipe { name: "kalshi", text: include_str!("recipes/kalshi.toml") },
    Recipe { name: "polymarket", text: include_str!("recipes/polymarket.toml") },
];

/// Maximum length of a variable's value, in bytes.
const VAR_BYTES_MAX: usize = 100;

impl Recipe {
    /// The recipe of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn find(name: &str) -> Result<Self, Faults> {
        RECIPES.into_iter().find(|recipe| recipe.name == name).ok_or_else(|| {
            let near = did_you_mean(name, RECIPES.iter().map(|recipe| recipe.name));
            let all = RECIPES.map(|recipe| recipe.name).join(", ");
            Faults(vec![format!("there is no recipe `{name}`{near} (there are {all})")])
        })
    }

    /// The TOML as shipped, to read or as a starting point for a mapping.
    pub fn text(self) -> &'static str {
        self.text
    }

    /// The variables with their defaults; one with an empty default must be given.
    pub fn vars(self) -> BTreeMap<String, String> {
        let top: toml::Table = self.text.parse().unwrap_or_default();
        let vars = top.get("vars").and_then(toml::Value::as_table).into_iter().flatten();
        vars.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
    }

    /// The mapping with the variables filled in.
    ///
    /// # Errors
    /// A variable is unknown, missing, or has a character that does not occur in names and addresses.
    pub fn compile(self, given: &BTreeMap<String, String>) -> Result<Mapping, Faults> {
        let mut vars = self.vars();
        let mut faults = Vec::new();
        for (name, value) in given {
            let plain = |c: char| c.is_alphanumeric() || " -_.,:*&/".contains(c);
            if !vars.contains_key(name) {
                let near = did_you_mean(name, vars.keys().map(String::as_str));
                faults.push(format!("vars: the recipe {} has no `{name}`{near}", self.name));
            } else if value.is_empty() || value.len() > VAR_BYTES_MAX || !value.chars().all(plain) {
                faults.push(format!(
                    "vars.{name}: must be a short text of letters, digits and -_.,:*&/"
                ));
            } else {
                vars.insert(name.clone(), value.clone());
            }
        }
        for (name, _) in
            vars.iter().filter(|(name, value)| value.is_empty() && !given.contains_key(*name))
        {
            faults.push(format!("vars.{name} is missing: the recipe {} needs it", self.name));
        }
        if !faults.is_empty() {
            return Err(Faults(faults));
        }
        let mut text = self.text.to_owned();
        for (name, value) in &vars {
            text = text.replace(&format!("${{{name}}}"), value);
        }
        Mapping::compile(&text)
    }
}
