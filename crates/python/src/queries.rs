//! Answers about single vertices and edges as Python objects, and exports.

use std::path::{Path, PathBuf};

use anden::Neighbors;
use anden::export::{ExportFormat, OutputContent, write_file};
use anden::query::FoundEdge;
use anden::{Key, VertexId};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::calls;
use crate::error::{Failure, Result, invalid};
use crate::key::{key_list, key_object};
use crate::options::near;
use crate::value::{owned_object, property_object, weight_object};
use crate::view::View;

/// Edges as dicts.
pub fn found_edges<'py>(py: Python<'py>, edges: &[FoundEdge]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for edge in edges {
        let dict = PyDict::new(py);
        if let Some(number) = edge.number {
            dict.set_item("number", number)?;
        }
        if let Some(weight) = edge.weight {
            dict.set_item("weight", weight_object(py, weight)?)?;
        }
        for (name, value) in &edge.properties {
            dict.set_item(name, owned_object(py, value)?)?;
        }
        list.append(dict)?;
    }
    Ok(list)
}

/// The vertices of a path.
pub fn path_keys<'py>(py: Python<'py>, path: Option<anden::query::Path>) -> PyResult<Option<Bound<'py, PyList>>> {
    path.map(|path| key_list(py, &path.vertices)).transpose()
}

/// The number of edges at a vertex.
pub fn degree_of(view: &anden::View, vertex: VertexId, direction: Neighbors) -> anden::Result<u64> {
    let no_lists = || anden::Error::Unsupported("in-degrees need in-edges: load without --out-only".into());
    let into = || view.in_degree(vertex)?.ok_or_else(no_lists);
    match direction {
        Neighbors::Out => view.out_degree(vertex),
        Neighbors::In => into(),
        // The one list of an undirected vertex serves both directions.
        Neighbors::Both if !view.is_directed() => view.out_degree(vertex),
        Neighbors::Both => Ok(view.out_degree(vertex)? + into()?),
    }
}

/// A vertex as a dict.
pub fn vertex_dict<'py>(py: Python<'py>, view: &anden::View, key: Key) -> Result<Bound<'py, PyDict>> {
    let vertex = view.vertex(key)?;
    let dict = PyDict::new(py);
    dict.set_item("key", key_object(py, &view.key(vertex)?)?)?;
    dict.set_item("id", vertex)?;
    dict.set_item("out_degree", view.out_degree(vertex)?)?;
    dict.set_item("in_degree", view.in_degree(vertex)?)?;
    let properties = PyDict::new(py);
    for (name, value) in view.vertex_properties(vertex)? {
        properties.set_item(name, property_object(py, view.vertex_schema(), name, value)?)?;
    }
    dict.set_item("properties", properties)?;
    Ok(dict)
}

/// Writes the graph, and its vertices to a second file if one is named. Returns the number of edges.
pub fn export(
    view: &View,
    py: Python<'_>,
    file: PathBuf,
    format: Option<&str>,
    vertices: Option<PathBuf>,
) -> Result<u64> {
    let format = edge_format(&file, format)?;
    let of_vertices = match &vertices {
        Some(_) if format.is_folder() => {
            return Err(invalid(format!(
                "vertices: the folder of {} holds them; leave the argument out",
                format.name()
            )));
        }
        Some(path) if *path == file => return Err(invalid("file and vertices name one file")),
        Some(path) => Some(format.of_vertices_at(path).map_err(anden::Error::from)?),
        None => None,
    };
    let view = view.open()?.clone();
    // A pipe may block even where the graph is small.
    calls::run(py, move |watch| -> anden::Result<u64> {
        let view = view.with_progress(watch);
        if format.is_folder() {
            return view.export_folder(format, &file);
        }
        if let Some((path, format)) = vertices.zip(of_vertices) {
            write_file(&path, |output| view.export_vertices(format, output))?;
        }
        write_file(&file, |output| view.export(format, output))
    })
}

fn by_name(path: &Path, content: OutputContent) -> Result<ExportFormat, Failure> {
    ExportFormat::of_path(path, content).map_err(|error| anden::Error::from(error).into())
}

fn edge_format(path: &Path, format: Option<&str>) -> Result<ExportFormat> {
    let Some(name) = format else { return by_name(path, OutputContent::Edges) };
    match ExportFormat::of_name(name).filter(|_| ExportFormat::names().any(|known| known == name)) {
        Some(format) => Ok(format.for_path(path)),
        None => {
            let known: Vec<_> = ExportFormat::names().collect();
            let hint = near(name, known.iter().copied()).map(|near| format!("; did you mean '{near}'?"));
            let (known, hint) = (known.join(", "), hint.unwrap_or_default());
            Err(invalid(format!("format: '{name}' is not one of {known}{hint}")))
        }
    }
}
