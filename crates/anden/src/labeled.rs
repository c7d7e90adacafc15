//! Filtered views by edge types and vertex labels.
//!
//! The type of an edge is its property `type`. The labels of a vertex are its property `labels`, separated by `;`. So
//! every format and every predicate supports types and labels.

use std::collections::BTreeSet;

use anden_formats::{LABEL_SEPARATOR, LABELS_PROPERTY, TYPE_PROPERTY};
use anden_graph::property::{PropertyColumn, PropertySchema, PropertyType, TypedArray};

use crate::filter::MAX_BYTES;
use crate::{Error, Result, View};

impl View {
    /// The edges with one of these types; all vertices stay.
    ///
    /// The result is a part as of [`filter`](Self::filter). Keep the view if you have several questions.
    ///
    /// ```no_run
    /// let db = anden::Database::open_read_only("social.anden")?;
    /// let ranks = db.view()?.types(&["KNOWS"])?.pagerank(&Default::default())?;
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidInput`]: edges have no property `type`. As [`filter`](Self::filter).
    pub fn types(&self, types: &[impl AsRef<str>]) -> Result<Self> {
        require(self.edge_schema(), TYPE_PROPERTY, "the edges of this graph have no types")?;
        self.filter(Some(&is_one_of(TYPE_PROPERTY, types)), None)
    }

    /// The vertices with one of these labels, and the edges between them.
    ///
    /// # Errors
    /// [`Error::InvalidInput`]: vertices have no property `labels`. As [`filter`](Self::filter).
    pub fn labels(&self, labels: &[impl AsRef<str>]) -> Result<Self> {
        require(self.vertex_schema(), LABELS_PROPERTY, "the vertices of this graph have no labels")?;
        // A graph has few distinct label sets. Selecting them here makes the predicate a list of texts.
        let sets = distinct(&self.vertex_property(LABELS_PROPERTY)?);
        let is_wanted = |label: &str| labels.iter().any(|wanted| wanted.as_ref() == label);
        let sets: Vec<_> = sets.into_iter().filter(|set| labels_of(set).any(is_wanted)).collect();
        let predicate = is_one_of(LABELS_PROPERTY, &sets);
        // A predicate may be too short for all sets. Patterns take less text, but each comparison costs more.
        let predicate = if predicate.len() > MAX_BYTES { has_one_of(LABELS_PROPERTY, labels) } else { predicate };
        self.filter(None, Some(&predicate))
    }

    /// All labels of vertices, sorted; empty without labels.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn known_labels(&self) -> Result<Vec<String>> {
        match self.vertex_schema().find(LABELS_PROPERTY) {
            None => Ok(Vec::new()),
            Some(_) => {
                let sets = distinct(&self.vertex_property(LABELS_PROPERTY)?);
                let labels = sets.iter().flat_map(|set| labels_of(set)).map(str::to_owned);
                Ok(labels.collect::<BTreeSet<_>>().into_iter().collect())
            }
        }
    }

    /// All types of edges, sorted; empty without types.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn known_types(&self) -> Result<Vec<String>> {
        match self.edge_schema().find(TYPE_PROPERTY) {
            None => Ok(Vec::new()),
            Some(_) => Ok(distinct(&self.edge_property(TYPE_PROPERTY)?).into_iter().collect()),
        }
    }
}

/// Returns an error if the schema has no such property, or its type is not text.
fn require(schema: &PropertySchema, name: &str, what: &str) -> Result<()> {
    match schema.type_of(name) {
        Some(PropertyType::String) => Ok(()),
        Some(other) => Err(Error::InvalidInput(format!("{what}: their property {name:?} is {other}, not text").into())),
        None => Err(Error::InvalidInput(format!("{what}: there is no property {name:?}").into())),
    }
}

/// The labels of a set. A vertex with an empty text has none.
fn labels_of(set: &str) -> impl Iterator<Item = &str> {
    set.split(LABEL_SEPARATOR).filter(|label| !label.is_empty())
}

/// The predicate that a property is a set with one of these labels; false if the list is empty.
fn has_one_of(name: &str, labels: &[impl AsRef<str>]) -> String {
    // A label stands alone, or at the start, the end or in the middle of a set.
    let patterns = |label: &str| {
        let label = label.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_").replace('\'', "''");
        let ends = [("", ""), ("", ";%"), ("%;", ""), ("%;", ";%")];
        ends.map(|(before, after)| format!("\"{name}\" LIKE '{before}{label}{after}'")).join(" OR ")
    };
    // No set has a label that is empty or contains the separator.
    let can_exist = |label: &&str| !label.is_empty() && !label.contains(LABEL_SEPARATOR);
    let labels = labels.iter().map(AsRef::as_ref).filter(can_exist);
    let all: Vec<_> = labels.map(patterns).collect();
    if all.is_empty() { "1 = 0".to_owned() } else { all.join(" OR ") }
}

/// The predicate that a property equals one of these texts; false if the list is empty.
fn is_one_of(name: &str, texts: &[impl AsRef<str>]) -> String {
    // SQL escapes a quote by doubling it.
    let quoted: Vec<_> = texts.iter().map(|text| format!("'{}'", text.as_ref().replace('\'', "''"))).collect();
    // SQL has no empty IN list.
    match quoted.is_empty() {
        true => "1 = 0".to_owned(),
        false => format!("\"{name}\" IN ({})", quoted.join(", ")),
    }
}

/// The distinct texts of a column.
fn distinct(column: &PropertyColumn) -> BTreeSet<String> {
    let is_there = |row: &usize| column.validity().is_none_or(|nulls| nulls.is_valid(*row));
    let rows = (0..column.len()).filter(is_there);
    match column.values() {
        TypedArray::Coded { codes, texts } => {
            let codes: BTreeSet<u32> = rows.map(|row| codes.value(row)).collect();
            codes.into_iter().map(|code| texts.value(code as usize).to_owned()).collect()
        }
        TypedArray::String(array) => {
            let texts: BTreeSet<&str> = rows.map(|row| array.value(row)).collect();
            texts.into_iter().map(str::to_owned).collect()
        }
        _ => BTreeSet::new(),
    }
}
