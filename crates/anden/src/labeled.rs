//! Views of the edges of some types, and of the vertices with some labels.
//!
//! A type is the value of the property `type` of an edge. The labels of a vertex are its property `labels`, separated by
//! `;`. So a graph whose files have such columns has types and labels, and every format and predicate knows them.

use std::collections::BTreeSet;

use graph::formats::{LABEL_SEPARATOR, LABELS_PROPERTY, TYPE_PROPERTY};
use graph::property::{PropertyColumn, PropertySchema, PropertyType, TypedArray};

use crate::{Error, Result, View};

impl View {
    /// The view of the edges that have one of these types; all vertices stay.
    ///
    /// The view is one of a part of the graph, as [`filter`](Self::filter) makes it; keep it for several questions.
    ///
    /// ```no_run
    /// let db = anden::Database::open_read_only("social.anden")?;
    /// let ranks = db.view()?.types(&["KNOWS"])?.pagerank(&Default::default())?;
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidInput`]: edges have no types. As [`filter`](Self::filter).
    pub fn types(&self, types: &[impl AsRef<str>]) -> Result<Self> {
        require(self.edge_schema(), TYPE_PROPERTY, "the edges of this graph have no types")?;
        self.filter(Some(&is_one_of(TYPE_PROPERTY, types)), None)
    }

    /// The view of the vertices that have one of these labels, and of the edges between them.
    ///
    /// # Errors
    /// [`Error::InvalidInput`]: vertices have no labels. As [`filter`](Self::filter).
    pub fn labels(&self, labels: &[impl AsRef<str>]) -> Result<Self> {
        require(self.vertex_schema(), LABELS_PROPERTY, "the vertices of this graph have no labels")?;
        // Vertices have few sets of labels, among which no predicate has to look for one.
        let sets = distinct(&self.vertex_property(LABELS_PROPERTY)?);
        let is_wanted = |label: &str| labels.iter().any(|wanted| wanted.as_ref() == label);
        let sets: Vec<_> = sets.into_iter().filter(|set| set.split(LABEL_SEPARATOR).any(is_wanted)).collect();
        self.filter(None, Some(&is_one_of(LABELS_PROPERTY, &sets)))
    }

    /// The labels that vertices have; empty where they have none.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn known_labels(&self) -> Result<Vec<String>> {
        match self.vertex_schema().find(LABELS_PROPERTY) {
            None => Ok(Vec::new()),
            Some(_) => {
                let sets = distinct(&self.vertex_property(LABELS_PROPERTY)?);
                let labels = sets.iter().flat_map(|set| set.split(LABEL_SEPARATOR)).map(str::to_owned);
                Ok(labels.collect::<BTreeSet<_>>().into_iter().collect())
            }
        }
    }

    /// The types that edges have; empty where they have none.
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

/// Refuses a question about a property of text that is not there.
fn require(schema: &PropertySchema, name: &str, what: &str) -> Result<()> {
    let found = schema.find(name).and_then(|place| schema.get(place));
    match found {
        Some((_, PropertyType::String)) => Ok(()),
        Some((_, other)) => Err(Error::InvalidInput(format!("{what}: their property {name:?} is {other}, not text"))),
        None => Err(Error::InvalidInput(format!("{what}: there is no property {name:?}"))),
    }
}

/// The predicate that a property is one of these texts; never true where there are none.
fn is_one_of(name: &str, texts: &[impl AsRef<str>]) -> String {
    let quoted: Vec<_> = texts.iter().map(|text| format!("'{}'", text.as_ref().replace('\'', "''"))).collect();
    match quoted.is_empty() {
        true => "1 = 0".to_owned(),
        false => format!("\"{name}\" IN ({})", quoted.join(", ")),
    }
}

/// The texts of a column, each once.
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
