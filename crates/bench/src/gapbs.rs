//! The GAP Benchmark Suite as the other side. The user of the benchmark builds its programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::harness::median;

/// The programs of a GAP build.
#[derive(Clone, Debug)]
pub struct Gapbs {
    dir: PathBuf,
    threads: usize,
}

/// The output of one process of GAP.
#[derive(Clone, Debug)]
pub struct GapTrials {
    /// Seconds to read the graph; `None` if the program printed none.
    pub read_seconds: Option<f64>,
    /// Seconds of each trial.
    pub seconds: Vec<f64>,
    /// All that the program printed.
    pub output: String,
}

impl Gapbs {
    /// The name of this side in reports.
    pub const NAME: &str = "GAPBS";

    /// The programs in `dir`, which run with `threads` threads.
    pub fn new(dir: &Path, threads: usize) -> Result<Self> {
        if !dir.join("bfs").is_file() {
            bail!("{}: no GAP programs (bfs, pr, …) here: build the suite with its makefile first", dir.display());
        }
        Ok(Self { dir: dir.to_owned(), threads })
    }

    /// Whether the directory has this program.
    pub fn has(&self, program: &str) -> bool {
        self.dir.join(program).is_file()
    }

    /// Runs a kernel on a graph file. Returns the median seconds of its trials.
    pub fn kernel(&self, program: &str, graph: &Path, arguments: &[String]) -> Result<f64> {
        Ok(median(&self.trials(program, graph, arguments)?.seconds))
    }

    /// Runs a kernel on a graph file. Returns the seconds of each trial, at least one.
    pub fn trials(&self, program: &str, graph: &Path, arguments: &[String]) -> Result<GapTrials> {
        let output = self.run(program, graph, arguments)?;
        let seconds = figures(&output, "Trial Time:");
        if seconds.is_empty() {
            bail!("GAP's {program} printed no trial time");
        }
        let read_seconds = figures(&output, "Read Time:").first().copied();
        Ok(GapTrials { read_seconds, seconds, output })
    }

    /// Reads a text file and builds the graph in memory. Returns the seconds of both together.
    pub fn read_and_build(&self, graph: &Path, symmetrize: bool) -> Result<f64> {
        let mut arguments = vec!["-n1".to_owned(), "-r0".to_owned()];
        if symmetrize {
            arguments.push("-s".to_owned());
        }
        let output = self.run("bfs", graph, &arguments)?;
        let (read, build) = (figures(&output, "Read Time:"), figures(&output, "Build Time:"));
        match (read.first(), build.first()) {
            (Some(read), Some(build)) => Ok(read + build),
            _ => bail!("GAP's bfs printed no read and build time"),
        }
    }

    fn run(&self, program: &str, graph: &Path, arguments: &[String]) -> Result<String> {
        let mut command = Command::new(self.dir.join(program));
        command.arg("-f").arg(graph).args(arguments).env("OMP_NUM_THREADS", self.threads.to_string());
        let output = command.output().with_context(|| format!("cannot run GAP's {program}"))?;
        if !output.status.success() {
            bail!("GAP's {program} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The numbers of the lines that begin with `label`.
fn figures(output: &str, label: &str) -> Vec<f64> {
    let rest = output.lines().filter_map(|line| line.trim_start().strip_prefix(label));
    rest.filter_map(|rest| rest.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_their_label() {
        let output = "Read Time:           0.25\nTrial Time:          1.5\nTrial Time:          2.5\nAverage Time: 2\n";
        assert_eq!(figures(output, "Trial Time:"), [1.5, 2.5]);
        assert_eq!(figures(output, "Build Time:"), [0.0; 0]);
    }
}
