//! GML: vertices and edges with all properties in one file.
//!
//! The id of a vertex is its key if keys are integers, else a number. The label is the property `label`, or else the
//! key. Text is in ASCII with references, as NetworkX reads it. GML has no booleans: they become 1 and 0.

use anden_base::VertexId;
use anden_graph::property::{PropertySchema, PropertyValue};
use anden_graph::{Graph, GraphKind, Weight, WeightType};

use super::node_link::edge_names;
use crate::Result;
use crate::edge_rows::WrittenProperties;
use crate::options::KeyKind;
use crate::output_format::OutputContent::Edges;
use crate::output_format::{ExportedGraph, GraphWriter, KeptParts, OutputEnding, OutputFormat};
use crate::write::Output;
use crate::write_elements::{ElementWriter, WrittenRow, refuse_names, write_elements};

/// The format.
pub(super) struct GmlOutput;

impl OutputFormat for GmlOutput {
    fn name(&self) -> &'static str {
        "gml"
    }

    fn endings(&self) -> &'static [OutputEnding] {
        const { &[OutputEnding::new("gml", "GML", &[Edges])] }
    }

    fn kept(&self) -> KeptParts {
        KeptParts { weights: true, edge_properties: true, vertex_properties: true, properties_of_vertex_files: false }
    }
}

impl<G: ExportedGraph> GraphWriter<G> for GmlOutput {
    fn write(&self, graph: &G, output: &mut Output<'_>) -> Result<u64, G::Error> {
        let (lists, properties, kind) = (graph.graph(), graph.properties(), graph.key_kind()?);
        let (of_vertices, of_edges) = (properties.vertex_schema(), properties.edge_schema());
        let taken: &[&str] = if kind == KeyKind::String { &["id", "label"] } else { &["id"] };
        refuse_names(taken, of_vertices, output)?;
        refuse_names(edge_names(lists), of_edges, output)?;
        require_keys(of_vertices, output)?;
        require_keys(of_edges, output)?;
        let mut header = format!("graph [\n  directed {}\n", u8::from(lists.graph_kind() == GraphKind::Directed));
        if lists.is_multigraph() {
            header.push_str("  multigraph 1\n");
        }
        output.write(header.as_bytes())?;
        let has_labels = of_vertices.find("label").is_some();
        let mut writer = GmlElements { graph, output, kind, has_labels, text: Vec::new(), raw: Vec::new() };
        let num_edges = write_elements(lists, None, properties, &mut writer)?;
        output.write(b"]\n")?;
        output.flush()?;
        Ok(num_edges)
    }
}

/// Refuses properties whose names are no keys of GML.
fn require_keys(schema: &PropertySchema, output: &Output<'_>) -> Result<()> {
    let is_key = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    match schema.iter().find(|(name, _)| !is_key(name)) {
        Some((name, _)) => Err(output.refuse(format!(
            "the property {name:?} is no key of GML, which has letters, digits and '_': rename it, or write GraphML"
        ))),
        None => Ok(()),
    }
}

struct GmlElements<'a, 'o, G> {
    graph: &'a G,
    output: &'a mut Output<'o>,
    kind: KeyKind,
    /// Whether a property is the label.
    has_labels: bool,
    text: Vec<u8>,
    raw: Vec<u8>,
}

impl<G: ExportedGraph> GmlElements<'_, '_, G> {
    fn push_id(&mut self, vertex: VertexId) -> Result<(), G::Error> {
        if self.kind == KeyKind::Integer {
            return self.graph.push_key(vertex, &mut self.text);
        }
        self.text.extend_from_slice(vertex.to_string().as_bytes());
        Ok(())
    }

    /// Writes the element with its values that are not null.
    fn finish(&mut self, schema: &PropertySchema, row: &WrittenRow<'_>) -> Result<()> {
        for (place, column) in row.values() {
            self.text.extend_from_slice(b"\n    ");
            self.text.extend_from_slice(schema.get(place).map_or("", |(name, _)| name).as_bytes());
            self.text.push(b' ');
            push_value(column.get(row.row), &mut self.text);
        }
        self.text.extend_from_slice(b"\n  ]\n");
        self.output.write(&self.text)?;
        self.text.clear();
        Ok(())
    }
}

impl<G: ExportedGraph> ElementWriter<G::Error> for GmlElements<'_, '_, G> {
    fn node(&mut self, vertex: VertexId, row: &WrittenRow<'_>) -> Result<(), G::Error> {
        self.text.extend_from_slice(b"  node [\n    id ");
        self.push_id(vertex)?;
        if !self.has_labels {
            self.raw.clear();
            self.graph.push_key(vertex, &mut self.raw)?;
            self.text.extend_from_slice(b"\n    label ");
            push_text(&String::from_utf8_lossy(&self.raw), &mut self.text);
        }
        Ok(self.finish(self.graph.properties().vertex_schema(), row)?)
    }

    fn begin_edges(&mut self) -> Result<(), G::Error> {
        Ok(())
    }

    fn edge<W: Weight>(
        &mut self,
        (source, target): (VertexId, VertexId),
        weight: Option<W>,
        row: &WrittenRow<'_>,
    ) -> Result<(), G::Error> {
        self.text.extend_from_slice(b"  edge [\n    source ");
        self.push_id(source)?;
        self.text.extend_from_slice(b"\n    target ");
        self.push_id(target)?;
        if let Some(weight) = weight {
            self.text.extend_from_slice(b"\n    weight ");
            let text = weight.to_string();
            match matches!(W::TYPE, WeightType::U32 | WeightType::I64) {
                true => self.text.extend_from_slice(text.as_bytes()),
                false => push_real(&text, &mut self.text),
            }
        }
        Ok(self.finish(self.graph.properties().edge_schema(), row)?)
    }
}

fn push_value(value: PropertyValue<'_>, text: &mut Vec<u8>) {
    match value {
        PropertyValue::Boolean(value) => text.push(b'0' + u8::from(value)),
        PropertyValue::I64(_) | PropertyValue::U64(_) => text.extend_from_slice(value.to_string().as_bytes()),
        PropertyValue::F32(_) | PropertyValue::F64(_) => push_real(&value.to_string(), text),
        value => push_text(&value.to_string(), text),
    }
}

/// Appends a real number, which has a point in GML.
fn push_real(number: &str, text: &mut Vec<u8>) {
    let at = number.find('e').unwrap_or(number.len());
    let (mantissa, exponent) = number.split_at(at);
    let is_finite = mantissa.ends_with(|end: char| end.is_ascii_digit());
    match is_finite && !mantissa.contains('.') {
        true => text.extend_from_slice(format!("{mantissa}.0{exponent}").as_bytes()),
        false if is_finite => text.extend_from_slice(number.as_bytes()),
        false => text.extend_from_slice(number.to_ascii_uppercase().as_bytes()),
    }
}

/// Appends a text in quotes. References keep quotes, line ends and letters beyond ASCII.
fn push_text(raw: &str, text: &mut Vec<u8>) {
    text.push(b'"');
    for character in raw.chars() {
        match character {
            // igraph resolves only the references with names.
            '"' => text.extend_from_slice(b"&quot;"),
            '&' => text.extend_from_slice(b"&amp;"),
            '\0'..='\x1f' | '\x7f'.. => {
                text.extend_from_slice(format!("&#{};", u32::from(character)).as_bytes());
            }
            // Only ASCII is left.
            _ => text.push(character as u8),
        }
    }
    text.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reals_have_a_point() {
        let written = |number: &str| {
            let mut text = Vec::new();
            push_real(number, &mut text);
            String::from_utf8(text).unwrap()
        };
        let found = ["1", "0.5", "1e300", "1.5e-7", "inf", "-inf", "NaN"].map(written);
        assert_eq!(found, ["1.0", "0.5", "1.0e300", "1.5e-7", "INF", "-INF", "NAN"]);
    }
}
