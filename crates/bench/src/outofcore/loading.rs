//! A load in a child process, with the memory limit of the readers of its database.

use std::path::{Path, PathBuf};

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{Engine, GraphOptions, KeyScheme, LoadOptions};
use anden_formats::InputPath;
use anden_graph::GraphKind;
use anden_testkit::memory_group::MemoryGroup;
use anyhow::{Result, anyhow};
use serde_json::{Value, json};

use super::child;

/// The load of a serialized graph into a database.
#[derive(Clone, Debug)]
pub(super) struct Loading {
    pub(super) input: PathBuf,
    pub(super) database: PathBuf,
    pub(super) threads: usize,
}

impl Loading {
    /// Evicts the input and loads it in a child in `group`. Returns the seconds.
    ///
    /// # Errors
    /// [`child::Ended`] if the load failed or the child was killed, because it did not fit.
    pub(super) fn run(&self, group: &MemoryGroup) -> Result<f64> {
        anden_testkit::evict(&self.input)?;
        let value = child::report_of("load", &self.json(&group.members()))?;
        value["seconds"].as_f64().ok_or_else(|| anyhow!("a child gave a strange report: {value}"))
    }

    fn json(&self, members: &Path) -> Value {
        json!({ "members": members, "input": self.input, "database": self.database, "threads": self.threads })
    }

    /// The load in a task, if the task is a load.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let path = |name: &str| value[name].as_str().map(PathBuf::from);
        let threads = value["threads"].as_u64()? as usize;
        Some(Self { input: path("input")?, database: path("database")?, threads })
    }

    /// Loads with the default memory budget and prints the seconds.
    pub(super) fn run_here(&self) -> Result<()> {
        let graph =
            GraphOptions { graph_kind: GraphKind::Undirected, keys: KeyScheme::Dense, ..GraphOptions::default() };
        let options = LoadOptions { graph, ..LoadOptions::default() };
        let (inputs, pool) = ([InputPath::File(self.input.clone())], Pool::new(self.threads)?);
        let (_, loaded) = Engine::load(&self.database, &inputs, &options, &pool, &Silent)?;
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
