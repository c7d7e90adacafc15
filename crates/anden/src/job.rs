//! The one table of algorithms.
//!
//! The command line and every other face go through it: they parse, call and print, and know no
//! algorithm by name. A new kernel is one file beside this one and one line of `TABLE`.

mod bc;
mod bfs;
mod cdlp;
mod kcore;
mod lcc;
mod pagerank;
mod parameters;
mod scc;
mod sssp;
mod triangles;
mod wcc;

use std::borrow::Cow;
use std::time::Instant;

use base::VertexId;
use base::memory::{heap_peak, reset_heap_peak};
use graph::Graph;

use crate::{Error, Key, Result, View};

pub use parameters::{Parameter, Parameters};

/// An algorithm over a whole graph.
#[derive(Debug)]
pub struct Kernel {
    /// What users call it.
    pub name: &'static str,
    /// What it gives, in a few words.
    pub about: &'static str,
    /// What the value of a vertex is called, as in a column of a table.
    pub value: &'static str,
    /// What it takes; everything else is refused.
    pub parameters: &'static [Parameter],
    /// The algorithms that it can be told to use, the default first; empty where there is one only.
    pub algorithms: &'static [&'static str],
    /// Parameters that one of them does not take.
    pub excludes: &'static [(&'static str, Parameter)],
    /// How many sources it must be given.
    pub needs: Sources,
    run: fn(&View, &Parameters) -> Result<Box<dyn Outcome>>,
}

/// How many sources a kernel must be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sources {
    /// Any number, or none.
    Any,
    /// One.
    One,
}

static TABLE: &[Kernel] = &[
    bfs::KERNEL,
    pagerank::KERNEL,
    wcc::KERNEL,
    scc::KERNEL,
    sssp::KERNEL,
    bc::KERNEL,
    triangles::KERNEL,
    lcc::KERNEL,
    cdlp::KERNEL,
    kcore::KERNEL,
];

impl Kernel {
    /// Whether the parameters fit; if not, why.
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
        match (self.needs, given.source.len()) {
            (Sources::One, 0) => Err(format!("kernel {kernel} needs a source, the vertex that it starts from")),
            (Sources::One, n @ 2..) => Err(format!("kernel {kernel} takes one source, not {n}")),
            _ => Ok(()),
        }
    }
}

/// A kernel with its parameters, ready to run on any view.
#[derive(Clone, Debug)]
pub struct Job {
    kernel: &'static Kernel,
    parameters: Parameters,
}

/// What a kernel found.
pub(crate) trait Outcome: Send + Sync {
    /// The figures that describe the result as a whole, in the order in which they are shown.
    fn summary(&self, view: &View) -> Result<Vec<(&'static str, Value)>>;
    /// The result by vertex id; `None` where the summary is all there is.
    fn values(&self) -> Option<Values<'_>>;
    /// The same, handed over.
    fn into_values(self: Box<Self>) -> Option<Values<'static>>;
    /// Compares with an independent serial algorithm; the error says where they differ.
    fn check(&self, view: &View) -> std::result::Result<(), String>;
    /// The part of the time that went into a form of the graph that only this kernel uses.
    fn preparation_seconds(&self) -> Option<f64> {
        None
    }
}

/// A figure of a summary.
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
}

/// A result by vertex id, with the meaning of its numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Values<'a> {
    /// Numbers of steps; `u32::MAX`: not reached.
    Hops(Cow<'a, [u32]>),
    /// Ids of vertices; `u32::MAX`: none.
    Vertices(Cow<'a, [VertexId]>),
    /// Small numbers.
    Numbers(Cow<'a, [u32]>),
    /// Counts.
    Counts(Cow<'a, [u64]>),
    /// Sums of integer weights; `u64::MAX`: not reached.
    Distances(Cow<'a, [u64]>),
    /// Scores, or sums of floating weights; infinite: not reached.
    Reals(Cow<'a, [f64]>),
}

/// What a job found, and what that took.
pub struct JobOutput {
    outcome: Box<dyn Outcome>,
    /// The figures that describe the result as a whole, in the order in which they are shown.
    pub summary: Vec<(&'static str, Value)>,
    /// The time of the kernel, in seconds, its preparation included.
    pub seconds: f64,
    /// The part of it that went into a form of the graph that only this kernel uses.
    pub preparation_seconds: Option<f64>,
    /// The most heap bytes that the kernel held at once, its result included; 0 in a program
    /// without [`CountingAllocator`](crate::CountingAllocator).
    pub peak_bytes: u64,
}

impl std::fmt::Debug for JobOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobOutput").field("summary", &self.summary).finish_non_exhaustive()
    }
}

impl Job {
    /// Every kernel there is.
    pub fn table() -> &'static [Kernel] {
        TABLE
    }

    /// Puts a kernel and its parameters together.
    ///
    /// # Errors
    /// [`Error::InvalidInput`]: no kernel has this name, it does not take one of the parameters, it
    /// has no algorithm of that name, or it lacks its source.
    pub fn new(kernel: &str, parameters: Parameters) -> Result<Self> {
        let Some(kernel) = TABLE.iter().find(|entry| entry.name == kernel) else {
            let names = TABLE.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
            return Err(Error::InvalidInput(format!("unknown kernel {kernel}: there are {names}")));
        };
        kernel.accept(&parameters).map_err(Error::InvalidInput)?;
        Ok(Self { kernel, parameters })
    }

    /// The kernel.
    pub fn kernel(&self) -> &'static Kernel {
        self.kernel
    }

    /// What the value of a vertex is called: `parent` where a search gives parents, else the kernel's
    /// [`value`](Kernel::value).
    pub fn value_name(&self) -> &'static str {
        if self.parameters.parents { "parent" } else { self.kernel.value }
    }

    /// Runs the kernel.
    ///
    /// # Errors
    /// A source that does not exist, a parameter outside its bounds, a graph that lacks what the
    /// kernel needs, too small a memory budget, damage met on the way, cancellation.
    pub(crate) fn run(&self, view: &View) -> Result<JobOutput> {
        view.all_lists()?;
        let before = reset_heap_peak();
        let start = Instant::now();
        let outcome = (self.kernel.run)(view, &self.parameters)?;
        let seconds = start.elapsed().as_secs_f64();
        let peak_bytes = heap_peak().saturating_sub(before) as u64;
        let summary = outcome.summary(view)?;
        let preparation_seconds = outcome.preparation_seconds();
        Ok(JobOutput { outcome, summary, seconds, preparation_seconds, peak_bytes })
    }
}

impl JobOutput {
    /// The result by vertex id; `None` where the summary is all there is.
    pub fn values(&self) -> Option<Values<'_>> {
        self.outcome.values()
    }

    /// The same without a copy.
    pub fn into_values(self) -> Option<Values<'static>> {
        self.outcome.into_values()
    }

    /// Compares the result with that of an independent serial algorithm on the same view.
    ///
    /// # Errors
    /// The first difference, as a sentence: either the program or the memory is at fault.
    pub fn check(&self, view: &View) -> Result<(), String> {
        self.outcome.check(view)
    }
}

/// The ten vertices with the highest scores, with their keys; equal scores by id.
fn ranking(view: &View, scores: &[f64]) -> Result<Value> {
    const LENGTH: usize = 10;
    let mut top: Vec<VertexId> = Vec::with_capacity(LENGTH + 1);
    let lists = view.lists();
    for vertex in 0..scores.len() {
        let score = scores[vertex];
        if top.len() == LENGTH && score <= scores[top[LENGTH - 1] as usize] || !lists.is_live(vertex as VertexId) {
            continue;
        }
        let place = top.partition_point(|&other| scores[other as usize] >= score);
        top.insert(place, vertex as VertexId);
        top.truncate(LENGTH);
    }
    let ranked = top.into_iter().map(|vertex| Ok((view.key(vertex)?, scores[vertex as usize])));
    ranked.collect::<Result<_>>().map(Value::Ranking)
}
