//! The graphs of the family, with the files that each side reads.

use std::path::{Path, PathBuf};

use anden::load::InputPath;
use anden::{Database, GraphKind, KeyScheme, LoadOptions, Options, Session, WeightType};
use anden_base::VertexId;
use anden_base::mapped::MappedSlice;
use anden_base::progress::Silent;
use anden_base::random::mix;
use anden_formats::{SerializedWeights, generated, read_gapbs, write_gapbs};
use anden_graph::generate::{Generator, GridParams, RmatParams, UniformParams};
use anden_graph::{Adjacency, Csr, CsrBuilder, Direction, Graph, Weights};
use anden_kernels::Context as KernelContext;
use anden_kernels::bfs::{BfsParams, bfs};
use anyhow::{Context, Result, anyhow, bail, ensure};

use super::ours::open;
use crate::kernels::sources;

/// The graphs that are generated if no names are given.
const GENERATED: [&str; 6] = ["kron16", "kron18", "kron20", "kron22", "urand20", "grid1000"];
/// Edges a vertex of generated graphs.
const DEGREE: u64 = 16;
/// The largest weight of edges that get random ones, as in GAP.
const LARGEST_WEIGHT: u32 = 255;
/// Endings of compressed files, which are not part of a format's name.
const COMPRESSED: [&str; 4] = ["gz", "zst", "bz2", "xz"];

/// The origin of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    /// R-MAT with 2 to this power vertices.
    Kron(u32),
    /// Random edges between 2 to this power vertices.
    Urand(u32),
    /// A grid with this many vertices a row, and as many rows.
    Grid(u64),
    /// A file in a format that a load takes without options.
    File(PathBuf),
}

/// A graph of the family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FamilyMember {
    pub(super) name: String,
    shape: Shape,
}

/// One graph as databases, and as serialized graphs of GAP with equal ids.
#[derive(Clone, Debug)]
pub(super) struct FamilyFiles {
    /// The database without weights.
    pub(super) database: PathBuf,
    /// The database with weights.
    pub(super) weighted_database: PathBuf,
    /// The graph for GAP's programs.
    pub(super) serialized: PathBuf,
    /// The graph with weights.
    pub(super) weighted_serialized: PathBuf,
    /// The graph without directions, loops and parallel edges, for programs that count triangles.
    pub(super) undirected: PathBuf,
    pub(super) num_vertices: usize,
    pub(super) num_edges: u64,
    pub(super) mean_weight: f64,
    /// Vertices to search from. Each reaches at least half as many vertices as the best of them.
    pub(super) sources: Vec<VertexId>,
}

/// A file that gives no graph for the family, with the reason.
#[derive(Debug)]
pub(super) struct Unfit(pub(super) String);

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unfit {}

/// The named graphs; without names, all generated ones and all files in `data`.
///
/// # Errors
/// A name is neither that of a file nor of a graph that can be generated.
pub(super) fn members(names: &[String], data: Option<&Path>) -> Result<Vec<FamilyMember>> {
    let files = data.map(files_in).transpose()?.unwrap_or_default();
    if names.is_empty() {
        let generated = GENERATED.iter().map(|name| generated_member(name).context("a name that is known"));
        return generated.chain(files.into_iter().map(Ok)).collect();
    }
    let of_name = |name: &String| {
        let file = files.iter().find(|member| member.name == *name).cloned();
        let known = || files.iter().map(|member| member.name.as_str()).collect::<Vec<_>>().join(", ");
        file.or_else(|| generated_member(name)).ok_or_else(|| {
            anyhow!("--graphs {name}: kronSCALE, urandSCALE, gridWIDTH or a file of --data expected: {}", known())
        })
    };
    names.iter().map(of_name).collect()
}

fn generated_member(name: &str) -> Option<FamilyMember> {
    let size = |prefix| name.strip_prefix(prefix).and_then(|size: &str| size.parse::<u32>().ok());
    let shape = match (size("kron"), size("urand"), size("grid")) {
        (Some(scale), ..) => Shape::Kron(scale),
        (_, Some(scale), _) => Shape::Urand(scale),
        (.., Some(width)) => Shape::Grid(width.into()),
        _ => return None,
    };
    Some(FamilyMember { name: name.to_owned(), shape })
}

/// The files in a directory, by name.
fn files_in(directory: &Path) -> Result<Vec<FamilyMember>> {
    let entries = std::fs::read_dir(directory).with_context(|| format!("--data {}", directory.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    let is_graph = |path: &PathBuf| {
        // The weights of a graph stand beside it, and are not a graph of their own.
        path.is_file() && !(has_ending(path, "wsg") && path.with_extension("sg").is_file())
    };
    let member = |path: PathBuf| FamilyMember { name: name_of(&path), shape: Shape::File(path) };
    Ok(paths.into_iter().filter(is_graph).map(member).collect())
}

/// The name of a file without the endings of its format and compression.
fn name_of(path: &Path) -> String {
    let path = uncompressed(path);
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn uncompressed(path: &Path) -> PathBuf {
    if COMPRESSED.iter().any(|ending| has_ending(path, ending)) { path.with_extension("") } else { path.to_owned() }
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|own| own.eq_ignore_ascii_case(ending))
}

impl FamilyMember {
    /// Makes the files that are missing in `scratch`.
    ///
    /// # Errors
    /// [`Unfit`] if the file is no graph or needs options. Errors of the disk.
    pub(super) fn files(&self, scratch: &Path, session: &Session) -> Result<FamilyFiles> {
        let directory = scratch.join(&self.name);
        std::fs::create_dir_all(&directory)?;
        let file = |name: &str| directory.join(name);
        let (database, weighted_database) = (file("plain.anden"), file("weighted.anden"));
        let (serialized, weighted_serialized) = (file("graph.sg"), file("graph.wsg"));
        match &self.shape {
            Shape::File(path) => {
                load(path, &database, None, session).map_err(|error| Unfit(format!("{error:#}")))?;
                export(&database, &serialized, SerializedWeights::Leave, session)?;
            }
            shape => {
                generate(shape, None, &serialized, session)?;
                load(&serialized, &database, None, session)?;
            }
        }
        let csr = read_gapbs(&serialized, session.pool())?;
        ensure_graph(&csr)?;
        match &self.shape {
            Shape::File(path) => match own_weights(path) {
                Some(weighted) => {
                    load(&weighted, &weighted_database, Some(WeightType::U32), session)?;
                    export(&weighted_database, &weighted_serialized, SerializedWeights::Write, session)?;
                }
                None => {
                    write_once(&weighted_serialized, &with_weights(&csr)?, SerializedWeights::Write)?;
                    load(&weighted_serialized, &weighted_database, Some(WeightType::U32), session)?;
                }
            },
            shape => {
                generate(shape, Some(LARGEST_WEIGHT), &weighted_serialized, session)?;
                load(&weighted_serialized, &weighted_database, Some(WeightType::U32), session)?;
            }
        }
        let undirected = match is_simple(&csr) {
            true => serialized.clone(),
            false => {
                let path = file("undirected.sg");
                write_once(&path, &simple(&csr)?, SerializedWeights::Leave)?;
                path
            }
        };
        let mean_weight = mean_weight(&read_gapbs(&weighted_serialized, session.pool())?)?;
        let sources = far_sources(&csr, session)?;
        let (num_vertices, num_edges) = (csr.vertex_bound(), csr.num_edges());
        Ok(FamilyFiles {
            database,
            weighted_database,
            serialized,
            weighted_serialized,
            undirected,
            num_vertices,
            num_edges,
            mean_weight,
            sources,
        })
    }
}

fn generate(shape: &Shape, largest_weight: Option<u32>, path: &Path, session: &Session) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    let generator = match *shape {
        Shape::Kron(scale) => Generator::rmat(&RmatParams { scale, degree: DEGREE, ..RmatParams::default() })?,
        Shape::Urand(scale) => {
            Generator::uniform(&UniformParams { scale, degree: DEGREE, ..UniformParams::default() })?
        }
        Shape::Grid(width) => Generator::grid(&GridParams { width, height: width, ..GridParams::default() })?,
        Shape::File(_) => bail!("only graphs without a file are generated"),
    };
    let generator = match largest_weight {
        Some(largest) => generator.with_weights(1..=largest)?,
        None => generator,
    };
    anden_formats::write_file(path, |output| generated::write_gapbs(&generator, session.pool(), &Silent, output))?;
    Ok(())
}

/// Loads a file with the options that a load has by default.
fn load(input: &Path, database: &Path, weight_type: Option<WeightType>, session: &Session) -> Result<()> {
    if database.exists() {
        return Ok(());
    }
    // The vertices of a serialized graph are ids, and some of them may have no edges.
    let is_serialized = has_ending(input, "sg") || has_ending(input, "wsg");
    let keys = if is_serialized { KeyScheme::Dense } else { KeyScheme::Integer };
    let graph = Options { keys, weight_type, ..Options::default() };
    let options = LoadOptions { graph, follows_inputs: true, ..LoadOptions::default() };
    Database::load(database, &[InputPath::File(input.to_owned())], &options, session)?;
    Ok(())
}

fn export(database: &Path, path: &Path, weights: SerializedWeights, session: &Session) -> Result<()> {
    let database = open(database, session.num_threads())?;
    write_once(path, database.view()?.graph(), weights)
}

fn write_once(path: &Path, graph: &impl anden_graph::WeightedEdges, weights: SerializedWeights) -> Result<()> {
    if !path.exists() {
        anden_formats::write_file(path, |output| write_gapbs(graph, weights, output))?;
    }
    Ok(())
}

/// Refuses files that a load can read although they hold no graph, such as values by vertex.
fn ensure_graph(csr: &Csr) -> Result<()> {
    let has_fork = (0..csr.vertex_bound() as VertexId).any(|vertex| csr.degree(Direction::Out, vertex) > 1);
    ensure!(has_fork, Unfit("no vertex has two edges: values by vertex, and not a graph".into()));
    Ok(())
}

/// The file with the graph's own weights, if its format has weights in every file.
fn own_weights(path: &Path) -> Option<PathBuf> {
    let beside = path.with_extension("wsg");
    if has_ending(path, "sg") && beside.is_file() {
        return Some(beside);
    }
    let plain = uncompressed(path);
    (has_ending(&plain, "gr") || has_ending(&plain, "wsg")).then(|| path.to_owned())
}

/// The graph with a weight from 1 to 255 on each edge, equal in both directions.
fn with_weights(csr: &Csr) -> Result<Csr> {
    let weighted = |lists: &Adjacency| {
        let mut weights = Vec::with_capacity(lists.targets().len());
        for (vertex, range) in lists.offsets().windows(2).enumerate() {
            let vertex = vertex as VertexId;
            weights.extend(lists.targets()[range[0] as usize..range[1] as usize].iter().map(|&target| {
                let ends = u64::from(vertex.min(target)) << 32 | u64::from(vertex.max(target));
                1 + (mix(ends) % u64::from(LARGEST_WEIGHT)) as u32
            }));
        }
        let (offsets, targets) = (MappedSlice::copied(lists.offsets()), MappedSlice::copied(lists.targets()));
        Adjacency::new(offsets, targets, Some(Weights::U32(MappedSlice::copied(&weights))))
    };
    let out_lists = weighted(csr.out_lists())?;
    Ok(match csr.graph_kind() {
        GraphKind::Undirected => Csr::undirected(out_lists),
        GraphKind::Directed => Csr::directed(out_lists, csr.in_lists().map(weighted).transpose()?)?,
    })
}

/// Whether the graph is undirected, without loops and parallel edges.
fn is_simple(csr: &Csr) -> bool {
    // An undirected edge has two arcs, and a loop has one.
    csr.graph_kind() == GraphKind::Undirected && csr.num_arcs() == 2 * csr.num_edges() && !csr.is_multigraph()
}

/// The graph without directions, loops and parallel edges.
fn simple(csr: &Csr) -> Result<Csr> {
    let mut builder = CsrBuilder::<u32>::new(GraphKind::Undirected, csr.vertex_bound());
    let lists = csr.out_lists();
    for (vertex, range) in lists.offsets().windows(2).enumerate() {
        let vertex = vertex as VertexId;
        for &target in &lists.targets()[range[0] as usize..range[1] as usize] {
            if vertex != target {
                builder.edge(vertex, target, 1);
            }
        }
    }
    Ok(builder.build()?)
}

fn mean_weight(csr: &Csr) -> Result<f64> {
    let Some(Weights::U32(weights)) = csr.out_lists().weights() else { bail!("the weights of a .wsg file are u32") };
    let sum: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
    Ok(sum as f64 / weights.len().max(1) as f64)
}

/// Sources that reach at least half as many vertices as the best one. In a directed graph, many vertices reach next to
/// nothing, and a search from them measures only the start.
fn far_sources(csr: &Csr, session: &Session) -> Result<Vec<VertexId>> {
    let ctx = KernelContext::new(session.pool());
    let reached = |source| -> Result<(u64, VertexId)> {
        Ok((bfs(&ctx, csr, &BfsParams { source, ..BfsParams::default() })?.reached, source))
    };
    let found = sources(csr).into_iter().map(reached).collect::<Result<Vec<_>>>()?;
    let most = found.iter().map(|&(reached, _)| reached).max().unwrap_or(0);
    ensure!(most > 1, Unfit("no vertex reaches another one".into()));
    Ok(found.into_iter().filter(|&(reached, _)| 2 * reached >= most).map(|(_, source)| source).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_leave_format_and_compression_out() {
        assert_eq!(name_of("a/USA-road-d.NY.gr.gz".as_ref()), "USA-road-d.NY");
        assert_eq!(name_of("kron.sg".as_ref()), "kron");
        let shapes = ["kron10", "urand9", "grid8"].map(|name| generated_member(name).unwrap().shape);
        assert_eq!(shapes, [Shape::Kron(10), Shape::Urand(9), Shape::Grid(8)]);
        assert!(members(&["tree3".into()], None).is_err());
        assert_eq!(members(&[], None).unwrap().len(), GENERATED.len());
    }

    #[test]
    fn weights_beside_a_graph_are_its_own() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.sg", "a.wsg", "b.wsg", "c.el"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let names: Vec<_> = files_in(folder.path()).unwrap().into_iter().map(|member| member.name).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(own_weights(&folder.path().join("a.sg")), Some(folder.path().join("a.wsg")));
        assert_eq!(own_weights(&folder.path().join("c.el")), None);
        assert!(own_weights("roads.gr.gz".as_ref()).is_some());
    }

    #[test]
    fn simple_graphs_lose_loops_and_directions() {
        let mut builder = CsrBuilder::<u32>::new(GraphKind::Directed, 3);
        for (source, target) in [(0, 0), (0, 1), (1, 0), (1, 2)] {
            builder.edge(source, target, 1);
        }
        let directed = builder.build().unwrap();
        let undirected = simple(&directed).unwrap();
        assert_eq!((is_simple(&directed), is_simple(&undirected)), (false, true));
        assert_eq!((undirected.num_edges(), undirected.num_arcs()), (2, 4));
        let weighted = with_weights(&undirected).unwrap();
        let Some(Weights::U32(weights)) = weighted.out_lists().weights() else { panic!("no weights") };
        // The lists are 1, then 0 and 2, then 1.
        assert_eq!((weights[0], weights[2]), (weights[1], weights[3]));
        assert!(weights.iter().all(|weight| (1..=LARGEST_WEIGHT).contains(weight)));
    }
}
