//! Checks that stand between a file and the `parquet` crate.
//!
//! The crate recurses, allocates and loops by some numbers of a file before it compares them with the file. A stack
//! overflow or a failed allocation would end the process, so these numbers are checked first. A panic becomes an error.
//!
//! The crate takes the type of a field from its number, and ignores the type that the file states. Both must agree, so
//! that the crate reads what was checked.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of reading a part of a file, with the fault as its error.
pub(super) type Result<T> = std::result::Result<T, String>;

/// The greatest depth of nested values, and the longest name of a column with the names of the structures around it.
const MAX_DEPTH: usize = 64;
const MAX_NAME_BYTES: usize = 1024;
/// The number of the page type whose pages hold indices.
const INDEX_PAGE: i32 = 1;
/// The fault of bytes that end within a value.
pub(super) const SHORT: &str = "it ends too early";

/// The names before the text of an error.
const NAMES: [&str; 4] = ["External: ", "Parquet argument error: ", "Parquet error: ", "EOF: "];

/// Runs code of the crate. A panic in it is a fault of the file.
pub(super) fn guarded<T>(body: impl FnOnce() -> parquet::errors::Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result.map_err(|error| {
            let (text, mut rest) = (error.to_string(), 0);
            // An error passes through several types of the crates, which each add a name.
            while let Some(name) = NAMES.iter().find(|name| text[rest..].starts_with(**name)) {
                rest += name.len();
            }
            text[rest..].to_owned()
        }),
        Err(_) => Err("not a valid Parquet file".into()),
    }
}

/// The types of the fields of a Thrift structure by their number from 1, and the structures in them.
///
/// The types are `b`ytes, `d`ouble, `i`nteger, `l`ist, `s`tructure, `t`ruth value, and a `y`te on its own.
struct Shape(&'static [u8], &'static [(i16, &'static Shape)]);

static OPEN: Shape = Shape(b"", &[]);
static FOOTER: Shape = Shape(b"ilillbl", &[(2, &ELEMENT), (4, &ROW_GROUP), (5, &Shape(b"bb", &[]))]);
static ELEMENT: Shape = Shape(b"iiibiiiiis", &[(10, &LOGICAL)]);
static TIME: Shape = Shape(b"ts", &[]);
static LOGICAL: Shape = Shape(
    b"....s.ss.s.....sss",
    &[
        (5, &Shape(b"ii", &[])),
        (7, &TIME),
        (8, &TIME),
        (10, &Shape(b"yt", &[])),
        (16, &Shape(b"y", &[])),
        (17, &Shape(b"b", &[])),
        (18, &Shape(b"bi", &[])),
    ],
);
static ROW_GROUP: Shape = Shape(b"liiliii", &[(1, &CHUNK), (4, &Shape(b"itt", &[]))]);
static CHUNK: Shape = Shape(b"bisiiii", &[(3, &CHUNK_DATA)]);
static PLACE: Shape = Shape(b"sl", &[(1, &Shape(b"dddddddd", &[]))]);
static CHUNK_DATA: Shape = Shape(b"illiiiiliiisliiss", &[(13, &Shape(b"iii", &[])), (17, &PLACE)]);
static PAGE: Shape =
    Shape(b"iiiissss", &[(5, &Shape(b"iiiis", &[])), (7, &Shape(b"iit", &[])), (8, &Shape(b"iiiiiits", &[]))]);

/// The facts of a page header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PageHead {
    /// The length of the header.
    pub(super) len: usize,
    /// Whether the page has an index in place of values.
    pub(super) is_index: bool,
    /// The bytes after the header.
    pub(super) num_body_bytes: u64,
}

/// The elements of a schema: for each open group, the elements to come and the length of its path.
#[derive(Default)]
struct SchemaCheck {
    open: Vec<(u64, usize)>,
    num_children: u64,
    name_len: u64,
    /// The fields of a page header, where bytes are one.
    page: PageHead,
}

impl SchemaCheck {
    /// Notes a field of a page header.
    fn note_page(&mut self, id: i16, value: u64) {
        // The crate keeps 32 bits of these numbers.
        match (id, zigzag(value) as i32) {
            (1, kind) => self.page.is_index = kind == INDEX_PAGE,
            // The crate refuses a negative size.
            (3, num_bytes) => self.page.num_body_bytes = num_bytes.max(0) as u64,
            _ => {}
        }
    }

    /// Notes a field of an element.
    fn note(&mut self, id: i16, value: u64) {
        match id {
            4 => self.name_len = value,
            // Zigzag: a negative number becomes a huge one.
            5 => self.num_children = value.rotate_right(1),
            _ => {}
        }
    }

    /// Ends an element; `num_left` bytes of the footer follow.
    fn end(&mut self, num_left: usize) -> Result<()> {
        while self.open.pop_if(|group| group.0 == 0).is_some() {}
        let mut path_len = self.name_len as usize;
        if let Some(parent) = self.open.last_mut() {
            parent.0 -= 1;
            path_len += parent.1 + 1;
        }
        if self.num_children > num_left as u64 || self.open.len() == MAX_DEPTH || path_len > MAX_NAME_BYTES {
            return Err("its schema has too many columns, too deep structures or too long names".into());
        }
        if self.num_children > 0 {
            // The root has no part in the paths.
            let path_len = if self.open.is_empty() { 0 } else { path_len };
            self.open.push((self.num_children, path_len));
        }
        (self.num_children, self.name_len) = (0, 0);
        Ok(())
    }
}

/// Checks the bytes of a footer.
pub(super) fn check_footer(mut bytes: &[u8]) -> Result<()> {
    fields(&mut bytes, &FOOTER, 0, &mut SchemaCheck::default())
}

/// The page header that the bytes begin with.
pub(super) fn page_head(bytes: &[u8]) -> Result<PageHead> {
    let (mut rest, mut check) = (bytes, SchemaCheck::default());
    fields(&mut rest, &PAGE, 0, &mut check)?;
    Ok(PageHead { len: bytes.len() - rest.len(), ..check.page })
}

fn fields(bytes: &mut &[u8], shape: &'static Shape, depth: usize, schema: &mut SchemaCheck) -> Result<()> {
    let mut id = 0_i16;
    loop {
        let head = take(bytes, 1)?[0];
        if head & 15 == 0 {
            return Ok(());
        }
        id = match head >> 4 {
            0 => zigzag(varint(bytes)?) as i16,
            step => id.wrapping_add(step.into()),
        };
        if std::ptr::eq(shape, &FOOTER) && id == 8 {
            return Err("it is encrypted".into());
        }
        let kind = kind_of(head)?;
        let known = usize::try_from(i32::from(id) - 1).ok().and_then(|place| shape.0.get(place));
        if known.is_some_and(|&known| known != kind && known != b'.') {
            return Err("a field is of another type than the format says".into());
        }
        let inner = shape.1.iter().find(|inner| inner.0 == id).map_or(&OPEN, |inner| inner.1);
        let value = value(bytes, kind, inner, depth, schema)?;
        if std::ptr::eq(shape, &ELEMENT) {
            schema.note(id, value);
        } else if std::ptr::eq(shape, &PAGE) {
            schema.note_page(id, value);
        }
    }
}

/// Passes a value. Returns a number, or the length of bytes.
fn value(bytes: &mut &[u8], kind: u8, inner: &'static Shape, depth: usize, schema: &mut SchemaCheck) -> Result<u64> {
    match kind {
        _ if depth == MAX_DEPTH => return Err("it is nested too deep".into()),
        b'i' => return varint(bytes),
        b'b' => {
            let len = varint(bytes)?;
            return take(bytes, len).map(|_| len);
        }
        b'y' => drop(take(bytes, 1)?),
        b'd' => drop(take(bytes, 8)?),
        b's' => fields(bytes, inner, depth + 1, schema)?,
        b'l' => {
            let head = take(bytes, 1)?[0];
            let len = if head >> 4 == 15 { varint(bytes)? } else { (head >> 4).into() };
            let kind = if len > 0 { kind_of(head)? } else { b'y' };
            // The crate takes no byte for a truth value that it skips, so a list of them would not end soon.
            if len > bytes.len() as u64 || kind == b't' {
                return Err("a list is longer than its bytes".into());
            }
            let is_schema = std::ptr::eq(inner, &ELEMENT);
            if is_schema {
                *schema = SchemaCheck::default();
            }
            for _ in 0..len {
                value(bytes, kind, inner, depth + 1, schema)?;
                if is_schema {
                    schema.end(bytes.len())?;
                }
            }
        }
        _ => {}
    }
    Ok(0)
}

fn kind_of(head: u8) -> Result<u8> {
    Ok(match head & 15 {
        1 | 2 => b't',
        3 => b'y',
        4..=6 => b'i',
        7 => b'd',
        8 => b'b',
        9 | 10 => b'l',
        12 => b's',
        _ => return Err("a field is of an unknown type".into()),
    })
}

/// The first bytes.
pub(super) fn take<'a>(bytes: &mut &'a [u8], len: u64) -> Result<&'a [u8]> {
    usize::try_from(len).ok().and_then(|len| bytes.split_off(..len)).ok_or_else(|| SHORT.into())
}

/// A number of seven bits a byte, the lowest first.
pub(super) fn varint(bytes: &mut &[u8]) -> Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err("a number has more than 64 bits".into())
}

/// A number whose lowest bit is its sign.
pub(super) fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_are_errors() {
        let read: Result<u8> = guarded(|| Ok([0; 0][std::hint::black_box(1)]));
        assert_eq!(read, Err("not a valid Parquet file".into()));
        let read: Result<()> = guarded(|| Err(parquet::errors::ParquetError::EOF("short".into())));
        assert_eq!(read, Err("short".into()));
    }

    #[test]
    fn a_header_ends_where_its_structure_ends() {
        // A data page of 3 values, 12 bytes: the header takes 17 bytes.
        let header = [0x15, 0, 0x15, 24, 0x15, 24, 0x2c, 0x15, 6, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0];
        let data = PageHead { len: 17, is_index: false, num_body_bytes: 12 };
        assert_eq!(page_head(&[&header[..], b"values"].concat()), Ok(data));
        assert_eq!(page_head(&[0x15, 2, 0x25, 6, 0]), Ok(PageHead { len: 5, is_index: true, num_body_bytes: 3 }));
        assert_eq!(page_head(&header[..16]), Err(SHORT.into()));
        assert!(page_head(&[0x18, 0, 0]).unwrap_err().contains("another type"));
    }
}
