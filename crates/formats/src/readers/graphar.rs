//! GraphAr: a file `NAME.graph.yml` that names the types of vertices and edges, and tables in chunks.
//!
//! A vertex is known by the property that is marked as primary, or else by its number within its type. The types of
//! vertices are labels and key spaces, those of edges are types.
//!
//! # Source
//! The format specification of Apache GraphAr, version gar/v1.

mod chunk_file;
mod chunks;
mod info;

use std::path::Path;
use std::sync::Arc;

use anden_graph::GraphKind;
use anden_graph::property::PropertyType;

use self::chunk_file::WantedColumn;
use self::chunks::{EdgeTable, VertexTable};
use self::info::{EdgeInfo, GraphInfo, PropertyGroup, VertexInfo, graph_files};
use crate::collector::InputCollector;
use crate::columns::TableColumnNames;
use crate::input_format::{InputFormat, Recognition};
use crate::labeled::{Said, Spaces};
use crate::options::WantedProperties;
use crate::part::PartProperties;
use crate::probe::InputProbe;
use crate::{Error, Result};
use anden_graph::WeightType;

/// The format.
pub(super) struct GraphAr;

impl InputFormat for GraphAr {
    fn name(&self) -> &'static str {
        "graphar"
    }

    fn endings(&self) -> &'static [(&'static str, &'static str)] {
        &[("yml", "GraphAr"), ("yaml", "GraphAr")]
    }

    fn recognises(&self, _text: &[u8]) -> Recognition {
        // Any YAML may begin so; the name tells.
        Recognition::No
    }

    fn open(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        match input.is_file() {
            true => open_graph(&input.path, to),
            false => Err(input.bad("expected the name of a .graph.yml file, found a stream")),
        }
    }

    fn open_missing(&self, path: &Path, to: &mut InputCollector<'_>) -> Option<Result<()>> {
        match &graph_files(path)[..] {
            [] => None,
            [graph] => Some(open_graph(graph, to)),
            _ => {
                let what = "expected one .graph.yml file in the folder, found several: name one".to_owned();
                Some(Err(Error::Input { path: path.to_owned(), what }))
            }
        }
    }

    fn has_text_keys(&self, path: &Path) -> bool {
        let is_named = path.extension().is_some_and(|ending| ending == "yml" || ending == "yaml");
        let graph = match graph_files(path).into_iter().next() {
            Some(graph) => graph,
            None if is_named => path.to_owned(),
            None => return false,
        };
        // Numbers of several spaces may be equal, so their keys are text.
        GraphInfo::open(&graph).is_ok_and(|graph| {
            let has_spaces = !graph.has_own_columns && graph.vertices.len() > 1;
            has_spaces || graph.vertices.iter().any(VertexInfo::has_text_keys)
        })
    }
}

fn open_graph(path: &Path, to: &mut InputCollector<'_>) -> Result<()> {
    let graph = GraphInfo::open(path)?;
    let mut kinds = graph.edges.iter().map(|edges| edges.is_directed);
    let is_directed = kinds.next().filter(|&first| kinds.all(|other| other == first));
    let graph_kind = is_directed.map(|is_directed| match is_directed {
        true => GraphKind::Directed,
        false => GraphKind::Undirected,
    });
    to.direction_known(path, graph_kind)?;
    for vertices in &graph.vertices {
        open_vertices(vertices, &graph, to)?;
    }
    graph.edges.iter().try_for_each(|edges| open_edges(edges, &graph, to))
}

/// The wanted columns of property groups, without one that has another role. Notes lists, which are left out.
fn wanted_columns(
    path: &Path,
    groups: &[PropertyGroup],
    other: Option<&str>,
    wanted: &WantedProperties,
    to: &mut InputCollector<'_>,
) -> Result<(PartProperties, Vec<WantedColumn>)> {
    let (mut properties, mut columns) = (PartProperties::default(), Vec::new());
    for (group, PropertyGroup { properties: stated, .. }) in groups.iter().enumerate() {
        for property in
            stated.iter().filter(|property| Some(&property.name[..]) != other && wanted.wants(&property.name))
        {
            let Some(property_type) = property.property_type else {
                to.note(path, &format!("'{}' is left out: it holds lists", property.name));
                continue;
            };
            let added = properties.own.add(property.name.clone(), property_type);
            added.map_err(|error| Error::Input { path: path.to_owned(), what: error.to_string() })?;
            columns.push(WantedColumn { group, name: property.name.clone(), property_type, is_exact: true });
        }
    }
    Ok((properties, columns))
}

fn open_vertices(vertices: &VertexInfo, graph: &GraphInfo, to: &mut InputCollector<'_>) -> Result<()> {
    let key = key_column(vertices)?;
    let other = key.as_ref().map(|key| &key.name[..]);
    let wanted = to.options.vertex_properties.clone();
    let (properties, columns) = wanted_columns(&vertices.path, &vertices.groups, other, &wanted, to)?;
    let table = VertexTable::new(vertices, key, columns);
    let said = Said {
        labels: Some(vertices.name.clone()),
        spaces: Spaces::new(Some(vertices.name.clone()), Some(vertices.name.clone())),
        edge_type: None,
    };
    let said = if graph.has_own_columns { Said::default() } else { said.wanted(to.options) };
    let part = to.push_vertices(InputProbe::in_memory(&vertices.path, 0), Box::new(Arc::new(table)));
    (part.properties[1], part.said) = (properties, said);
    Ok(())
}

/// The column of the keys; `None` if the number of a row is its key.
fn key_column(vertices: &VertexInfo) -> Result<Option<WantedColumn>> {
    let is_key = |found: PropertyType| matches!(found, PropertyType::I64 | PropertyType::String);
    for (group, PropertyGroup { properties, .. }) in vertices.groups.iter().enumerate() {
        let Some(key) = properties.iter().find(|property| property.is_primary) else { continue };
        let Some(property_type) = key.property_type.filter(|&found| is_key(found)) else {
            let what = format!("expected whole numbers or text as the primary property '{}'", key.name);
            return Err(Error::Input { path: vertices.path.clone(), what });
        };
        return Ok(Some(WantedColumn { group, name: key.name.clone(), property_type, is_exact: false }));
    }
    Ok(None)
}

fn open_edges(edges: &EdgeInfo, graph: &GraphInfo, to: &mut InputCollector<'_>) -> Result<()> {
    let bad = |what: String| Error::Input { path: edges.path.clone(), what };
    let numbers = || edges.groups.iter().flat_map(|group| &group.properties);
    let is_number = |found: PropertyType| found.is_numeric();
    let stated: Vec<_> = numbers().filter(|stated| stated.property_type.is_some_and(is_number)).collect();
    let names = TableColumnNames::new(stated.iter().map(|stated| &stated.name[..]));
    let weight = to.options.weights.map(|_| names.weight_role(to.options)).transpose().map_err(bad)?;
    let weight = weight.map(|place| stated[place]);
    let other = weight.map(|weight| &weight.name[..]);
    let wanted = to.options.edge_properties.clone();
    let (properties, columns) = wanted_columns(&edges.path, &edges.groups, other, &wanted, to)?;
    let weight_column = weight.and_then(|weight| {
        let group =
            edges.groups.iter().position(|group| group.properties.iter().any(|found| found.name == weight.name));
        let property_type = weight.property_type?;
        Some(WantedColumn { group: group?, name: weight.name.clone(), property_type, is_exact: false })
    });
    let weight_type = weight.and_then(|weight| match weight.property_type? {
        PropertyType::I64 => Some(WeightType::I64),
        PropertyType::F32 => Some(WeightType::F32),
        PropertyType::F64 => Some(WeightType::F64),
        _ => None,
    });
    let [source, target] = edges.ends.map(|end| &graph.vertices[end]);
    let ends = [key_column(source)?, key_column(target)?];
    let tables = [(source, &ends[0]), (target, &ends[1])]
        .map(|(vertices, key)| VertexTable::new(vertices, key.clone(), Vec::new()));
    let table = EdgeTable::new(edges, tables, weight_column, columns);
    let said = Said {
        edge_type: Some(edges.name.clone()),
        spaces: Spaces::new(Some(source.name.clone()), Some(target.name.clone())),
        labels: None,
    };
    let said = if graph.has_own_columns { Said::default() } else { said.wanted(to.options) };
    let part = to.push(InputProbe::in_memory(&edges.path, 0), Box::new(Arc::new(table)));
    (part.properties[0], part.weight_type, part.said) = (properties, weight_type, said);
    Ok(())
}
