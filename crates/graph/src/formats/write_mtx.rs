//! Graphs as Matrix Market files.
//!
//! A matrix has rows from 1 to n and no names for them. Where the keys are exactly the numbers from 1 to
//! the number of vertices, as they are after such a file was loaded, they are the rows, and dense keys,
//! which count from 0, are one less, as they are read; otherwise rows
//! count the vertices in the order of their ids, and the keys are lost: [`matrix_rows`] tells which, so
//! that they can be written beside. The size of a matrix counts vertices without edges too.
//!
//! A directed graph is a general matrix, an undirected one a symmetric one; parallel edges are entries
//! of one place.

use std::io::Write;

use base::VertexId;

use super::edge_rows::{EdgeRows, NoProperties, for_each_written};
use super::number::parse_u64;
use super::push_u64;
use super::write::Output;
use crate::{Direction, Error, Graph, Result, Weight, WeightType, WeightedEdges};

/// Which rows vertices are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixRows {
    /// By vertex; 0 of ids that are no vertices.
    by_vertex: Vec<u32>,
    are_keys: bool,
}

impl MatrixRows {
    /// Whether rows are the keys of their vertices, counted from 1.
    pub fn are_keys(&self) -> bool {
        self.are_keys
    }

    /// The vertices in the order of their rows.
    pub fn vertices(&self) -> Vec<VertexId> {
        let mut vertices: Vec<VertexId> =
            (0..self.by_vertex.len() as VertexId).filter(|&vertex| self.by_vertex[vertex as usize] > 0).collect();
        vertices.sort_by_key(|&vertex| self.by_vertex[vertex as usize]);
        vertices
    }
}

/// Tells the rows of vertices. Where keys are numbers, `first_key` is the one that row 1 has in a graph that was read
/// from a matrix. Memory: 4 bytes a vertex, and a bit.
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
    let mut is_taken = vec![false; if first_key.is_some() { num_vertices + 1 } else { 0 }];
    let mut are_keys = first_key.is_some();
    let mut text = Vec::new();
    for vertex in (0..graph.vertex_bound() as VertexId).filter(|&vertex| graph.is_live(vertex)) {
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

/// Writes the graph as a Matrix Market file; returns how many edges.
///
/// # Errors
/// The output's, and damage of the graph.
pub fn write_mtx<G: WeightedEdges>(graph: &G, rows: &MatrixRows, output: &mut Output<'_>) -> Result<u64> {
    let field = match graph.weight_type() {
        None => "pattern",
        Some(WeightType::U32 | WeightType::I64) => "integer",
        Some(WeightType::F32 | WeightType::F64) => "real",
    };
    let symmetry = if graph.direction() == Direction::Undirected { "symmetric" } else { "general" };
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
    graph.check()?;
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
            // Of a symmetric matrix, the lower half stands in the file.
            if graph.direction() == Direction::Undirected && row < column {
                std::mem::swap(&mut row, &mut column);
            }
            line.clear();
            push_u64(&mut line, row.into());
            line.push(b' ');
            push_u64(&mut line, column.into());
            if let Some(weight) = edges.weights.get(i) {
                // Writing to memory does not fail.
                let _ = write!(line, " {weight}");
            }
            line.push(b'\n');
            output.write(&line)?;
        }
        Ok::<(), Error>(())
    })?;
    Ok(num_edges)
}
