//! Tables in text: CSV, and blank-separated text with a header.

mod columns;
mod comments;
mod fields;
mod head;
mod ldbc;
mod roles;
mod rows;

pub(crate) use self::columns::read_columns;
pub(crate) use self::comments::are_marked_rows;
pub(crate) use self::fields::{BLANKS, CsvLayout, CsvProperties, parse_columns};
pub(crate) use self::head::{StatedKeys, TableHead, TableKind, head_of, stated_keys};
pub(crate) use self::ldbc::LdbcTable;
pub(crate) use self::rows::whole_rows;
