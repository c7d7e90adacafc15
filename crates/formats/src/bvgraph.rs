//! BVGraph, the compressed form of web graphs by WebGraph: its properties and its codes.
//!
//! A graph is a file `NAME.graph` of bits and a text `NAME.properties`. For each vertex from 0 on, the bits hold the
//! number of successors, and then three parts of the list. The first part is copied from the list of a vertex shortly
//! before, block by block. The second part is intervals of consecutive numbers, the third is all other numbers as
//! differences. The properties name the code of each kind of number. `NAME.offsets` has the place of each list, which
//! only random access needs.
//!
//! # Source
//! P. Boldi, S. Vigna: The WebGraph framework I: compression techniques, WWW 2004. The class `BVGraph` of WebGraph
//! documents the order of the bits.

mod decoder;
mod encoder;
mod properties;
#[cfg(test)]
mod tests;

pub(crate) use decoder::{BitSource, ListDecoder};
pub(crate) use encoder::{BitSink, ListEncoder, MAX_REFERENCES};
pub(crate) use properties::{BvProperties, is_properties};

/// The code of one kind of number, for numbers from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BitCode {
    Unary,
    Gamma,
    Delta,
    /// With its shrinking factor, 1 to 7.
    Zeta(u32),
}

/// The codes of a graph and the limits of its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BvLayout {
    pub(crate) outdegrees: BitCode,
    pub(crate) references: BitCode,
    pub(crate) blocks: BitCode,
    pub(crate) intervals: BitCode,
    pub(crate) residuals: BitCode,
    /// The largest distance to a list that is copied; 0 if lists are never copied.
    pub(crate) window: usize,
    /// The shortest interval; 0 if lists have no intervals.
    pub(crate) min_interval: u64,
}

/// The layout that WebGraph takes by default.
impl Default for BvLayout {
    fn default() -> Self {
        Self {
            outdegrees: BitCode::Gamma,
            references: BitCode::Unary,
            blocks: BitCode::Gamma,
            intervals: BitCode::Gamma,
            residuals: BitCode::Zeta(3),
            window: 7,
            min_interval: 4,
        }
    }
}
