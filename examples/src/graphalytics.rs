//! LDBC Graphalytics: its algorithms on a data set, and its validation.
//!
//! A data set is a `.properties` file with the vertices and edges beside it. It lists the algorithms and their
//! parameters. The expected outputs are files such as `NAME-BFS`.
//!
//! # Source
//! A. Iosup et al.: LDBC Graphalytics: A Benchmark for Large-Scale Graph Analysis on Parallel and Distributed
//! Platforms, VLDB 2016; and its specification, chapter 2.

mod properties;
mod validate;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anden::job::Values;
use anden::load::{InputPath, SourceOptions};
use anden::{Database, Error, Job, Key, LoadOptions, Options, Parameters, Result, Session, View, WeightType};

pub use properties::Properties;
pub use validate::{EPSILON, Rule, validate};

/// The outcome of an algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The name in Graphalytics.
    pub algorithm: String,
    /// The time in seconds, without loading.
    pub seconds: f64,
    /// The verdict of the validation; `None` without an expected output.
    pub verdict: Option<Result<(), String>>,
}

/// Loads the data set of a `.properties` file into the new directory `database`, runs its algorithms, and compares with
/// the outputs in `expected`.
///
/// # Errors
/// A file cannot be read or does not fit, or an algorithm fails or is unknown. A different output is a verdict, not an
/// error.
pub fn run(properties: &Path, expected: &Path, database: &Path, session: &Session) -> Result<Vec<Outcome>> {
    let set = Properties::read(properties)?;
    let view = load(properties, &set, database, session)?;
    let mut outcomes = Vec::new();
    for algorithm in set.algorithms() {
        let job = job(&set, &algorithm)?;
        let start = Instant::now();
        let output = view.run(&job)?;
        let seconds = start.elapsed().as_secs_f64();
        let values =
            output.into_values().ok_or_else(|| Error::Unsupported(format!("{algorithm}: no values").into()))?;
        let reference = expected.join(format!("{}-{}", set.name, algorithm.to_uppercase()));
        let verdict = if reference.exists() {
            let reference = validate::read_output(&reference)?;
            Some(validate(Rule::of(&algorithm)?, &lines(&view, &values)?, &reference))
        } else {
            None
        };
        outcomes.push(Outcome { algorithm, seconds, verdict });
    }
    Ok(outcomes)
}

fn load(properties: &Path, set: &Properties, database: &Path, session: &Session) -> Result<View> {
    let inputs = [InputPath::File(properties.to_owned())];
    let weight_type = set.has_weights().then_some(WeightType::F64);
    let source = SourceOptions { weights: weight_type, ..SourceOptions::default() };
    let graph = Options { weight_type, ..Options::default() };
    let options = LoadOptions { graph, follows_inputs: true, source, ..LoadOptions::default() };
    Database::load(database, &inputs, &options, session)?.0.view()
}

/// The kernel for a Graphalytics algorithm, with the parameters of the data set.
fn job(set: &Properties, algorithm: &str) -> Result<Job> {
    let none = Parameters::default();
    let source = || -> Result<Vec<Key>> { Ok(vec![set.number::<u64>(&format!("{algorithm}.source-vertex"))?.into()]) };
    match algorithm {
        "bfs" => Job::new("bfs", Parameters { source: source()?, ..none }),
        "sssp" => Job::new("sssp", Parameters { source: source()?, ..none }),
        "wcc" | "lcc" => Job::new(algorithm, none),
        "cdlp" => Job::new("cdlp", Parameters { iterations: Some(set.number("cdlp.max-iterations")?), ..none }),
        "pr" => {
            let damping = Some(set.number("pr.damping-factor")?);
            Job::new("pagerank", Parameters { iterations: Some(set.number("pr.num-iterations")?), damping, ..none })
        }
        other => Err(Error::InvalidInput(format!("Graphalytics has no algorithm {other}").into())),
    }
}

/// The output in the format of Graphalytics: a value for each key.
fn lines(view: &View, values: &Values<'_>) -> Result<BTreeMap<String, String>> {
    let text = |vertex: usize| -> Result<String> {
        Ok(match values {
            Values::Hops(hops) if hops[vertex] == u32::MAX => i64::MAX.to_string(),
            Values::Hops(hops) => hops[vertex].to_string(),
            Values::Vertices(labels) => view.key(labels[vertex])?.to_string(),
            Values::Numbers(numbers) => numbers[vertex].to_string(),
            Values::Counts(counts) => counts[vertex].to_string(),
            Values::Distances(sums) if sums[vertex] == u64::MAX => "infinity".into(),
            Values::Distances(sums) => sums[vertex].to_string(),
            Values::Reals(reals) if reals[vertex].is_infinite() => "infinity".into(),
            Values::Reals(reals) => reals[vertex].to_string(),
        })
    };
    let vertices = view.vertices_by_key()?.into_iter();
    vertices.map(|vertex| Ok((view.key(vertex)?.to_string(), text(vertex as usize)?))).collect()
}
