//! What graphs take that are wholly live, against their plain CSR.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::Result;
use base::VertexId;
use base::mapped::MappedSlice;
use base::progress::Silent;
use engine::{Database, GraphOptions, KeyScheme, LoadOptions};
use graph::formats::InputPath;
use graph::{Adjacency, Csr, Graph, WeightType};
use terrace::{Addition, Options, Plane, Space, Terrace};

use crate::graphs::Origin;
use crate::report::{Line, Report};
use crate::setting::Setting;

/// Most of the CSR's bytes that the roads may take, whose lists are the shortest that there are, and other graphs.
const MOST_OF_ROADS: &str = "≤ 4.5";
const MOST: &str = "≤ 1.6";

/// A line for each graph that is given.
pub(super) fn run(setting: &Setting, report: &mut Report) -> Result<()> {
    if let Some(path) = &setting.roads {
        report.line(wholly_live(setting, "roads wholly live, bytes", &real(setting, path)?, MOST_OF_ROADS)?);
    }
    if let Origin::Serialized(path) = &setting.origin {
        let csr = Csr::read_gapbs(path, &setting.pool)?;
        report.line(wholly_live(setting, "serialized graph wholly live, bytes", &csr, MOST)?);
    }
    Ok(())
}

fn wholly_live(setting: &Setting, name: &str, csr: &Csr, most: &str) -> Result<Line> {
    let additions: Vec<_> = arcs(csr).into_iter().map(|(source, target)| Addition { source, target }).collect();
    let mut terrace = Terrace::new(&Options::default())?;
    terrace.grow(csr.vertex_bound())?;
    terrace.apply(&setting.pool, Plane::Out, &additions, &mut Space::default())?;
    terrace.publish();
    Ok(line(name, &terrace, csr, most))
}

/// The bytes of the nodes of a container, against those of the same graph as a CSR: a target an arc, and an offset of
/// eight bytes a vertex.
pub(super) fn line(name: &str, terrace: &Terrace, csr: &Csr, most: &str) -> Line {
    let bytes = terrace.memory().live_bytes as f64;
    let csr_bytes = (4 * csr.num_arcs() + 8 * csr.vertex_bound() as u64) as f64;
    let ratio = bytes / csr_bytes;
    let an_arc = format!("{:.2} bytes an arc", bytes / csr.num_arcs().max(1) as f64);
    let bound = if most.is_empty() { an_arc } else { format!("{most}; {an_arc}") };
    Line {
        other: Some((csr_bytes / 1e6, "plain csr".to_owned())),
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
