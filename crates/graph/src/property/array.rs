//! The Arrow arrays that properties may be.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{
    Array, BooleanArray, Date32Array, DictionaryArray, Float32Array, Float64Array, Int64Array, LargeBinaryArray,
    LargeStringArray, PrimitiveArray, TimestampMicrosecondArray, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, TimeUnit};

/// The time zone of all timestamps.
pub(crate) const ZONE: &str = "UTC";

/// A column of one of our types, as the Arrow array of that type.
#[derive(Clone, Debug)]
pub enum TypedArray {
    /// True or false.
    Boolean(BooleanArray),
    /// Whole numbers.
    I64(Int64Array),
    /// Whole numbers without a sign.
    U64(UInt64Array),
    /// Floating numbers of 32 bits.
    F32(Float32Array),
    /// Floating numbers of 64 bits.
    F64(Float64Array),
    /// Days since 1970-01-01.
    Date(Date32Array),
    /// Microseconds since 1970-01-01T00:00:00Z.
    Timestamp(TimestampMicrosecondArray),
    /// Text.
    String(LargeStringArray),
    /// Text by a dictionary of distinct strings, as a `DictionaryArray`.
    Coded {
        /// By row, the place of its string; null where the row is.
        codes: UInt32Array,
        /// The strings that codes name; one that no row has may be among them.
        texts: LargeStringArray,
    },
    /// Bytes.
    Bytes(LargeBinaryArray),
}

impl TypedArray {
    /// An array by its type; `None` where that is not the type of a property. A copy of buffers is not made.
    pub(super) fn of(array: &dyn Array) -> Option<Self> {
        let any = array.as_any();
        match array.data_type() {
            DataType::Boolean => any.downcast_ref().cloned().map(Self::Boolean),
            DataType::Int64 => any.downcast_ref().cloned().map(Self::I64),
            DataType::UInt64 => any.downcast_ref().cloned().map(Self::U64),
            DataType::Float32 => any.downcast_ref().cloned().map(Self::F32),
            DataType::Float64 => any.downcast_ref().cloned().map(Self::F64),
            DataType::Date32 => any.downcast_ref().cloned().map(Self::Date),
            DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) if &**zone == ZONE => {
                any.downcast_ref().cloned().map(Self::Timestamp)
            }
            DataType::LargeUtf8 => any.downcast_ref().cloned().map(Self::String),
            DataType::LargeBinary => any.downcast_ref().cloned().map(Self::Bytes),
            DataType::Dictionary(..) => {
                let coded: &DictionaryArray<UInt32Type> = any.downcast_ref()?;
                // A code may name a null of the dictionary: the row is null then, as its code becomes.
                let codes = PrimitiveArray::new(coded.keys().values().clone(), coded.logical_nulls());
                Some(Self::Coded { codes, texts: coded.values().as_string_opt()?.clone() })
            }
            _ => None,
        }
    }
}
