//! A load in a process of its own, which has as little memory as those that read what it makes.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use base::parallel::Pool;
use base::progress::Silent;
use engine::{Database, GraphOptions, KeyScheme, LoadOptions};
use graph::Direction;
use graph::formats::InputPath;
use serde_json::{Value, json};
use testkit::memory_group::MemoryGroup;

use super::child;

/// A serialized graph that becomes a database.
#[derive(Clone, Debug)]
pub(super) struct Loading {
    pub(super) input: PathBuf,
    pub(super) database: PathBuf,
    pub(super) threads: usize,
}

impl Loading {
    /// Evicts the input and has a child load it in `group`; the seconds that it took.
    ///
    /// # Errors
    /// [`child::Ended`]: the load failed, or the child was killed: it did not fit.
    pub(super) fn run(&self, group: &MemoryGroup) -> Result<f64> {
        base::storage::evict(&self.input)?;
        let value = child::report_of("load", &self.json(&group.members()))?;
        value["seconds"].as_f64().ok_or_else(|| anyhow!("a child gave a strange report: {value}"))
    }

    fn json(&self, members: &Path) -> Value {
        json!({ "members": members, "input": self.input, "database": self.database, "threads": self.threads })
    }

    /// The load that a task is, if it is one.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let path = |name: &str| value[name].as_str().map(PathBuf::from);
        let threads = value["threads"].as_u64()? as usize;
        Some(Self { input: path("input")?, database: path("database")?, threads })
    }

    /// Loads without a budget that anybody set, as everybody does, and prints what it took.
    pub(super) fn run_here(&self) -> Result<()> {
        let graph =
            GraphOptions { direction: Direction::Undirected, keys: KeyScheme::Dense, ..GraphOptions::default() };
        let options = LoadOptions { graph, ..LoadOptions::default() };
        let (inputs, pool) = ([InputPath::File(self.input.clone())], Pool::new(self.threads)?);
        let (_, loaded) = Database::load(&self.database, &inputs, &options, &pool, &Silent)?;
        println!("{}", json!({ "seconds": loaded.seconds }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_comes_back_from_its_task() {
        let loading = Loading { input: "a.sg".into(), database: "a.anden".into(), threads: 3 };
        let back = Loading::of(&loading.json(Path::new("members"))).unwrap();
        assert_eq!((back.input, back.database, back.threads), (loading.input, loading.database, 3));
        assert!(Loading::of(&json!({ "database": "a.anden", "threads": 3 })).is_none());
    }
}
