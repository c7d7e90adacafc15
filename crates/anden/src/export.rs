//! Writing a graph, or anything else, to a file that appears whole or not at all.

use std::path::Path;

use base::VertexId;
use base::parallel::Pool;
use base::progress::Progress;
use graph::Graph;
use graph::formats::{
    self, Aside, KeyKind, Output, OutputFormat, SerializedWeights, ValueColumn, ValueKind, VertexLines, VertexValue,
    WrittenProperties,
};
use graph::property::{ColumnBuilder, PropertyColumn, PropertySchema};

use crate::{Error, Key, KeyRef, KeyScheme, Result, Values, View};

/// The buffers of a file that is written, and of a step of the walk over all lists.
const OUTPUT_BYTES: u64 = 8 << 20;
/// The row of a matrix, and whether it is taken.
const MATRIX_BYTES: u64 = 5;
/// A key that is a number, in the table of a worker.
const KEY_BYTES: u64 = 8;

/// The formats that a graph can be written in.
///
/// GraphML and the serialized graphs hold every vertex, a matrix counts them; an edge list, CSV and
/// Parquet hold the vertices of edges only: [`View::export_vertices`] writes all beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// `source target [weight]` a line.
    EdgeList,
    /// The same with commas, under a header, and properties.
    Csv,
    /// A Matrix Market file; vertices by the numbers of rows, from 1.
    Mtx,
    /// Columns `source`, `target`, `weight` and properties.
    Parquet,
    /// GraphML.
    GraphMl,
    /// GAP's serialized graph without weights; vertices by their ids.
    Gapbs,
    /// GAP's serialized graph with weights, which must be whole numbers of 31 bits.
    WeightedGapbs,
}

/// The formats that vertices can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VertexFormat {
    /// A key a line.
    List,
    /// The same under a header, with the properties.
    Csv,
    /// A column `id`, and the properties.
    Parquet,
}

/// Lets `body` write a file: under a temporary name first, which becomes `path` once all is on disk.
/// A device or a pipe that is at `path` is written to as it is.
///
/// # Errors
/// Those of `body` and of the file system; nothing is left behind then, and a file that was at
/// `path` stays as it was.
pub fn write_file<T, E: From<Error>>(path: &Path, body: impl FnOnce(&mut Output<'_>) -> Result<T, E>) -> Result<T, E> {
    formats::write_file(path, |output| body(output).map_err(Wrapped)).map_err(|Wrapped(error)| error)
}

/// The first half of [`write_file`], until `progress` is told to stop: several files can be whole before the first of
/// them is at its place ([`Aside::publish`]).
///
/// # Errors
/// As there, and [`Error::Cancelled`].
pub fn write_aside<T, E: From<Error>>(
    path: &Path,
    progress: &dyn Progress,
    body: impl FnOnce(&mut Output<'_>) -> Result<T, E>,
) -> Result<(T, Aside), E> {
    formats::write_aside(path, progress, |output| body(output).map_err(Wrapped)).map_err(|Wrapped(error)| error)
}

/// Lets an error of the writers below stand for the caller's.
struct Wrapped<E>(E);

impl<E: From<Error>> From<graph::Error> for Wrapped<E> {
    fn from(error: graph::Error) -> Self {
        Self(Error::from(error).into())
    }
}

/// The properties of a view.
struct Properties<'a>(&'a View);

impl WrittenProperties<Error> for Properties<'_> {
    fn edge_schema(&self) -> &PropertySchema {
        self.0.edge_schema()
    }

    fn vertex_schema(&self) -> &PropertySchema {
        self.0.vertex_schema()
    }

    fn push_rows(&self, vertex: VertexId, rows: &mut Vec<u64>) -> Result<()> {
        self.0.push_rows(vertex, rows);
        Ok(())
    }

    fn edge_columns(&self, rows: &[u64]) -> Result<Vec<PropertyColumn>> {
        // Lists with damage look empty: what they hold is known only if all is well.
        self.0.check_lists()?;
        let properties = self.0.stored().edge_properties();
        let places: Vec<usize> = (0..properties.schema().len()).collect();
        Ok(properties.gather(&places, rows)?)
    }

    fn vertex_columns(&self, vertices: &[VertexId]) -> Result<Vec<PropertyColumn>> {
        let properties = self.0.stored().properties();
        let columns = properties.schema().iter().enumerate().map(|(place, (_, property_type))| {
            let mut column = ColumnBuilder::new(property_type);
            for &vertex in vertices {
                column.push(properties.value(place, vertex)?)?;
            }
            Ok(column.finish())
        });
        columns.collect()
    }
}

fn kind_of(values: &Values<'_>) -> ValueKind {
    match values {
        Values::Vertices(_) => ValueKind::Vertex,
        Values::Reals(_) => ValueKind::Real,
        Values::Hops(_) | Values::Numbers(_) | Values::Counts(_) | Values::Distances(_) => ValueKind::Integer,
    }
}

/// The value of a vertex, without the marks of those that were not reached.
fn cell(values: &Values<'_>, vertex: usize) -> VertexValue {
    match values {
        Values::Hops(hops) if hops[vertex] == u32::MAX => VertexValue::Null,
        Values::Vertices(vertices) if vertices[vertex] == u32::MAX => VertexValue::Null,
        Values::Distances(distances) if distances[vertex] == u64::MAX => VertexValue::Null,
        Values::Hops(numbers) | Values::Numbers(numbers) => VertexValue::Integer(numbers[vertex].into()),
        Values::Vertices(vertices) => VertexValue::Vertex(vertices[vertex]),
        Values::Counts(numbers) | Values::Distances(numbers) => VertexValue::Integer(numbers[vertex]),
        Values::Reals(numbers) => VertexValue::Real(numbers[vertex]),
    }
}

impl View {
    /// Writes the graph; an undirected edge once. Returns how many edges.
    ///
    /// # Errors
    /// [`Error::Memory`]; the output's; a graph that the format cannot hold; damage met on the way; cancellation.
    pub fn export(&self, format: ExportFormat, output: &mut Output<'_>) -> Result<u64> {
        let graph = self.all_lists()?;
        let one_worker;
        let pool = match self.workers_of_export(format)? {
            1 => {
                one_worker = Pool::new(1)?;
                &one_worker
            }
            _ => self.session().pool(),
        };
        let key = |vertex, text: &mut Vec<u8>| self.push_key(vertex, text);
        let num_edges = match format {
            ExportFormat::EdgeList => formats::write_edge_list(graph, key, output)?,
            ExportFormat::Csv => formats::write_csv(graph, key, &Properties(self), output)?,
            ExportFormat::Mtx => formats::write_mtx(graph, &self.matrix_rows()?, output)?,
            ExportFormat::Parquet => {
                formats::write_parquet_edges(graph, self.key_kind()?, key, &Properties(self), pool, output)?
            }
            ExportFormat::GraphMl => formats::write_graphml(graph, key, &Properties(self), output)?,
            ExportFormat::Gapbs => {
                formats::write_gapbs(graph, SerializedWeights::Leave, output)?;
                self.num_edges()
            }
            ExportFormat::WeightedGapbs => {
                formats::write_gapbs(graph, SerializedWeights::Write, output)?;
                self.num_edges()
            }
        };
        Ok(num_edges)
    }

    /// The workers that have room to write in this format: all of them, or one.
    ///
    /// # Errors
    /// [`Error::Memory`] where one has no room.
    fn workers_of_export(&self, format: ExportFormat) -> Result<usize> {
        let (graph, num_workers) = (self.lists(), self.session().num_threads());
        // Keys of targets are read in no order, so their pages stay in memory.
        let keys = graph.dictionary().num_bytes();
        let require = |num_bytes: u64| self.session().require_reader("an export", self.beside(), num_bytes);
        match format {
            ExportFormat::Gapbs | ExportFormat::WeightedGapbs => require(OUTPUT_BYTES)?,
            ExportFormat::Mtx => require(OUTPUT_BYTES + keys + MATRIX_BYTES * self.vertex_bound() as u64)?,
            ExportFormat::EdgeList | ExportFormat::Csv | ExportFormat::GraphMl => require(OUTPUT_BYTES + keys)?,
            ExportFormat::Parquet => {
                let table = if keys > 0 { KEY_BYTES * self.vertex_bound() as u64 } else { 0 };
                let worker = formats::parquet_worker_bytes(graph, self.edge_schema());
                let of_workers = |num: u64| OUTPUT_BYTES + keys + table + num * worker;
                if require(of_workers(num_workers as u64)).is_err() {
                    require(of_workers(1))?;
                    return Ok(1);
                }
            }
        }
        Ok(num_workers)
    }

    /// Writes the keys of all vertices, and what else the format holds: in the order of the rows of a matrix, so that the first is that
    /// of row 1. Read as a file of vertices beside the edges, it brings those without edges back.
    ///
    /// # Errors
    /// The output's; a key that does not fit on a line; damage met on the way; cancellation.
    pub fn export_vertices(&self, format: VertexFormat, output: &mut Output<'_>) -> Result<()> {
        let graph = self.all_lists()?;
        let key = |vertex, text: &mut Vec<u8>| self.push_key(vertex, text);
        let lines = match format {
            VertexFormat::List => VertexLines::List,
            VertexFormat::Csv => VertexLines::Csv,
            VertexFormat::Parquet => {
                let (kind, pool) = (self.key_kind()?, self.context().pool);
                formats::write_parquet_vertices(graph, kind, key, &Properties(self), pool, output)?;
                return Ok(());
            }
        };
        formats::write_vertices(&self.matrix_rows()?.vertices(), lines, key, &Properties(self), output)
    }

    /// What an export in these formats leaves out of the properties of the graph: weights, and properties of edges and
    /// vertices, in words. `vertices` is the format of a file of vertices beside it.
    pub fn left_out(&self, format: ExportFormat, vertices: Option<VertexFormat>) -> Vec<String> {
        use ExportFormat::{Csv, EdgeList, Gapbs, GraphMl, Mtx, Parquet, WeightedGapbs};
        let mut left_out = Vec::new();
        if format == Gapbs && self.weight_type().is_some() {
            left_out.push("the weights".to_owned());
        }
        if matches!(format, EdgeList | Mtx | Gapbs | WeightedGapbs) {
            let names = self.edge_schema().iter().map(|(name, _)| format!("the edge property {name:?}"));
            left_out.extend(names);
        }
        let has_vertices = match (format, vertices) {
            (GraphMl, _) | (_, Some(VertexFormat::Csv | VertexFormat::Parquet)) => true,
            (EdgeList | Csv | Mtx | Parquet | Gapbs | WeightedGapbs, _) => false,
        };
        if !has_vertices {
            let names = self.vertex_schema().iter().map(|(name, _)| format!("the vertex property {name:?}"));
            left_out.extend(names);
        }
        left_out
    }

    /// Writes `key` and the value of each vertex, in a column of this name, ascending by key. A vertex without a value, as
    /// one that a search does not reach, has null; CSV has nothing between the commas.
    ///
    /// ```
    /// use anden::{Database, Job, Options, OutputFormat, Parameters, Update, write_file};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("hops.csv");
    /// let db = Database::in_memory(Options::default())?;
    /// db.apply(&[Update::add_edge(1, 2), Update::AddVertex(3.into())])?;
    /// let view = db.view()?;
    /// let job = Job::new("bfs", Parameters { source: vec![1.into()], ..Parameters::default() })?;
    /// let output = view.run(&job)?;
    /// let hops = output.values().unwrap();
    /// write_file(&path, |file| view.export_values(job.value_name(), &hops, OutputFormat::Csv, file))?;
    /// assert_eq!(std::fs::read_to_string(&path)?, "key,distance\n1,0\n2,1\n3,\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A format that is neither CSV nor Parquet nor JSON lines; the output's; damage met on the way; cancellation.
    pub fn export_values(
        &self,
        name: &str,
        values: &Values<'_>,
        format: OutputFormat,
        output: &mut Output<'_>,
    ) -> Result<()> {
        let vertices = self.vertices_by_key()?;
        let value = |vertex: VertexId| cell(values, vertex as usize);
        let column = ValueColumn { name, kind: kind_of(values), vertices: &vertices, value };
        let key = |vertex, text: &mut Vec<u8>| self.push_key(vertex, text);
        formats::write_values(format, &column, self.key_kind()?, key, output)
    }

    /// Whether the rows of a matrix are the keys of their vertices, and of dense keys one more; where not, only
    /// [`export_vertices`](Self::export_vertices) says which row is which.
    ///
    /// # Errors
    /// Damage met on the way; cancellation.
    pub fn has_keys_of_matrix(&self) -> Result<bool> {
        Ok(self.matrix_rows()?.are_keys())
    }

    fn matrix_rows(&self) -> Result<formats::MatrixRows> {
        let first_key = match self.stored().options().keys {
            KeyScheme::String => None,
            KeyScheme::Integer => Some(1),
            KeyScheme::Dense => Some(0),
        };
        formats::matrix_rows(self.all_lists()?, first_key, |vertex, text| self.push_key(vertex, text))
    }

    fn push_key(&self, vertex: VertexId, text: &mut Vec<u8>) -> Result<()> {
        self.session().progress().check()?;
        match self.key(vertex)? {
            Key::Integer(key) => text.extend_from_slice(key.to_string().as_bytes()),
            Key::String(key) => text.extend_from_slice(key.as_bytes()),
        }
        Ok(())
    }

    /// What keys are: those of one database are of one kind.
    fn key_kind(&self) -> Result<KeyKind> {
        let first = (0..self.vertex_bound() as VertexId).find(|&vertex| self.lists().is_live(vertex));
        Ok(match first.map(|vertex| self.key_ref(vertex)).transpose()? {
            Some(KeyRef::String(_)) => KeyKind::String,
            _ => KeyKind::Integer,
        })
    }
}
