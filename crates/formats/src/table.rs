//! Tables in text: CSV, and blank-separated text with a header.

mod comments;
mod fields;
mod head;
mod rows;

pub(crate) use self::comments::are_marked_rows;
pub(crate) use self::fields::{BLANKS, CsvLayout, CsvProperties, parse_columns};
pub(crate) use self::head::{TableHead, TableKind, head_of};
pub(crate) use self::rows::whole_rows;
