//! GEXF, GML, Pajek and node-link JSON: what each holds, and what is refused.

use anden_formats::{KeyKind, SourceOptions, Span, WantedProperties};
use anden_graph::property::{PropertyColumn, PropertyType};
use anden_graph::{GraphKind, WeightType};

use crate::reading::{Folder, Read, assert_refused, names, read_files};

fn options() -> SourceOptions {
    let (edge_properties, vertex_properties) = (WantedProperties::All, WantedProperties::All);
    SourceOptions { edge_properties, vertex_properties, ..SourceOptions::default() }
}

fn strings() -> SourceOptions {
    SourceOptions { keys: KeyKind::String, ..options() }
}

/// Reads a text as a file with this name.
fn read(name: &str, text: &str, options: &SourceOptions) -> Result<Read<f64>, String> {
    let folder = Folder::new();
    let path = folder.file(name, text);
    let read = match options.keys {
        KeyKind::Integer => read_files::<u64, f64>(&[&path], options),
        KeyKind::String => read_files::<Span, f64>(&[&path], options),
    };
    read.map(|read| Read { notes: names(&folder, &read.notes), ..read })
}

fn weighted(options: SourceOptions) -> SourceOptions {
    SourceOptions { weights: Some(WeightType::F64), ..options }
}

fn directed(graph_kind: GraphKind) -> SourceOptions {
    SourceOptions { graph_kind: Some(graph_kind), ..options() }
}

/// The values of a column, each null as `null`.
fn values(columns: &[PropertyColumn], place: usize) -> Vec<String> {
    columns[place].iter().map(|value| if value.is_null() { "null".into() } else { value.to_string() }).collect()
}

fn types(columns: &[PropertyColumn]) -> Vec<PropertyType> {
    columns.iter().map(PropertyColumn::property_type).collect()
}

const GML: &str = "# made by hand
Creator \"test\"
graph
[
  directed 1
  node [ id 1 label \"a &#228; &quot;b&quot; &x; & c\" size 3 graphics [ x 1.5 y [ z 2 ] ] ]
  node [ id 2 label \"b\" size 4.5 code \"007\" ]
  node
  [
    id 7
    label \"c\"
    since \"2024-02-29\"
  ]
  edge [ source 1 target 2 value 5 ]
  edge [ source 7 target 1 value 2 kind \"x\" kind \"y\" ]
]
";

#[test]
fn gml_elements_have_typed_values() {
    let found = read("a.gml", GML, &options()).unwrap();
    assert_eq!(found.pairs(), [(1, 2), (7, 1)]);
    assert_eq!(found.vertices, ["1", "2", "7"]);
    use PropertyType::{Date, F64, I64, String};
    assert_eq!(types(&found.vertex_properties), [String, F64, String, Date]);
    assert_eq!(values(&found.vertex_properties, 0), ["a ä \"b\" &x; & c", "b", "c"]);
    assert_eq!(values(&found.vertex_properties, 1), ["3.0", "4.5", "null"]);
    assert_eq!(values(&found.vertex_properties, 2), ["null", "007", "null"]);
    assert_eq!(
        (types(&found.properties), values(&found.properties, 1)),
        (vec![I64, String], vec!["null".into(), "x".into()])
    );
    assert_eq!(
        found.notes,
        [
            "a.gml: lists within nodes and edges are left out",
            "a.gml: of a key that an element repeats, only the first value is read"
        ]
    );
    let found = read("a.gml", GML, &weighted(options())).unwrap();
    assert_eq!((found.weights, found.properties.len()), (vec![5.0, 2.0], 1));
    // Content tells the format as well.
    assert_eq!(read("a.txt", GML, &options()).unwrap().pairs(), [(1, 2), (7, 1)]);
}

#[test]
fn gml_labels_are_keys_of_text() {
    let found = read("a.gml", GML, &strings()).unwrap();
    assert_eq!(found.vertices, ["a ä \"b\" &x; & c", "b", "c"]);
    assert_eq!(found.edges[1], ("c".to_owned(), "a ä \"b\" &x; & c".to_owned()));
    assert_eq!(types(&found.vertex_properties)[0], PropertyType::F64);
    assert_eq!(found.notes.last().unwrap(), "a.gml: the labels of nodes are the keys, not their ids");
    let twice = GML.replace("label \"c\"", "label \"b\"");
    let found = read("a.gml", &twice, &strings()).unwrap();
    assert_eq!(found.vertices, ["1", "2", "7"]);
    let note = "a.gml: the ids of nodes are the keys, not their labels: two nodes have the label 'b'";
    assert_eq!(found.notes.last().unwrap(), note);
    let none = GML.replace("label \"c\"", "");
    let found = read("a.gml", &none, &strings()).unwrap();
    let note = "a.gml: the ids of nodes are the keys, not their labels: not every node has a label";
    assert_eq!(found.notes.last().unwrap(), note);
    let undeclared = GML.replace("source 7", "source 8");
    assert_refused(read("a.gml", &undeclared, &strings()), "a.gml:15: expected a declared source, found '8'");
}

#[test]
fn labels_that_repeat_ids_are_no_property() {
    let gml = "graph [ node [ id 1 label \"1\" ] node [ id 2 label \"2\" ] edge [ source 1 target 2 ] ]";
    let found = read("a.gml", gml, &options()).unwrap();
    assert_eq!((found.vertex_properties.len(), found.vertices), (0, vec!["1".to_owned(), "2".into()]));
    let gexf = "<gexf><graph><nodes><node id='a' label='a'/><node id='b' label='b'/></nodes></graph></gexf>";
    assert_eq!(read("a.gexf", gexf, &strings()).unwrap().vertex_properties.len(), 0);
    let other = gexf.replace("label='b'", "label='B'");
    let found = read("a.gexf", &other, &strings()).unwrap();
    assert_eq!(
        (values(&found.vertex_properties, 0), found.vertices),
        (vec!["a".into(), "B".into()], vec!["a".into(), "b".into()])
    );
}

#[test]
fn malformed_gml_is_refused_with_its_line() {
    let refused = |text: &str, expected: &str| assert_refused(read("a.gml", text, &options()), expected);
    refused("", "a.gml:1: expected a graph in GML, 'graph [', found none");
    refused("graph [\n node [ label \"x\" ] ]", "a.gml:2: expected a key 'id' of the node, found none");
    refused("graph [ edge [\n source 1 ] ]", "a.gml:1: expected a key 'target' of the edge, found none");
    refused("graph [ directed 2 ]", "a.gml:1: expected directed 0 or 1, found '2'");
    refused("graph [\n\n 5 ]", "a.gml:3: expected a key of GML, found '5'");
    refused("graph [ node [ id ] ]", "a.gml:1: expected a value of the key 'id', found ']'");
    refused("graph [ node [ id 1 label \"x", "the document ends within a text: it is cut");
    refused("graph [ node [ id 1 ]\n", "a.gml:2: the document ends within a list: it is cut");
    refused("graph [ ]\ngraph [ ]", "a.gml:2: a document with a second graph is not read: split it");
    let deep = format!("graph [ {} ]", "a [ ".repeat(300));
    refused(&deep, "a.gml:1: lists are nested too deep");
    let text = "graph [ node [ id x ] ]";
    refused(text, "found 'x'");
    assert_eq!(read("a.gml", text, &strings()).unwrap().vertices, ["x"]);
    refused("graph [ edge [ source 1 target 2 ] ] 7", "expected a key of GML, found '7'");
    let text = "graph [ edge [ source 1 target 2 weight \"x\" size 7 ] ]";
    let expected = "a.gml: weights are asked for, but no key of edges with the name 'weight' is a number";
    assert_refused(read("a.gml", text, &weighted(options())), expected);
    let unweighted = "graph [ edge [ source 1 target 2 kind \"x\" ] ]";
    let expected = "a.gml: weights are asked for, but no key of edges is a number";
    assert_refused(read("a.gml", unweighted, &weighted(options())), expected);
}

const PAJEK: &str = "% made by hand
*Network test
*Vertices 5
1 \"Ann B\" 0.1 0.2 0.5 ellipse ic Red
2 \"Bob\" box
4 Dan bc \"dark blue\"
*Arcs :1 \"knows\"
1 2 2.5 c Blue
2 1
*arcslist
5 1 2
";

#[test]
fn pajek_vertices_and_arcs_have_values() {
    let found = read("a.net", PAJEK, &options()).unwrap();
    assert_eq!(found.pairs(), [(1, 2), (2, 1), (5, 1), (5, 2)]);
    assert_eq!(found.vertices, ["1", "2", "3", "4", "5"]);
    assert_eq!(values(&found.vertex_properties, 0), ["Ann B", "Bob", "null", "Dan", "null"]);
    assert_eq!(values(&found.vertex_properties, 1), ["0.1", "null", "null", "null", "null"]);
    let shape = found.vertex_properties.iter().position(|column| column.get(1).to_string() == "box").unwrap();
    assert_eq!(values(&found.vertex_properties, shape), ["ellipse", "box", "null", "null", "null"]);
    assert_eq!(values(&found.properties, 0), ["2.5", "null", "null", "null"]);
    assert_eq!(values(&found.properties, 1), ["1", "1", "null", "null"]);
    assert_eq!(values(&found.properties, 2), ["Blue", "null", "null", "null"]);
    // The weight of an arc without one is 1.
    let found = read("a.txt", PAJEK, &weighted(options())).unwrap();
    assert_eq!(found.weights, [2.5, 1.0, 1.0, 1.0]);
    let unweighted = "*Vertices 2\n*Edges\n1 2\n";
    assert_eq!(read("a.net", unweighted, &weighted(options())).unwrap().weights, [1.0]);
}

#[test]
fn pajek_labels_are_keys_where_they_fit() {
    let text = "*Vertices 3\n1 \"10\"\n2 \"20\"\n3 \"x y\"\n*Edges\n1 3\n2 3\n";
    let found = read("a.net", text, &strings()).unwrap();
    assert_eq!(found.edges, [("10".to_owned(), "x y".to_owned()), ("20".into(), "x y".into())]);
    let found = read("a.net", text, &options()).unwrap();
    assert_eq!(found.pairs(), [(1, 3), (2, 3)]);
    let note =
        "a.net: the ids of nodes are the keys, not their labels: labels are no integers; --ids string takes them";
    assert_eq!(found.notes, [note]);
    let found = read("a.net", &text.replace("x y", "30"), &options()).unwrap();
    assert_eq!((found.pairs(), found.vertex_properties.len()), (vec![(10, 30), (20, 30)], 0));
    // Dense ids begin with 0, where numbers begin with 1.
    let folder = Folder::new();
    let path = folder.file("a.net", "*Vertices 3\n*Edges\n1 3\n");
    let found = read_files::<u64, u32>(&[&path], &options()).unwrap();
    assert_eq!(found.pairs(), [(1, 3)]);
}

#[test]
fn arcs_beside_edges_follow_the_user() {
    let text = "*Vertices 4\n*Arcs\n1 2 1\n*Edges\n2 3 2\n4 4 3\n*Edgeslist\n1 4\n";
    let mixed = "a.net:5: the network has arcs and edges: --directed or --undirected reads both kinds";
    assert_refused(read("a.net", text, &options()), mixed);
    let found = read("a.net", text, &weighted(directed(GraphKind::Directed))).unwrap();
    assert_eq!(found.pairs(), [(1, 2), (2, 3), (3, 2), (4, 4), (1, 4), (4, 1)]);
    assert_eq!(found.weights, [1.0, 2.0, 2.0, 3.0, 1.0, 1.0]);
    let found = read("a.net", text, &directed(GraphKind::Undirected)).unwrap();
    assert_eq!(found.pairs(), [(1, 2), (2, 3), (4, 4), (1, 4)]);
}

#[test]
fn malformed_pajek_is_refused_with_its_line() {
    let refused = |text: &str, expected: &str| assert_refused(read("a.net", text, &options()), expected);
    refused("% only this\n", "a.net:2: expected a section *Vertices, found none");
    refused("*Vertices x\n", "a.net:1: expected a number of vertices, found 'x'");
    refused("*Vertices\n", "a.net:1: expected a number of vertices, found the end of the line");
    refused("*Vertices 2\n3 \"c\"\n", "a.net:2: expected a vertex from 1 to 2, found '3'");
    refused("*Vertices 2\n*Arcs\n1 0\n", "a.net:3: expected a target from 1 to 2, found '0'");
    refused("*Vertices 2\n*Arcs\n1\n", "a.net:3: expected a target from 1 to 2, found the end of the line");
    refused("*Vertices 2\n*Arcs\n1 2 1 c\n", "a.net:3: expected a value of 'c', found the end of the line");
    refused(
        "*Vertices 2\n*Matrix\n0 1\n1 0\n",
        "a.net:2: expected a section *Vertices, *Arcs, *Edges, *Arcslist or *Edgeslist, found '*Matrix'",
    );
    refused("*Vertices 2\n*Arcs\n*Vertices 2\n", "a.net:3: a file with a second network is not read: split it");
    refused(
        "*Vertices 4000000000\n*Arcs\n1 2\n",
        "*Vertices promises 4000000000 vertices, which a text of 31 bytes does not bear out",
    );
    let intervals = read("a.net", "*Vertices 2\n1 \"a\" [1-3]\n*Edges\n1 2 1 [2]\n", &options()).unwrap();
    assert!(intervals.notes.iter().any(|note| note == "a.net: time intervals are left out"));
}

const GEXF: &str = "<?xml version='1.0' encoding='UTF-8'?>
<gexf xmlns='http://gexf.net/1.3' xmlns:viz='http://gexf.net/1.3/viz' version='1.3'>
<meta><creator>test</creator></meta>
<graph defaultedgetype='directed' mode='static'>
<attributes class='node'>
<attribute id='0' title='size' type='integer'><default>7</default></attribute>
<attribute id='1' title='born' type='date'/>
</attributes>
<attributes class='edge'><attribute id='0' title='kind' type='string'/></attributes>
<nodes>
<node id='a' label='Ann'><viz:size value='2'/>
<attvalues><attvalue for='0' value='3'/><attvalue for='9' value='x'/></attvalues>
<nodes><node id='b' label='Bob &amp; Co'>
<attvalues><attvalue for='1' value='1999-12-31'/><attvalue for='0' value=''/></attvalues></node></nodes></node>
<node id='c'/>
</nodes>
<edges>
<edge id='0' source='a' target='b' weight='2.5'><attvalues><attvalue for='0' value='x'/></attvalues></edge>
<edge id='1' source='b' target='c' label='then'/>
</edges>
</graph>
</gexf>
";

#[test]
fn gexf_elements_have_declared_values() {
    let found = read("a.gexf", GEXF, &strings()).unwrap();
    assert_eq!(found.edges, [("a".to_owned(), "b".to_owned()), ("b".into(), "c".into())]);
    assert_eq!(found.vertices, ["a", "b", "c"]);
    use PropertyType::{Date, F64, I64, String};
    assert_eq!(types(&found.vertex_properties), [I64, Date, String]);
    assert_eq!(values(&found.vertex_properties, 0), ["3", "7", "7"]);
    assert_eq!(values(&found.vertex_properties, 1), ["null", "1999-12-31", "null"]);
    assert_eq!(values(&found.vertex_properties, 2), ["Ann", "Bob & Co", "null"]);
    assert_eq!(types(&found.properties), [String, F64, String]);
    assert_eq!(values(&found.properties, 1), ["2.5", "null"]);
    assert_eq!(values(&found.properties, 2), ["null", "then"]);
    let found = read("a.xml", GEXF, &weighted(strings())).unwrap();
    assert_eq!(found.weights, [2.5, 1.0]);
}

#[test]
fn gexf_of_both_directions_follows_the_user() {
    let text = "<gexf><graph defaultedgetype='undirected'>\n<edges><edge source='1' target='2'/>
        <edge source='2' target='3' type='directed'/><edge source='3' target='1' type='mutual'/></edges></graph></gexf>";
    let refused = "a.gexf:3: expected edges as defaultedgetype says, found one with type='directed'; --directed or \
                   --undirected reads both kinds";
    assert_refused(read("a.gexf", text, &options()), refused);
    let found = read("a.gexf", text, &directed(GraphKind::Directed)).unwrap();
    assert_eq!(found.pairs(), [(1, 2), (2, 1), (2, 3), (3, 1), (1, 3)]);
    assert_eq!(read("a.gexf", text, &directed(GraphKind::Undirected)).unwrap().pairs(), [(1, 2), (2, 3), (3, 1)]);
}

#[test]
fn malformed_gexf_is_refused_with_its_line() {
    let refused = |text: &str, expected: &str| assert_refused(read("a.gexf", text, &strings()), expected);
    refused("<gexf>\n</gexf>", "a.gexf:2: expected a graph, found the end of the document");
    refused("<gexf>\n<node id='a'/></gexf>", "a.gexf:2: expected a graph around nodes and edges, found none");
    let graph = |content: &str| format!("<gexf><graph>\n{content}</graph></gexf>");
    refused(&graph("<node/>"), "a.gexf:2: expected an attribute 'id' of the node, found none");
    refused(&graph("<edge source='a'/>"), "a.gexf:2: expected an attribute 'target' of the edge, found none");
    refused(
        &graph("<edge source='a' target='b' type='x'/>"),
        "expected the type directed or undirected of the edge, found 'x'",
    );
    refused(&graph("</graph><graph>"), "a document with a second graph is not read: split it");
    let attribute = |attribute: &str| graph(&format!("<attributes class='node'>{attribute}</attributes>"));
    let twice = "<attribute id='0' title='x' type='string'/>".repeat(2);
    refused(&attribute(&twice), "the attribute '0' is declared twice");
    let wrong = "<attribute id='0' title='x' type='integer'><default>y</default></attribute>";
    refused(&attribute(wrong), "the default of attribute '0': expected a whole number of type i64, found 'y'");
    let typed = "<attributes class='node'><attribute id='0' type='integer'/></attributes>
                 <node id='a'><attvalues><attvalue for='0' value='z'/></attvalues></node>";
    refused(&graph(typed), "a.gexf:3: expected a whole number of type i64, found 'z'");
    let whole = GEXF.trim_end();
    for end in (0..whole.len()).step_by(7) {
        assert!(read("a.gexf", &whole[..end], &strings()).is_err(), "{end}");
    }
}

#[test]
fn node_link_json_has_nodes_and_edges() {
    let text = |edges: &str| {
        format!(
            "{{\"directed\": true, \"multigraph\": false, \"graph\": {{\"nodes\": [1]}},\n \"nodes\": [\
             {{\"id\": 1, \"name\": \"A\\u00e9 \\\"]}}\", \"tags\": [1, \"]\"]}},\n{{\"id\": 2, \"size\": 0.5, \"name\": null}}],\n\
             \"{edges}\": [{{\"source\": 1, \"target\": 2, \"weight\": 3, \"ok\": true}}, {{\"target\": 1, \"source\": 2, \
             \"weight\": \"inf\"}}\n]}}"
        )
    };
    for edges in ["edges", "links"] {
        let found = read("a.json", &text(edges), &options()).unwrap();
        assert_eq!((found.pairs(), found.vertices.len()), (vec![(1, 2), (2, 1)], 2));
        assert_eq!(values(&found.vertex_properties, 0), ["Aé \"]}", "null"]);
        assert_eq!(values(&found.vertex_properties, 1), ["[1, \"]\"]", "null"]);
        use PropertyType::{Boolean, F64, String};
        assert_eq!(types(&found.vertex_properties), [String, String, F64]);
        assert_eq!(types(&found.properties), [F64, Boolean]);
        assert_eq!(read("a.txt", &text(edges), &weighted(options())).unwrap().weights, [3.0, f64::INFINITY]);
    }
    // The direction may stand behind the edges, and nodes may be told by their places.
    let places =
        "{\"links\": [{\"source\": 0, \"target\": 1}], \"nodes\": [{\"name\": \"a\"}, {}], \"directed\": false}";
    let found = read("a.json", places, &directed(GraphKind::Directed)).unwrap();
    assert_eq!((found.pairs(), found.vertices), (vec![(0, 1), (1, 0)], vec!["0".to_owned(), "1".into()]));
    let digits = "{\"nodes\": [{\"id\": \"x\", \"zip\": \"01234\"}, {\"id\": 7, \"zip\": \"5\"}], \"edges\": []}";
    let found = read("a.json", digits, &strings()).unwrap();
    assert_eq!(
        (found.vertices, types(&found.vertex_properties)),
        (vec!["x".into(), "7".into()], vec![PropertyType::String])
    );
}

#[test]
fn malformed_json_is_refused_with_its_line() {
    let refused = |text: &str, expected: &str| {
        let message = read("a.json", text, &options()).unwrap_err();
        assert!(message.contains(expected), "{text}: {message}");
    };
    refused("{\"nodes\": [\n{\"id\": 1}\n{\"id\": 2}]}", "a.json:3: expected ',' or ']' in JSON, found '{'");
    refused("{\"nodes\": [{\"id\": 1,}]}", "a.json:1: expected an object in JSON, found '{\"id\": 1,}'");
    refused("{\"nodes\": [5]}", "a.json:1: expected an object in JSON, found '5'");
    refused("{\"nodes\": [{\"id\": 1},\n{\"name\": 1}]}", "a.json:2: expected a member 'id' of every node or of none");
    refused(
        "{\"nodes\": [], \"edges\":\n[{\"source\": 1}]}",
        "a.json:2: expected a member 'target' of the edge, found none",
    );
    refused("{\"nodes\": [], \"nodes\": []}", "expected one list of edges and one of nodes, found 'nodes' and 'nodes'");
    refused("{\"links\": [], \"edges\": []}", "found 'links' and 'edges'");
    refused("{\"nodes\": [], \"directed\": 1}", "expected directed true or false, found '1'");
    refused("{\"nodes\": []} x", "expected the end of the document, found 'x'");
    refused("{\"nodes\": [{\"id\": \"x", "the document ends within a text: it is cut");
    refused("{\"nodes\": [{\"id\": 1", "the document ends within a value: it is cut");
    refused("{\"nodes\": []", "expected ',' or '}' in JSON, found the end of the document");
    refused("{\"multigraph\": true, \"graph\": {}}", "expected a list 'nodes', and one 'edges' or 'links', found none");
    refused("{\"nodes\": [], \"multigraph\": tru}", "a.json:1: expected a value in JSON, found 'tru'");
    let deep = format!("{{\"multigraph\": 1, \"graph\": {}", "[".repeat(300));
    refused(&deep, "values are nested too deep");
    refused(
        "{\"type\": \"FeatureCollection\", \"features\": []}",
        "this is a JSON file of another form, which is not read",
    );
}

#[test]
fn documents_under_other_endings_are_named() {
    for (text, what, format, ending) in [
        (GML, "GML", "gml", "gml"),
        (PAJEK, "a Pajek network", "pajek", "net"),
        (GEXF, "GEXF", "gexf", "gexf"),
        ("{\"nodes\": [], \"links\": []}", "node-link JSON", "json", "json"),
        ("{\"source\": 1, \"target\": 2}\n", "JSON lines", "jsonl", "jsonl"),
    ] {
        let expected = format!(
            "a.csv: this is {what} with another ending, which is not read; say --format {format}, or rename it to .{ending}"
        );
        assert_refused(read("a.csv", text, &options()), &expected);
    }
}

#[test]
fn streams_are_read_twice() {
    // A pipe has no second beginning, so a copy must serve the second read.
    let folder = Folder::new();
    let pipe = folder.path("pipe.gml");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, GML).unwrap()
    });
    let found = crate::reading::read_once::<u64, f64>(&[&pipe], &options(), 2).unwrap();
    writer.join().unwrap();
    assert_eq!((found.pairs(), found.vertices.len()), (vec![(1, 2), (7, 1)], 3));
}
