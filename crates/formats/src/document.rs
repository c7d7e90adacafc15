//! Documents of nodes and edges with named data: GraphML, GEXF, GML, Pajek and node-link JSON.
//!
//! One thread at a time splits a document into elements by the [`ElementParser`] of its format, which is cheap. All
//! threads make keys, weights and properties of the elements ([`rows`]). Memory is bounded: an element with the text
//! before it has at most [`MAX_ELEMENT_BYTES`].
//!
//! A format that does not state the types of its data is read twice: [`scan`] finds names, types and labels first.

mod batch;
mod characters;
mod content;
mod encoding;
mod labels;
mod layout;
mod rows;
mod scan;
mod xml;

pub(crate) use self::batch::{DocumentFault, DocumentResult, ElementBatch, ElementParser, TextRange};
pub(crate) use self::characters::Characters;
pub(crate) use self::content::{DocumentContent, push_document};
pub(crate) use self::labels::LabelUse;
pub(crate) use self::layout::{
    DocumentKey, ElementLayout, KeyNames, TYPE_ATTRIBUTE, push_key, value_text, weight_type_of_name,
};
pub(crate) use self::scan::{ScannedParser, open_scanned};
pub(crate) use self::xml::{XmlReader, attribute, character_of, xml_root};

/// The largest size of an element, and of the text between two elements, in bytes.
pub(crate) const MAX_ELEMENT_BYTES: usize = 64 << 20;
/// The largest depth of nested elements.
pub(crate) const MAX_DEPTH: usize = 256;
