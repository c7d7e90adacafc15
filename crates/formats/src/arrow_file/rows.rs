//! Ranges of rows of a column as arrays.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, NullArray, make_array, new_empty_array};
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer};
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_schema::DataType;

use super::buffers::ColumnPlace;
use super::messages::{ArrowBytes, ArrowField};
use crate::Result;

/// Rows of a column. The array is checked as a whole: text is UTF-8, and offsets ascend.
pub(super) fn column(
    bytes: &ArrowBytes,
    dictionaries: &HashMap<i64, ArrayRef>,
    field: &ArrowField,
    place: &ColumnPlace,
    rows: Range<u64>,
) -> Result<ArrayRef> {
    if rows.start > rows.end || rows.end > place.len {
        return Err(bytes.bad("a column has fewer rows than its batch"));
    }
    let num_rows = (rows.end - rows.start) as usize;
    if num_rows == 0 {
        return Ok(new_empty_array(field.data_type()));
    }
    if *field.data_type() == DataType::Null {
        return Ok(Arc::new(NullArray::new(num_rows)));
    }
    let part = ColumnPart { bytes, place, rows };
    let builder = ArrayData::builder(field.data_type().clone()).len(num_rows);
    let builder = match field.data_type() {
        DataType::Boolean => {
            let (bits, first) = part.bits(1)?;
            builder.offset(first).add_buffer(bits)
        }
        DataType::Utf8 | DataType::Binary => part.add_text::<4>(builder)?,
        DataType::LargeUtf8 | DataType::LargeBinary => part.add_text::<8>(builder)?,
        DataType::Utf8View | DataType::BinaryView => {
            let (views, texts) = part.views()?;
            builder.add_buffer(views).add_buffers(texts)
        }
        DataType::List(_) => part.add_items::<4>(builder, dictionaries, field)?,
        DataType::LargeList(_) => part.add_items::<8>(builder, dictionaries, field)?,
        DataType::FixedSizeList(_, size) => {
            let size = u64::try_from(*size).map_err(|_| bytes.bad("a list has a negative length"))?;
            let items = part.rows.start.checked_mul(size).zip(part.rows.end.checked_mul(size));
            let (start, end) = items.ok_or_else(|| bytes.bad("a column is too long"))?;
            builder.add_child_data(part.items(dictionaries, field, start..end)?.to_data())
        }
        DataType::FixedSizeBinary(width) => {
            let width = u64::try_from(*width).map_err(|_| bytes.bad("a column has a negative width"))?;
            builder.add_buffer(part.values(width)?)
        }
        DataType::Dictionary(index, _) => {
            let values = field.dictionary.and_then(|id| dictionaries.get(&id));
            let values = values.ok_or_else(|| bytes.bad("a column lacks its dictionary"))?;
            let width = index.primitive_width().unwrap_or_default();
            builder.add_buffer(part.values(width as u64)?).add_child_data(values.to_data())
        }
        other => {
            let width = other.primitive_width();
            let width = width.ok_or_else(|| bytes.bad(&format!("columns of the type {other} are not read")))?;
            builder.add_buffer(part.values(width as u64)?)
        }
    };
    let data = builder.nulls(part.nulls()?).build().map_err(|error| bytes.failed(&error))?;
    Ok(make_array(data))
}

/// The offsets of lists, one more than `rows`.
pub(super) fn list_offsets(
    bytes: &ArrowBytes,
    field: &ArrowField,
    place: &ColumnPlace,
    rows: Range<u64>,
) -> Result<Vec<u64>> {
    if rows.start > rows.end || rows.end > place.len {
        return Err(bytes.bad("a column has fewer rows than its batch"));
    }
    let num_elements = place.children.first().map_or(0, |child| child.len);
    let part = ColumnPart { bytes, place, rows };
    let offsets = match field.data_type() {
        DataType::List(_) => part.offsets::<4>()?,
        _ => part.offsets::<8>()?,
    };
    match offsets.is_sorted() && offsets.last().is_none_or(|&end| end <= num_elements) {
        true => Ok(offsets),
        false => Err(bytes.bad("the offsets of lists do not ascend within their elements")),
    }
}

/// Rows of a column in the file.
struct ColumnPart<'a> {
    bytes: &'a ArrowBytes,
    place: &'a ColumnPlace,
    rows: Range<u64>,
}

impl ColumnPart<'_> {
    fn num_rows(&self) -> usize {
        (self.rows.end - self.rows.start) as usize
    }

    /// A range within a buffer.
    fn read(&self, buffer: usize, range: Range<u64>) -> Result<Buffer> {
        let place = self.place.buffers.get(buffer).filter(|place| range.end <= place.end - place.start);
        let place = place.ok_or_else(|| self.bytes.bad("a buffer is shorter than its column"))?;
        self.bytes.read(place.start + range.start..place.start + range.end)
    }

    fn read_items(&self, buffer: usize, items: Range<u64>, width: u64) -> Result<Buffer> {
        let scaled = items.start.checked_mul(width).zip(items.end.checked_mul(width));
        let (start, end) = scaled.ok_or_else(|| self.bytes.bad("a column is too long"))?;
        self.read(buffer, start..end)
    }

    /// The values of a column of fixed width.
    fn values(&self, width: u64) -> Result<Buffer> {
        self.read_items(1, self.rows.clone(), width)
    }

    /// The bytes with the bits of these rows, and the number of bits before the first.
    fn bits(&self, buffer: usize) -> Result<(Buffer, usize)> {
        let bits = self.read(buffer, self.rows.start / 8..self.rows.end.div_ceil(8))?;
        Ok((bits, (self.rows.start % 8) as usize))
    }

    fn nulls(&self) -> Result<Option<NullBuffer>> {
        if self.place.num_nulls == 0 {
            return Ok(None);
        }
        let (bits, first) = self.bits(0)?;
        let nulls = NullBuffer::new(BooleanBuffer::new(bits, first, self.num_rows()));
        Ok(Some(nulls).filter(|nulls| nulls.null_count() > 0))
    }

    /// Offsets of `WIDTH` bytes, one more than rows. A column without rows may have none.
    fn offsets<const WIDTH: usize>(&self) -> Result<Vec<u64>> {
        if self.rows.is_empty() {
            return Ok(vec![0]);
        }
        let offsets = self.read_items(1, self.rows.start..self.rows.end + 1, WIDTH as u64)?;
        let offset = |bytes: &[u8]| {
            let mut wide = [0; 8];
            wide[..WIDTH].copy_from_slice(bytes);
            let offset = u64::from_le_bytes(wide);
            // A negative number is no offset.
            let largest = if WIDTH == 4 { i32::MAX as u64 } else { i64::MAX as u64 };
            (offset <= largest).then_some(offset)
        };
        let offsets: Option<Vec<u64>> = offsets.chunks_exact(WIDTH).map(offset).collect();
        offsets.ok_or_else(|| self.bytes.bad("a column has a negative offset"))
    }

    /// The views of text, and the parts of the buffers that they refer to.
    fn views(&self) -> Result<(Buffer, Vec<Buffer>)> {
        let views = self.values(16)?;
        let mut spans: Vec<Option<Range<u64>>> = vec![None; self.place.buffers.len().saturating_sub(2)];
        // A long text is a length, four bytes, the number of a buffer, and an offset. Short text is in the view.
        let long = |view: &[u8]| {
            let number = |at: usize| view[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
            (number(0) > 12).then(|| (number(8) as usize, u64::from(number(12)), u64::from(number(0))))
        };
        for (buffer, start, len) in views.chunks_exact(16).filter_map(long) {
            let span = spans.get_mut(buffer).ok_or_else(|| self.bytes.bad("a text lies outside its buffers"))?;
            let known = span.take().unwrap_or(start..start + len);
            *span = Some(known.start.min(start)..known.end.max(start + len));
        }
        // Only these parts are read, so offsets count from their beginnings.
        let mut shifted = MutableBuffer::from_len_zeroed(views.len());
        shifted.as_slice_mut().copy_from_slice(&views);
        for view in shifted.as_slice_mut().chunks_exact_mut(16) {
            if let Some((buffer, start, _)) = long(view) {
                let first = spans[buffer].as_ref().map_or(0, |span| span.start);
                view[12..].copy_from_slice(&((start - first) as u32).to_le_bytes());
            }
        }
        let texts = spans.into_iter().enumerate();
        let texts = texts.map(|(buffer, span)| self.read(buffer + 2, span.unwrap_or(0..0)));
        Ok((shifted.into(), texts.collect::<Result<_>>()?))
    }

    /// Adds the offsets and the bytes of text.
    fn add_text<const WIDTH: usize>(&self, builder: ArrayDataBuilder) -> Result<ArrayDataBuilder> {
        let (offsets, text) = self.shifted_offsets::<WIDTH>("text")?;
        Ok(builder.add_buffer(offsets).add_buffer(self.read(2, text)?))
    }

    /// Adds the offsets and the items of lists.
    fn add_items<const WIDTH: usize>(
        &self,
        builder: ArrayDataBuilder,
        dictionaries: &HashMap<i64, ArrayRef>,
        field: &ArrowField,
    ) -> Result<ArrayDataBuilder> {
        let (offsets, items) = self.shifted_offsets::<WIDTH>("lists")?;
        Ok(builder.add_buffer(offsets).add_child_data(self.items(dictionaries, field, items)?.to_data()))
    }

    /// Items of the lists of the column.
    fn items(&self, dictionaries: &HashMap<i64, ArrayRef>, field: &ArrowField, items: Range<u64>) -> Result<ArrayRef> {
        match (field.children.first(), self.place.children.first()) {
            (Some(field), Some(place)) => column(self.bytes, dictionaries, field, place, items),
            _ => Err(self.bytes.bad("a column of lists has no items")),
        }
    }

    /// Offsets that count from the first one, and the range from the first to the last.
    fn shifted_offsets<const WIDTH: usize>(&self, of: &str) -> Result<(Buffer, Range<u64>)> {
        let offsets = self.offsets::<WIDTH>()?;
        let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
        if !offsets.is_sorted() {
            return Err(self.bytes.bad(&format!("the offsets of {of} do not ascend")));
        }
        let mut shifted = MutableBuffer::new(offsets.len() * WIDTH);
        for offset in offsets {
            shifted.extend_from_slice(&(offset - first).to_le_bytes()[..WIDTH]);
        }
        Ok((shifted.into(), first..last))
    }
}
