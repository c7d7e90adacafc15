//! Parquet: the speed of its reader alone, loads, and a load in a quarter of the bytes of the file.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anden_engine::KeyScheme;
use anden_formats::{Error, InputPath, Source, SourceOptions};
use anden_graph::GraphKind;
use anyhow::Result;

use super::{external_lines, load};
use crate::graphs::Graphs;
use crate::harness::{median, seconds};
use crate::report::{Line, Report};
use crate::setting::Setting;

/// The decoded bytes of an edge: two keys.
const EDGE_BYTES: u64 = 16;

/// Measures the graph as exports write it, and the files of the setting.
pub fn lines(setting: &Setting, graphs: &Graphs<'_>, report: &mut Report) -> Result<()> {
    let exported = graphs.parquet()?;
    for file in std::iter::once(&exported).chain(&setting.parquet) {
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
        // First, because memory that a larger load leaves in the process would count against the limit.
        external_lines(setting, file, &name, KeyScheme::Integer, report)?;
        read_line(setting, file, &name, report)?;
        let load = |_| Ok(load(setting, file, KeyScheme::Integer, GraphKind::Undirected, None)?.seconds);
        let times = (0..setting.num_gap_pairs).map(load).collect::<Result<Vec<f64>>>()?;
        report.line(Line::figure(format!("{name}: load, integer keys"), "s", median(&times), ""));
    }
    Ok(())
}

/// Reads the keys of all edges, without building a graph.
fn read_line(setting: &Setting, file: &Path, name: &str, report: &mut Report) -> Result<()> {
    let num_edges = AtomicU64::new(0);
    let read = |_| -> Result<f64> {
        num_edges.store(0, Ordering::Relaxed);
        let (time, read) = seconds(|| {
            let mut source = Source::open(&[InputPath::File(file.to_owned())], SourceOptions::default())?;
            source.for_each_block::<u64, u32, Error>(&setting.pool, |_, block| {
                num_edges.fetch_add(block.edges.len() as u64, Ordering::Relaxed);
                Ok(())
            })
        });
        read?;
        Ok(time)
    };
    let time = median(&(0..setting.num_gap_pairs).map(read).collect::<Result<Vec<f64>>>()?);
    let rate = (EDGE_BYTES * num_edges.into_inner()) as f64 / time / 1e9;
    report.line(Line::figure(format!("{name}: read"), "GB/s", rate, "≥ 1 of decoded columns"));
    Ok(())
}
