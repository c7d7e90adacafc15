//! Lists as Arrow arrays. A column stores the text of a list, and readers outside take the items themselves.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeListArray, new_empty_array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};

use super::{ColumnBuilder, PropertyColumn, PropertyType, PropertyValue, parse_list, push_list};
use crate::{Error, Result};

impl PropertyType {
    /// The Arrow type of the values outside: that of a [`PropertyColumn`] without a dictionary, and for lists a
    /// `LargeList` whose items may be null.
    ///
    /// ```
    /// use anden_graph::property::PropertyType;
    ///
    /// let lists = PropertyType::of_name("i64[]").unwrap();
    /// assert_eq!(lists.arrow_type().to_string(), "LargeList(Int64)");
    /// assert_eq!(PropertyType::of_arrow_type(&lists.arrow_type()), Some(lists));
    /// ```
    pub fn arrow_type(self) -> DataType {
        match self {
            Self::List(item) => DataType::new_large_list(item.property_type().arrow_type(), true),
            // An empty column tells the type, so the mapping of types exists once.
            _ => PropertyColumn::nulls(self, 0).array().data_type().clone(),
        }
    }

    /// The type of the property whose values have this Arrow type outside; `None` if there is none.
    pub fn of_arrow_type(found: &DataType) -> Option<Self> {
        match found {
            DataType::LargeList(item) => Self::of_arrow_type(item.data_type())?.list(),
            _ => PropertyColumn::from_array(new_empty_array(found)).ok().map(|column| column.property_type()),
        }
    }
}

impl PropertyColumn {
    /// The array of a property of this type as it leaves Anden: lists as a `LargeList` of their items, all else as
    /// [`array`](Self::array) gives it. [`from_array`](Self::from_array) makes the texts of lists again.
    ///
    /// Cost: parses the text of every list.
    ///
    /// # Errors
    /// A value is no list of this type.
    pub fn array_of(&self, property_type: PropertyType) -> Result<ArrayRef> {
        let Some(item_type) = property_type.items() else { return Ok(Arc::clone(self.array())) };
        let mut items = ColumnBuilder::new(item_type.property_type());
        let mut offsets = Vec::with_capacity(self.len() + 1);
        offsets.push(0_i64);
        for value in self.iter() {
            if !value.is_null() {
                let list = match value {
                    PropertyValue::String(text) => parse_list(text.as_bytes(), item_type),
                    _ => None,
                };
                let wrong = || Error::Parameter(format!("{value} is no list of type {property_type}"));
                list.ok_or_else(wrong)?.iter().try_for_each(|item| items.push(item.as_value()))?;
            }
            offsets.push(items.len() as i64);
        }
        let field = Field::new_list_field(item_type.property_type().arrow_type(), true);
        let (offsets, items) = (OffsetBuffer::new(offsets.into()), Arc::clone(items.finish().array()));
        let lists = LargeListArray::try_new(field.into(), offsets, items, self.validity().cloned());
        Ok(Arc::new(lists.map_err(|error| Error::Parameter(error.to_string()))?))
    }

    /// Lists as a column of their texts; `None` if no property has lists of this Arrow type.
    pub(super) fn of_lists(array: &dyn Array) -> Option<Self> {
        PropertyType::of_arrow_type(array.data_type())?;
        let lists = array.as_list_opt::<i64>()?;
        let items = Self::from_array(Arc::clone(lists.values())).ok()?;
        let (mut texts, mut text) = (ColumnBuilder::new(PropertyType::String), Vec::new());
        for (row, range) in lists.value_offsets().windows(2).enumerate() {
            if lists.is_null(row) {
                texts.push_nulls(1);
                continue;
            }
            text.clear();
            push_list((range[0]..range[1]).map(|item| items.get(item as usize)), &mut text);
            texts.push(PropertyValue::String(std::str::from_utf8(&text).ok()?)).ok()?;
        }
        Some(texts.finish())
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int64Type;
    use arrow_array::{LargeBinaryArray, ListArray, StringArray};

    use super::*;

    fn column(texts: &[Option<&str>]) -> PropertyColumn {
        let mut column = ColumnBuilder::new(PropertyType::String);
        texts.iter().for_each(|text| column.push(text.map_or(PropertyValue::Null, PropertyValue::String)).unwrap());
        column.finish()
    }

    #[test]
    fn lists_come_back_from_arrays() {
        for (name, texts) in [
            ("boolean[]", [Some("[true,null,false]"), None, Some("[]")]),
            ("i64[]", [Some("[1,-2,null]"), Some("[]"), None]),
            ("u64[]", [None, None, Some("[18446744073709551615]")]),
            ("f32[]", [Some("[0.1,\"nan\"]"), Some("[null]"), None]),
            ("f64[]", [Some("[1.0,\"inf\",\"-inf\"]"), None, Some("[]")]),
            ("date[]", [Some("[\"2024-02-29\"]"), None, Some("[null]")]),
            ("timestamp[]", [Some("[\"2024-02-29T12:30:00.5Z\"]"), None, None]),
            ("string[]", [Some("[\"a;b\",\"\",\"é\\u000a\\\"\"]"), None, Some("[]")]),
        ] {
            let (found, texts) = (PropertyType::of_name(name).unwrap(), column(&texts));
            let array = texts.array_of(found).unwrap();
            assert_eq!((array.data_type(), array.null_count()), (&found.arrow_type(), texts.num_nulls()), "{name}");
            assert_eq!(PropertyType::of_arrow_type(array.data_type()), Some(found));
            assert_eq!(PropertyColumn::from_array(array.slice(0, 3)).unwrap(), texts, "{name}");
            assert_eq!(PropertyColumn::from_array(array.slice(1, 2)).unwrap(), texts.slice(1..3), "{name}");
        }
    }

    #[test]
    fn items_have_the_arrays_of_single_values() {
        let array = column(&[Some("[1,null]"), None, Some("[]"), Some("[3]")]);
        let array = array.array_of(PropertyType::of_name("i64[]").unwrap()).unwrap();
        let lists = array.as_list::<i64>();
        assert_eq!(&lists.offsets()[..], [0, 2, 2, 2, 3]);
        let items: Vec<_> = lists.values().as_primitive::<Int64Type>().iter().collect();
        assert_eq!((items, lists.is_null(1), lists.is_null(2)), (vec![Some(1), None, Some(3)], true, false));
        for (single, name) in PropertyType::ALL {
            let lists = single.list().map(PropertyType::arrow_type);
            assert_eq!(lists.is_none(), single == PropertyType::Bytes, "{name}");
            assert_eq!(PropertyType::of_arrow_type(&single.arrow_type()), Some(single));
            let array = PropertyColumn::nulls(single, 2).array_of(single).unwrap();
            assert_eq!((array.data_type(), array.len()), (&single.arrow_type(), 2));
        }
    }

    #[test]
    fn other_values_are_no_lists() {
        let list = PropertyType::of_name("i64[]").unwrap();
        for text in ["", "1", "[\"a\"]", "[1"] {
            let error = column(&[None, Some(text)]).array_of(list).unwrap_err().to_string();
            assert!(error.contains(&format!("{text} is no list of type i64[]")), "{error}");
        }
        assert!(PropertyColumn::nulls(PropertyType::I64, 2).array_of(list).is_ok());
        let numbers = PropertyColumn::new(arrow_array::Int64Array::from(vec![7]));
        assert!(numbers.array_of(list).unwrap_err().to_string().contains("7 is no list of type i64[]"));
        let field = |data_type| Arc::new(Field::new_list_field(data_type, true));
        let nested = |values: ArrayRef| {
            let offsets = OffsetBuffer::from_lengths([values.len()]);
            LargeListArray::new(field(values.data_type().clone()), offsets, values, None)
        };
        let bytes = nested(Arc::new(LargeBinaryArray::from(vec![&b"x"[..]])));
        let lists = nested(Arc::new(nested(Arc::new(arrow_array::Int64Array::from(vec![1])))));
        let texts = nested(Arc::new(StringArray::from(vec!["a"])));
        for array in [bytes, lists, texts] {
            assert!(PropertyColumn::from_array(Arc::new(array)).is_err());
        }
        let short = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1)])]);
        assert!(PropertyColumn::from_array(Arc::new(short)).is_err());
    }
}
