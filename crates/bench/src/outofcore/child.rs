//! One child process for each measurement. It joins its control group first, so that everything it reads counts there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_engine::Engine;
use anden_testkit::memory_group::{self, MemoryGroup};
use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use super::loading::Loading;
use super::side::Side;
use super::work::{Phase, Work, phase};
use super::{sequence, spin};

/// More seconds than any phase takes.
pub(super) const NO_LIMIT: f64 = 3600.0;

/// The task of a child.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) database: PathBuf,
    pub(super) work: Work,
    pub(super) side: Side,
    /// The file with the query sequence, if the work has one. Each phase takes a part of it.
    pub(super) sequence: Option<PathBuf>,
    pub(super) threads: usize,
    pub(super) num_phases: usize,
    /// The time limit of a phase, after which it stops.
    pub(super) most_seconds: f64,
    /// Whether a thread spins beside the work.
    pub(super) is_spinning: bool,
}

/// The result of a child.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// The phases. The first begins with an empty page cache.
    pub(super) phases: Vec<Phase>,
    /// Bytes that were read ahead, and the part of them that no kernel or query read.
    pub(super) bytes_ahead: u64,
    /// The peak memory of the group in bytes, page cache included.
    pub(super) peak: u64,
}

/// The child failed because its work does not fit, or was killed for it.
#[derive(Debug)]
pub(super) struct Ended {
    side: &'static str,
    status: String,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.side, self.status)
    }
}

impl std::error::Error for Ended {}

impl Task {
    /// Evicts the database and runs the task in a child, in `group` if given.
    ///
    /// # Errors
    /// [`Ended`] if the work failed or the child was killed, because it did not fit.
    pub(super) fn run(&self, group: Option<&MemoryGroup>) -> Result<Outcome> {
        for entry in std::fs::read_dir(&self.database)? {
            anden_testkit::evict(&entry?.path())?;
        }
        if let Some(group) = group {
            group.reset_peak();
        }
        let members = group.map(MemoryGroup::members);
        let value = report_of(self.side.name(), &self.json(members.as_deref()))?;
        let mut outcome = Outcome::of(&value).ok_or_else(|| anyhow!("a child gave a strange report: {value}"))?;
        outcome.peak = group.map_or(0, MemoryGroup::peak);
        Ok(outcome)
    }

    fn json(&self, members: Option<&Path>) -> Value {
        json!({
            "database": self.database,
            "members": members,
            "work": self.work.name(),
            "side": self.side.name(),
            "sequence": self.sequence,
            "threads": self.threads,
            "num_phases": self.num_phases,
            "most_seconds": self.most_seconds,
            "is_spinning": self.is_spinning,
        })
    }

    fn of(value: &Value) -> Result<Self> {
        let text = |name: &str| value[name].as_str().ok_or_else(|| anyhow!("{name}: text expected"));
        let number = |name: &str| value[name].as_u64().ok_or_else(|| anyhow!("{name}: a number expected"));
        Ok(Self {
            database: text("database")?.into(),
            work: Work::named(text("work")?)?,
            side: Side::named(text("side")?)?,
            sequence: value["sequence"].as_str().map(PathBuf::from),
            threads: number("threads")? as usize,
            num_phases: number("num_phases")? as usize,
            most_seconds: value["most_seconds"].as_f64().ok_or_else(|| anyhow!("most_seconds: a number expected"))?,
            is_spinning: value["is_spinning"] == true,
        })
    }
}

/// Runs a task in a child and parses its output.
///
/// # Errors
/// [`Ended`] if the work failed or the child was killed, because it did not fit.
pub(super) fn report_of(side: &'static str, task: &Value) -> Result<Value> {
    let program = std::env::current_exe()?;
    let arguments = ["outofcore-child", &task.to_string()];
    let output = Command::new(program).args(arguments).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(Ended { side, status: output.status.to_string() }.into());
    }
    serde_json::from_slice(&output.stdout).context("a child gave no report")
}

impl Outcome {
    fn json(&self) -> Value {
        let phase = |phase: &Phase| json!([phase.seconds, phase.digest, phase.num_done, phase.bytes_read]);
        let phases = self.phases.iter().map(phase).collect::<Vec<_>>();
        json!({ "phases": phases, "bytes_ahead": self.bytes_ahead })
    }

    fn of(value: &Value) -> Option<Self> {
        let phase = |all: &Value| {
            let number = |place: usize| all[place].as_u64();
            let (digest, num_done, bytes_read) = (number(1)?, number(2)?, number(3)?);
            Some(Phase { seconds: all[0].as_f64()?, digest, num_done, bytes_read })
        };
        let phases = value["phases"].as_array()?.iter().map(phase).collect::<Option<Vec<_>>>()?;
        Some(Self { phases, bytes_ahead: value["bytes_ahead"].as_u64()?, peak: 0 })
    }
}

/// The main function of a child: runs the task in `text` and prints the result.
pub fn run(text: &str) -> Result<()> {
    let value: Value = serde_json::from_str(text).context("a task as the parent writes it expected")?;
    if let Some(members) = value["members"].as_str() {
        memory_group::join(Path::new(members))?;
    }
    if let Some(loading) = Loading::of(&value) {
        return loading.run_here();
    }
    let task = Task::of(&value)?;
    let sequence = task.sequence.as_deref().map(sequence::read).transpose()?.unwrap_or_default();
    let pool = Pool::new(task.threads)?;
    let view = Engine::open_read_only(&task.database)?.view()?;
    let (view, prefetcher) = task.side.attach(&view);
    let parts: Vec<&[VertexId]> = match sequence.len().div_ceil(task.num_phases.max(1)) {
        0 => vec![&[]; task.num_phases],
        len => sequence.chunks(len).collect(),
    };
    let mut outcome = Outcome::default();
    spin::beside(task.is_spinning, || -> Result<()> {
        for part in parts {
            outcome.phases.push(phase(task.work, &pool, &view, part, task.side, task.most_seconds)?);
        }
        Ok(())
    })?;
    outcome.bytes_ahead = prefetcher.stats().total().bytes;
    println!("{}", outcome.json());
    Ok(())
}
