//! The changes of a delta in one property column.

use anden_base::VertexId;
use anden_graph::property::{PropertyType, PropertyValue};

use super::value::{decode, encode};
use crate::encoding::Decoder;

/// Changed values of one column: for each vertex the new and the old value, which differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PropertyChanges {
    column: u32,
    vertices: Vec<VertexId>,
    /// Ends of each vertex's two values.
    ends: Vec<u64>,
    values: Vec<u8>,
}

impl PropertyChanges {
    /// No changes of the column with this number: its index among the properties of all versions.
    pub fn new(column: u32) -> Self {
        Self { column, ..Self::default() }
    }

    /// Number of the column.
    pub fn column(&self) -> u32 {
        self.column
    }

    /// Appends a change behind those of smaller vertices; ignores equal values.
    pub fn push(&mut self, vertex: VertexId, new: PropertyValue<'_>, old: PropertyValue<'_>) {
        if new == old {
            return;
        }
        self.vertices.push(vertex);
        // Both values of a change stand together, because a reader needs one or the other by direction.
        encode(new, &mut self.values);
        encode(old, &mut self.values);
        self.ends.push(self.values.len() as u64);
    }

    /// Number of changes.
    pub fn len(&self) -> usize {
        self.vertices.len()
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.vertices.is_empty()
    }

    /// Each vertex with its new and its old value.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (VertexId, PropertyValue<'_>, PropertyValue<'_>)> {
        self.as_ref().iter()
    }

    pub(crate) fn as_ref(&self) -> ChangesRef<'_> {
        ChangesRef { vertices: &self.vertices, ends: &self.ends, values: &self.values }
    }

    /// The reverse changes.
    pub(crate) fn reversed(&self) -> Self {
        let mut reversed = Self::new(self.column);
        self.iter().for_each(|(vertex, new, old)| reversed.push(vertex, old, new));
        reversed
    }
}

/// Borrowed changes of a column, in memory or in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChangesRef<'a> {
    pub vertices: &'a [VertexId],
    pub ends: &'a [u64],
    pub values: &'a [u8],
}

impl<'a> ChangesRef<'a> {
    /// Bytes of the changes.
    pub fn num_bytes(&self) -> usize {
        size_of_val(self.vertices) + size_of_val(self.ends) + self.values.len()
    }

    /// Checks changes from a file: vertices ascend strictly below the bound, and each has two different values of one
    /// type.
    pub fn check(&self, vertex_bound: usize) -> Result<(), String> {
        let ascend = self.vertices.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascend || self.vertices.last().is_some_and(|&last| last as usize >= vertex_bound) {
            return Err(format!("vertices with changed properties that ascend strictly below {vertex_bound} expected"));
        }
        let (ends, num_bytes) = (self.ends, self.values.len() as u64);
        // The last end must be the number of bytes, so that each byte belongs to a value.
        if ends.len() != self.vertices.len() || !ends.is_sorted() || ends.last().copied().unwrap_or(0) != num_bytes {
            return Err(format!("values of {} vertices in {num_bytes} bytes expected", self.vertices.len()));
        }
        for place in 0..self.vertices.len() {
            let Some((new, old)) = self.pair(place) else {
                return Err(format!("vertex {}: two values of a property expected", self.vertices[place]));
            };
            let types = new.property_type().zip(old.property_type());
            if new == old || types.is_some_and(|(new, old)| new != old) {
                return Err(format!("vertex {}: two different values of one type expected", self.vertices[place]));
            }
        }
        Ok(())
    }

    /// Checks that all values are of the column's type.
    pub fn check_type(&self, property_type: PropertyType) -> Result<(), String> {
        let is_other = |value: PropertyValue<'_>| value.property_type().is_some_and(|found| found != property_type);
        match self.iter().find(|&(_, new, old)| is_other(new) || is_other(old)) {
            Some((vertex, ..)) => Err(format!("vertex {vertex}: a value of type {property_type} expected")),
            None => Ok(()),
        }
    }

    /// The new and the old value at a position; `None` if the bytes are not valid.
    fn pair(&self, place: usize) -> Option<(PropertyValue<'a>, PropertyValue<'a>)> {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        let bytes = self.values.get(start as usize..self.ends[place] as usize)?;
        let mut decoder = Decoder::new(bytes);
        let pair = (decode(&mut decoder)?, decode(&mut decoder)?);
        // Bytes behind the two values would be covered by no check.
        decoder.is_empty().then_some(pair)
    }

    /// The new and the old value of a vertex, if they changed; the changes were checked.
    pub fn find(&self, vertex: VertexId) -> Option<(PropertyValue<'a>, PropertyValue<'a>)> {
        self.pair(self.vertices.binary_search(&vertex).ok()?)
    }

    /// Each vertex with its new and its old value; the changes were checked.
    pub fn iter(self) -> impl ExactSizeIterator<Item = (VertexId, PropertyValue<'a>, PropertyValue<'a>)> {
        let null = (PropertyValue::Null, PropertyValue::Null);
        (0..self.vertices.len()).map(move |place| {
            let (new, old) = self.pair(place).unwrap_or(null);
            (self.vertices[place], new, old)
        })
    }
}

/// Net changes of consecutive changes of a column: for each vertex the oldest old value and the newest new value.
pub(crate) fn compose_properties(column: u32, parts: &[ChangesRef<'_>]) -> PropertyChanges {
    let mut changed: Vec<(VertexId, u32, u32)> = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let vertices = part.vertices.iter().enumerate();
        changed.extend(vertices.map(|(place, &vertex)| (vertex, index as u32, place as u32)));
    }
    // By vertex, and then by part, so the oldest change comes first.
    changed.sort_unstable();
    let pair = |&(_, index, place): &(VertexId, u32, u32)| parts[index as usize].pair(place as usize);
    let mut net = PropertyChanges::new(column);
    for same in changed.chunk_by(|a, b| a.0 == b.0) {
        if let (Some((_, old)), Some((new, _))) = (same.first().and_then(pair), same.last().and_then(pair)) {
            net.push(same[0].0, new, old);
        }
    }
    net
}

#[cfg(test)]
mod tests {
    use super::*;

    const NULL: PropertyValue<'_> = PropertyValue::Null;

    fn text(value: &str) -> PropertyValue<'_> {
        PropertyValue::String(value)
    }

    fn changes(of: &[(VertexId, PropertyValue<'_>, PropertyValue<'_>)]) -> PropertyChanges {
        let mut changes = PropertyChanges::new(3);
        of.iter().for_each(|&(vertex, new, old)| changes.push(vertex, new, old));
        changes.as_ref().check(10).unwrap();
        changes
    }

    #[test]
    fn opposite_changes_cancel_when_composed() {
        let first = changes(&[(1, text("a"), NULL), (2, text("b"), text("x")), (4, text("c"), NULL)]);
        let second = changes(&[(1, NULL, text("a")), (3, text("d"), NULL), (4, text("e"), text("c"))]);
        let net = compose_properties(3, &[first.as_ref(), second.as_ref()]);
        assert_eq!(net, changes(&[(2, text("b"), text("x")), (3, text("d"), NULL), (4, text("e"), NULL)]));
        let back = compose_properties(3, &[net.as_ref(), net.reversed().as_ref()]);
        assert!(back.is_empty());
        assert_eq!(net.as_ref().find(4), Some((text("e"), NULL)));
        assert_eq!(net.as_ref().find(1), None);
    }

    #[test]
    fn changes_that_mean_nothing_are_refused() {
        let good = changes(&[(1, text("a"), NULL), (2, text("b"), NULL)]);
        let refused = |change: fn(&mut PropertyChanges)| {
            let mut bad = good.clone();
            change(&mut bad);
            assert!(bad.as_ref().check(10).is_err(), "{bad:?}");
        };
        refused(|bad| bad.vertices[1] = 1);
        refused(|bad| bad.vertices[1] = 10);
        refused(|bad| bad.ends[0] += 1);
        refused(|bad| bad.ends[0] = u64::MAX);
        refused(|bad| bad.ends.push(3));
        refused(|bad| bad.values.push(0));
        refused(|bad| bad.values[0] = 0);
        refused(|bad| bad.vertices.truncate(1));
        let mut same = PropertyChanges::new(0);
        same.push(1, text("a"), PropertyValue::I64(1));
        assert!(same.as_ref().check(10).is_err());
        assert!(good.as_ref().check_type(PropertyType::String).is_ok());
        assert!(good.as_ref().check_type(PropertyType::Bytes).is_err());
    }
}
