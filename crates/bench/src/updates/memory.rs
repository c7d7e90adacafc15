//! What graphs take that are wholly live, against their plain CSR: all that the container holds, nodes and room for
//! more, tables, and what its workers keep.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::Result;
use base::VertexId;
use base::mapped::MappedSlice;
use base::memory::{give_back_unused, resident_beside_files};
use base::progress::Silent;
use engine::{Database, GraphOptions, KeyScheme, LoadOptions};
use graph::formats::InputPath;
use graph::{Adjacency, Csr, Graph, WeightType};
use terrace::{Addition, Options, Plane, Space, Terrace};

use crate::graphs::Origin;
use crate::report::{Line, Report, at_most};
use crate::setting::Setting;

/// Most of the CSR's bytes that the roads may take, whose lists are the shortest that there are, and other graphs.
const MOST_OF_ROADS: f64 = 4.5;
const MOST: f64 = 1.6;

/// The lines of each graph that is given.
pub(super) fn run(setting: &Setting, report: &mut Report) -> Result<()> {
    if let Some(path) = &setting.roads {
        wholly_live(setting, report, "roads wholly live", (&real(setting, path)?, MOST_OF_ROADS))?;
    }
    if let Origin::Serialized(path) = &setting.origin {
        let csr = Csr::read_gapbs(path, &setting.pool)?;
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
    terrace.apply(&setting.pool, Plane::Out, &additions, &mut space)?;
    terrace.publish();
    // What a version that somebody keeps needs is made now, and what nobody needs is given back.
    terrace.collect();
    drop(space);
    give_back_unused();
    let resident = resident_beside_files().saturating_sub(before);
    report.line(nodes(&format!("{name}, bytes of nodes"), &terrace, csr));
    report.line(line(&format!("{name}, bytes"), resident as f64, csr, Some(most)));
    Ok(())
}

/// The bytes of the nodes of a container, without its tables and its room for more.
pub(super) fn nodes(name: &str, terrace: &Terrace, csr: &Csr) -> Line {
    line(name, terrace.memory().live_bytes as f64, csr, None)
}

/// Bytes against those of the same graph as a CSR: a target an arc, and an offset of eight bytes a vertex.
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

/// The out-lists of a graph in a file, whose keys are ids; it may have weights.
pub(super) fn real(setting: &Setting, path: &Path) -> Result<Csr> {
    let weight_type = Some(WeightType::U32);
    let graph = GraphOptions { keys: KeyScheme::Dense, weight_type, in_edges: false, ..GraphOptions::default() };
    let options = LoadOptions { graph, ..LoadOptions::default() };
    let inputs = [InputPath::File(path.to_owned())];
    let view = Database::load_in_memory(&inputs, &options, &setting.pool, &Silent)?.0.view()?;
    let (mut offsets, mut targets) = (vec![0_u64], Vec::with_capacity(view.num_arcs() as usize));
    for source in 0..view.vertex_bound() as VertexId {
        let _ = view.for_each_out_fragment(source, |list| {
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
        let _ = csr.for_each_out_fragment(source, |targets| {
            arcs.extend(targets.iter().map(|&target| (source, target)));
            ControlFlow::Continue(())
        });
    }
    arcs
}
