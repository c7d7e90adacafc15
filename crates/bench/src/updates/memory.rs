//! The memory of graphs that are wholly in the memtable, against their plain CSR. It counts all of the container:
//! nodes, spare room, tables, and the memory of its workers.

use std::ops::ControlFlow;
use std::path::Path;

use anden_base::VertexId;
use anden_base::mapped::MappedSlice;
use anden_base::memory::{give_back_unused, resident_beside_files};
use anden_base::progress::Silent;
use anden_engine::{Engine, GraphOptions, KeyScheme, LoadOptions};
use anden_formats::{InputPath, read_gapbs};
use anden_graph::{Adjacency, Csr, Direction, Graph, WeightType};
use anden_memtable::{Addition, AdjacencyTable, Options, Space, Terrace};
use anyhow::Result;

use crate::graphs::Origin;
use crate::report::{Line, Report, at_most};
use crate::setting::Setting;

/// The limits in multiples of the CSR's bytes. Road networks have the shortest lists and so the largest overhead.
const MOST_OF_ROADS: f64 = 4.5;
const MOST: f64 = 1.6;

/// Measures each given graph.
pub(super) fn run(setting: &Setting, report: &mut Report) -> Result<()> {
    if let Some(path) = &setting.roads {
        wholly_live(setting, report, "roads wholly live", (&real(setting, path)?, MOST_OF_ROADS))?;
    }
    if let Origin::Serialized(path) = &setting.origin {
        let csr = read_gapbs(path, &setting.pool)?;
        wholly_live(setting, report, "serialized graph wholly live", (&csr, MOST))?;
    }
    Ok(())
}

fn wholly_live(setting: &Setting, report: &mut Report, name: &str, (csr, most): (&Csr, f64)) -> Result<()> {
    let additions: Vec<_> = arcs(csr).into_iter().map(|(source, target)| Addition { source, target }).collect();
    give_back_unused();
    let before = resident_beside_files();
    let mut terrace = Terrace::new(&Options::default())?;
    terrace.grow(csr.vertex_bound())?;
    let mut space = Space::default();
    terrace.apply(&setting.pool, AdjacencyTable::Out, &additions, &mut space)?;
    terrace.publish();
    // Collects retired nodes and returns free memory, so that only the memory of the current version counts.
    terrace.collect();
    drop(space);
    give_back_unused();
    let resident = resident_beside_files().saturating_sub(before);
    report.line(nodes(&format!("{name}, bytes of nodes"), &terrace, csr));
    report.line(line(&format!("{name}, bytes"), resident as f64, csr, Some(most)));
    Ok(())
}

/// The bytes of a container's nodes, without tables and spare room.
pub(super) fn nodes(name: &str, terrace: &Terrace, csr: &Csr) -> Line {
    line(name, terrace.memory().live_bytes as f64, csr, None)
}

/// Compares bytes with those of the CSR: four for the target of each arc, eight for the offset of each vertex.
fn line(name: &str, bytes: f64, csr: &Csr, most: Option<f64>) -> Line {
    let csr_bytes = (4 * csr.num_arcs() + 8 * csr.vertex_bound() as u64) as f64;
    let ratio = bytes / csr_bytes;
    let an_arc = format!("{:.2} bytes an arc", bytes / csr.num_arcs().max(1) as f64);
    let bound = match most {
        Some(most) => format!("{}; {an_arc}", at_most(most, ratio)),
        None => an_arc,
    };
    Line {
        other: Line::beside(csr_bytes / 1e6, "plain csr"),
        ratio: Some((ratio, ratio, ratio)),
        ..Line::figure(name, "MB", bytes / 1e6, bound)
    }
}

/// The out-lists of a graph in a file. Its keys are ids, and it may have weights.
pub(super) fn real(setting: &Setting, path: &Path) -> Result<Csr> {
    let weight_type = Some(WeightType::U32);
    let graph = GraphOptions { keys: KeyScheme::Dense, weight_type, in_edges: false, ..GraphOptions::default() };
    let options = LoadOptions { graph, ..LoadOptions::default() };
    let inputs = [InputPath::File(path.to_owned())];
    let view = Engine::load_in_memory(&inputs, &options, &setting.pool, &Silent)?.0.view()?;
    let (mut offsets, mut targets) = (vec![0_u64], Vec::with_capacity(view.num_arcs() as usize));
    for source in 0..view.vertex_bound() as VertexId {
        let _ = view.for_each_fragment(Direction::Out, source, |list| {
            targets.extend_from_slice(list);
            ControlFlow::Continue(())
        });
        offsets.push(targets.len() as u64);
    }
    view.check()?;
    let lists = Adjacency::new(MappedSlice::copied(&offsets), MappedSlice::copied(&targets), None)?;
    Ok(Csr::directed(lists, None)?)
}

/// All arcs of a graph, list by list.
pub(super) fn arcs(csr: &Csr) -> Vec<(VertexId, VertexId)> {
    let mut arcs = Vec::with_capacity(csr.num_arcs() as usize);
    for source in 0..csr.vertex_bound() as VertexId {
        let _ = csr.for_each_fragment(Direction::Out, source, |targets| {
            arcs.extend(targets.iter().map(|&target| (source, target)));
            ControlFlow::Continue(())
        });
    }
    arcs
}
