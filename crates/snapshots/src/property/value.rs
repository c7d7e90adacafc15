//! One value as bytes: a tag for its type, and the value.

use anden_graph::property::PropertyValue;

use crate::encoding::Decoder;

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const I64: u8 = 3;
const F64: u8 = 4;
const DATE: u8 = 5;
const TIMESTAMP: u8 = 6;
const STRING: u8 = 7;
const BYTES: u8 = 8;
const U64: u8 = 9;
const F32: u8 = 10;

/// Appends a value.
pub fn encode(value: PropertyValue<'_>, to: &mut Vec<u8>) {
    let mut text = |tag: u8, bytes: &[u8]| {
        to.push(tag);
        to.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        to.extend_from_slice(bytes);
    };
    match value {
        PropertyValue::String(value) => return text(STRING, value.as_bytes()),
        PropertyValue::Bytes(value) => return text(BYTES, value),
        _ => {}
    }
    let mut fixed = |tag: u8, bytes: &[u8]| {
        to.push(tag);
        to.extend_from_slice(bytes);
    };
    match value {
        PropertyValue::Boolean(false) => fixed(FALSE, &[]),
        PropertyValue::Boolean(true) => fixed(TRUE, &[]),
        PropertyValue::I64(value) => fixed(I64, &value.to_le_bytes()),
        PropertyValue::U64(value) => fixed(U64, &value.to_le_bytes()),
        PropertyValue::F32(value) => fixed(F32, &value.to_le_bytes()),
        PropertyValue::F64(value) => fixed(F64, &value.to_le_bytes()),
        PropertyValue::Date(value) => fixed(DATE, &value.to_le_bytes()),
        PropertyValue::Timestamp(value) => fixed(TIMESTAMP, &value.to_le_bytes()),
        PropertyValue::Null | PropertyValue::String(_) | PropertyValue::Bytes(_) => fixed(NULL, &[]),
    }
}

/// Decodes the value at the start of `bytes`, and returns the rest too; `None` if the bytes are not valid.
pub fn decode_first(bytes: &[u8]) -> Option<(PropertyValue<'_>, &[u8])> {
    let mut decoder = Decoder::new(bytes);
    let value = decode(&mut decoder)?;
    Some((value, decoder.rest()))
}

/// Decodes a value; `None` if the bytes are not valid.
pub(super) fn decode<'a>(decoder: &mut Decoder<'a>) -> Option<PropertyValue<'a>> {
    Some(match decoder.u8()? {
        NULL => PropertyValue::Null,
        FALSE => PropertyValue::Boolean(false),
        TRUE => PropertyValue::Boolean(true),
        I64 => PropertyValue::I64(i64::from_le_bytes(decoder.array()?)),
        U64 => PropertyValue::U64(u64::from_le_bytes(decoder.array()?)),
        F32 => PropertyValue::F32(f32::from_le_bytes(decoder.array()?)),
        F64 => PropertyValue::F64(f64::from_le_bytes(decoder.array()?)),
        DATE => PropertyValue::Date(i32::from_le_bytes(decoder.array()?)),
        TIMESTAMP => PropertyValue::Timestamp(i64::from_le_bytes(decoder.array()?)),
        STRING => PropertyValue::String(std::str::from_utf8(text(decoder)?).ok()?),
        BYTES => PropertyValue::Bytes(text(decoder)?),
        _ => return None,
    })
}

fn text<'a>(decoder: &mut Decoder<'a>) -> Option<&'a [u8]> {
    let len = usize::try_from(decoder.u64()?).ok()?;
    decoder.bytes(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_and_what_is_cut_does_not() {
        let values = [
            PropertyValue::Null,
            PropertyValue::Boolean(false),
            PropertyValue::Boolean(true),
            PropertyValue::I64(-5),
            PropertyValue::U64(u64::MAX),
            PropertyValue::F32(-0.5),
            PropertyValue::F64(-0.0),
            PropertyValue::Date(i32::MIN),
            PropertyValue::Timestamp(i64::MAX),
            PropertyValue::String("né"),
            PropertyValue::Bytes(&[255, 0]),
            PropertyValue::Bytes(&[]),
        ];
        for value in values {
            let mut bytes = Vec::new();
            encode(value, &mut bytes);
            let mut decoder = Decoder::new(&bytes);
            assert_eq!(decode(&mut decoder), Some(value));
            let longer = [&bytes[..], &[1, 2]].concat();
            assert_eq!(decode_first(&longer), Some((value, &[1, 2][..])));
            assert!(decoder.is_empty());
            assert!((0..bytes.len()).all(|len| decode(&mut Decoder::new(&bytes[..len])).is_none()));
        }
        assert_eq!(decode(&mut Decoder::new(&[11])), None);
        assert_eq!(decode(&mut Decoder::new(&[STRING, 1, 0, 0, 0, 0, 0, 0, 0, 0xff])), None);
        assert_eq!(decode(&mut Decoder::new(&[STRING, 255, 255, 255, 255, 255, 255, 255, 255, 0xff])), None);
    }
}
