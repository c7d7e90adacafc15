//! The Arrow arrays that hold properties.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{
    Array, BooleanArray, Date32Array, DictionaryArray, Float32Array, Float64Array, Int64Array, LargeBinaryArray,
    LargeStringArray, PrimitiveArray, TimestampMicrosecondArray, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, TimeUnit};

/// The time zone of all timestamps, in the type of their Arrow arrays.
pub const ZONE: &str = "UTC";

/// A column as a typed Arrow array.
#[derive(Clone, Debug)]
pub enum TypedArray {
    /// True or false.
    Boolean(BooleanArray),
    /// 64-bit signed integers.
    I64(Int64Array),
    /// 64-bit unsigned integers.
    U64(UInt64Array),
    /// 32-bit floating-point numbers.
    F32(Float32Array),
    /// 64-bit floating-point numbers.
    F64(Float64Array),
    /// Days since 1970-01-01.
    Date(Date32Array),
    /// Microseconds since 1970-01-01T00:00:00Z.
    Timestamp(TimestampMicrosecondArray),
    /// Text.
    String(LargeStringArray),
    /// Text as codes into a dictionary of distinct strings, as in a `DictionaryArray`.
    Coded {
        /// For each row, the position of its string; null for a null row.
        codes: UInt32Array,
        /// The strings of the codes. Some may be unused.
        texts: LargeStringArray,
    },
    /// Bytes.
    Bytes(LargeBinaryArray),
}

impl TypedArray {
    /// Downcasts an array, without a copy of its buffers; `None` if no property has its type.
    pub(super) fn of(array: &dyn Array) -> Option<Self> {
        let any = array.as_any();
        match array.data_type() {
            // Clones of an array share its buffers.
            DataType::Boolean => any.downcast_ref().cloned().map(Self::Boolean),
            DataType::Int64 => any.downcast_ref().cloned().map(Self::I64),
            DataType::UInt64 => any.downcast_ref().cloned().map(Self::U64),
            DataType::Float32 => any.downcast_ref().cloned().map(Self::F32),
            DataType::Float64 => any.downcast_ref().cloned().map(Self::F64),
            DataType::Date32 => any.downcast_ref().cloned().map(Self::Date),
            // The zone is not stored: another one would be lost, and none would be ambiguous.
            DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) if &**zone == ZONE => {
                any.downcast_ref().cloned().map(Self::Timestamp)
            }
            DataType::LargeUtf8 => any.downcast_ref().cloned().map(Self::String),
            DataType::LargeBinary => any.downcast_ref().cloned().map(Self::Bytes),
            DataType::Dictionary(..) => {
                let coded: &DictionaryArray<UInt32Type> = any.downcast_ref()?;
                // A code may name a null of the dictionary. Such a row is null, so its code becomes null.
                let codes = PrimitiveArray::new(coded.keys().values().clone(), coded.logical_nulls());
                Some(Self::Coded { codes, texts: coded.values().as_string_opt()?.clone() })
            }
            _ => None,
        }
    }
}
