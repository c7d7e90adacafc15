//! The column with the time of each edge, if the caller needs one.

use anden_base::message::shown;
use anden_graph::property::PropertyColumn;

/// The fault of an edge without a time.
pub(crate) fn no_time(column: &str) -> String {
    let column = shown(column.as_bytes());
    format!("column {column}: expected the date or timestamp that --snapshot-by needs, found null")
}

/// The first null of a column.
pub(crate) fn first_null(column: &PropertyColumn) -> Option<usize> {
    // Most columns have no null at all, which is known without a search.
    if column.num_nulls() == 0 { None } else { (0..column.len()).find(|&row| column.is_null(row)) }
}
