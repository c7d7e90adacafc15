//! The properties of several inputs as those of one graph.
//!
//! Columns of all inputs are joined by name. An input that lacks a column has nulls there. Stated types win over
//! inferred ones; different types become the type that holds both.

use std::path::PathBuf;

use anden_base::message::shown;
use anden_graph::property::{Inference, PropertyColumn, PropertySchema, PropertyType};

use crate::epoch::EpochUnit;
use crate::opened::OpenedInput;
use crate::options::{SourceFacts, SourceOptions, WantedProperties};
use crate::part::PartProperties;
use crate::{Error, Result};

/// Joins the properties of all inputs. Inputs with inferred types get the joined types.
///
/// # Errors
/// Types of one name are incompatible, a wanted column does not exist, or the number of columns exceeds the limit.
pub(crate) fn unite(parts: &mut [OpenedInput], facts: &mut SourceFacts, options: &SourceOptions) -> Result<()> {
    let sides = [
        (&options.edge_properties, &options.edge_types, &mut facts.edge_properties),
        (&options.vertex_properties, &options.vertex_types, &mut facts.vertex_properties),
    ];
    for (side, (wanted, said, schema)) in sides.into_iter().enumerate() {
        parts.iter_mut().for_each(|part| take_epochs(&mut part.properties[side], options));
        *schema = united(parts, side, said)?;
        for part in parts.iter_mut() {
            let PartProperties { own, inferred, .. } = &mut part.properties[side];
            // Columns with inferred types are parsed with the joined type. Others are converted later.
            for (place, _) in inferred.iter().enumerate().filter(|(_, inference)| inference.is_some()) {
                let name = own.get(place).map(|(name, _)| name);
                if let Some(found) = name.and_then(|name| schema.type_of(name)) {
                    own.set_type(place, found);
                }
            }
        }
        if let Some(column) = options.time_column.as_ref().filter(|_| side == 0) {
            check_times(parts, column, schema)?;
        }
        // Only names that the caller gives can be missing.
        let WantedProperties::Named(names) = wanted else { continue };
        if let Some(missing) = names.iter().find(|name| schema.find(name).is_none()) {
            return Err(no_column(parts, side, options, missing, schema));
        }
    }
    Ok(())
}

/// Takes the columns that the caller names as numbers since 1970.
fn take_epochs(properties: &mut PartProperties, options: &SourceOptions) {
    for (name, unit) in &options.epochs {
        if let Some(column) = properties.own.find(name) {
            properties.set_epoch(column, *unit);
        }
    }
}

/// Checks that the inputs have times in `column`; `schema` joins their edge properties.
///
/// # Errors
/// The column is missing, or holds other values.
fn check_times(parts: &[OpenedInput], column: &str, schema: &PropertySchema) -> Result<()> {
    let name = shown(column.as_bytes());
    let types = |property_type| format!("--property-types {}", shown(format!("{column}:{property_type}").as_bytes()));
    let what = match schema.type_of(column) {
        Some(PropertyType::Date | PropertyType::Timestamp) => return Ok(()),
        Some(number) if number.is_numeric() => format!(
            "column {name}: expected the dates or timestamps that --snapshot-by needs, found type {number}: {} takes \
             seconds since 1970, and epoch_ms milliseconds",
            types("epoch_s")
        ),
        Some(other) => format!(
            "column {name}: expected the dates or timestamps that --snapshot-by needs, found type {other}: {} takes \
             texts such as 2012-05-31T18:00Z",
            types("timestamp")
        ),
        None => {
            let names = schema.iter().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
            match names.is_empty() {
                true => format!(
                    "expected the column {name} that --snapshot-by names, found none: --columns names the columns of \
                     text without a header, as in --columns source,target,time:epoch_s"
                ),
                false => format!("expected the column {name} that --snapshot-by names, found none beside {names}"),
            }
        }
    };
    // The first input that has other values, or else the first of edges.
    let has_other = |part: &&OpenedInput| part.properties[0].own.find(column).is_some();
    let of_edges = || parts.iter().find(|part| !part.is_of_vertices);
    match parts.iter().find(has_other).or_else(of_edges) {
        Some(part) => Err(Error::Input { path: part.path.clone(), what }),
        None => Err(Error::Parameter(what)),
    }
}

/// The error for a wanted property that no input has.
fn no_column(
    parts: &[OpenedInput],
    side: usize,
    options: &SourceOptions,
    missing: &str,
    schema: &PropertySchema,
) -> Error {
    let of_vertices = |part: &&OpenedInput| options.vertices.iter().any(|input| input.path.path() == part.path);
    let paths: Vec<_> = parts.iter().filter(|part| of_vertices(part) == (side == 1)).map(|part| &part.path).collect();
    let option = ["--properties", "--vertex-properties"][side];
    let mut what = format!("expected the column {} that {option} names, found none", shown(missing.as_bytes()));
    if paths.len() > 1 {
        what += " here or in the inputs after it";
    }
    let has = schema.iter().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
    if !has.is_empty() {
        what += &format!(" beside {has}");
    }
    match paths.first() {
        Some(path) => Error::Input { path: (*path).clone(), what },
        None => Error::Parameter(what),
    }
}

/// The facts about a column over all inputs.
#[derive(Default)]
struct Known {
    /// The type that some input states, and the path of that input.
    said: Option<(PropertyType, PathBuf)>,
    inference: Inference,
}

fn united(parts: &[OpenedInput], side: usize, said: &[(String, PropertyType)]) -> Result<PropertySchema> {
    let mut schema = PropertySchema::default();
    let mut columns: Vec<Known> = Vec::new();
    for part in parts {
        if let Some((name, _)) = part.said.property(side) {
            let place = match schema.find(name) {
                Some(place) => place,
                None => {
                    columns.push(Known::default());
                    schema.add(name.to_owned(), PropertyType::String)?
                }
            };
            let bad = |what: String| Error::Input { path: part.path.clone(), what };
            if part.properties[side].own.find(name).is_some() {
                let options = [("--edges", "--properties"), ("--vertices", "--vertex-properties")][side];
                return Err(bad(format!(
                    "column {name}: {0} TEXT=FILE gives all rows their {name}; leave it out of {0}, or name the other \
                     columns with {1}",
                    options.0, options.1
                )));
            }
            if let Some((known, found)) = columns[place].said.as_ref().map(|(known, found)| (known, found.display()))
                && *known != PropertyType::String
            {
                return Err(bad(format!("the property {name} is text, but a column of type {known} in {found}")));
            }
            columns[place].said = Some((PropertyType::String, part.path.clone()));
        }
        for (column, (name, own)) in part.properties[side].own.iter().enumerate() {
            let own = part.properties[side].epoch(column).map_or(own, |_| PropertyType::Timestamp);
            let place = match schema.find(name) {
                Some(place) => place,
                None => {
                    columns.push(Known::default());
                    schema.add(name.to_owned(), own)?
                }
            };
            // An inferred type yields to any type that an input or the caller states.
            if let Some(inference) = part.properties[side].inference(column) {
                columns[place].inference.join(inference);
                continue;
            }
            let clash = |expected: PropertyType, whence: &str| Error::Input {
                path: part.path.clone(),
                what: format!("column {}: expected type {expected}{whence}, found {own}", shown(name.as_bytes())),
            };
            // A type that the caller states wins, if the values of the input convert to it.
            if let Some(&(_, said)) = said.iter().find(|(known, _)| known == name)
                && !own.converts_to(said)
            {
                return Err(clash(said, ""));
            }
            let joined = match &columns[place].said {
                None => own,
                Some((known, path)) => {
                    known.joined(own).ok_or_else(|| clash(*known, &format!(" as in {}", path.display())))?
                }
            };
            columns[place].said = Some((joined, part.path.clone()));
        }
    }
    for (place, known) in columns.into_iter().enumerate() {
        let given = schema.get(place).and_then(|(name, _)| said.iter().find(|(known, _)| known == name));
        let given = given.map(|&(_, given)| given).or(known.said.map(|(said, _)| said));
        schema.set_type(place, given.unwrap_or(known.inference.property_type()));
    }
    Ok(schema)
}

/// The columns of one input among those of all inputs.
pub(crate) struct Union {
    path: PathBuf,
    /// By joined column: the position of the input's own column.
    places: Vec<Option<usize>>,
    /// By own column: the unit of numbers that become timestamps.
    epochs: Vec<Option<EpochUnit>>,
    /// A joined column with one value in all rows of this input.
    value: Option<(usize, String)>,
}

/// The column maps of an input's blocks, for edges and for vertices.
pub(crate) fn unions_of(part: &OpenedInput, facts: &SourceFacts) -> [Union; 2] {
    [(0, &facts.edge_properties), (1, &facts.vertex_properties)].map(|(side, schema)| Union {
        path: part.path.clone(),
        places: schema.iter().map(|(name, _)| part.properties[side].own.find(name)).collect(),
        epochs: part.properties[side].epochs.clone(),
        value: part.said.property(side).and_then(|(name, value)| Some((schema.find(name)?, value.to_owned()))),
    })
}

impl Union {
    /// Whether rows have a value that none of their columns holds.
    pub(crate) fn has_value(&self) -> bool {
        self.value.is_some()
    }

    /// The joined columns for `num_rows` rows of this input with the columns `own`.
    ///
    /// # Errors
    /// A value does not fit the joined type of its column.
    pub(crate) fn apply(
        &self,
        own: Vec<PropertyColumn>,
        num_rows: usize,
        schema: &PropertySchema,
    ) -> Result<Vec<PropertyColumn>> {
        let mut own: Vec<Option<PropertyColumn>> = own.into_iter().map(Some).collect();
        let columns =
            self.places.iter().enumerate().zip(schema.iter()).map(|((column, place), (name, property_type))| {
                if let Some((_, value)) = self.value.as_ref().filter(|(place, _)| *place == column) {
                    return Ok(PropertyColumn::repeated(value, num_rows));
                }
                // Another input has this column, so the rows of this one have no value.
                let Some(column) = place.and_then(|place| own.get_mut(place)?.take()) else {
                    return Ok(PropertyColumn::nulls(property_type, num_rows));
                };
                let bad = |what: &dyn std::fmt::Display| Error::Input {
                    path: self.path.clone(),
                    what: format!("column {}: {what}", shown(name.as_bytes())),
                };
                let column = match place.and_then(|place| self.epochs.get(place).copied().flatten()) {
                    Some(unit) => unit.timestamps(&column).map_err(|what| bad(&what))?,
                    None => column,
                };
                column.converted(property_type).map_err(|error| bad(&error))
            });
        columns.collect()
    }
}
