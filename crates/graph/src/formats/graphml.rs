//! GraphML: nodes and edges as XML elements, with data of declared types.
//!
//! One thread at a time takes the elements apart ([`elements`]), which is little work; all make keys,
//! weights and properties of them ([`rows`]). Memory is bounded: an element in the file, with the text
//! before it, has at most [`elements::MAX_ELEMENT_BYTES`].
//!
//! Not read, and refused with the line: a DTD and entities (XML's own five and numbers of characters
//! aside), graphs within nodes or edges, a second graph, hyperedges, and edges whose `directed` differs
//! from the graph's `edgedefault`. Passed over: ports (an edge leads to their node), descriptions, data
//! of keys without a type such as those of drawings. An edge may name a node that is not declared.
//!
//! # Source
//! U. Brandes, M. Eiglsperger, I. Herman, M. Himsolt, M. S. Marshall: GraphML progress report, GD 2001,
//! and the GraphML primer and attribute extension.

mod elements;
mod header;
mod rows;

pub(super) use self::elements::{Batch, ElementReader};
pub(super) use self::header::{GraphMlLayout, TYPE_ATTRIBUTE};
pub(super) use self::rows::read_elements;
