//! Exports: a graph, its vertices or a result, written to a file atomically; and their formats.

use std::path::Path;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_formats::{
    ExportedGraph, KeyKind, OutputMemory, ValueColumn, ValueKind, ValueOfVertex, VertexValue, WrittenProperties,
};
use anden_graph::Graph;
use anden_graph::property::{ColumnBuilder, PropertyColumn, PropertySchema};
use anden_snapshots::SnapshotView;

use crate::job::Values;
use crate::property::KeyRef;
use crate::{Error, Key, KeyScheme, Result, View};

pub use anden_formats::{ExportFormat, Output, OutputContent};

/// Writes a file atomically: `body` writes a temporary file, which is renamed to `path` once it is on disk. A device or
/// pipe at `path` is written directly.
///
/// # Errors
/// Errors of `body` and of the file system. The temporary file is removed then, and an existing file at `path` stays.
pub fn write_file<T, E: From<Error>>(path: &Path, body: impl FnOnce(&mut Output<'_>) -> Result<T, E>) -> Result<T, E> {
    anden_formats::write_file(path, |output| body(output).map_err(Wrapped)).map_err(|Wrapped(error)| error)
}

/// Converts errors of the writers to the error type of the caller.
struct Wrapped<E>(E);

impl<E: From<Error>> From<anden_formats::Error> for Wrapped<E> {
    fn from(error: anden_formats::Error) -> Self {
        Self(Error::from(error).into())
    }
}

/// Bytes for each vertex while vertices are written: their rows, and their order.
const VERTEX_BYTES: u64 = 16;

/// A view as writers see it.
#[derive(Clone, Copy)]
struct ExportedView<'a> {
    view: &'a View,
    lists: &'a SnapshotView,
    pool: &'a Pool,
}

impl ExportedGraph for ExportedView<'_> {
    type Graph = SnapshotView;
    type Properties = Self;
    type Error = Error;

    fn graph(&self) -> &SnapshotView {
        self.lists
    }

    fn properties(&self) -> &Self {
        self
    }

    fn pool(&self) -> &Pool {
        self.pool
    }

    fn key_kind(&self) -> Result<KeyKind> {
        self.view.key_kind()
    }

    fn push_key(&self, vertex: VertexId, text: &mut Vec<u8>) -> Result<()> {
        self.view.push_key(vertex, text)
    }

    fn key_bytes(&self) -> u64 {
        self.lists.dictionary().num_bytes()
    }

    fn first_row_key(&self) -> Option<u64> {
        self.view.first_row_key()
    }
}

impl WrittenProperties<Error> for ExportedView<'_> {
    fn edge_schema(&self) -> &PropertySchema {
        self.view.edge_schema()
    }

    fn vertex_schema(&self) -> &PropertySchema {
        self.view.vertex_schema()
    }

    fn push_rows(&self, vertex: VertexId, rows: &mut Vec<u64>) -> Result<()> {
        // `edge_columns` checks for damage, once for all rows.
        self.view.push_rows(vertex, rows);
        Ok(())
    }

    fn edge_columns(&self, rows: &[u64]) -> Result<Vec<PropertyColumn>> {
        // Damaged lists look empty, so the rows are complete only if this check passes.
        self.view.check_lists()?;
        let properties = self.view.stored().edge_properties();
        let places: Vec<usize> = (0..properties.schema().len()).collect();
        Ok(properties.gather(&places, rows)?)
    }

    fn vertex_columns(&self, vertices: &[VertexId]) -> Result<Vec<PropertyColumn>> {
        let properties = self.view.stored().properties();
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

/// The value of a vertex; the marker of unreached vertices becomes null.
fn cell(values: &Values<'_>, vertex: usize) -> VertexValue {
    match values {
        Values::Hops(hops) if hops[vertex] == u32::MAX => VertexValue::Null,
        Values::Vertices(vertices) if vertices[vertex] == u32::MAX => VertexValue::Null,
        Values::Distances(distances) if distances[vertex] == u64::MAX => VertexValue::Null,
        Values::Hops(numbers) | Values::Numbers(numbers) => VertexValue::Integer(numbers[vertex].into()),
        Values::Vertices(vertices) => VertexValue::Vertex(vertices[vertex]),
        Values::Counts(numbers) | Values::Distances(numbers) => VertexValue::Integer(numbers[vertex]),
        // The writers turn infinity, the marker of unreached vertices, into null.
        Values::Reals(numbers) => VertexValue::Real(numbers[vertex]),
    }
}

impl View {
    /// Writes the graph. An undirected edge is written once. Returns the number of edges.
    ///
    /// GraphML, GEXF, GML, Pajek, node-link JSON, Arrow and serialized graphs hold every vertex; a matrix and a
    /// BVGraph count them.
    /// Edge list, CSV, Parquet and JSON lines hold only vertices with edges:
    /// [`export_vertices`](Self::export_vertices) writes all vertices to a second file.
    ///
    /// # Errors
    /// [`Error::Memory`]; errors of the output; the format cannot hold the graph; damage met on the way; cancellation.
    pub fn export(&self, format: ExportFormat, output: &mut Output<'_>) -> Result<u64> {
        let graph = self.exported()?;
        match self.workers_of_export(format.memory(&graph))? {
            // The budget has room for one worker only.
            1 => format.write(&ExportedView { pool: &Pool::new(1)?, ..graph }, output),
            _ => format.write(&graph, output),
        }
    }

    /// Writes the graph as a folder, for example the Parquet tables of GraphFrames. The folder appears at `path` once
    /// all its files are on disk. Returns the number of edges.
    ///
    /// # Errors
    /// As [`export`](Self::export). The format is one file; `path` is a file, or a folder with files.
    pub fn export_folder(&self, format: ExportFormat, path: &Path) -> Result<u64> {
        let graph = self.exported()?;
        let num_workers = self.workers_of_export(format.memory(&graph))?;
        anden_formats::write_folder(path, self.context().progress, |folder| match num_workers {
            // The budget has room for one worker only.
            1 => format.write_folder(&ExportedView { pool: &Pool::new(1)?, ..graph }, folder),
            _ => format.write_folder(&graph, folder),
        })
    }

    fn exported(&self) -> Result<ExportedView<'_>> {
        Ok(ExportedView { view: self, lists: self.all_lists()?, pool: self.session().pool() })
    }

    /// The number of workers with room to write a format: all of them, or one.
    ///
    /// # Errors
    /// [`Error::Memory`] if the budget is too small for one worker.
    fn workers_of_export(&self, memory: OutputMemory) -> Result<usize> {
        let num_workers = self.session().num_threads();
        let require = |num: usize| {
            let num_bytes = memory.shared + memory.per_worker * num as u64;
            self.require_reader("an export", num_bytes)
        };
        // One worker is slower, but needs less memory than all.
        if require(num_workers).is_err() {
            require(1)?;
            return Ok(1);
        }
        Ok(num_workers)
    }

    /// Writes the keys of all vertices, with their properties if the format has columns. The order is that of matrix
    /// rows: the first vertex is row 1. Loading this file beside the edges restores vertices without edges.
    ///
    /// # Errors
    /// [`Error::Memory`]; the format is not an edge list, CSV, Parquet or JSON lines; errors of the output; a key that does not fit
    /// on a line; damage met on the way; cancellation.
    pub fn export_vertices(&self, format: ExportFormat, output: &mut Output<'_>) -> Result<()> {
        let graph = self.exported()?;
        let mut memory = format.memory(&graph);
        memory.shared += VERTEX_BYTES * self.vertex_bound() as u64;
        match self.workers_of_export(memory)? {
            // The budget has room for one worker only.
            1 => format.write_vertices(&ExportedView { pool: &Pool::new(1)?, ..graph }, output),
            _ => format.write_vertices(&graph, output),
        }
    }

    /// Describes what an export omits, for a message: weights, edge properties, vertex properties. `vertices` is the
    /// format of the vertex file beside it.
    pub fn left_out(&self, format: ExportFormat, vertices: Option<ExportFormat>) -> Vec<String> {
        let (mut left_out, kept) = (Vec::new(), format.kept());
        if !kept.weights && self.weight_type().is_some() {
            left_out.push("the weights".to_owned());
        }
        if !kept.edge_properties {
            let names = self.edge_schema().iter().map(|(name, _)| format!("the edge property {name:?}"));
            left_out.extend(names);
        }
        // A vertex file beside the edges keeps these properties, so nothing is lost.
        let is_beside = vertices.is_some_and(|format| format.kept().properties_of_vertex_files);
        if !kept.vertex_properties && !is_beside {
            let names = self.vertex_schema().iter().map(|(name, _)| format!("the vertex property {name:?}"));
            left_out.extend(names);
        }
        left_out
    }

    /// Writes the key and the value of each vertex in ascending order of keys; `name` is the column of values. A vertex
    /// without a value, for example one that a search does not reach, has null. In CSV, null is an empty field.
    ///
    /// The memory budget is not checked: a refusal would lose `values`, which usually took more memory and time.
    ///
    /// ```
    /// use anden::{Database, Job, Options, Parameters, Update};
    /// use anden::export::{ExportFormat, write_file};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("hops.csv");
    /// let db = Database::in_memory(Options::default())?;
    /// db.apply(&[Update::add_edge(1, 2), Update::AddVertex(3.into())])?;
    /// let view = db.view()?;
    /// let job = Job::new("bfs", Parameters { source: vec![1.into()], ..Parameters::default() })?;
    /// let output = view.run(&job)?;
    /// let hops = output.values().unwrap();
    /// write_file(&path, |file| view.export_values(job.value_name(), &hops, ExportFormat::CSV, file))?;
    /// assert_eq!(std::fs::read_to_string(&path)?, "key,distance\n1,0\n2,1\n3,\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The format is not CSV, Parquet or JSON lines; errors of the output; damage met on the way; cancellation.
    pub fn export_values(
        &self,
        name: &str,
        values: &Values<'_>,
        format: ExportFormat,
        output: &mut Output<'_>,
    ) -> Result<()> {
        // Ids differ between databases; the order of keys makes their files comparable.
        let vertices = self.vertices_by_key()?;
        let value: &ValueOfVertex<'_> = &|vertex| cell(values, vertex as usize);
        let column = ValueColumn { name, kind: kind_of(values), vertices: &vertices, value };
        format.write_values(&self.exported()?, &column, output)
    }

    /// Whether matrix rows equal the keys of their vertices (dense keys: key plus one). If not, only
    /// [`export_vertices`](Self::export_vertices) tells the key of a row.
    ///
    /// # Errors
    /// Damage met on the way; cancellation.
    pub fn has_keys_of_matrix(&self) -> Result<bool> {
        let push_key = |vertex, text: &mut Vec<u8>| self.push_key(vertex, text);
        Ok(anden_formats::matrix_rows(self.all_lists()?, self.first_row_key(), push_key)?.are_keys())
    }

    /// The key of matrix row 1; `None` if keys are not numbers.
    fn first_row_key(&self) -> Option<u64> {
        match self.stored().options().keys {
            KeyScheme::String => None,
            KeyScheme::Integer => Some(1),
            KeyScheme::Dense => Some(0),
        }
    }

    fn push_key(&self, vertex: VertexId, text: &mut Vec<u8>) -> Result<()> {
        // Runs once for each key written, so cancellation stops a long export.
        self.session().progress().check()?;
        match self.key(vertex)? {
            Key::Integer(key) => text.extend_from_slice(key.to_string().as_bytes()),
            Key::String(key) => text.extend_from_slice(key.as_bytes()),
        }
        Ok(())
    }

    /// The type of keys. All keys of a database have one type.
    fn key_kind(&self) -> Result<KeyKind> {
        let first = (0..self.vertex_bound() as VertexId).find(|&vertex| self.lists().is_live(vertex));
        Ok(match first.map(|vertex| self.key_ref(vertex)).transpose()? {
            Some(KeyRef::String(_)) => KeyKind::String,
            _ => KeyKind::Integer,
        })
    }
}
