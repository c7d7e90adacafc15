//! Columns as bytes in files.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Float32Type, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type,
};
use arrow_array::{BooleanArray, DictionaryArray, LargeBinaryArray, LargeStringArray, PrimitiveArray, UInt32Array};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::ArrowError;
use bytemuck::Pod;

use super::array::{TypedArray, ZONE};
use super::{PropertyColumn, PropertyType};
use crate::{Error, Result};

impl PropertyColumn {
    /// The values of a column of fixed width, one after the other, little-endian. Booleans are bytes 0 and 1. `None`
    /// for strings and bytes.
    pub fn fixed_bytes(&self) -> Option<Cow<'_, [u8]>> {
        Some(match self.values() {
            // Booleans are bits in memory and bytes in files.
            TypedArray::Boolean(array) => Cow::Owned(array.values().iter().map(u8::from).collect()),
            TypedArray::I64(array) => Cow::Borrowed(bytemuck::cast_slice(array.values())),
            TypedArray::U64(array) => Cow::Borrowed(bytemuck::cast_slice(array.values())),
            TypedArray::F32(array) => Cow::Borrowed(bytemuck::cast_slice(array.values())),
            TypedArray::F64(array) => Cow::Borrowed(bytemuck::cast_slice(array.values())),
            TypedArray::Date(array) => Cow::Borrowed(bytemuck::cast_slice(array.values())),
            TypedArray::Timestamp(array) => Cow::Borrowed(bytemuck::cast_slice(array.values())),
            // Rows of these types differ in length, so they need offsets beside the bytes.
            TypedArray::String(_) | TypedArray::Coded { .. } | TypedArray::Bytes(_) => return None,
        })
    }

    /// The offsets and bytes of a column of bytes, or of strings without a dictionary. Each row lies between two
    /// offsets.
    pub fn pieces(&self) -> Option<(&[i64], &[u8])> {
        match self.values() {
            TypedArray::String(array) => Some((array.value_offsets(), array.value_data())),
            TypedArray::Bytes(array) => Some((array.value_offsets(), array.value_data())),
            _ => None,
        }
    }

    /// Makes a column of a fixed-width type from the bytes of [`fixed_bytes`](Self::fixed_bytes).
    ///
    /// # Errors
    /// A boolean is neither 0 nor 1, or the bytes end within a value. `nulls` has another number of rows, or the type
    /// has no fixed width.
    pub fn from_fixed_bytes(property_type: PropertyType, bytes: &[u8], nulls: Option<NullBuffer>) -> Result<Self> {
        match property_type {
            // No writer produces such a byte, so the file is damaged.
            PropertyType::Boolean if bytes.iter().any(|&byte| byte > 1) => {
                Err(Error::Parameter("a boolean is neither 0 nor 1".into()))
            }
            PropertyType::Boolean => {
                check_len(bytes.len(), nulls.as_ref())?;
                let bits = BooleanBuffer::collect_bool(bytes.len(), |row| bytes[row] == 1);
                Ok(Self::new(BooleanArray::new(bits, nulls)))
            }
            PropertyType::I64 => Ok(Self::new(fixed::<Int64Type>(bytes, nulls)?)),
            PropertyType::U64 => Ok(Self::new(fixed::<UInt64Type>(bytes, nulls)?)),
            PropertyType::F32 => Ok(Self::new(fixed::<Float32Type>(bytes, nulls)?)),
            PropertyType::F64 => Ok(Self::new(fixed::<Float64Type>(bytes, nulls)?)),
            PropertyType::Date => Ok(Self::new(fixed::<Date32Type>(bytes, nulls)?)),
            PropertyType::Timestamp => {
                Ok(Self::new(fixed::<TimestampMicrosecondType>(bytes, nulls)?.with_timezone(ZONE)))
            }
            PropertyType::String | PropertyType::Bytes | PropertyType::List(_) => {
                Err(Error::Parameter(format!("values of type {property_type} have no fixed width")))
            }
        }
    }

    /// Makes a column of strings or bytes from the result of [`pieces`](Self::pieces).
    ///
    /// # Errors
    /// The offsets do not ascend within the bytes, or a string is not UTF-8. `nulls` has another number of rows, or the
    /// type has a fixed width.
    pub fn from_buffers(
        property_type: PropertyType,
        offsets: Vec<i64>,
        bytes: Vec<u8>,
        nulls: Option<NullBuffer>,
    ) -> Result<Self> {
        // Arrow asserts these, and a damaged file must not cause a panic.
        let (first, last) = (offsets.first().copied().unwrap_or(-1), offsets.last().copied().unwrap_or(-1));
        // An empty list of offsets counts as -1, and fails here too.
        if first < 0 || !offsets.is_sorted() || last as usize > bytes.len() {
            return Err(Error::Parameter("offsets do not ascend up to the number of bytes".into()));
        }
        let (offsets, bytes) = (OffsetBuffer::new(offsets.into()), Buffer::from_vec(bytes));
        match property_type {
            PropertyType::String | PropertyType::List(_) => {
                Ok(Self::new(LargeStringArray::try_new(offsets, bytes, nulls).map_err(wrong)?))
            }
            PropertyType::Bytes => Ok(Self::new(LargeBinaryArray::try_new(offsets, bytes, nulls).map_err(wrong)?)),
            _ => Err(Error::Parameter(format!("values of type {property_type} have a fixed width"))),
        }
    }

    /// Makes a column of strings from a dictionary and, for each row, the position of its string.
    ///
    /// # Errors
    /// The code of a row that is not null names no string, or `nulls` has another number of rows.
    pub fn from_codes(codes: Vec<u32>, texts: &LargeStringArray, nulls: Option<NullBuffer>) -> Result<Self> {
        let codes = UInt32Array::try_new(codes.into(), nulls).map_err(wrong)?;
        Ok(Self::new(DictionaryArray::try_new(codes, Arc::new(texts.clone())).map_err(wrong)?))
    }
}

fn fixed<T>(bytes: &[u8], nulls: Option<NullBuffer>) -> Result<PrimitiveArray<T>>
where
    T: ArrowPrimitiveType<Native: Pod + ArrowNativeType>,
{
    if !bytes.len().is_multiple_of(size_of::<T::Native>()) {
        return Err(Error::Parameter(format!("{} bytes end within a value", bytes.len())));
    }
    // Bytes of a file may not be aligned, so the values are copied.
    PrimitiveArray::try_new(bytemuck::pod_collect_to_vec::<u8, T::Native>(bytes).into(), nulls).map_err(wrong)
}

/// Arrow asserts this, and a damaged file must not cause a panic.
fn check_len(len: usize, nulls: Option<&NullBuffer>) -> Result<()> {
    match nulls {
        Some(nulls) if nulls.len() != len => Err(Error::Parameter(format!("nulls of {} rows of {len}", nulls.len()))),
        _ => Ok(()),
    }
}

fn wrong(error: ArrowError) -> Error {
    Error::Parameter(error.to_string())
}
