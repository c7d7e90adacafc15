//! Turns columns of lists into properties: the JSON of each list.

use anden_graph::property::{ColumnBuilder, PropertyColumn, PropertyType, push_list};

use super::column::{ROWS_AT_ONCE, RowReader};
use super::property::{read_property, values_of};
use super::schema::RowContent;

/// Reads the rows of a reader, values or lists, as a property.
///
/// # Errors
/// As [`read_property`].
pub(super) fn read_values_or_lists(reader: &mut RowReader<'_>) -> crate::Result<PropertyColumn> {
    let leaf = reader.leaf();
    let RowContent::List { level } = leaf.content else { return read_property(reader) };
    let mut lists = ColumnBuilder::new(PropertyType::String);
    let mut text = Vec::new();
    while reader.num_left() > 0 {
        let first_row = reader.next_row();
        let mut column = reader.next(ROWS_AT_ONCE)?;
        let levels = column.levels.take().unwrap_or_default();
        let row_of = |item: usize| first_row + levels.num_begun(item + 1).saturating_sub(1);
        let items = values_of(leaf, column, &row_of).map_err(|what| reader.refuse(what))?;
        for values in levels.rows() {
            match levels.definitions[values.start] {
                found if found < level => lists.push_nulls(1),
                found => {
                    let values = if found == level { 0..0 } else { values };
                    text.clear();
                    push_list(values.map(|place| items.get(place)), &mut text);
                    lists.push_text(&text).map_err(|what| reader.refuse(what))?;
                }
            }
        }
    }
    Ok(lists.finish())
}
