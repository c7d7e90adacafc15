//! The graph of a benchmark, in the form that each side needs.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anden_base::VertexId;
use anden_base::progress::Silent;
use anden_engine::{Engine, GraphOptions, KeyScheme, LoadOptions, SnapshotView};
use anden_formats::{
    InputPath, KeyKind, NoProperties, generated, read_gapbs, write_edge_list, write_file, write_parquet_edges,
};
use anden_graph::generate::{Generator, RmatParams};
use anden_graph::{Csr, Graph, WeightType};
use anyhow::{Result, bail};

use crate::setting::Setting;

/// The source of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// R-MAT with the Graph500 parameters, undirected.
    Rmat {
        /// The binary logarithm of the number of vertices.
        scale: u32,
        /// The number of generated edges a vertex.
        degree: u32,
    },
    /// A serialized graph of GAP. A weighted one (`.wsg`) may stand beside it.
    Serialized(PathBuf),
}

impl Origin {
    /// The scale for benchmarks that generate edges; 20 for a serialized graph.
    pub fn scale(&self) -> u32 {
        match self {
            Self::Rmat { scale, .. } => *scale,
            Self::Serialized(_) => 20,
        }
    }

    /// The edges a vertex for benchmarks that generate edges; 10 for a serialized graph.
    pub fn degree(&self) -> u32 {
        match self {
            Self::Rmat { degree, .. } => *degree,
            Self::Serialized(_) => 10,
        }
    }
}

impl FromStr for Origin {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut parts = text.split(':');
        let (kind, scale, degree) = (parts.next(), parts.next(), parts.next());
        match (kind, scale.map(str::parse), degree.map(str::parse), parts.next()) {
            (Some("rmat"), Some(Ok(scale)), Some(Ok(degree)), None) => Ok(Self::Rmat { scale, degree }),
            _ => bail!("{text:?}: rmat:SCALE:DEGREE expected"),
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rmat { scale, degree } => write!(f, "rmat:{scale}:{degree}"),
            Self::Serialized(path) => write!(f, "{}", path.file_name().unwrap_or(path.as_os_str()).to_string_lossy()),
        }
    }
}

/// The graph of a benchmark. Its files are made in the scratch directory at first use.
#[derive(Debug)]
pub struct Graphs<'a> {
    setting: &'a Setting,
}

/// One graph as a serialized file of GAP, a mapped plain CSR, and a database.
#[derive(Debug)]
pub struct Forms {
    serialized: PathBuf,
    csr: Csr,
    view: SnapshotView,
}

impl Forms {
    /// The file that GAP's programs read.
    pub fn serialized(&self) -> &Path {
        &self.serialized
    }

    /// The plain CSR, mapped from a file with the page size of the database's files.
    pub fn csr(&self) -> &Csr {
        &self.csr
    }

    /// The only snapshot of the database.
    pub fn view(&self) -> &SnapshotView {
        &self.view
    }
}

/// Appends the id of a vertex as its key.
fn id_as_key(vertex: VertexId, text: &mut Vec<u8>) -> anden_formats::Result<()> {
    text.extend_from_slice(vertex.to_string().as_bytes());
    Ok(())
}

/// Copies a database that no process writes, and syncs the copy.
pub fn copy_database(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let name = entry?.file_name();
        std::fs::copy(from.join(&name), to.join(&name))?;
        // Unsynced pages would be written while a measurement runs.
        std::fs::File::open(to.join(&name))?.sync_all()?;
    }
    Ok(())
}

impl<'a> Graphs<'a> {
    /// The graph of the setting. Makes no file yet.
    pub fn new(setting: &'a Setting) -> Self {
        Self { setting }
    }

    /// The graph without weights.
    pub fn plain(&self) -> Result<Forms> {
        let serialized = match &self.setting.origin {
            Origin::Serialized(path) => path.clone(),
            Origin::Rmat { .. } => self.generated("graph.sg", None)?,
        };
        self.forms(serialized, "plain", None)
    }

    /// The path of the database without weights.
    pub fn database(&self) -> Result<PathBuf> {
        let directory = self.setting.scratch.join("plain.anden");
        if !directory.exists() {
            drop(self.plain()?);
        }
        Ok(directory)
    }

    /// The graph with weights from 1 to 255, as in GAP.
    pub fn weighted(&self) -> Result<Forms> {
        let serialized = match &self.setting.origin {
            Origin::Serialized(path) => {
                let weighted = path.with_extension("wsg");
                if !weighted.is_file() {
                    bail!("{}: the same graph with weights is wanted beside the file without", weighted.display());
                }
                weighted
            }
            Origin::Rmat { .. } => self.generated("graph.wsg", Some(1..=255))?,
        };
        self.forms(serialized, "weighted", Some(WeightType::U32))
    }

    /// The path of the database with weights.
    pub fn weighted_database(&self) -> Result<PathBuf> {
        let directory = self.setting.scratch.join("weighted.anden");
        if !directory.exists() {
            drop(self.weighted()?);
        }
        Ok(directory)
    }

    /// The graph as text with one line an edge. Undirected edges appear once.
    pub fn text(&self) -> Result<PathBuf> {
        let path = self.setting.scratch.join("graph.el");
        if !path.exists() {
            match &self.setting.origin {
                Origin::Rmat { .. } => {
                    let generator = self.generator(None)?;
                    write_file(&path, |output| generated::write_edge_list(&generator, &self.setting.pool, output))?;
                }
                Origin::Serialized(serialized) => {
                    let csr = read_gapbs(serialized, &self.setting.pool)?;
                    write_file(&path, |output| write_edge_list(&csr, id_as_key, output))?;
                }
            }
        }
        Ok(path)
    }

    /// The graph as Parquet with one row an edge, as exports write it.
    pub fn parquet(&self) -> Result<PathBuf> {
        let path = self.setting.scratch.join("graph.parquet");
        if !path.exists() {
            let (forms, pool) = (self.plain()?, &self.setting.pool);
            write_file(&path, |output| {
                write_parquet_edges(forms.csr(), KeyKind::Integer, id_as_key, &NoProperties, pool, output)
            })?;
        }
        Ok(path)
    }

    fn generator(&self, weights: Option<RangeInclusive<u32>>) -> Result<Generator> {
        let Origin::Rmat { scale, degree } = self.setting.origin else { bail!("only R-MAT graphs are generated") };
        let generator = Generator::rmat(&RmatParams { scale, degree: u64::from(degree), ..RmatParams::default() })?;
        Ok(match weights {
            Some(weights) => generator.with_weights(weights)?,
            None => generator,
        })
    }

    fn generated(&self, name: &str, weights: Option<RangeInclusive<u32>>) -> Result<PathBuf> {
        let path = self.setting.scratch.join(name);
        if !path.exists() {
            let generator = self.generator(weights)?;
            write_file(&path, |output| generated::write_gapbs(&generator, &self.setting.pool, &Silent, output))?;
        }
        Ok(path)
    }

    fn forms(&self, serialized: PathBuf, name: &str, weights: Option<WeightType>) -> Result<Forms> {
        let Setting { pool, scratch, .. } = self.setting;
        let csr_file = scratch.join(format!("{name}.csr"));
        if !csr_file.exists() {
            read_gapbs(&serialized, pool)?.save(&csr_file)?;
        }
        let directory = scratch.join(format!("{name}.anden"));
        let database = if directory.exists() {
            Engine::open_read_only(&directory)?
        } else {
            let inputs = [InputPath::File(serialized.clone())];
            let csr = Csr::map(&csr_file)?;
            let graph = GraphOptions {
                graph_kind: csr.graph_kind(),
                keys: KeyScheme::Dense,
                weight_type: weights,
                ..GraphOptions::default()
            };
            let options = LoadOptions { graph, ..LoadOptions::default() };
            Engine::load(&directory, &inputs, &options, pool, &Silent)?.0
        };
        let csr = Csr::map(&csr_file)?;
        Ok(Forms { serialized, csr, view: database.view()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_read() {
        assert_eq!("rmat:20:16".parse::<Origin>().unwrap(), Origin::Rmat { scale: 20, degree: 16 });
        for bad in ["rmat", "rmat:20", "rmat:a:b", "rmat:1:2:3", "grid:2:2"] {
            assert!(bad.parse::<Origin>().is_err(), "{bad}");
        }
    }
}
