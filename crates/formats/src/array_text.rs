//! Lists as the loaders of other databases take them in a field of CSV: items with `;` between them.

use std::borrow::Cow;

use anden_base::message::shown;
use anden_graph::property::{ColumnBuilder, ItemType, OwnedValue, PropertyType, PropertyValue, parse_list, push_list};

/// Separates the items.
const SEPARATOR: char = ';';

/// How a field holds the items of a list. An empty field is an empty list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayForm {
    pub(crate) item_type: ItemType,
    /// Whether a backslash before `;` makes it part of an item, as in Neptune. In Neo4j, no item can hold it.
    pub(crate) is_escaped: bool,
}

impl ArrayForm {
    /// Appends the list in a field to a column of lists.
    ///
    /// # Errors
    /// The expected and the found text, if an item has another type.
    pub(crate) fn push(self, field: &[u8], to: &mut ColumnBuilder) -> Result<(), String> {
        let wrong = |text: &[u8]| format!("expected {}, found {}", PropertyType::String.text_form(), shown(text));
        let text = std::str::from_utf8(field).map_err(|_| wrong(field))?;
        let property_type = self.item_type.property_type();
        let items = self.split(text).into_iter().map(|item| match self.item_type {
            ItemType::String => OwnedValue::parse(&item, property_type),
            // Blanks around other values mean nothing, as in fields.
            _ => OwnedValue::parse(item.trim_ascii(), property_type),
        });
        let items = items.collect::<Result<Vec<_>, _>>()?;
        let mut list = Vec::new();
        push_list(items.iter().map(OwnedValue::as_value), &mut list);
        to.push_text(&list)
    }

    fn split(self, text: &str) -> Vec<Cow<'_, str>> {
        let mut items: Vec<Cow<'_, str>> = Vec::new();
        if text.is_empty() {
            return items;
        }
        let mut is_continued = false;
        for part in text.split(SEPARATOR) {
            match items.last_mut().filter(|_| is_continued) {
                Some(item) => {
                    let item = item.to_mut();
                    // The separator replaces its backslash.
                    item.pop();
                    item.push(SEPARATOR);
                    item.push_str(part);
                }
                None => items.push(part.into()),
            }
            is_continued = self.is_escaped && part.ends_with('\\');
        }
        items
    }

    /// The field with the items of a list in JSON; `text_of` makes the text of an item.
    ///
    /// # Errors
    /// A field cannot hold the list.
    pub(crate) fn field(
        self,
        list: &str,
        text_of: impl Fn(PropertyValue<'_>) -> Result<Cow<'_, str>, String>,
    ) -> Result<String, String> {
        let refuse = |why: &str| Err(format!("the list {} {why}: write CSV", shown(list.as_bytes())));
        let Some(items) = parse_list(list.as_bytes(), self.item_type) else {
            return refuse(&format!("has not the type {}", PropertyType::List(self.item_type)));
        };
        let mut field = String::new();
        for (place, item) in items.iter().enumerate() {
            let text = text_of(item.as_value())?;
            if place > 0 {
                if self.is_escaped && field.ends_with('\\') {
                    return refuse("has an item that ends with a backslash, which would join it to the next one");
                }
                field.push(SEPARATOR);
            }
            match (item, text.contains(SEPARATOR), self.is_escaped) {
                (OwnedValue::Null, ..) => return refuse("has a null, which arrays there cannot hold"),
                (_, true, false) => return refuse("has an item with ';', which separates the items there"),
                (_, true, true) => field.push_str(&text.replace(SEPARATOR, "\\;")),
                (_, false, _) => field.push_str(&text),
            }
        }
        match items.len() {
            1 if field.is_empty() => refuse("has an empty text alone, which there is an empty list"),
            _ => Ok(field),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(field: &str, item_type: ItemType, is_escaped: bool) -> Result<String, String> {
        let mut column = ColumnBuilder::new(PropertyType::List(item_type));
        ArrayForm { item_type, is_escaped }.push(field.as_bytes(), &mut column)?;
        Ok(column.finish().get(0).to_string())
    }

    fn written(list: &str, item_type: ItemType, is_escaped: bool) -> Result<String, String> {
        ArrayForm { item_type, is_escaped }.field(list, |value| Ok(value.to_string().into()))
    }

    #[test]
    fn fields_come_back() {
        for (field, item_type, is_escaped, list) in [
            ("", ItemType::String, false, "[]"),
            ("a", ItemType::String, false, r#"["a"]"#),
            ("a; b;;\"ü\"", ItemType::String, false, r#"["a"," b","","\"ü\""]"#),
            (";", ItemType::String, false, r#"["",""]"#),
            (r"c:\;d", ItemType::String, false, r#"["c:\\","d"]"#),
            (r"a\;b;c", ItemType::String, true, r#"["a;b","c"]"#),
            (r"\;\;;x", ItemType::String, true, r#"[";;","x"]"#),
            ("1;-2", ItemType::I64, false, "[1,-2]"),
            ("0.5;1.0", ItemType::F64, true, "[0.5,1.0]"),
            ("true;false", ItemType::Boolean, false, "[true,false]"),
            ("2024-02-29", ItemType::Date, false, r#"["2024-02-29"]"#),
        ] {
            assert_eq!(read(field, item_type, is_escaped).as_deref(), Ok(list), "{field}");
            assert_eq!(written(list, item_type, is_escaped).as_deref(), Ok(field), "{list}");
        }
        assert_eq!(read(" 1 ; 2 ", ItemType::I64, false).as_deref(), Ok("[1,2]"));
    }

    #[test]
    fn wrong_items_are_refused() {
        for (field, item_type, expected) in [
            ("1;x", ItemType::I64, "expected a whole number of type i64, found 'x'"),
            ("1;;2", ItemType::I64, "expected a whole number of type i64, found ''"),
            ("yes", ItemType::Boolean, "expected true or false, found 'yes'"),
        ] {
            assert_eq!(read(field, item_type, false), Err(expected.to_owned()), "{field}");
        }
        for (list, is_escaped, expected) in [
            (r#"["a;b"]"#, false, "has an item with ';'"),
            (r#"["a",null]"#, false, "has a null"),
            (r#"[""]"#, false, "has an empty text alone"),
            (r#"["a\\","b"]"#, true, "ends with a backslash"),
            ("[1]", false, "has not the type string[]"),
        ] {
            let error = written(list, ItemType::String, is_escaped).unwrap_err();
            assert!(error.contains(expected), "{list}: {error}");
        }
    }
}
