//! Generated graphs as files, with equal bytes at any number of threads.

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_base::progress::Progress;
use anden_graph::Graph;
use anden_graph::generate::Generator;

use crate::Result;
use crate::number::push_u64;
use crate::write::{OUTPUT_BUFFER_BYTES, Output};
use crate::write_gapbs::{self, SerializedWeights};

/// Pieces of text per worker: one in the making, and two that wait in [`Pool::in_order`].
const PIECES_A_WORKER: u64 = 3;
/// Bytes of a serialized graph that wait to be written.
const WRITE_BYTES: u64 = 2 * OUTPUT_BUFFER_BYTES as u64;

/// Writes the edges as `source target [weight]` lines, in the order of the blocks.
///
/// Memory: a few blocks per thread ([`edge_list_bytes`]).
///
/// # Errors
/// Those of the output.
pub fn write_edge_list(generator: &Generator, pool: &Pool, output: &mut Output<'_>) -> Result<()> {
    let line_bytes = line_bytes(generator);
    let make = |edges: &mut Vec<(VertexId, VertexId)>, block, text: &mut Vec<u8>| {
        generator.edges_of_block(block, edges);
        text.clear();
        // Reserved as a whole, so that `edge_list_bytes` counts all memory of the text.
        text.reserve(edges.len() * line_bytes);
        push_lines(generator, edges, text);
        Ok(())
    };
    pool.in_order(0..generator.num_blocks(), Vec::new, make, |text| output.write(text))?;
    output.flush()
}

/// The peak memory in bytes while edges are written as lines.
pub fn edge_list_bytes(generator: &Generator, num_threads: usize) -> u64 {
    let num_pieces = generator.num_blocks().min(PIECES_A_WORKER * num_threads as u64 + 1);
    let piece = generator.most_block_edges() * line_bytes(generator) as u64;
    generator.block_bytes(num_threads) + num_pieces * piece + OUTPUT_BUFFER_BYTES as u64
}

/// The length of the longest line in bytes.
fn line_bytes(generator: &Generator) -> usize {
    let digits = |number: u64| number.checked_ilog10().unwrap_or(0) as usize + 1;
    let weight = generator.largest_weight().map_or(0, |weight| 1 + digits(weight.into()));
    2 * (digits(generator.num_vertices()) + 1) + weight
}

fn push_lines(generator: &Generator, edges: &[(VertexId, VertexId)], text: &mut Vec<u8>) {
    for &(source, target) in edges {
        push_u64(text, u64::from(source));
        text.push(b' ');
        push_u64(text, u64::from(target));
        if generator.has_weights() {
            text.push(b' ');
            push_u64(text, u64::from(generator.weight(source, target)));
        }
        text.push(b'\n');
    }
}

/// Writes the graph as `.sg`, or with weights as `.wsg`. As the GAP converter does, this makes an undirected graph
/// without loops and repeated edges. Returns the number of remaining edges.
///
/// Cost: generates the edges twice. Memory: [`gapbs_bytes`].
///
/// # Errors
/// Those of the output. Cancellation until writing starts; from then on the output handles it.
pub fn write_gapbs(
    generator: &Generator,
    pool: &Pool,
    progress: &dyn Progress,
    output: &mut Output<'_>,
) -> Result<u64> {
    let weights = if generator.has_weights() { SerializedWeights::Write } else { SerializedWeights::Leave };
    let graph = generator.csr_unless_cancelled(pool, progress)?;
    write_gapbs::write_gapbs(&graph, weights, output)?;
    Ok(graph.num_edges())
}

/// The peak memory in bytes while the graph is written as `.sg` or `.wsg`. The sorted list of one vertex needs less
/// than the memory that [`Generator::csr_bytes`] counts and frees before.
pub fn gapbs_bytes(generator: &Generator, num_threads: usize) -> u64 {
    generator.csr_bytes(num_threads) + WRITE_BYTES
}
