//! The names of a CSR in an Arrow file, which reader and writer share.

/// The column with the key of each vertex.
pub(crate) const KEY: &str = "id";
/// The column with the list of arcs of each vertex.
pub(crate) const ARCS: &str = "arcs";
/// The member of an arc with the row of its target, from 0.
pub(crate) const INDEX: &str = "index";
/// The entry of the schema's metadata that is `true` or `false`. In a graph that is not directed, an edge stands in the
/// lists of both its ends.
pub(crate) const DIRECTED: &str = "directed";
