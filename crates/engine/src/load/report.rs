//! What a load did.

/// The outcome of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadReport {
    /// Vertices of the graph.
    pub vertices: u64,
    /// Edges of the graph; of an undirected one, each counted once.
    pub edges: u64,
    /// The number of the snapshot that was made.
    pub snapshot: u32,
    /// From the first byte read to the last byte synced.
    pub seconds: f64,
    /// Bytes of all files of the database.
    pub bytes: u64,
    /// Lines of the input that were left out because they were no edges.
    pub skipped: u64,
    /// What was wrong with the first of them, with file and line.
    pub first_skipped: Option<String>,
    /// What users should know about the inputs, in their order: `FILE: …`.
    pub notes: Vec<String>,
    /// The most memory that was resident at once, in bytes, the program included.
    pub peak_bytes: u64,
}
