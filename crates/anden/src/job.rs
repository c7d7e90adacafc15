//! Jobs: the table of kernels, their parameters and results.
//!
//! The command line and other front ends use only this table, and know no kernel by name. To add a kernel, add a file
//! to this module and a line to `TABLE`.

mod bc;
mod bfs;
mod cdlp;
mod closeness;
mod kcore;
mod lcc;
mod pagerank;
mod parameters;
mod scc;
mod sssp;
mod top;
mod triangles;
mod wcc;

use std::borrow::Cow;
use std::time::Instant;

use anden_base::VertexId;
use anden_base::memory::{heap_peak, reset_heap_peak};
use anden_graph::StoredFormKey;
use anden_kernels::Context;
use anden_snapshots::SnapshotView;

use crate::{Error, Key, Result, View};

pub use parameters::{Parameter, Parameters};
pub(crate) use top::keyed;

/// An entry of the table: a kernel with its description and parameters.
#[derive(Debug)]
pub struct Kernel {
    /// The name that users type.
    pub name: &'static str,
    /// A short description of the result.
    pub about: &'static str,
    /// The column name of the value of a vertex.
    pub value: &'static str,
    /// The accepted parameters. All others are refused.
    pub parameters: &'static [Parameter],
    /// The selectable algorithms, the default first; empty if there is only one.
    pub algorithms: &'static [&'static str],
    /// Pairs of an algorithm and a parameter that it does not accept.
    pub excludes: &'static [(&'static str, Parameter)],
    /// How many sources the kernel requires.
    pub needs: Sources,
    /// Whether the summary ranks vertices also without the parameter `top`.
    shows_top: bool,
    /// The form of a graph that a run without parameters reads if the database stores it.
    pub(crate) prepares: fn(&Context<'_>, &SnapshotView) -> Option<StoredFormKey>,
    run: fn(&View, &Parameters) -> Result<Box<dyn JobOutcome>>,
}

/// How many sources a kernel requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sources {
    /// Any number, including none.
    Any,
    /// Exactly one.
    One,
}

/// Number of vertices that the summary of a kernel with scores shows by default.
const DEFAULT_TOP: usize = 10;

static TABLE: &[Kernel] = &[
    bfs::KERNEL,
    pagerank::KERNEL,
    wcc::KERNEL,
    scc::KERNEL,
    sssp::KERNEL,
    bc::KERNEL,
    closeness::KERNEL,
    triangles::KERNEL,
    lcc::KERNEL,
    cdlp::KERNEL,
    kcore::KERNEL,
];

impl Kernel {
    /// Checks the parameters; the error says why they do not fit.
    fn accept(&self, given: &Parameters) -> std::result::Result<(), String> {
        let kernel = self.name;
        if let Some(parameter) = given.given().into_iter().find(|name| !self.parameters.contains(name)) {
            let takes: Vec<&str> = self.parameters.iter().map(|p| p.name()).collect();
            let takes = if takes.is_empty() { "no parameters".into() } else { takes.join(", ") };
            return Err(format!("kernel {kernel} does not take {}: it takes {takes}", parameter.name()));
        }
        if let Some(name) = given.algorithm.as_deref().filter(|name| !self.algorithms.contains(name)) {
            return Err(format!("kernel {kernel} has no algorithm {name}: it has {}", self.algorithms.join(", ")));
        }
        let is_meaningless = |(algorithm, parameter): &&(&str, Parameter)| {
            given.algorithm.as_deref() == Some(algorithm) && given.given().contains(parameter)
        };
        if let Some((algorithm, parameter)) = self.excludes.iter().find(is_meaningless) {
            return Err(format!("kernel {kernel} does not take {} with algorithm {algorithm}", parameter.name()));
        }
        // A sample would silently replace the given sources.
        if !given.source.is_empty() && given.sources.is_some() {
            return Err(format!("kernel {kernel} takes either source or sources, not both"));
        }
        match (self.needs, given.source.len()) {
            (Sources::One, 0) => Err(format!("kernel {kernel} needs a source, the vertex that it starts from")),
            (Sources::One, n @ 2..) => Err(format!("kernel {kernel} takes one source, not {n}")),
            _ => Ok(()),
        }
    }
}

/// A kernel with its parameters. It can run on any view.
#[derive(Clone, Debug)]
pub struct Job {
    kernel: &'static Kernel,
    parameters: Parameters,
}

/// The result of a kernel.
pub(crate) trait JobOutcome: Send + Sync {
    /// The summary figures, in display order.
    fn summary(&self, view: &View) -> Result<Vec<(&'static str, Value)>>;
    /// The result by vertex id; `None` if the summary is the whole result.
    fn values(&self) -> Option<Values<'_>>;
    /// Like [`values`](Self::values), with choices among vertices made by key.
    fn values_by_key(&self, _view: &View) -> Result<Option<Values<'_>>> {
        Ok(self.values())
    }
    /// Like [`values`](Self::values), without a copy.
    fn into_values(self: Box<Self>) -> Option<Values<'static>>;
    /// Compares the result with an independent serial algorithm. The error names the first difference.
    fn check(&self, view: &View) -> std::result::Result<(), String>;
    /// Seconds spent on a form of the graph that only this kernel uses.
    fn preparation_seconds(&self) -> Option<f64> {
        None
    }
    /// Whether an earlier run prepared that form; `None` if none of this kernel is ever kept.
    fn was_prepared(&self) -> Option<bool> {
        None
    }
}

/// A summary figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A count.
    Integer(u64),
    /// A measure.
    Real(f64),
    /// A vertex.
    Key(Key),
    /// Several vertices.
    Keys(Vec<Key>),
    /// Vertices with scores, the highest first.
    Ranking(Vec<(Key, f64)>),
    /// Vertices with counts, groups with sizes, or values with their numbers of vertices; the highest count first.
    Counts(Vec<(Key, u64)>),
}

/// A result by vertex id.
#[derive(Clone, Debug, PartialEq)]
pub enum Values<'a> {
    /// Numbers of steps; `u32::MAX`: not reached.
    Hops(Cow<'a, [u32]>),
    /// Vertex ids; `u32::MAX`: none.
    Vertices(Cow<'a, [VertexId]>),
    /// Small integers, such as core numbers.
    Numbers(Cow<'a, [u32]>),
    /// Counts.
    Counts(Cow<'a, [u64]>),
    /// Sums of integer weights; `u64::MAX`: not reached.
    Distances(Cow<'a, [u64]>),
    /// Scores, or sums of floating weights; infinite: not reached.
    Reals(Cow<'a, [f64]>),
}

/// The result of a job, with its time and memory.
pub struct JobOutput {
    outcome: Box<dyn JobOutcome>,
    /// The summary figures, in display order.
    pub summary: Vec<(&'static str, Value)>,
    /// Seconds of the kernel, preparation included.
    pub seconds: f64,
    /// The part of `seconds` spent on a form of the graph that only this kernel uses.
    pub preparation_seconds: Option<f64>,
    /// Whether an earlier run prepared that form, which the database [caches](crate::Session::with_cache), or the
    /// database [stores](crate::Database::prepare) it. `None`: this kernel keeps none.
    pub was_prepared: Option<bool>,
    /// Peak heap bytes of the kernel, result included; 0 in a program whose allocator does not count. That of the
    /// command line counts.
    pub peak_bytes: u64,
}

impl std::fmt::Debug for JobOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobOutput").field("summary", &self.summary).finish_non_exhaustive()
    }
}

impl Job {
    /// All kernels.
    pub fn table() -> &'static [Kernel] {
        TABLE
    }

    /// The entry of a kernel.
    ///
    /// # Errors
    /// [`Error::InvalidInput`]: unknown kernel.
    pub(crate) fn entry(kernel: &str) -> Result<&'static Kernel> {
        TABLE.iter().find(|entry| entry.name == kernel).ok_or_else(|| {
            let names = TABLE.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
            Error::InvalidInput(format!("unknown kernel {kernel}: there are {names}").into())
        })
    }

    /// Combines a kernel with parameters.
    ///
    /// # Errors
    /// [`Error::InvalidInput`]: unknown kernel, parameter that the kernel does not accept, unknown algorithm, or
    /// missing source.
    pub fn new(kernel: &str, parameters: Parameters) -> Result<Self> {
        let kernel = Self::entry(kernel)?;
        kernel.accept(&parameters).map_err(|what| Error::InvalidInput(what.into()))?;
        Ok(Self { kernel, parameters })
    }

    /// The table entry of the kernel.
    pub fn kernel(&self) -> &'static Kernel {
        self.kernel
    }

    /// The column name of the values: `parent` if parents are requested, else the kernel's [`value`](Kernel::value).
    pub fn value_name(&self) -> &'static str {
        if self.parameters.parents { "parent" } else { self.kernel.value }
    }

    /// Runs the kernel.
    ///
    /// # Errors
    /// As [`View::run`].
    pub(crate) fn run(&self, view: &View) -> Result<JobOutput> {
        view.all_lists()?;
        // A part is laid out above, so its cost is not charged to the kernel.
        let before = reset_heap_peak();
        let start = Instant::now();
        let outcome = view.traced(self.kernel.name, || (self.kernel.run)(view, &self.parameters))?;
        // Measured before the summary, which looks keys up.
        let seconds = start.elapsed().as_secs_f64();
        let peak_bytes = heap_peak().saturating_sub(before) as u64;
        let mut summary = outcome.summary(view)?;
        let length = self.parameters.top.or(self.kernel.shows_top.then_some(DEFAULT_TOP));
        if let Some(length) = length {
            summary.extend(top::figures(view, &*outcome, length)?);
        }
        let (preparation_seconds, was_prepared) = (outcome.preparation_seconds(), outcome.was_prepared());
        Ok(JobOutput { outcome, summary, seconds, preparation_seconds, was_prepared, peak_bytes })
    }
}

impl View {
    /// Runs a job.
    ///
    /// # Errors
    /// The source does not exist. A parameter is outside its bounds. The graph lacks input that the kernel needs. The
    /// memory budget is too small. Damage met on the way; cancellation.
    pub fn run(&self, job: &Job) -> Result<JobOutput> {
        job.run(self)
    }
}

impl JobOutput {
    /// The result by vertex id; `None` if the summary is the whole result.
    pub fn values(&self) -> Option<Values<'_>> {
        self.outcome.values()
    }

    /// Like [`values`](Self::values), with choices among vertices made by key, as they are for output with keys. A
    /// component is named by its member with the smallest key, and of several parents the one with the smallest key is
    /// chosen; `values` takes the smallest id. `view` is the view of the run.
    ///
    /// # Errors
    /// Damage met on the way; cancellation.
    pub fn values_by_key(&self, view: &View) -> Result<Option<Values<'_>>> {
        self.outcome.values_by_key(view)
    }

    /// Like [`values`](Self::values), without a copy.
    pub fn into_values(self) -> Option<Values<'static>> {
        self.outcome.into_values()
    }

    /// Compares the result with an independent serial algorithm on this view.
    ///
    /// # Errors
    /// The first difference, as a sentence. It points to a fault in the program or in the hardware.
    pub fn check(&self, view: &View) -> Result<(), String> {
        self.outcome.check(view)
    }
}
