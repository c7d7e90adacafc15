//! The names of columns and folders in GraphAr, which reader and writer share.

/// The column with the number of a vertex within its type.
pub(crate) const VERTEX_INDEX: &str = "_graphArVertexIndex";
/// The columns with the numbers of the ends of an edge.
pub(crate) const ENDS: [&str; 2] = ["_graphArSrcIndex", "_graphArDstIndex"];
/// The column with the place of the first edge of each vertex.
pub(crate) const OFFSET: &str = "_graphArOffset";
/// The entry of `extra_info` of a graph that Anden wrote: keys are unique over all types of vertices, and labels and
/// types of edges are columns.
pub(crate) const OWN_COLUMNS: &str = "anden";

/// The usual folder of a group with these properties.
pub(crate) fn group_folder<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join("_")
}
