//! Writes graphs as Matrix Market files.
//!
//! The rows of a matrix have the numbers 1 to n and no names. If the keys are exactly these numbers, as after loading
//! such a file, they become the rows. Dense keys count from 0, so they are one less than the rows. Otherwise rows count
//! the vertices in the order of their ids, and the file loses the keys: [`matrix_rows`] reports that, so that the
//! caller can write keys to another file. The size of a matrix includes vertices without edges.
//!
//! A directed graph becomes a general matrix, an undirected one a symmetric matrix. Parallel edges become entries at
//! one position.

use std::io::Write;

use anden_base::VertexId;
use anden_graph::{Graph, GraphKind, Weight, WeightType, WeightedEdges};

use crate::edge_rows::{EdgeRows, NoProperties, for_each_written};
use crate::number::parse_u64;
use crate::number::push_u64;
use crate::write::Output;
use crate::{Error, Result};

/// The matrix rows of vertices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixRows {
    /// By vertex; 0 for ids that are not vertices.
    by_vertex: Vec<u32>,
    are_keys: bool,
}

impl MatrixRows {
    /// Whether rows are the keys of their vertices, counted from 1.
    pub fn are_keys(&self) -> bool {
        self.are_keys
    }

    /// The row of a vertex.
    pub(crate) fn row(&self, vertex: VertexId) -> u32 {
        self.by_vertex[vertex as usize]
    }

    /// The vertices in the order of their rows.
    pub fn vertices(&self) -> Vec<VertexId> {
        let mut vertices: Vec<VertexId> =
            (0..self.by_vertex.len() as VertexId).filter(|&vertex| self.by_vertex[vertex as usize] > 0).collect();
        vertices.sort_by_key(|&vertex| self.by_vertex[vertex as usize]);
        vertices
    }
}

/// Assigns rows to vertices. `first_key` is the key of row 1 in a graph that was read from a matrix; `None` if keys are
/// not numbers. Memory: 4 bytes a vertex, and another byte with numeric keys.
///
/// # Errors
/// Those of `key`, which appends the key of a vertex.
pub fn matrix_rows<E: From<Error>>(
    graph: &impl Graph,
    first_key: Option<u64>,
    mut key: impl FnMut(VertexId, &mut Vec<u8>) -> Result<(), E>,
) -> Result<MatrixRows, E> {
    let num_vertices = graph.num_vertices();
    let mut by_vertex = vec![0; graph.vertex_bound()];
    // Row 0 does not exist, so the table has one entry more.
    let mut is_taken = vec![false; if first_key.is_some() { num_vertices + 1 } else { 0 }];
    let mut are_keys = first_key.is_some();
    let mut text = Vec::new();
    for vertex in (0..graph.vertex_bound() as VertexId).filter(|&vertex| graph.is_live(vertex)) {
        // One unsuitable key decides, so the other keys need not be read.
        if !are_keys {
            break;
        }
        text.clear();
        key(vertex, &mut text)?;
        let row = first_key.and_then(|first| parse_u64(&text)?.checked_sub(first)?.checked_add(1));
        let row = row.and_then(|row| usize::try_from(row).ok());
        match row.and_then(|row| Some((row, is_taken.get_mut(row)?))) {
            Some((row, taken)) if !*taken => {
                *taken = true;
                by_vertex[vertex as usize] = row as u32;
            }
            // A key that is no number, too large or repeated cannot be a row.
            _ => are_keys = false,
        }
    }
    if !are_keys {
        let mut row = 0;
        for (vertex, place) in by_vertex.iter_mut().enumerate() {
            let is_live = graph.is_live(vertex as VertexId);
            row += u32::from(is_live);
            *place = if is_live { row } else { 0 };
        }
    }
    Ok(MatrixRows { by_vertex, are_keys })
}

/// Writes the graph as a Matrix Market file; returns the number of edges.
///
/// # Errors
/// Those of the output, and damage of the graph.
pub fn write_mtx<G: WeightedEdges>(graph: &G, rows: &MatrixRows, output: &mut Output<'_>) -> Result<u64> {
    let field = match graph.weight_type() {
        None => "pattern",
        Some(WeightType::U32 | WeightType::I64) => "integer",
        Some(WeightType::F32 | WeightType::F64) => "real",
    };
    let symmetry = if graph.graph_kind() == GraphKind::Undirected { "symmetric" } else { "general" };
    let mut header = format!("%%MatrixMarket matrix coordinate {field} {symmetry}\n");
    if !rows.are_keys {
        header.push_str("% rows and columns count the vertices in the order of their ids; they are not their keys\n");
    }
    let (num_vertices, num_edges) = (graph.num_vertices(), graph.num_edges());
    header.push_str(&format!("{num_vertices} {num_vertices} {num_edges}\n"));
    output.write(header.as_bytes())?;
    let num_written = match graph.weight_type() {
        None | Some(WeightType::U32) => write_entries::<u32>(graph, rows, output)?,
        Some(WeightType::I64) => write_entries::<i64>(graph, rows, output)?,
        Some(WeightType::F32) => write_entries::<f32>(graph, rows, output)?,
        Some(WeightType::F64) => write_entries::<f64>(graph, rows, output)?,
    };
    // Checked before the number of edges, because damage explains a wrong number.
    graph.check()?;
    // The header with the number of edges is written already, so the file would be wrong.
    if num_written != num_edges {
        return Err(Error::Parameter(format!("{num_written} edges were found where {num_edges} were promised")));
    }
    output.flush()?;
    Ok(num_edges)
}

fn write_entries<W: Weight>(graph: &impl WeightedEdges, rows: &MatrixRows, output: &mut Output<'_>) -> Result<u64> {
    let mut edges = EdgeRows::<W>::default();
    let (mut line, mut num_edges) = (Vec::new(), 0);
    for_each_written(graph, 0..graph.vertex_bound() as VertexId, false, |vertex| {
        edges.clear();
        edges.push::<_, Error>(graph, &NoProperties, vertex)?;
        num_edges += edges.len() as u64;
        for (i, &target) in edges.targets.iter().enumerate() {
            let (mut row, mut column) = (rows.by_vertex[vertex as usize], rows.by_vertex[target as usize]);
            // A symmetric matrix is stored as its lower half.
            if graph.graph_kind() == GraphKind::Undirected && row < column {
                std::mem::swap(&mut row, &mut column);
            }
            line.clear();
            push_u64(&mut line, row.into());
            line.push(b' ');
            push_u64(&mut line, column.into());
            if let Some(weight) = edges.weights.get(i) {
                // A write to memory cannot fail.
                let _ = write!(line, " {weight}");
            }
            line.push(b'\n');
            output.write(&line)?;
        }
        Ok::<(), Error>(())
    })?;
    Ok(num_edges)
}
