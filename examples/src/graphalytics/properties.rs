//! The `.properties` file of a data set.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use anden::{Error, Result};

/// The properties of a data set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// The name of the graph.
    pub name: String,
    /// The values by key, without the common prefix `graph.NAME.`.
    values: BTreeMap<String, String>,
}

impl Properties {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or does not describe exactly one graph.
    pub fn read(path: &Path) -> Result<Self> {
        let place = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::Io(format!("{place}: cannot read: {error}").into()))?;
        let mut all = Self::default();
        for (index, line) in text.lines().enumerate() {
            let Some(rest) = line.trim().strip_prefix("graph.") else { continue };
            let pair = rest.split_once('=').and_then(|(key, value)| Some((key.split_once('.')?, value)));
            let Some(((name, key), value)) = pair else {
                return Err(Error::InvalidInput(
                    format!("{place}:{}: graph.NAME.KEY = VALUE expected", index + 1).into(),
                ));
            };
            if !all.name.is_empty() && all.name != name {
                let what = format!("{place}:{}: properties of {} expected, of {name} found", index + 1, all.name);
                return Err(Error::InvalidInput(what.into()));
            }
            name.clone_into(&mut all.name);
            all.values.insert(key.trim().to_owned(), value.trim().to_owned());
        }
        if all.name.is_empty() {
            return Err(Error::InvalidInput(format!("{place}: no properties of a graph").into()));
        }
        Ok(all)
    }

    /// The algorithms to run, in the order of the file.
    pub fn algorithms(&self) -> Vec<String> {
        let listed = self.values.get("algorithms").map(String::as_str).unwrap_or_default();
        listed.split(',').map(|name| name.trim().to_lowercase()).filter(|name| !name.is_empty()).collect()
    }

    /// Whether edges have weights.
    pub fn has_weights(&self) -> bool {
        self.values.get("edge-properties.names").is_some_and(|names| !names.is_empty())
    }

    /// A numeric value.
    ///
    /// # Errors
    /// The value is missing or not a number.
    pub fn number<T: FromStr>(&self, key: &str) -> Result<T> {
        let place = format!("graph.{}.{key}", self.name);
        let text = self.values.get(key).ok_or_else(|| Error::InvalidInput(format!("{place} is missing").into()))?;
        text.parse().map_err(|_| Error::InvalidInput(format!("{place}: a number expected, {text} found").into()))
    }
}
