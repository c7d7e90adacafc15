//! Selects the columns of keys, weights and properties in a file.

use parquet::basic::Type;

use super::ParquetFile;
use super::schema::{Logical, ParquetLeaf, Repeated, RowContent};
use crate::columns::{TableColumnNames, is_unnamed};
use crate::options::{ColumnName, InputColumns, KeyKind, SourceOptions, WantedProperties};
use crate::part::PartProperties;
use crate::{Error, Result};
use anden_base::message::shown;
use anden_graph::WeightType;

/// The least number of rows that are read at once, if rows have long lists.
const LEAST_ROWS_AT_ONCE: u64 = 256;

/// The positions of the columns to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowLayout {
    /// The keys of the sources. In a file of vertices: the keys.
    pub(super) source: usize,
    /// `None` in a file of vertices.
    pub(super) target: Option<usize>,
    pub(super) weight: Option<usize>,
    pub(super) properties: Vec<usize>,
}

impl RowLayout {
    /// The columns and properties of a file of edges.
    ///
    /// # Errors
    /// A column does not exist, or its type does not fit its role.
    pub(crate) fn of_edges(file: &ParquetFile, options: &SourceOptions) -> Result<(Self, PartProperties)> {
        let columns = ParquetRoleColumns(file);
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

    /// The type of the weights, if they are read and their column has it.
    pub(crate) fn weight_type(&self, file: &ParquetFile) -> Option<WeightType> {
        ParquetRoleColumns(file).leaf(self.weight?).weight_type()
    }

    /// The columns and properties of a file of vertices.
    ///
    /// # Errors
    /// A column does not exist, or its type does not fit its role.
    pub(crate) fn of_vertices(file: &ParquetFile, options: &SourceOptions) -> Result<(Self, PartProperties)> {
        let columns = ParquetRoleColumns(file);
        let places: Vec<usize> = columns.places().collect();
        let source = places[columns.names().vertex_role(options).map_err(|what| columns.refuse(what))?];
        columns.require_keys(source, "vertices", options)?;
        let mut layout = Self { source, target: None, weight: None, properties: Vec::new() };
        let properties = layout.add_properties(&columns, &options.vertex_properties)?;
        Ok((layout, properties))
    }

    /// Adds the wanted columns that are neither keys nor weights.
    fn add_properties(
        &mut self,
        columns: &ParquetRoleColumns<'_>,
        wanted: &WantedProperties,
    ) -> Result<PartProperties> {
        let mut properties = PartProperties::default();
        for place in columns.readable_places() {
            let leaf = columns.leaf(place);
            let is_taken = place == self.source || Some(place) == self.target || Some(place) == self.weight;
            if !is_taken && !is_unnamed(&leaf.name) && wanted.wants(&leaf.name) {
                let added = properties.own.add(leaf.name.clone(), leaf.property_type());
                added.map_err(|error| columns.refuse(error.to_string()))?;
                self.properties.push(place);
            }
        }
        Ok(properties)
    }

    /// Notes for users, with the name of the file: columns whose rows hold what is not read, and columns that lose their
    /// meaning.
    pub(crate) fn notes(&self, file: &ParquetFile) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        let mut note = |name: &str, what: String| {
            let note = format!("{}: column {} {what}", file.path.display(), shown(name.as_bytes()));
            // A map's keys and values are two columns, but one note suffices.
            if notes.last() != Some(&note) {
                notes.push(note);
            }
        };
        for (place, leaf) in file.leaves.iter().enumerate() {
            if let RowContent::Other(Repeated { column, kind }) = &leaf.content {
                note(column, format!("is left out: it holds {kind}, and only values and lists of values are read"));
            } else if (self.properties.contains(&place) || self.weight == Some(place))
                && let Some(what) = leaf.loss()
            {
                note(&leaf.name, what);
            }
        }
        notes
    }

    /// The columns whose rows hold what is not read.
    pub(crate) fn unread(file: &ParquetFile) -> impl Iterator<Item = &str> {
        file.leaves.iter().filter_map(|leaf| match &leaf.content {
            RowContent::Other(repeated) => Some(&repeated.column[..]),
            _ => None,
        })
    }

    /// The number of rows to read at once, if it is `most` for rows of single values. Lists make rows longer.
    pub(crate) fn rows_at_once(&self, file: &ParquetFile, most: u64) -> u64 {
        let num_values = |&place: &usize| {
            file.groups.iter().fold(0, |sum: u64, group| sum.saturating_add(group.chunks[place].num_values))
        };
        let longest = self.properties.iter().map(num_values).max().unwrap_or(0);
        let values_per_row = longest.checked_div(file.num_rows()).unwrap_or(0).max(1);
        // A claim of the file must not make pieces too small.
        (most / values_per_row).max(most.min(LEAST_ROWS_AT_ONCE))
    }

    /// The roles of the readable columns.
    pub(crate) fn columns(&self, file: &ParquetFile) -> InputColumns {
        let name = |place: usize| ColumnName::Name(file.leaves[place].name.clone());
        let is_read = |place: &usize| self.all().any(|read| read == *place);
        InputColumns {
            source: self.target.map(|_| name(self.source)),
            target: self.target.map(name),
            weight: self.weight.map(name),
            left_out: ParquetRoleColumns(file).readable_places().filter(|place| !is_read(place)).map(name).collect(),
        }
    }

    /// Whether each row is an edge.
    pub(crate) fn is_of_edges(&self) -> bool {
        self.target.is_some()
    }

    /// All columns that are read.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        let keys = [Some(self.source), self.target, self.weight].into_iter().flatten();
        keys.chain(self.properties.iter().copied())
    }
}

impl ParquetFile {
    /// Whether a column has this name and holds text.
    pub(crate) fn is_text(&self, name: &str) -> bool {
        self.leaves.iter().any(|leaf| leaf.name == name && leaf.is_single() && leaf.logical == Logical::Text)
    }

    /// The names of the columns with one value per row.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.leaves.iter().filter(|leaf| leaf.is_single()).map(|leaf| &leaf.name[..]).collect()
    }
}

/// The columns of a file that may have a role.
struct ParquetRoleColumns<'a>(&'a ParquetFile);

impl ParquetRoleColumns<'_> {
    fn leaf(&self, place: usize) -> &ParquetLeaf {
        &self.0.leaves[place]
    }

    /// The positions of the columns with one value per row.
    fn places(&self) -> impl Iterator<Item = usize> {
        self.readable_places().filter(|&place| self.leaf(place).is_single())
    }

    /// The positions of the columns with one value, or a list of values, per row.
    fn readable_places(&self) -> impl Iterator<Item = usize> {
        self.0.leaves.iter().enumerate().filter(|(_, leaf)| leaf.is_readable()).map(|(place, _)| place)
    }

    /// The names of these columns, indexed as in [`places`](Self::places).
    fn names(&self) -> TableColumnNames {
        TableColumnNames::new(self.places().map(|place| &self.leaf(place).name[..]))
    }

    fn refuse(&self, what: String) -> Error {
        Error::Input { path: self.0.path.clone(), what }
    }

    /// Requires keys: numbers that may be whole, or text.
    fn require_keys(&self, place: usize, role: &str, options: &SourceOptions) -> Result<()> {
        let leaf = self.leaf(place);
        let can_be = match leaf.logical {
            Logical::Plain => !matches!(leaf.physical(), Type::BOOLEAN | Type::FIXED_LEN_BYTE_ARRAY),
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
