//! GraphML: nodes, edges and their data. Constructs of XML that hide content are refused.

use anden_formats::{
    Error, Format, InputPath, KeyKind, OnError, Output, Source, SourceOptions, Span, WantedProperties, write_file,
    write_graphml,
};
use anden_graph::property::{PropertyColumn, PropertyType, PropertyValue};
use anden_graph::{Csr, CsrBuilder, Graph, GraphKind, VertexId, Weight};
use proptest::prelude::*;

use crate::made::{Made, columns, edges_of};
use crate::reading::{Folder, Read, assert_refused, read, read_files, read_strings};

const KEYS: &str = "\
<key id=\"c\" for=\"node\" attr.name=\"color\" attr.type=\"string\"><default>yellow</default></key>
<key id=\"w\" for=\"edge\" attr.name=\"weight\" attr.type=\"double\"/>
<key id=\"n\" for=\"all\" attr.name=\"note\" attr.type=\"string\"/>
<key id=\"g\" for=\"node\" yfiles.type=\"nodegraphics\"/>
";

fn document(graph: &str) -> String {
    format!(
        "<?xml version='1.0' encoding='UTF-8'?>\n<graphml>\n{KEYS}<graph edgedefault='directed'>{graph}</graph>\n</graphml>\n"
    )
}

fn options(keys: KeyKind) -> SourceOptions {
    let (edge_properties, vertex_properties) = (WantedProperties::All, WantedProperties::All);
    SourceOptions { keys, edge_properties, vertex_properties, ..SourceOptions::default() }
}

fn all(text: &str) -> Result<Read<f64>, String> {
    let folder = Folder::new();
    let options = SourceOptions { weights: Some(f64::TYPE), ..options(KeyKind::String) };
    read_files::<Span, f64>(&[&folder.file("a.graphml", text)], &options)
}

#[test]
fn elements_are_vertices_and_edges_with_properties() {
    let found = all(&document(
        "<node id='a'><data key='c'>red</data><port name='p'/><data key='g'><y:Shape xmlns:y='y'>x</y:Shape></data></node>
         <node id='b &amp; c'/>
         <edge id='e' source='a' target='b &#38; c'><desc>no</desc><data key='w'> 1.5 </data>
           <data key='n'>x &lt; y<!-- no --><![CDATA[ & z]]></data></edge>
         <edge source='b &#x26; c' target='a' directed='true' sourceport='p'><data key='w'>2</data></edge>",
    ))
    .unwrap();
    assert_eq!(found.edges, [("a".into(), "b & c".into()), ("b & c".into(), "a".into())]);
    assert_eq!((found.weights, &found.vertices[..]), (vec![1.5, 2.0], &["a".to_owned(), "b & c".into()][..]));
    assert_eq!(values(&found.properties, 0), ["x < y & z", "null"]);
    assert_eq!(values(&found.vertex_properties, 0), ["red", "yellow"]);
    assert_eq!(values(&found.vertex_properties, 1), ["null", "null"]);
}

fn values(columns: &[PropertyColumn], place: usize) -> Vec<String> {
    columns[place].iter().map(|value| if value.is_null() { "null".into() } else { value.to_string() }).collect()
}

#[test]
fn lists_have_the_stated_type() {
    let keys = "<key id='t' for='node' attr.name='tags' attr.type='string' attr.list='string'/>
                <key id='n' for='node' attr.name='sizes' attr.type='string' attr.list='long'/>
                <key id='d' for='node' attr.name='days' attr.type='string' anden.type='date[]'/>";
    let text = |sizes: &str| {
        format!(
            "<graphml>{keys}<graph edgedefault='directed'><node id='a'><data key='t'>[\"x\", \"y;z\"]</data>\n\
             <data key='n'>{sizes}</data><data key='d'>[&quot;2024-02-29&quot;]</data></node></graph></graphml>"
        )
    };
    let folder = Folder::new();
    let read = |text: String| read_files::<Span, u32>(&[&folder.file("a.graphml", &text)], &options(KeyKind::String));
    let found = read(text(" [1, 2]\n")).unwrap();
    let lists = [0, 1, 2].map(|place| values(&found.vertex_properties, place).concat());
    assert_eq!(lists, [r#"["x","y;z"]"#, "[1,2]", r#"["2024-02-29"]"#]);
    let refused = read(text("[0.5]")).unwrap_err();
    assert!(refused.contains("expected a list of whole numbers of type i64 such as [1,2], found '[0.5]'"), "{refused}");
}

#[test]
fn booleans_are_words_or_digits() {
    let keys = "<key id='b' for='all' attr.name='is_open' attr.type='boolean'><default>1</default></key>";
    let text = |datum: &str| {
        format!(
            "<graphml>{keys}<graph edgedefault='directed'>
             <node id='a'><data key='b'>0</data></node><node id='b'><data key='b'> true </data></node><node id='c'/>
             <edge source='a' target='b' directed='1'><data key='b'>{datum}</data></edge></graph></graphml>"
        )
    };
    let folder = Folder::new();
    let found =
        |datum: &str| read_files::<Span, u32>(&[&folder.file("a.graphml", text(datum))], &options(KeyKind::String));
    let read = found("0").unwrap();
    assert_eq!(values(&read.vertex_properties, 0), ["false", "true", "true"]);
    assert_eq!(values(&read.properties, 0), ["false"]);
    assert_refused(found("2"), "a.graphml:3: expected true or false, found '2'");
}

/// Neo4j's APOC gives a node property and an edge property with one name the same id, which is the name.
#[test]
fn vertex_and_edge_keys_may_share_an_id() {
    let text = |keys: &str| {
        format!(
            "<graphml>{keys}\n<graph edgedefault='directed'><node id='a'><data key='since'>x</data></node>
             <edge source='a' target='a'><data key='since'>7</data></edge></graph></graphml>"
        )
    };
    let folder = Folder::new();
    let found =
        |keys: &str| read_files::<Span, u32>(&[&folder.file("a.graphml", text(keys))], &options(KeyKind::String));
    let of_nodes = "<key id='since' for='node' attr.name='since' attr.type='string'/>";
    let of_edges = "<key id='since' for='edge' attr.name='since' attr.type='long'/>";
    for keys in [[of_nodes, of_edges], [of_edges, of_nodes]] {
        let read = found(&keys.concat()).unwrap();
        assert_eq!(
            (values(&read.vertex_properties, 0), values(&read.properties, 0)),
            (vec!["x".into()], vec!["7".into()])
        );
    }
    // Data of a key for the other kind of element are ignored.
    let read = found(of_nodes).unwrap();
    assert_eq!((values(&read.vertex_properties, 0), read.properties.len()), (vec!["x".into()], 0));
    let twice = "a.graphml:2: the key 'since' is declared twice";
    for of_all in ["<key id='since' attr.name='n'/>", "<key id='since' for='all' attr.name='n'/>"] {
        assert_refused(found(&format!("{of_nodes}\n{of_all}")), twice);
        assert_refused(found(&format!("{of_all}\n{of_edges}")), twice);
    }
    assert_refused(found(&format!("{of_edges}\n{of_edges}")), twice);
}

/// Regression: NetworkX declares a key for each type, so a property with integers and floats was refused as a duplicate
/// name.
#[test]
fn keys_of_one_name_are_one_property() {
    let text = |edges: &str| {
        format!(
            "<graphml>
             <key id='d0' for='edge' attr.name='weight' attr.type='long'/>
             <key id='d1' for='edge' attr.name='weight' attr.type='double'/>
             <key id='d2' for='node' attr.name='size' attr.type='int'/>
             <key id='d3' for='node' attr.name='size' attr.type='long'><default>7</default></key>
             <graph edgedefault='undirected'>
             <node id='0'><data key='d2'>5</data></node><node id='1'><data key='d3'>6</data></node><node id='2'/>
             {edges}</graph></graphml>"
        )
    };
    let edges = "<edge source='0' target='1'><data key='d0'>1</data></edge>
                 <edge source='1' target='2'><data key='d1'>0.5</data></edge>";
    let folder = Folder::new();
    let path = folder.file("a.graphml", text(edges));
    let found = read_files::<u64, u32>(&[&path], &options(KeyKind::Integer)).unwrap();
    assert_eq!(values(&found.properties, 0), ["1.0", "0.5"]);
    assert!(found.vertex_properties[0].iter().eq([5, 6, 7].map(PropertyValue::I64)));
    let weighted = SourceOptions { weights: Some(f64::TYPE), ..options(KeyKind::Integer) };
    let found = read_files::<u64, f64>(&[&path], &weighted).unwrap();
    assert_eq!((found.weights, found.properties.len()), (vec![1.0, 0.5], 0));

    let both = "<edge source='0' target='1'><data key='d0'>1</data><data key='d1'>1</data></edge>";
    let path = folder.file("b.graphml", text(both));
    let expected = "b.graphml:8: data of two keys with the name 'weight' are there";
    assert_refused(read_files::<u64, u32>(&[&path], &options(KeyKind::Integer)), expected);
    assert_refused(read_files::<u64, f64>(&[&path], &weighted), expected);
    for (datum, expected) in [
        ("0.5", "c.graphml:8: expected a whole number of type i64, found '0.5'"),
        ("9007199254740993", "c.graphml:8: 9007199254740993 of type i64 is no value of type f64"),
    ] {
        let edge = format!("<edge source='0' target='1'><data key='d0'>{datum}</data></edge>");
        let path = folder.file("c.graphml", text(&edge));
        assert_refused(read_files::<u64, u32>(&[&path], &options(KeyKind::Integer)), expected);
    }
}

#[test]
fn many_elements_in_many_batches() {
    let folder = Folder::new();
    let mut graph = String::new();
    (0..500).for_each(|v| graph.push_str(&format!("<node id=\"{v}\">\n<data key=\"n\">\n{v}</data></node>\n")));
    (0..500).for_each(|v| graph.push_str(&format!("<edge source=\"{v}\" target=\"{}\"/>\n", v * 7 % 500)));
    let found = read(&folder, "a.graphml", document(&graph)).unwrap();
    assert_eq!(found.pairs(), (0..500).map(|v| (v, v * 7 % 500)).collect::<Vec<_>>());
    assert_eq!(found.vertices.len(), 500);
    let unlike = document(&graph.replace("source=\"400\"", "source=\"x\""));
    let line = 1 + unlike.lines().position(|line| line.contains("source=\"x\"")).unwrap();
    let refused = read(&folder, "b.graphml", &unlike);
    assert_refused(
        refused,
        &format!(
            "b.graphml:{line}: expected a source, an integer from 0 to 18446744073709551615 (any text \
             with --ids string), found 'x'"
        ),
    );
    let path = folder.file("c.xml", unlike);
    let skip = SourceOptions { on_error: OnError::Skip, ..SourceOptions::default() };
    let found = read_files::<u64, u32>(&[&path], &skip).unwrap();
    assert_eq!((found.edges.len(), found.summary.num_skipped), (499, 1));
}

#[test]
fn direction_is_what_the_graph_says() {
    let folder = Folder::new();
    let path = folder.file("a.txt", document("<node id='1'/>").replace("'directed'", "'undirected'"));
    let facts = |options| Source::open(&[InputPath::File(path.clone())], options).unwrap().facts().clone();
    assert_eq!(facts(SourceOptions::default()).graph_kind, Some(GraphKind::Undirected));
    let named = SourceOptions { format: Format::of_name("graphml"), ..options(KeyKind::Integer) };
    let facts = facts(named);
    assert_eq!(
        facts.vertex_properties.iter().collect::<Vec<_>>(),
        [("color", PropertyType::String), ("note", PropertyType::String)]
    );
    assert_eq!(facts.edge_properties.len(), 2);
    let empty = read_strings(&folder, "b.graphml", "<graphml><graph edgedefault='directed'/></graphml>").unwrap();
    assert_eq!((empty.edges.len(), empty.vertices.len()), (0, 0));
}

#[test]
fn unsupported_graphml_is_refused_with_its_line() {
    let refused = |text: &str, expected: &str| assert_refused(all(text), expected);
    let entity = "<?xml version='1.0'?>\n<!DOCTYPE g [<!ENTITY a 'aaaa'>]>\n<graphml/>";
    refused(entity, "a.graphml:2: a document type (DTD) that declares entities is not read: take it out");
    refused(&document("\n<node id='&a;'/>"), "a.graphml:8: the entity 'a' is not read: only XML's own are");
    refused(
        &document("<node id='a'><data key='n'>&x;</data></node>"),
        "the entity 'x' is not read: only XML's own are",
    );
    refused(&document("<node id='&#0;&#xd800;'/>"), "the reference '#xd800' is no character");
    refused(&document("<hyperedge/>"), "hyperedges are not read: an edge has two ends");
    let second = document("").replace("</graph>", "</graph><graph edgedefault='directed'/>");
    refused(&second, "a document with a second graph is not read: split it");
    refused(&document("<node/>"), "expected an attribute 'id' of the node, found none");
    refused(&document("<edge source='a'/>"), "expected an attribute 'target' of the edge, found none");
    refused(&document("<node id='a' id='b'/>"), "the attribute 'id' is there twice");
    let both = "expected edges as edgedefault says, found one with directed='false'; --directed or --undirected reads \
                both kinds";
    refused(&document("<edge source='a' target='b' directed='false'/>"), both);
    refused(&document("<edge source='a' target='b' directed='no'/>"), "expected directed true or false, found 'no'");
    refused(&document("<edge source='a' target='b'/>"), "expected a weight of type f64, a number or inf, found none");
    let text = "<edge source='a' target='b'><data key='w'>much</data></edge>";
    refused(&document(text), "expected a weight of type f64, a number or inf, found 'much'");
    let twice = "<node id='a'><data key='c'>x</data><data key='c'>y</data></node>";
    refused(&document(twice), "data of one key are there twice");
    let nested = "<node id='a'><data key='n'><b>x</b></data></node>";
    refused(&document(nested), "expected text as data, found an element 'b'");
    refused(
        &document("").replace("UTF-8", "UTF-16"),
        "a.graphml:1: expected a known encoding such as UTF-8, found 'UTF-16'",
    );
    refused(
        &document("<node id=''/>"),
        "a.graphml:7: expected a node, text in UTF-8, of 1 to 65535 bytes (0 with --empty-ids), found ''",
    );
    refused(
        &document("").replace("edgedefault='directed'", ""),
        "expected edgedefault directed or undirected, found none",
    );
    refused("<graphml><node id='a'/></graphml>", "expected a graph around nodes and edges, found none");
    refused("1 2\n3 4\n", "a.graphml:1: expected a GraphML document, found '1 2\\n3 4\\n'");
    let key =
        |attributes: &str| format!("<graphml><key id='k' {attributes}/><graph edgedefault='directed'/></graphml>");
    refused(
        &key("anden.type='uuid' attr.type='string' attr.name='x'"),
        "expected a property type as anden.type, found 'uuid'",
    );
    let default = "<graphml><key id='k' attr.name='x' attr.type='int'><default>x</default></key></graphml>";
    refused(default, "the default of key 'k': expected a whole number of type i64, found 'x'");
}

#[test]
fn text_has_the_declared_encoding() {
    let folder = Folder::new();
    let text = document("<node id='é'><data key='c'>ü €</data></node>");
    for (name, bytes) in [("ISO-8859-1", vec![0xfc, b' ', 0x80]), ("Shift_JIS", vec![0x83, 0x65])] {
        let head = text.split("é").next().unwrap().replace("UTF-8", name);
        let key: &[u8] = if name == "Shift_JIS" { b"\x83\x65" } else { b"\xe9" };
        let whole = [head.as_bytes(), key, b"'><data key='c'>", &bytes, b"</data></node></graph></graphml>"].concat();
        let path = folder.file("a.graphml", whole);
        let read = read_files::<Span, u32>(&[&path], &options(KeyKind::String)).unwrap();
        let (key, value) = if name == "Shift_JIS" { ("テ", "テ") } else { ("é", "ü €") };
        assert_eq!(
            (&read.vertices[..], &values(&read.vertex_properties, 0)[..]),
            (&[key.to_owned()][..], &[value.to_owned()][..])
        );
    }
}

/// Regression: public documents were refused for data that the graph does not need.
#[test]
fn data_that_no_property_holds_are_left_out() {
    let folder = Folder::new();
    let text = |keys: &str, graph: &str| {
        format!("<graphml>{keys}<graph edgedefault='directed'>{graph}<edge source='1' target='2'/></graph></graphml>")
    };
    let found = |text: String| {
        let path = folder.file("a.graphml", text);
        read_files::<u64, u32>(&[&path], &options(KeyKind::Integer)).unwrap()
    };
    // Data of a key that is not declared, as APOC writes them, with and without elements.
    let undeclared = found(text("", "<node id='1'><data key='labels'>:A<b/></data><data key='z'/></node>"));
    assert_eq!((undeclared.vertices, undeclared.vertex_properties.len()), (vec!["1".to_owned()], 0));
    // XML of a key with a name and no type, as yEd and Maltego write it; text of such a key is a value.
    let named = "<key id='k' for='node' attr.name='entity'/>";
    let datum = "<node id='1'><data key='k'>x<m:E xmlns:m='m'><m:P/></m:E></data></node>
                 <node id='2'><data key='k'><e/></data></node><node id='3'><data key='k'>text</data></node>";
    assert_eq!(values(&found(text(named, datum)).vertex_properties, 0), ["null", "null", "text"]);
    // Types of other tools: whole numbers, and text for those without a counterpart.
    let types = "<key id='p' for='node' attr.name='pos' attr.type='vector_double'/>
                 <key id='s' for='node' attr.name='size' attr.type='short'/>";
    let datum = "<node id='1'><data key='p'>1, 2</data><data key='s'>3</data></node>";
    let columns = found(text(types, datum)).vertex_properties;
    assert_eq!((values(&columns, 0), values(&columns, 1)), (vec!["1, 2".to_owned()], vec!["3".to_owned()]));
    // A document type without entities.
    let typed = "<!DOCTYPE graphml SYSTEM 'http://graphml.graphdrawing.org/dtds/1.0rc/graphml.dtd' [<!ELEMENT a ANY>]>";
    assert_eq!(found(format!("<?xml version='1.0'?>\n{typed}\n{}", text("", ""))).pairs(), [(1, 2)]);
}

#[test]
fn one_name_with_unlike_types_is_text() {
    let keys = "<key id='a' for='edge' attr.name='x' attr.type='double'/>
                <key id='b' for='edge' attr.name='x' attr.type='string'/>
                <key id='c' for='edge' attr.name='x' attr.type='boolean'/>";
    let edges = [("a", "1.50"), ("b", "hi"), ("c", "true")]
        .map(|(key, text)| format!("<edge source='1' target='2'><data key='{key}'>{text}</data></edge>"));
    let text = format!("<graphml>{keys}<graph edgedefault='directed'>{}</graph></graphml>", edges.concat());
    let folder = Folder::new();
    let path = folder.file("a.graphml", text);
    let found = read_files::<u64, u32>(&[&path], &options(KeyKind::Integer)).unwrap();
    assert_eq!(values(&found.properties, 0), ["1.50", "hi", "true"]);
}

#[test]
fn keys_within_the_graph_are_declarations() {
    let text = "<graphml><graph edgedefault='directed'><desc>d</desc>
                <key id='w' for='edge' attr.name='weight' attr.type='int'><default>3</default></key>
                <key id='n' for='node' attr.name='name' attr.type='string'/>
                <node id='1'><data key='n'>Ann</data></node><edge source='1' target='2'/>
                <edge source='2' target='1'><data key='w'>5</data></edge></graph></graphml>";
    let folder = Folder::new();
    let path = folder.file("a.graphml", text);
    let found = read_files::<u64, u32>(&[&path], &options(KeyKind::Integer)).unwrap();
    assert_eq!(values(&found.properties, 0), ["3", "5"]);
    assert_eq!(values(&found.vertex_properties, 0), ["Ann"]);
    let faulty = text.replace("attr.type='int'><default>3", "attr.type='int'><default>x");
    let faulty = read(&folder, "b.graphml", faulty);
    assert_refused(faulty, "b.graphml:2: the default of key 'w': expected a whole number of type i64, found 'x'");
    assert_refused(read(&folder, "c.graphml", "<graphml><graph edgedefault='directed'>"), "it is cut");
    let empty = read(&folder, "d.graphml", "<graphml><graph edgedefault='directed'></graph></graphml>").unwrap();
    assert_eq!(empty.edges.len(), 0);
}

#[test]
fn graphs_within_nodes_are_flattened() {
    let folder = Folder::new();
    let text = "<graphml><key id='n' for='node' attr.name='name' attr.type='string'/><graph edgedefault='directed'>
                <node id='1'><data key='n'>group</data><graph edgedefault='directed'>
                <node id='2'><graph/><data key='n'>inner</data></node>
                <node id='3'><graph><node id='4'/></graph></node><edge source='2' target='3'/></graph>
                <desc>after</desc></node><edge source='4' target='1'><graph></graph></edge>
                <node id='5'/></graph></graphml>";
    let path = folder.file("a.graphml", text);
    let found = read_files::<u64, u32>(&[&path], &options(KeyKind::Integer)).unwrap();
    assert_eq!(found.pairs(), [(2, 3), (4, 1)]);
    assert_eq!(found.vertices, ["1", "2", "3", "4", "5"]);
    assert_eq!(values(&found.vertex_properties, 0), ["group", "inner", "null", "null", "null"]);
    assert_refused(read(&folder, "b.graphml", text.replace("<node id='5'/></graph></graphml>", "")), "it is cut");
}

#[test]
fn mixed_directions_follow_the_user() {
    let folder = Folder::new();
    let edges = "<node id='1'/><edge source='1' target='2' directed='true'><data key='w'>1</data></edge>
                 <edge source='2' target='3' directed='false'><data key='w'>2</data></edge>
                 <edge source='4' target='4' directed='0'><data key='w'>3</data></edge>";
    for default in ["directed", "undirected"] {
        let path = folder.file("a.graphml", document(edges).replace("'directed'>", &format!("'{default}'>")));
        let with = |graph_kind| {
            let options = SourceOptions { graph_kind, weights: Some(f64::TYPE), ..options(KeyKind::Integer) };
            read_files::<u64, f64>(&[&path], &options)
        };
        let directed = with(Some(GraphKind::Directed)).unwrap();
        assert_eq!(directed.pairs(), [(1, 2), (2, 3), (3, 2), (4, 4)], "{default}");
        assert_eq!(directed.weights, [1.0, 2.0, 2.0, 3.0], "{default}");
        assert_eq!(with(Some(GraphKind::Undirected)).unwrap().pairs(), [(1, 2), (2, 3), (4, 4)], "{default}");
        assert!(with(None).unwrap_err().contains("--directed or --undirected reads both kinds"), "{default}");
    }
}

#[test]
fn a_document_that_ends_early_is_refused() {
    let text = document("<node id='a'/><edge source='a' target='a'><data key='w'>1</data></edge>");
    let end = text.trim_end().len();
    for len in 0..end {
        assert!(all(&text[..len]).is_err(), "{}", &text[..len]);
    }
    assert!(all(&text).is_ok());
}

fn name(vertex: VertexId, text: &mut Vec<u8>) -> Result<(), Error> {
    text.extend(format!("<ü&\"'{vertex}>\t\r\n]]>").into_bytes());
    Ok(())
}

fn number(vertex: VertexId, text: &mut Vec<u8>) -> Result<(), Error> {
    text.extend((u64::from(vertex) * 3).to_string().into_bytes());
    Ok(())
}

fn check<W: Weight>(graph_kind: GraphKind, num_vertices: usize, edges: &[(u32, u32, W)]) {
    let mut builder = CsrBuilder::<W>::new(graph_kind, num_vertices).keep_parallel();
    edges.iter().for_each(|&(s, t, w)| builder.edge(s, t, w));
    let graph: Csr = builder.build_weighted().unwrap();
    let expected = edges_of::<W>(&graph);
    let made = Made::new(&graph);
    let folder = Folder::new();
    for kind in [KeyKind::Integer, KeyKind::String] {
        let key = if kind == KeyKind::Integer { number } else { name };
        let path = folder.path("a.graphml");
        let num_edges = write_file(&path, |output| write_graphml(&graph, key, &made, output)).unwrap();
        assert_eq!(num_edges, graph.num_edges());
        let options = SourceOptions { weights: Some(W::TYPE), ..options(kind) };
        let read = match kind {
            KeyKind::Integer => read_files::<u64, W>(&[&path], &options).unwrap(),
            KeyKind::String => read_files::<Span, W>(&[&path], &options).unwrap(),
        };
        let shown = |vertex: VertexId| {
            let mut text = Vec::new();
            key(vertex, &mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        assert_eq!(read.edges, expected.iter().map(|&(s, t, _, _)| (shown(s), shown(t))).collect::<Vec<_>>());
        assert_eq!(read.weights, expected.iter().map(|edge| edge.2).collect::<Vec<_>>());
        let ids = 0..num_vertices as VertexId;
        assert_eq!(read.vertices, ids.clone().map(shown).collect::<Vec<_>>());
        if !expected.is_empty() {
            assert_eq!(read.properties, columns(&made.edges, expected.iter().map(|edge| edge.3)));
        }
        assert_eq!(read.vertex_properties, columns(&made.vertices, ids.map(u64::from)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn a_graph_comes_back(
        is_directed: bool,
        num_vertices in 1_u32..30,
        ends in prop::collection::vec((any::<u32>(), any::<u32>(), any::<i32>()), 0..100),
    ) {
        let graph_kind = if is_directed { GraphKind::Directed } else { GraphKind::Undirected };
        let ends: Vec<_> = ends.into_iter().map(|(s, t, w)| (s % num_vertices, t % num_vertices, w)).collect();
        let size = num_vertices as usize;
        check::<i64>(graph_kind, size, &ends.iter().map(|&(s, t, w)| (s, t, i64::from(w) << 31)).collect::<Vec<_>>());
        check::<f32>(graph_kind, size, &ends.iter().map(|&(s, t, w)| (s, t, w as f32 / 7.0)).collect::<Vec<_>>());
        check::<f64>(graph_kind, size, &ends.iter().map(|&(s, t, w)| (s, t, f64::from(w) / 7.0)).collect::<Vec<_>>());
    }
}

#[test]
fn characters_that_xml_cannot_hold_are_refused() {
    let mut builder = CsrBuilder::<u32>::new(GraphKind::Directed, 1);
    builder.edge(0, 0, 1);
    let graph = builder.build().unwrap();
    let mut bytes = Vec::new();
    let mut output = Output::new("out".as_ref(), &mut bytes);
    let key = |_, text: &mut Vec<u8>| {
        text.push(7);
        Ok::<(), Error>(())
    };
    let error = write_graphml(&graph, key, &anden_formats::NoProperties, &mut output).unwrap_err();
    assert_eq!(error.to_string(), "out: \"\\u{7}\" has a character that XML cannot hold");
    assert_eq!(PropertyValue::Null.to_string(), "");
}
