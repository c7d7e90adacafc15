//! A sliding window along a stream: the cost of a batch, and its growth.

use anden_base::VertexId;
use anden_base::progress::Silent;
use anden_engine::{AppendOptions, Changes, Engine, GraphOptions, Key, KeyScheme, LoadOptions, Retention};
use anden_formats::InputPath;
use anden_graph::Graph;
use anden_graph::generate::{Generator, RmatParams};
use anyhow::{Result, bail};

use super::ratio_line;
use crate::graphs::Forms;
use crate::harness::{median, seconds};
use crate::report::{Line, Report};
use crate::setting::Setting;

/// The number of batches in the window.
const NUM_SHOWN: u32 = 10;

/// One in this many edges of a batch is removed by the batch that comes a window and a half later.
const REMOVED_SHARE: usize = 10;

/// The numbers of edges of a batch, and of batches.
const STREAMS: [(usize, u32); 2] = [(1000, 400), (10_000, 400)];

/// A short stream for quick runs.
const QUICK_STREAMS: [(usize, u32); 1] = [(200, 40)];

/// Measures streams into a database in files and one in memory.
pub fn lines(setting: &Setting, forms: &Forms, is_quick: bool, report: &mut Report) -> Result<()> {
    for &(batch_edges, num_batches) in if is_quick { &QUICK_STREAMS[..] } else { &STREAMS } {
        for is_in_memory in [false, true] {
            let place = if is_in_memory { "memory" } else { "files" };
            let name = format!("window of {NUM_SHOWN} in {place}, batches of {batch_edges}");
            let path = setting.scratch.join("window.anden");
            let graph = GraphOptions {
                graph_kind: forms.csr().graph_kind(),
                keys: KeyScheme::Dense,
                ..GraphOptions::default()
            };
            let (options, input) =
                (LoadOptions { graph, ..LoadOptions::default() }, [InputPath::File(forms.serialized().to_owned())]);
            let (database, _) = match is_in_memory {
                true => Engine::load_in_memory(&input, &options, &setting.pool, &Silent)?,
                false => Engine::load(&path, &input, &options, &setting.pool, &Silent)?,
            };
            let stream = Stream::new(forms.csr().vertex_bound(), batch_edges)?;
            let batches = run(setting, &database, stream, num_batches)?;
            report_batches(&name, &database, &batches, report);
            drop(database);
            if !is_in_memory {
                std::fs::remove_dir_all(path)?;
            }
        }
    }
    Ok(())
}

/// The measurements of a batch.
struct Batch {
    append_seconds: f64,
    window_seconds: f64,
    /// Bytes of the loaded changes, and bytes written to files.
    loaded: u64,
    written: u64,
}

/// An endless stream of R-MAT edges, with removals of some of them.
struct Stream {
    generator: Generator,
    next_block: u64,
    rest: Vec<(VertexId, VertexId)>,
    batch_edges: usize,
    /// Edges to be removed by later batches, those of the newest batch last.
    doomed: std::collections::VecDeque<Vec<(VertexId, VertexId)>>,
}

impl Stream {
    fn new(vertex_bound: usize, batch_edges: usize) -> Result<Self> {
        let scale = vertex_bound.max(2).ilog2();
        let generator = Generator::rmat(&RmatParams { scale, degree: 1 << 10, seed: 4, ..RmatParams::default() })?;
        Ok(Self { generator, next_block: 0, rest: Vec::new(), batch_edges, doomed: Default::default() })
    }

    fn next(&mut self) -> Changes {
        while self.rest.len() < self.batch_edges {
            self.generator.edges_of_block(self.next_block, &mut self.rest);
            self.next_block += 1;
        }
        let edges = self.rest.split_off(self.rest.len() - self.batch_edges);
        let key = |vertex: VertexId| Key::Integer(vertex.into());
        let mut changes = Changes::default();
        if self.doomed.len() as u32 > NUM_SHOWN + NUM_SHOWN / 2 {
            let gone = self.doomed.pop_front().unwrap_or_default();
            changes.removed = gone.into_iter().map(|(u, v)| (key(u), key(v))).collect();
        }
        self.doomed.push_back(edges.iter().copied().step_by(REMOVED_SHARE).collect());
        changes.added = edges.into_iter().map(|(u, v)| (key(u), key(v), None)).collect();
        changes
    }
}

fn run(setting: &Setting, database: &Engine, mut stream: Stream, num_batches: u32) -> Result<Vec<Batch>> {
    database.retain(Retention::Last(NUM_SHOWN + 1))?;
    let mut batches = Vec::new();
    let mut before = database.stats();
    for number in 1..=num_batches {
        let changes = stream.next();
        let options = AppendOptions::default();
        let (append_seconds, done) = seconds(|| {
            database.append_changes(&changes, &options, &setting.pool, &Silent).map_err(anyhow::Error::from)
        });
        done?;
        let (window_seconds, window) = seconds(|| database.newest_window(NUM_SHOWN));
        let (view, shown) = window?;
        if shown.map_or(0, |shown| shown.end() - shown.start() + 1) != number.min(NUM_SHOWN) || view.num_edges() == 0 {
            bail!("the window lost batches");
        }
        let after = database.stats();
        let loaded = after.bytes_loaded - before.bytes_loaded;
        let written = after.bytes_written - before.bytes_written;
        batches.push(Batch { append_seconds, window_seconds, loaded, written });
        before = after;
    }
    Ok(batches)
}

fn report_batches(name: &str, database: &Engine, batches: &[Batch], report: &mut Report) {
    // The batches that fill the window do not count.
    let full = &batches[NUM_SHOWN as usize..];
    let (first, last) = (&full[..full.len() / 4], &full[full.len() - full.len() / 4..]);
    let of = |batches: &[Batch], figure: fn(&Batch) -> f64| median(&batches.iter().map(figure).collect::<Vec<_>>());
    let line = |what: &str, figure: fn(&Batch) -> f64| {
        let (ours, other) = (of(last, figure), of(first, figure));
        ratio_line(&format!("{name}: {what}, last"), "ms", ours, (other, "first"), "median of a quarter")
    };
    report.line(line("a batch", |batch| batch.append_seconds * 1e3));
    report.line(line("the window", |batch| batch.window_seconds * 1e3));
    let slowest = batches.iter().map(|batch| batch.append_seconds).fold(0.0, f64::max);
    report.line(Line::figure(
        format!("{name}: the slowest batch"),
        "ms",
        slowest * 1e3,
        "with a merge, where one is due",
    ));
    let mean = batches.iter().map(|batch| batch.append_seconds).sum::<f64>() / batches.len() as f64;
    report.line(Line::figure(format!("{name}: the mean batch"), "ms", mean * 1e3, "merges included"));
    for (part, batches) in [("first half", &batches[..batches.len() / 2]), ("last half", &batches[batches.len() / 2..])]
    {
        let sum = |figure: fn(&Batch) -> u64| batches.iter().map(figure).sum::<u64>() as f64;
        let amplification = sum(|batch| batch.written) / sum(|batch| batch.loaded);
        report.line(Line::figure(format!("{name}: written a byte, {part}"), "B", amplification, "the load left out"));
    }
    let stats = database.stats();
    let amplification = stats.bytes_written as f64 / stats.bytes_loaded as f64;
    report.line(Line::figure(format!("{name}: written a byte, load and all"), "B", amplification, "≤ 4"));
    report.line(Line::figure(format!("{name}: files"), "", stats.files.len() as f64, ""));
    report.line(Line::figure(format!("{name}: levels"), "", stats.deltas as f64, ""));
    let manifest = stats.files.first().map_or(0, |file| file.1);
    report.line(Line::figure(format!("{name}: manifest"), "KB", manifest as f64 / 1e3, ""));
}
