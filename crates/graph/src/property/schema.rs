//! The properties of a graph, by name.

use anden_base::message::shown;

use super::{OwnedValue, PropertyType, PropertyValue};
use crate::{Error, Result};

/// The largest number of properties of vertices, or of edges.
pub const MAX_PROPERTIES: usize = 1_000;
/// The longest name of a property.
pub const MAX_NAME_BYTES: usize = 255;

/// The names and types of properties, in the order of their columns. Names are unique.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PropertySchema {
    columns: Vec<(String, PropertyType)>,
}

impl PropertySchema {
    /// A schema without properties.
    pub const EMPTY: Self = Self { columns: Vec::new() };

    /// Makes a schema of these columns.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn new(columns: impl IntoIterator<Item = (String, PropertyType)>) -> Result<Self> {
        let mut schema = Self::default();
        for (name, property_type) in columns {
            schema.add(name, property_type)?;
        }
        Ok(schema)
    }

    /// Appends a property and returns its position.
    ///
    /// # Errors
    /// The name exists already, is empty, too long, or has control characters. The schema has [`MAX_PROPERTIES`]
    /// properties.
    pub fn add(&mut self, name: String, property_type: PropertyType) -> Result<usize> {
        let wrong = |what: String| Err(Error::Parameter(what));
        let shown = shown(name.as_bytes());
        if name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control) {
            return wrong(format!(
                "expected a name of a property of 1 to {MAX_NAME_BYTES} bytes, without control characters, found {shown}"
            ));
        }
        if self.find(&name).is_some() {
            return wrong(format!("there are two properties with the name {shown}: rename one of them"));
        }
        if self.columns.len() == MAX_PROPERTIES {
            return wrong(format!("expected at most {MAX_PROPERTIES} properties, found one more, {shown}"));
        }
        self.columns.push((name, property_type));
        Ok(self.columns.len() - 1)
    }

    /// Changes the type of the property at a position.
    ///
    /// # Panics
    /// If the property does not exist.
    pub fn set_type(&mut self, place: usize, property_type: PropertyType) {
        self.columns[place].1 = property_type;
    }

    /// The position of the property with this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|(known, _)| known == name)
    }

    /// The type of the property with this name.
    pub fn type_of(&self, name: &str) -> Option<PropertyType> {
        self.columns.iter().find(|(known, _)| known == name).map(|(_, property_type)| *property_type)
    }

    /// The most similar known name, for messages about an unknown name. It differs in at most a third of the
    /// characters.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        // A more distant name would mislead.
        let most = name.chars().count().div_ceil(3);
        let distances = self.columns.iter().map(|(known, _)| (edit_distance(known, name), &known[..]));
        distances.filter(|&(distance, _)| distance <= most).min().map(|(_, known)| known)
    }

    /// The names and types, in the order of the columns.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, PropertyType)> {
        self.columns.iter().map(|(name, property_type)| (&name[..], *property_type))
    }

    /// The name and type of a column.
    pub fn get(&self, place: usize) -> Option<(&str, PropertyType)> {
        self.columns.get(place).map(|(name, property_type)| (&name[..], *property_type))
    }

    /// A value of a column, which is a list if the column has lists.
    pub fn owned(&self, place: usize, value: PropertyValue<'_>) -> OwnedValue {
        OwnedValue::of(value, self.get(place).map_or(PropertyType::String, |(_, property_type)| property_type))
    }

    /// The number of properties.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether the schema has no properties.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }
}

/// The number of characters to insert, remove or replace to turn `first` into `second`, ignoring case.
fn edit_distance(first: &str, second: &str) -> usize {
    let second: Vec<char> = second.to_lowercase().chars().collect();
    // One row of the table of distances suffices.
    let mut row: Vec<usize> = (0..=second.len()).collect();
    for (index, letter) in first.to_lowercase().chars().enumerate() {
        // The entry above to the left is overwritten before it is read, so it is kept aside.
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (place, &other) in second.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[second.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found() {
        let schema = ["email", "e_mail_2", "size"].map(|name| (name.to_owned(), PropertyType::String));
        let schema = PropertySchema::new(schema).unwrap();
        let nearest = ["emial", "E-Mail", "emails", "sizes", "x", ""].map(|name| schema.nearest(name));
        assert_eq!(nearest, [Some("email"), Some("email"), Some("email"), Some("size"), None, None]);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }

    #[test]
    fn names_are_unique_and_show() {
        let mut schema = PropertySchema::default();
        assert_eq!(schema.add("size".into(), PropertyType::I64).unwrap(), 0);
        assert_eq!(schema.add("Size".into(), PropertyType::F64).unwrap(), 1);
        assert_eq!(schema.find("Size"), Some(1));
        assert_eq!(schema.type_of("Size"), schema.get(1).map(|(_, property_type)| property_type));
        assert_eq!(schema.type_of("Sizes"), None);
        let error = schema.add("size".into(), PropertyType::I64).unwrap_err().to_string();
        assert_eq!(error, "there are two properties with the name 'size': rename one of them");
        for name in ["", "a\nb", &"x".repeat(256)] {
            assert!(schema.add(name.into(), PropertyType::I64).is_err());
        }
        for i in 2..MAX_PROPERTIES {
            schema.add(format!("{i}"), PropertyType::String).unwrap();
        }
        assert!(schema.add("last".into(), PropertyType::String).is_err());
        assert_eq!(schema.len(), MAX_PROPERTIES);
    }
}
