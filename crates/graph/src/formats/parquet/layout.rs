//! Which columns of a file are keys, weights and properties.

use super::ParquetFile;
use super::footer::{Leaf, Logical, Physical, Repeated};
use super::property::{loss, property_type};
use crate::formats::columns::{ColumnNames, is_unnamed};
use crate::formats::options::{ColumnName, InputColumns, KeyKind, SourceOptions, WantedProperties};
use crate::formats::part::PartProperties;
use crate::formats::shown;
use crate::{Error, Result};

/// The columns that are read, by their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::formats) struct RowLayout {
    /// The keys of the sources; in a file of vertices, of the vertices.
    pub(super) source: usize,
    /// In a file of vertices: none.
    pub(super) target: Option<usize>,
    pub(super) weight: Option<usize>,
    pub(super) properties: Vec<usize>,
}

impl RowLayout {
    /// The columns of a file of edges, and its properties.
    ///
    /// # Errors
    /// A column is not there, or not of a type that it can be.
    pub(in crate::formats) fn of_edges(file: &ParquetFile, options: &SourceOptions) -> Result<(Self, PartProperties)> {
        let columns = Columns(file);
        let places: Vec<usize> = columns.places().collect();
        let is_numeric = |number: usize| columns.leaf(places[number]).is_numeric();
        let roles = columns.names().edge_roles(options, is_numeric).map_err(|what| columns.refuse(what))?;
        let (source, target) = (places[roles.source], places[roles.target]);
        let weight = roles.weight.map(|weight| places[weight]);
        let mut layout = Self { source, target: Some(target), weight, properties: Vec::new() };
        for (name, place) in [("sources", source), ("targets", target)] {
            columns.require_keys(place, name, options)?;
        }
        if let Some(weight) = weight {
            columns.require_numbers(weight)?;
        }
        let properties = layout.add_properties(&columns, &options.edge_properties)?;
        Ok((layout, properties))
    }

    /// The columns of a file of vertices, and its properties.
    ///
    /// # Errors
    /// A column is not there, or not of a type that it can be.
    pub(in crate::formats) fn of_vertices(
        file: &ParquetFile,
        options: &SourceOptions,
    ) -> Result<(Self, PartProperties)> {
        let columns = Columns(file);
        let places: Vec<usize> = columns.places().collect();
        let source = places[columns.names().vertex_role(options).map_err(|what| columns.refuse(what))?];
        columns.require_keys(source, "vertices", options)?;
        let mut layout = Self { source, target: None, weight: None, properties: Vec::new() };
        let properties = layout.add_properties(&columns, &options.vertex_properties)?;
        Ok((layout, properties))
    }

    /// Takes the wanted columns of those that are no keys and no weights.
    fn add_properties(&mut self, columns: &Columns<'_>, wanted: &WantedProperties) -> Result<PartProperties> {
        let mut properties = PartProperties::default();
        for place in columns.places() {
            let leaf = columns.leaf(place);
            let is_taken = place == self.source || Some(place) == self.target || Some(place) == self.weight;
            if !is_taken && !is_unnamed(&leaf.name) && wanted.wants(&leaf.name) {
                let added = properties.own.add(leaf.name.clone(), property_type(leaf));
                added.map_err(|error| columns.refuse(error.to_string()))?;
                self.properties.push(place);
            }
        }
        Ok(properties)
    }

    /// What users should know about the columns, with the name of the file: which are left out because a row of them
    /// holds several values, and which are not read as what they are.
    pub(in crate::formats) fn notes(&self, file: &ParquetFile) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        let mut note = |name: &str, what: String| {
            let note = format!("{}: column {} {what}", file.path.display(), shown(name.as_bytes()));
            // The keys and values of maps are two columns here.
            if notes.last() != Some(&note) {
                notes.push(note);
            }
        };
        for (place, leaf) in file.leaves().iter().enumerate() {
            if let Some(Repeated { column, kind }) = &leaf.repeated {
                note(column, format!("is left out: it holds {kind}, and only columns with one value a row are read"));
            } else if (self.properties.contains(&place) || self.weight == Some(place))
                && let Some(what) = loss(leaf)
            {
                note(&leaf.name, what);
            }
        }
        notes
    }

    /// The columns of a file that are not read, because a row of them holds several values.
    pub(in crate::formats) fn unread(file: &ParquetFile) -> impl Iterator<Item = &str> {
        file.leaves().iter().filter_map(|leaf| leaf.repeated.as_ref()).map(|repeated| &repeated.column[..])
    }

    /// The roles of the columns with one value a row.
    pub(in crate::formats) fn columns(&self, file: &ParquetFile) -> InputColumns {
        let name = |place: usize| ColumnName::Name(file.leaves()[place].name.clone());
        let is_read = |place: &usize| self.all().any(|read| read == *place);
        InputColumns {
            source: self.target.map(|_| name(self.source)),
            target: self.target.map(name),
            weight: self.weight.map(name),
            left_out: Columns(file).places().filter(|place| !is_read(place)).map(name).collect(),
        }
    }

    /// All columns that are read.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        let keys = [Some(self.source), self.target, self.weight].into_iter().flatten();
        keys.chain(self.properties.iter().copied())
    }
}

/// The columns of a file that may be asked for.
struct Columns<'a>(&'a ParquetFile);

impl Columns<'_> {
    fn leaf(&self, place: usize) -> &Leaf {
        &self.0.leaves()[place]
    }

    /// The places of columns with one value a row.
    fn places(&self) -> impl Iterator<Item = usize> {
        self.0.leaves().iter().enumerate().filter(|(_, leaf)| leaf.repeated.is_none()).map(|(place, _)| place)
    }

    /// Their names, by their numbers among [`places`](Self::places).
    fn names(&self) -> ColumnNames {
        ColumnNames::new(self.places().map(|place| &self.leaf(place).name[..]))
    }

    fn refuse(&self, what: String) -> Error {
        Error::Input { path: self.0.path.clone(), what }
    }

    /// Keys are whole numbers, decimal ones without places included, or text.
    fn require_keys(&self, place: usize, role: &str, options: &SourceOptions) -> Result<()> {
        let leaf = self.leaf(place);
        let is_whole = matches!(leaf.physical, Physical::Int32 | Physical::Int64);
        let can_be = match leaf.logical {
            Logical::Plain => is_whole || leaf.physical == Physical::Bytes,
            Logical::Unsigned | Logical::Text | Logical::Decimal { scale: 0 } => true,
            _ => false,
        };
        if can_be {
            return self.0.check_rows(place);
        }
        let expected = if options.keys == KeyKind::Integer { "whole numbers" } else { "text or whole numbers" };
        let (name, found) = (shown(leaf.name.as_bytes()), leaf.kind_name());
        let (chosen, option) = match role {
            "sources" => (&options.source_column, "source-column"),
            "targets" => (&options.target_column, "target-column"),
            _ => (&options.vertex_column, "vertex-column"),
        };
        let hint = if chosen.is_none() { format!(" (--{option} NAME says which it is)") } else { String::new() };
        Err(self.refuse(format!("column {name}: expected {expected} as keys of {role}, found {found}{hint}")))
    }

    fn require_numbers(&self, place: usize) -> Result<()> {
        let leaf = self.leaf(place);
        if leaf.is_numeric() {
            return Ok(());
        }
        let (name, found) = (shown(leaf.name.as_bytes()), leaf.kind_name());
        Err(self.refuse(format!("column {name}: expected numbers as weights, found {found}")))
    }
}
