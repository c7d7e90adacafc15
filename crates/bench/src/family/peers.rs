//! The other sides: the programs of GAP, and Python libraries in processes that keep their graph.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anden_base::VertexId;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use super::members::FamilyFiles;
use super::ours::numbers;
use crate::gapbs::{GapTrials, Gapbs};
use crate::kernels::{ITERATIONS, Kernel};

/// The script that runs kernels of Python libraries.
const SCRIPT: &str = include_str!("../../peers/family.py");
/// Seconds that a library gets to read a graph and run a kernel, in addition to a multiple of our time.
const LEAST_SECONDS: f64 = 60.0;
/// The multiple of our time after which a library is given up on.
const MOST_TIMES: f64 = 20.0;

/// One kernel on one graph.
pub(super) struct Question<'a> {
    pub(super) kernel: Kernel,
    pub(super) source: VertexId,
    /// The number of runs.
    pub(super) num_runs: usize,
    /// Our median time of a run.
    pub(super) our_seconds: f64,
    pub(super) files: &'a FamilyFiles,
    /// Whether the figures for comparisons are wanted.
    pub(super) wants_answer: bool,
}

/// The measurements of another side.
pub(super) struct PeerRuns {
    /// Seconds to read the graph, if this process has read it.
    pub(super) read_seconds: Option<f64>,
    /// Seconds of each run.
    pub(super) runs: Vec<f64>,
    /// The figures that must agree with ours.
    pub(super) answer: Value,
}

/// Another side.
pub(super) trait FamilyPeer {
    /// The name in reports.
    fn name(&self) -> &str;
    /// Whether this side has the kernel.
    fn has(&self, kernel: Kernel) -> bool;
    /// Runs a kernel.
    fn run(&mut self, question: &Question<'_>) -> Result<PeerRuns>;
    /// Frees the graph.
    fn end(&mut self) {}
}

/// The sides that are there. Prints the reason for each that is missing.
pub(super) fn peers(
    gapbs: Option<&Gapbs>,
    python: Option<&Path>,
    threads: usize,
    mut skipped: impl FnMut(String),
) -> Result<Vec<Box<dyn FamilyPeer>>> {
    let mut found: Vec<Box<dyn FamilyPeer>> = Vec::new();
    match gapbs {
        None => skipped("GAPBS: no --gapbs DIR".into()),
        Some(gapbs) => {
            for program in GAP_PROGRAMS {
                match gapbs.has(program) {
                    true => found.push(Box::new(GapProgram::new(gapbs.clone(), program))),
                    false => skipped(format!("GAPBS {program}: not built")),
                }
            }
        }
    }
    let Some(python) = python else {
        skipped("NetworKit, igraph, SciPy, graph-mate, python-graphblas: no --python EXECUTABLE".into());
        return Ok(found);
    };
    let output = Command::new(python).args(["-c", SCRIPT, "list"]).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {}", python.display()))?;
    let listed: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{} printed no list of libraries", python.display()))?;
    for (name, about) in listed.as_object().into_iter().flatten() {
        match about["kernels"].as_array() {
            Some(kernels) => {
                let kernels = kernels.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                let (name, python) = (name.clone(), python.to_owned());
                found.push(Box::new(PythonLibrary { name, python, kernels, threads, process: None }));
            }
            None => skipped(format!("{name}: {}", about["missing"].as_str().unwrap_or("not installed"))),
        }
    }
    Ok(found)
}

const GAP_PROGRAMS: [&str; 8] = ["pr", "pr_spmv", "bfs", "cc", "cc_sv", "sssp", "bc", "tc"];

/// One program of GAP. It reads the graph anew for each question.
struct GapProgram {
    gapbs: Gapbs,
    program: &'static str,
    name: String,
    /// The graph for which the width of buckets was chosen, and that width.
    delta: Option<(PathBuf, u32)>,
}

impl GapProgram {
    fn new(gapbs: Gapbs, program: &'static str) -> Self {
        Self { gapbs, program, name: format!("{} {program}", Gapbs::NAME), delta: None }
    }

    /// The width of buckets with which GAP's search takes the least time on this graph. A bad width costs a multiple,
    /// and GAP leaves the choice to its user.
    fn delta(&mut self, question: &Question<'_>) -> Result<u32> {
        let graph = &question.files.weighted_serialized;
        if let Some((_, delta)) = self.delta.as_ref().filter(|(known, _)| known == graph) {
            return Ok(*delta);
        }
        let mean = question.files.mean_weight;
        let mut best = (f64::INFINITY, 1);
        for share in [1.0 / 64.0, 1.0 / 8.0, 1.0, 8.0, 64.0] {
            let delta = ((mean * share).round() as u32).max(1);
            let arguments = [format!("-r{}", question.source), format!("-d{delta}"), "-n2".to_owned()];
            let trials = self.gapbs.trials(self.program, graph, &arguments)?;
            let least = trials.seconds.iter().copied().fold(f64::INFINITY, f64::min);
            if least < best.0 {
                best = (least, delta);
            }
        }
        eprintln!("{} searches with -d{}", self.name, best.1);
        self.delta = Some((graph.clone(), best.1));
        Ok(best.1)
    }

    fn answer(&self, kernel: Kernel, source: VertexId, trials: &GapTrials) -> Value {
        let count = |before: &str, after: &str| {
            let line = trials.output.lines().find(|line| line.starts_with(before) && line.contains(after))?;
            line[before.len()..].split_whitespace().next()?.parse::<u64>().ok()
        };
        let scores = || trials.output.lines().filter_map(score);
        match kernel {
            Kernel::Bfs => json!({ "reached": count("BFS Tree has ", "nodes") }),
            Kernel::Sssp => json!({ "reached": count("SSSP Tree reaches ", "nodes") }),
            Kernel::Wcc => json!({ "components": count("There are ", "components") }),
            Kernel::Triangles => json!({ "triangles": count("", " triangles") }),
            // This program updates scores in place, so they differ from those of others after ten iterations.
            Kernel::PageRank | Kernel::PageRank64 if self.program == "pr" => json!({}),
            // This program counts the source itself, whose score is the largest.
            Kernel::Bc => {
                let scores: Vec<f64> = scores().filter(|&(v, _)| v != source).map(|(_, score)| score).collect();
                let largest = scores.first().copied().unwrap_or(1.0);
                json!({ "top": scores.iter().map(|score| score / largest).collect::<Vec<f64>>() })
            }
            _ => json!({ "top": scores().map(|(_, score)| score).collect::<Vec<f64>>() }),
        }
    }
}

/// The vertex and the score in a line `VERTEX:SCORE`.
fn score(line: &str) -> Option<(VertexId, f64)> {
    let (vertex, score) = line.split_once(':')?;
    let score = score.parse().ok().filter(|score: &f64| score.is_finite())?;
    Some((vertex.parse().ok()?, score))
}

impl FamilyPeer for GapProgram {
    fn name(&self) -> &str {
        &self.name
    }

    fn has(&self, kernel: Kernel) -> bool {
        match kernel {
            Kernel::PageRank | Kernel::PageRank64 => matches!(self.program, "pr" | "pr_spmv"),
            Kernel::Wcc => matches!(self.program, "cc" | "cc_sv"),
            Kernel::Triangles => self.program == "tc",
            kernel => self.program == kernel.name(),
        }
    }

    fn run(&mut self, question: &Question<'_>) -> Result<PeerRuns> {
        let (files, source) = (question.files, question.source);
        let graph = match question.kernel {
            Kernel::Sssp => &files.weighted_serialized,
            Kernel::Triangles => &files.undirected,
            _ => &files.serialized,
        };
        let mut arguments = vec![format!("-n{}", question.num_runs)];
        match question.kernel {
            Kernel::PageRank | Kernel::PageRank64 => arguments.extend([format!("-i{ITERATIONS}"), "-t0".to_owned()]),
            Kernel::Bfs => arguments.push(format!("-r{source}")),
            Kernel::Bc => arguments.extend([format!("-r{source}"), "-i1".to_owned()]),
            Kernel::Sssp => arguments.extend([format!("-r{source}"), format!("-d{}", self.delta(question)?)]),
            _ => {}
        }
        if question.wants_answer {
            arguments.push("-a".to_owned());
        }
        let trials = self.gapbs.trials(self.program, graph, &arguments)?;
        let answer = match question.wants_answer {
            true => self.answer(question.kernel, source, &trials),
            false => Value::Null,
        };
        Ok(PeerRuns { read_seconds: trials.read_seconds, runs: trials.seconds, answer })
    }
}

/// A Python library, in a process that keeps the graph between questions.
struct PythonLibrary {
    name: String,
    python: PathBuf,
    kernels: HashSet<String>,
    threads: usize,
    process: Option<LibraryProcess>,
}

struct LibraryProcess {
    graph: PathBuf,
    child: Child,
    questions: ChildStdin,
    /// Lines that the process printed. They come through a thread, so that waiting has a limit.
    answers: Receiver<String>,
}

impl Drop for LibraryProcess {
    fn drop(&mut self) {
        // The process may be in the middle of a long kernel. It holds nothing that must be saved.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl PythonLibrary {
    fn process(&mut self, files: &FamilyFiles) -> Result<&mut LibraryProcess> {
        if self.process.as_ref().is_none_or(|process| process.graph != files.serialized) {
            // Ended first, so that two graphs are never in memory.
            self.process = None;
            self.process = Some(self.started(files)?);
        }
        self.process.as_mut().context("a process was just started")
    }

    fn started(&self, files: &FamilyFiles) -> Result<LibraryProcess> {
        let threads = self.threads.to_string();
        let mut child = Command::new(&self.python)
            .args(["-c", SCRIPT, "serve", &self.name])
            .args([&files.serialized, &files.weighted_serialized, &files.undirected])
            .arg(&threads)
            .env("OMP_NUM_THREADS", &threads)
            .env("RAYON_NUM_THREADS", &threads)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Warnings of libraries would hide the progress.
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", self.name))?;
        let questions = child.stdin.take().context("a child has a pipe for its input")?;
        let output = BufReader::new(child.stdout.take().context("a child has a pipe for its output")?);
        let (sender, answers) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Ok(LibraryProcess { graph: files.serialized.clone(), child, questions, answers })
    }

    fn asked(&mut self, question: &Question<'_>) -> Result<Value> {
        let most = LEAST_SECONDS + MOST_TIMES * question.our_seconds * question.num_runs as f64;
        let process = self.process(question.files)?;
        let line = json!({
            "kernel": question.kernel.name(), "source": question.source, "trials": question.num_runs,
        });
        writeln!(process.questions, "{line}")?;
        let answer = process.answers.recv_timeout(Duration::from_secs_f64(most));
        let answer = answer.map_err(|_| anyhow!("no answer within {most:.0} s, or the process ended"))?;
        Ok(serde_json::from_str(&answer)?)
    }
}

impl FamilyPeer for PythonLibrary {
    fn name(&self) -> &str {
        &self.name
    }

    fn has(&self, kernel: Kernel) -> bool {
        self.kernels.contains(kernel.name())
    }

    fn run(&mut self, question: &Question<'_>) -> Result<PeerRuns> {
        let answer = self.asked(question).inspect_err(|_| self.process = None)?;
        if let Some(error) = answer["error"].as_str() {
            bail!("{error}");
        }
        let runs = numbers(&answer["seconds"]).context("an answer without seconds")?;
        Ok(PeerRuns { read_seconds: None, runs, answer: answer["answer"].clone() })
    }

    fn end(&mut self) {
        self.process = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_gap_are_read() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("bfs"), "").unwrap();
        let gapbs = Gapbs::new(folder.path(), 1).unwrap();
        let answer = |program, kernel, output: &str| {
            let trials = GapTrials { read_seconds: None, seconds: vec![], output: output.into() };
            GapProgram::new(gapbs.clone(), program).answer(kernel, 4, &trials)
        };
        let bfs = answer("bfs", Kernel::Bfs, "Graph has 9 nodes\nBFS Tree has 7 nodes and 12 edges\n");
        assert_eq!(bfs, json!({ "reached": 7 }));
        assert_eq!(answer("cc", Kernel::Wcc, "2:1\nThere are 3 components\n"), json!({ "components": 3 }));
        assert_eq!(answer("tc", Kernel::Triangles, "5 triangles\n"), json!({ "triangles": 5 }));
        let scores = answer("pr_spmv", Kernel::PageRank, "Trial Time:  0.1\n4:0.5\n2:0.25\n");
        assert_eq!(scores, json!({ "top": [0.5, 0.25] }));
        assert_eq!(answer("pr", Kernel::PageRank, "4:0.5\n"), json!({}));
        // The first line is that of the source.
        let scores = answer("bc", Kernel::Bc, "4:1\n7:0.5\n2:0.25\n");
        assert_eq!(scores, json!({ "top": [1.0, 0.5] }));
    }
}
