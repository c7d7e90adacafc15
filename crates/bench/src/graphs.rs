//! The graph of a benchmark, in every form that a side may want.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Result, bail};
use base::VertexId;
use base::progress::Silent;
use engine::{Database, GraphOptions, KeyScheme, LoadOptions, View};
use graph::formats::{InputPath, write_edge_list, write_file};
use graph::generate::{Generator, RmatParams};
use graph::{Csr, Graph, WeightType};

use crate::setting::Setting;

/// Where the graph comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// R-MAT with the Graph500 parameters, undirected.
    Rmat {
        /// The binary logarithm of the number of vertices.
        scale: u32,
        /// Generated edges a vertex.
        degree: u32,
    },
    /// A serialized graph of GAP; a weighted one (`.wsg`) may stand beside it.
    Serialized(PathBuf),
}

impl Origin {
    /// The scale of the graph that benchmarks of generated edges take: of a serialized one, 20.
    pub fn scale(&self) -> u32 {
        match self {
            Self::Rmat { scale, .. } => *scale,
            Self::Serialized(_) => 20,
        }
    }

    /// The edges a vertex of such a graph: of a serialized one, 10.
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

/// The graph of a benchmark. Files are made in the scratch directory when they are first wanted.
#[derive(Debug)]
pub struct Graphs<'a> {
    setting: &'a Setting,
}

/// One graph as a serialized file of GAP, a mapped plain CSR, and a database.
#[derive(Debug)]
pub struct Forms {
    serialized: PathBuf,
    csr: Csr,
    view: View,
}

impl Forms {
    /// The file that GAP's programs read.
    pub fn serialized(&self) -> &Path {
        &self.serialized
    }

    /// The plain CSR, mapped from a file, with the page size that the database has.
    pub fn csr(&self) -> &Csr {
        &self.csr
    }

    /// The one snapshot of the database.
    pub fn view(&self) -> &View {
        &self.view
    }
}

/// Copies a database that nobody writes, to the disk.
pub fn copy_database(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let name = entry?.file_name();
        std::fs::copy(from.join(&name), to.join(&name))?;
        // What is still to be written would be written while the time runs.
        std::fs::File::open(to.join(&name))?.sync_all()?;
    }
    Ok(())
}

impl<'a> Graphs<'a> {
    /// The graph of the setting; nothing is made yet.
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

    /// The database of the graph without weights, not open.
    pub fn database(&self) -> Result<PathBuf> {
        let directory = self.setting.scratch.join("plain.anden");
        if !directory.exists() {
            drop(self.plain()?);
        }
        Ok(directory)
    }

    /// The graph with weights from 1 to 255, as GAP has them.
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

    /// The database of the graph with weights, not open.
    pub fn weighted_database(&self) -> Result<PathBuf> {
        let directory = self.setting.scratch.join("weighted.anden");
        if !directory.exists() {
            drop(self.weighted()?);
        }
        Ok(directory)
    }

    /// The graph as text, one line an edge, undirected edges once.
    pub fn text(&self) -> Result<PathBuf> {
        let path = self.setting.scratch.join("graph.el");
        if !path.exists() {
            match &self.setting.origin {
                Origin::Rmat { .. } => {
                    let generator = self.generator(None)?;
                    write_file(&path, |output| generator.write_edge_list(&self.setting.pool, output))?;
                }
                Origin::Serialized(serialized) => {
                    let csr = Csr::read_gapbs(serialized, &self.setting.pool)?;
                    let key = |vertex: VertexId, text: &mut Vec<u8>| -> graph::Result<()> {
                        text.extend_from_slice(vertex.to_string().as_bytes());
                        Ok(())
                    };
                    write_file(&path, |output| write_edge_list(&csr, key, output))?;
                }
            }
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
            write_file(&path, |output| generator.write_gapbs(&self.setting.pool, &Silent, output))?;
        }
        Ok(path)
    }

    fn forms(&self, serialized: PathBuf, name: &str, weights: Option<WeightType>) -> Result<Forms> {
        let Setting { pool, scratch, .. } = self.setting;
        let csr_file = scratch.join(format!("{name}.csr"));
        if !csr_file.exists() {
            Csr::read_gapbs(&serialized, pool)?.save(&csr_file)?;
        }
        let directory = scratch.join(format!("{name}.anden"));
        let database = if directory.exists() {
            Database::open_read_only(&directory)?
        } else {
            let inputs = [InputPath::File(serialized.clone())];
            let csr = Csr::map(&csr_file)?;
            let graph = GraphOptions {
                direction: csr.direction(),
                keys: KeyScheme::Dense,
                weight_type: weights,
                ..GraphOptions::default()
            };
            let options = LoadOptions { graph, ..LoadOptions::default() };
            Database::load(&directory, &inputs, &options, pool, &Silent)?.0
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
