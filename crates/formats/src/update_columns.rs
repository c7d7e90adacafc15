//! The columns of an update line: parsing and writing.
//!
//! Blanks separate columns. A column in double quotes may contain anything: blanks unchanged, and after a backslash
//! `"`, `\`, `n`, `r` and `t` for a quote, a backslash, line ends and a tab. In a line that adds an edge, each column
//! after the ends may be a property `NAME=VALUE`, with either part in quotes.

use std::ops::Range;

use anden_graph::property::{Inference, PropertyType, PropertyValue};

/// The number of columns for the sign of an update and the ends of its edge.
const ENDS: usize = 3;
/// The word for a missing value.
const NULL: &str = "null";

/// A column: the range of its text, and whether it was quoted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UpdateColumn {
    pub text: Range<usize>,
    pub is_quoted: bool,
    /// Whether the column is a property name. The next column is its value.
    pub is_name: bool,
}

/// The columns of a line.
#[derive(Debug, Default)]
pub(crate) struct UpdateColumns {
    found: Vec<UpdateColumn>,
    /// The text of all columns if some were quoted; otherwise empty, and ranges refer to the line.
    unquoted: String,
}

impl UpdateColumns {
    /// Finds the columns of a line.
    ///
    /// # Errors
    /// The expected text, if quotes are wrong.
    pub fn find(&mut self, line: &str) -> Result<(), &'static str> {
        self.found.clear();
        self.unquoted.clear();
        // Most lines have no quotes, so their columns need no copy.
        if line.as_bytes().contains(&b'"') {
            return self.find_quoted(line);
        }
        // The addresses give the range of a column without a second search.
        let start_of_line = line.as_ptr().addr();
        for column in line.split_ascii_whitespace() {
            let start = column.as_ptr().addr() - start_of_line;
            // Only an added edge has properties. Elsewhere, `=` is text.
            match column.find('=').filter(|_| self.may_be_property(line)) {
                Some(mark) => {
                    self.push(start..start + mark, false, true);
                    self.push(start + mark + 1..start + column.len(), false, false);
                }
                None => self.push(start..start + column.len(), false, false),
            }
        }
        Ok(())
    }

    /// Whether the next column may be a property: the line adds an edge, and both ends are known.
    fn may_be_property(&self, line: &str) -> bool {
        self.found.len() >= ENDS && self.text(line, &self.found[0]) == "+"
    }

    fn find_quoted(&mut self, line: &str) -> Result<(), &'static str> {
        let mut rest = line.trim_ascii_start();
        while !rest.is_empty() {
            // Asked before the column is added, because the answer counts the columns.
            let may_be_property = self.may_be_property(line);
            rest = self.part(rest, may_be_property)?;
            if let Some(value) = rest.strip_prefix('=').filter(|_| may_be_property) {
                if let Some(name) = self.found.last_mut() {
                    name.is_name = true;
                }
                rest = self.part(value, false)?;
            }
            // Text right behind a closing quote would silently become another column.
            if !rest.is_empty() && !rest.starts_with(|next: char| next.is_ascii_whitespace()) {
                return Err("a blank behind a closing quote");
            }
            rest = rest.trim_ascii_start();
        }
        Ok(())
    }

    /// Takes a column up to a blank, or to its closing quote, or up to `=` if it `may_be_property`. Returns the rest.
    fn part<'t>(&mut self, text: &'t str, may_be_property: bool) -> Result<&'t str, &'static str> {
        let start = self.unquoted.len();
        let rest = match text.strip_prefix('"') {
            Some(quoted) => unquote(quoted, &mut self.unquoted)?,
            None => {
                let is_end = |next: char| next.is_ascii_whitespace() || may_be_property && next == '=';
                let (column, rest) = text.split_at(text.find(is_end).unwrap_or(text.len()));
                self.unquoted.push_str(column);
                rest
            }
        };
        self.push(start..self.unquoted.len(), text.starts_with('"'), false);
        Ok(rest)
    }

    fn push(&mut self, text: Range<usize>, is_quoted: bool, is_name: bool) {
        self.found.push(UpdateColumn { text, is_quoted, is_name });
    }

    /// The columns.
    pub fn all(&self) -> &[UpdateColumn] {
        &self.found
    }

    /// The text of a column of `line`, the line that was parsed.
    pub fn text<'a>(&'a self, line: &'a str, column: &UpdateColumn) -> &'a str {
        // If all columns are empty, both texts give empty ranges.
        let text = if self.unquoted.is_empty() { line } else { &self.unquoted };
        &text[column.text.clone()]
    }
}

/// The columns of a line that is no update, such as a question or a key: blanks separate them, and quotes are resolved.
///
/// # Errors
/// The expected text, if quotes are wrong.
pub fn split_columns(line: &str) -> Result<Vec<String>, &'static str> {
    let mut columns = UpdateColumns::default();
    columns.find(line)?;
    Ok(columns.all().iter().map(|column| columns.text(line, column).to_owned()).collect())
}

/// Appends the text before the closing quote; returns the text behind it.
fn unquote<'a>(quoted: &'a str, to: &mut String) -> Result<&'a str, &'static str> {
    let mut rest = quoted;
    loop {
        let Some(end) = rest.find(['"', '\\']) else { return Err("a closing quote") };
        to.push_str(&rest[..end]);
        let (mark, behind) = rest[end..].split_at(1);
        if mark == "\"" {
            return Ok(behind);
        }
        to.push(match behind.bytes().next() {
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            _ => return Err("one of \" \\ n r t behind a backslash"),
        });
        rest = &behind[1..];
    }
}

/// A property value in an update line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineValue<'a> {
    /// The word `null`, which removes the value.
    Null,
    /// Text.
    Text {
        /// The text.
        text: &'a str,
        /// Whether the text was quoted.
        is_quoted: bool,
    },
}

impl<'a> LineValue<'a> {
    pub(crate) fn of(text: &'a str, is_quoted: bool) -> Self {
        match text == NULL && !is_quoted {
            true => Self::Null,
            false => Self::Text { text, is_quoted },
        }
    }
}

/// Appends a key or a name as a column, quoted if necessary.
pub fn push_update_column(line: &mut String, text: &str) {
    let is_plain = |character: char| !character.is_ascii_whitespace() && !character.is_control();
    match !text.is_empty() && !text.starts_with('"') && text.chars().all(is_plain) {
        true => line.push_str(text),
        false => push_quoted(line, text),
    }
}

/// Appends a property name before `=` and its value, quoted if it would be misread.
pub fn push_update_name(line: &mut String, name: &str) {
    // A `=` in the name would end the name too early.
    if name.contains('=') { push_quoted(line, name) } else { push_update_column(line, name) }
}

/// Appends a value as a column. Text that looks like another type is quoted.
pub fn push_update_value(line: &mut String, value: PropertyValue<'_>) {
    match value {
        PropertyValue::Null => line.push_str(NULL),
        PropertyValue::String(text) => {
            let mut inference = Inference::default();
            inference.add(text.as_bytes());
            match text == NULL || inference.property_type() != PropertyType::String {
                true => push_quoted(line, text),
                false => push_update_column(line, text),
            }
        }
        value => line.push_str(&value.to_string()),
    }
}

fn push_quoted(line: &mut String, text: &str) {
    line.push('"');
    for character in text.chars() {
        match character {
            // A line end within a value would end the update.
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            '"' | '\\' => line.extend(['\\', character]),
            _ => line.push(character),
        }
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(line: &str) -> Result<Vec<(String, bool)>, &'static str> {
        let mut columns = UpdateColumns::default();
        columns.find(line)?;
        let column = |column: &UpdateColumn| (columns.text(line, column).to_owned(), column.is_quoted);
        Ok(columns.all().iter().map(column).collect())
    }

    #[test]
    fn columns_are_plain_or_quoted() {
        let plain = |text: &str| (text.to_owned(), false);
        let quoted = |text: &str| (text.to_owned(), true);
        assert_eq!(columns(" + a\tb\r\n"), Ok(vec![plain("+"), plain("a"), plain("b")]));
        assert_eq!(columns("p \"New  York\" a\\b\"c"), Ok(vec![plain("p"), quoted("New  York"), plain("a\\b\"c")]));
        assert_eq!(columns("\"\" \"\""), Ok(vec![quoted(""), quoted("")]));
        assert_eq!(columns(r#" "\"\\\n\r\t" x"#), Ok(vec![quoted("\"\\\n\r\t"), plain("x")]));
        assert_eq!(columns(""), Ok(Vec::new()));
        assert_eq!(columns("p \"a"), Err("a closing quote"));
        assert_eq!(columns("p \"a\\"), Err("one of \" \\ n r t behind a backslash"));
        assert_eq!(columns("p \"\\é\""), Err("one of \" \\ n r t behind a backslash"));
        assert_eq!(columns("p \"a\"b"), Err("a blank behind a closing quote"));
        assert_eq!(columns("p a b c d e").unwrap().len(), 6);
    }

    #[test]
    fn properties_of_an_added_edge_are_names_and_values() {
        let found = |line: &str| {
            let mut columns = UpdateColumns::default();
            columns.find(line).unwrap();
            let column = |column: &UpdateColumn| {
                let mark = if column.is_name { "=" } else { " " };
                format!("{}{mark}", columns.text(line, column))
            };
            columns.all().iter().map(column).collect::<String>()
        };
        assert_eq!(found("+ a=b c=d 1.5 x=2 y=p=q"), "+ a=b c=d 1.5 x=2 y=p=q ");
        assert_eq!(found(r#"+ a b x="p q" "first name"=3 "u"="v""#), "+ a b x=p q first name=3 u=v ");
        let mut columns = UpdateColumns::default();
        columns.find("+ a=b c=d e=f").unwrap();
        assert_eq!(columns.all().iter().filter(|column| column.is_name).count(), 1);
        columns.find("p a=b c=d e=f").unwrap();
        assert!(columns.all().iter().all(|column| !column.is_name));
        assert_eq!(columns.find(r#"+ a b x="p"q"#), Err("a blank behind a closing quote"));
    }

    #[test]
    fn written_columns_are_read_back() {
        for text in
            ["a", "", "a b", "\"a", "a\"b", "null", "7", "true", "2024-02-29", "a\nb\\c\t\r\u{c}", "é", "\u{85}"]
        {
            let mut line = String::from("p ");
            push_update_column(&mut line, text);
            line.push(' ');
            push_update_value(&mut line, PropertyValue::String(text));
            assert!(!line.contains('\n'));
            let found = columns(&line).unwrap();
            assert_eq!([&found[1].0, &found[2].0], [text, text], "{line}");
            let value = LineValue::of(&found[2].0, found[2].1);
            let mut inference = Inference::default();
            inference.add(text.as_bytes());
            let is_text = found[2].1 || inference.property_type() == PropertyType::String;
            assert!(value != LineValue::Null && is_text, "{line}");
        }
        let mut line = String::new();
        for value in [PropertyValue::Null, PropertyValue::F64(2.0), PropertyValue::Bytes(&[1, 2])] {
            push_update_value(&mut line, value);
            line.push(' ');
        }
        assert_eq!(line, "null 2.0 0x0102 ");
    }
}
