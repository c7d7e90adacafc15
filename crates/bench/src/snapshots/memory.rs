//! A database in memory against the same one in files.

use anyhow::Result;
use base::progress::Silent;
use engine::{AppendOptions, Changes, Database, EdgeWeight, GraphOptions, KeyScheme, LoadOptions, Maintenance};
use graph::formats::InputPath;
use graph::{Graph, WeightType};

use super::{KERNELS, changes, is_wanted};
use crate::graphs::{Forms, Graphs};
use crate::harness::Pairs;
use crate::kernels::{Kernel, sources};
use crate::report::{Line, Report};
use crate::setting::Setting;

/// Levels over the run, and how many edges each adds.
const NUM_LEVELS: u32 = 10;
const LEVEL_EDGES: u32 = 1000;

/// Loads, then every kernel, on the run alone and with levels over it.
pub fn lines(setting: &Setting, graphs: &Graphs<'_>, report: &mut Report) -> Result<()> {
    let kernels: Vec<Kernel> = KERNELS.into_iter().filter(|&kernel| is_wanted(setting, kernel)).collect();
    let (weighted, plain): (Vec<Kernel>, Vec<Kernel>) = kernels.into_iter().partition(|&kernel| kernel == Kernel::Sssp);
    for (kernels, weights) in [(plain, None), (weighted, Some(WeightType::U32))] {
        if kernels.is_empty() {
            continue;
        }
        let forms = if weights.is_some() { graphs.weighted()? } else { graphs.plain()? };
        let path = setting.scratch.join("beside-memory.anden");
        let (mut times, mut both) = (Pairs::default(), None);
        for _ in 0..setting.num_gap_pairs.clamp(1, 3) {
            drop(both.take());
            if path.exists() {
                std::fs::remove_dir_all(&path)?;
            }
            let (ours, other) = (load(setting, &forms, weights, None)?, load(setting, &forms, weights, Some(&path))?);
            times.push(ours.1, other.1);
            both = Some((ours.0, other.0));
        }
        report.line(Line::compared("load to memory", &times, "to files", "files are synced"));
        let Some((ours, other)) = &both else { continue };
        for (name, num_levels) in [("in memory", 0), ("in memory, 10 levels", NUM_LEVELS)] {
            for level in 0..num_levels {
                let batch = batch(level, forms.csr().vertex_bound() as u32, weights);
                append(setting, ours, &batch)?;
                append(setting, other, &batch)?;
            }
            for &kernel in &kernels {
                line(setting, kernel, (ours, other), name, report)?;
            }
        }
        drop(both);
        std::fs::remove_dir_all(&path)?;
    }
    Ok(())
}

fn line(
    setting: &Setting,
    kernel: Kernel,
    (ours, other): (&Database, &Database),
    name: &str,
    report: &mut Report,
) -> Result<()> {
    let (ours, other) = (ours.view()?, other.view()?);
    let sources = sources(&other);
    let source = |pair: usize| sources[pair % sources.len()];
    let pairs = Pairs::alternate(
        setting.num_pairs,
        |pair| anyhow::Ok(kernel.run(setting, &ours, source(pair))?.seconds),
        |pair| Ok(kernel.run(setting, &other, source(pair))?.seconds),
    )?;
    report.line(Line::compared(format!("{name}: {}", kernel.name()), &pairs, "in files", "what huge pages give"));
    Ok(())
}

/// Loads to files, or without a path to memory; with the seconds that it took.
fn load(
    setting: &Setting,
    forms: &Forms,
    weight_type: Option<WeightType>,
    path: Option<&std::path::Path>,
) -> Result<(Database, f64)> {
    let graph = GraphOptions {
        direction: forms.csr().direction(),
        keys: KeyScheme::Dense,
        weight_type,
        ..GraphOptions::default()
    };
    let (options, input) =
        (LoadOptions { graph, ..LoadOptions::default() }, [InputPath::File(forms.serialized().to_owned())]);
    let (database, report) = match path {
        None => Database::load_in_memory(&input, &options, &setting.pool, &Silent)?,
        Some(path) => Database::load(path, &input, &options, &setting.pool, &Silent)?,
    };
    Ok((database, report.seconds))
}

/// Edges between vertices that follow each other by large steps.
fn batch(level: u32, vertex_bound: u32, weights: Option<WeightType>) -> Changes {
    let vertex = |number: u32| number.wrapping_mul(0x9e37_79b1) % vertex_bound.max(1);
    let edges = (level * LEVEL_EDGES..(level + 1) * LEVEL_EDGES).map(|number| {
        let weight = weights.map(|_| EdgeWeight::from(1 + number % 255));
        (vertex(2 * number), vertex(2 * number + 1), weight)
    });
    changes(edges)
}

fn append(setting: &Setting, database: &Database, changes: &Changes) -> Result<()> {
    let options = AppendOptions { maintenance: Maintenance::Never, ..AppendOptions::default() };
    database.append_changes(changes, &options, &setting.pool, &Silent)?;
    Ok(())
}
