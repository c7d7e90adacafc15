//! The properties of several inputs as those of one graph.
//!
//! The columns of all inputs are joined by name. An input that lacks one has nulls there. Types that
//! text was only taken for give way to those that are said; types that differ become the one that
//! holds both.

use std::path::PathBuf;

use super::message::shown;
use super::options::{SourceFacts, SourceOptions, WantedProperties};
use super::part::{Part, PartProperties};
use crate::property::{Inference, PropertyColumn, PropertySchema, PropertyType};
use crate::{Error, Result};

/// Tells the properties of all inputs together, and gives inputs whose types are inferred those types.
///
/// # Errors
/// Types of one name do not go together, a column that is wanted is not there, or there are too many.
pub(super) fn unite(parts: &mut [Part], facts: &mut SourceFacts, options: &SourceOptions) -> Result<()> {
    let sides = [
        (&options.edge_properties, &options.edge_types, &mut facts.edge_properties),
        (&options.vertex_properties, &options.vertex_types, &mut facts.vertex_properties),
    ];
    for (side, (wanted, said, schema)) in sides.into_iter().enumerate() {
        *schema = united(parts, side, said)?;
        for part in parts.iter_mut() {
            let PartProperties { own, inferred, .. } = &mut part.properties[side];
            for (place, _) in inferred.iter().enumerate().filter(|(_, inference)| inference.is_some()) {
                let name = own.get(place).map(|(name, _)| name);
                if let Some((_, found)) = name.and_then(|name| schema.get(schema.find(name)?)) {
                    own.set_type(place, found);
                }
            }
        }
        let WantedProperties::Named(names) = wanted else { continue };
        if let Some(missing) = names.iter().find(|name| schema.find(name).is_none()) {
            return Err(no_column(parts, side, options, missing, schema));
        }
    }
    Ok(())
}

/// No input has a column that is to be a property.
fn no_column(parts: &[Part], side: usize, options: &SourceOptions, missing: &str, schema: &PropertySchema) -> Error {
    let of_vertices = |part: &&Part| options.vertices.iter().any(|input| input.path == part.path);
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

/// What is known of a column over all inputs.
#[derive(Default)]
struct Known {
    /// The type that some input says, and which.
    said: Option<(PropertyType, PathBuf)>,
    inference: Inference,
}

fn united(parts: &[Part], side: usize, said: &[(String, PropertyType)]) -> Result<PropertySchema> {
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
            let place = match schema.find(name) {
                Some(place) => place,
                None => {
                    columns.push(Known::default());
                    schema.add(name.to_owned(), own)?
                }
            };
            if let Some(inference) = part.properties[side].inference(column) {
                columns[place].inference.join(inference);
                continue;
            }
            let clash = |expected: PropertyType, whence: &str| Error::Input {
                path: part.path.clone(),
                what: format!("column {}: expected type {expected}{whence}, found {own}", shown(name.as_bytes())),
            };
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

/// The columns of one input among those of all.
pub(super) struct Union {
    path: PathBuf,
    /// By column of all inputs: which of this one's it is.
    places: Vec<Option<usize>>,
    /// A column of all inputs that has one value in all rows of this one.
    value: Option<(usize, String)>,
}

/// How the blocks of an input get the columns of all: of edges, and of vertices.
pub(super) fn unions_of(part: &Part, facts: &SourceFacts) -> [Union; 2] {
    [(0, &facts.edge_properties), (1, &facts.vertex_properties)].map(|(side, schema)| Union {
        path: part.path.clone(),
        places: schema.iter().map(|(name, _)| part.properties[side].own.find(name)).collect(),
        value: part.said.property(side).and_then(|(name, value)| Some((schema.find(name)?, value.to_owned()))),
    })
}

impl Union {
    /// Whether rows have a value that no column of their own gives.
    pub(super) fn has_value(&self) -> bool {
        self.value.is_some()
    }

    /// The columns of all inputs for `num_rows` rows of this one, whose own columns are `own`.
    ///
    /// # Errors
    /// A value is none of the type that its column has over all inputs.
    pub(super) fn apply(
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
                let Some(column) = place.and_then(|place| own.get_mut(place)?.take()) else {
                    return Ok(PropertyColumn::nulls(property_type, num_rows));
                };
                column.converted(property_type).map_err(|error| Error::Input {
                    path: self.path.clone(),
                    what: format!("column {}: {error}", shown(name.as_bytes())),
                })
            });
        columns.collect()
    }
}
