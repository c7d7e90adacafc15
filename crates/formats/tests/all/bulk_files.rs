//! CSV whose headers state roles, labels and key spaces: Neo4j's, Neptune's and LDBC's.

use anden_formats::{Format, InputPath, KeyKind, SourceOptions, Span, WantedProperties};
use anden_graph::WeightType;
use anden_graph::property::PropertyColumn;

use crate::reading::{Folder, Read, read_files};

fn all(keys: KeyKind) -> SourceOptions {
    let (edge_properties, vertex_properties) = (WantedProperties::All, WantedProperties::All);
    SourceOptions { keys, edge_properties, vertex_properties, ..SourceOptions::default() }
}

/// The values of each row, nulls as a dash.
fn rows(columns: &[PropertyColumn]) -> Vec<String> {
    let shown = |column: &PropertyColumn, row| match column.get(row) {
        value if value.is_null() => "-".to_owned(),
        value => value.to_string(),
    };
    let num_rows = columns.first().map_or(0, PropertyColumn::len);
    (0..num_rows).map(|row| columns.iter().map(|column| shown(column, row)).collect::<Vec<_>>().join(" ")).collect()
}

/// Writes the files, and reads them with the usual type of keys.
fn read(folder: &Folder, files: &[(&str, &str)], options: &SourceOptions) -> Result<Read<u32>, String> {
    let paths: Vec<_> = files.iter().map(|(name, text)| folder.file(name, text)).collect();
    let inputs: Vec<_> = paths.iter().cloned().map(InputPath::File).collect();
    let options = SourceOptions { keys: options.usual_keys(&inputs), ..options.clone() };
    let paths: Vec<_> = paths.iter().map(AsRef::as_ref).collect();
    match options.keys {
        KeyKind::String => read_files::<Span, u32>(&paths, &options),
        KeyKind::Integer => read_files::<u64, u32>(&paths, &options),
    }
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(source, target)| ((*source).to_owned(), (*target).to_owned())).collect()
}

const PEOPLE: &str = "personId:ID(Person),name:string,age:int,:LABEL,x:IGNORE,tags:string[]\n\
                      1,\"Ann\",30,Person;Admin,9,a;b\n2,Bob,,Person,9,\n";
const POSTS: &str = ":ID(Post),text,:LABEL\n1,hello,Post\n";
const LIKES: &str = ":START_ID(Person),:END_ID(Post),:TYPE,since:datetime\n2,1,LIKES,2020-01-01T10:00\n";
const KNOWS: &str = ":START_ID(Person),:END_ID(Person),:TYPE\n1,2,KNOWS\n";

#[test]
fn neo4j_files_become_one_graph() {
    let folder = Folder::new();
    let files = [("likes.csv", LIKES), ("people.csv", PEOPLE), ("posts.csv", POSTS), ("knows.csv", KNOWS)];
    let found = read(&folder, &files, &all(KeyKind::Integer)).unwrap();
    assert_eq!(found.edges, pairs(&[("Person:2", "Post:1"), ("Person:1", "Person:2")]));
    assert_eq!(rows(&found.properties), ["LIKES 2020-01-01T10:00:00Z", "KNOWS -"]);
    assert_eq!(found.vertices, ["Person:1", "Person:2", "Post:1"]);
    let expected = [r#"Ann 30 Person;Admin ["a","b"] -"#, "Bob - Person - -", "- - Post - hello"];
    assert_eq!(rows(&found.vertex_properties), expected);
    assert!(found.notes.is_empty() && found.columns.left_out.is_empty(), "{:?}", found.notes);
    // The format by name, and under a name without an ending.
    let named = SourceOptions { format: Format::of_name("neo4j"), ..all(KeyKind::Integer) };
    let files = [("likes", LIKES), ("people", PEOPLE), ("posts", POSTS), ("knows", KNOWS)];
    let again = read(&folder, &files, &named).unwrap();
    assert_eq!((again.edges, again.vertices), (found.edges, found.vertices));
    let refused = read(&folder, &[("a.csv", "source,target\n1,2\n")], &named).unwrap_err();
    assert!(refused.contains("expected a header with :ID, or with :START_ID and :END_ID, as --format neo4j says"));
}

#[test]
fn neptune_files_become_one_graph() {
    let folder = Folder::new();
    let vertices = "~id,~label,name:String(single),age:Int,day:Date\nv1,person;admin,Ann,30,2020-02-29\nv2,person,,,\n";
    let edges = "~id,~from,~to,~label,weight:Double\ne1,v1,v2,knows,0.5\n";
    let files = [("edges.csv", edges), ("vertices.csv", vertices)];
    let found = read(&folder, &files, &all(KeyKind::Integer)).unwrap();
    assert_eq!(found.edges, pairs(&[("v1", "v2")]));
    assert_eq!(rows(&found.properties), ["e1 knows 0.5"]);
    assert_eq!(
        (found.vertices, rows(&found.vertex_properties)),
        (
            vec!["v1".to_owned(), "v2".to_owned()],
            vec!["person;admin Ann 30 2020-02-29T00:00:00Z".to_owned(), "person - - -".to_owned()],
        )
    );
    assert!(found.columns.left_out.is_empty() && found.notes.is_empty(), "{:?}", found.notes);
    let weighted = SourceOptions { weights: Some(WeightType::U32), ..all(KeyKind::String) };
    let edges = folder.file("w.csv", edges.replace("0.5", "5"));
    let found = read_files::<Span, u32>(&[&edges], &weighted).unwrap();
    assert_eq!((found.weights, rows(&found.properties)), (vec![5], vec!["e1 knows".to_owned()]));
}

#[test]
fn edge_names_of_neptune_are_kept() {
    let folder = Folder::new();
    let edges = |ids: [&str; 3]| {
        let [a, b, c] = ids;
        format!("~from,~to,~label,~id\nv1,v2,knows,{a}\nv2,v1,\"a\n,b\",{b}\n\nv1,v1,likes,{c}\n")
    };
    let found = |ids, options: &SourceOptions| {
        let found = read(&folder, &[("e.csv", &edges(ids))], options).unwrap();
        let left_out = found.columns.left_out.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        (rows(&found.properties), left_out)
    };
    let string = all(KeyKind::String);
    let names =
        |ids: [&str; 3]| ["knows", "a\n,b", "likes"].iter().zip(ids).map(|(t, id)| format!("{t} {id}")).collect();
    assert_eq!(found(["e1", "", "7"], &string), (names(["e1", "-", "7"]), String::new()));
    assert_eq!(found(["1", "3", "2"], &string), (names(["1", "3", "2"]), String::new()));
    // Numbers of the rows, as an export without names has them, say nothing.
    let types = || ["knows", "a\n,b", "likes"].map(str::to_owned).to_vec();
    assert_eq!(found(["1", "2", "3"], &string), (types(), "~id".to_owned()));
    let wanted = WantedProperties::Named(vec!["type".to_owned(), "~id".to_owned()]);
    let named = SourceOptions { edge_properties: wanted, ..string.clone() };
    assert_eq!(found(["1", "2", "3"], &named).0, names(["1", "2", "3"]));
    let none = SourceOptions { edge_properties: WantedProperties::Named(vec!["type".to_owned()]), ..string.clone() };
    assert_eq!(found(["e1", "e2", "e3"], &none).0, types());
    // A header in a file of its own.
    let rows_of = |ids: [&str; 2]| format!("v1,v2,{}\nv2,v1,{}\n", ids[0], ids[1]);
    let read_below =
        |ids| read(&folder, &[("h.csv", "~from,~to,~id\n"), ("r.csv", &rows_of(ids))], &string).unwrap().properties;
    assert_eq!(rows(&read_below(["x", "y"])), ["x", "y"]);
}

#[test]
fn a_header_alone_stands_above_later_files() {
    let folder = Folder::new();
    let files = [
        ("people-header.csv", "id:ID(P)|name\n"),
        ("people-1.csv", "a|Ann\n"),
        ("people-2.csv", "b|Bob\nc|Eve"),
        ("knows-header.csv", ":START_ID(P),:END_ID(P),:TYPE"),
        ("knows-1.csv", "a,b,KNOWS\n"),
        ("knows-2.csv", "b,c,LIKES\n"),
    ];
    let found = read(&folder, &files, &all(KeyKind::Integer)).unwrap();
    assert_eq!(found.edges, pairs(&[("P:a", "P:b"), ("P:b", "P:c")]));
    assert_eq!(rows(&found.properties), ["KNOWS", "LIKES"]);
    assert_eq!(
        (found.vertices, rows(&found.vertex_properties)),
        (["P:a", "P:b", "P:c"].map(str::to_owned).to_vec(), ["Ann", "Bob", "Eve"].map(str::to_owned).to_vec(),)
    );
    let files = [("h.csv", "id:ID(P),name\n"), ("r.csv", "1,Ann,3\n")];
    let refused = read(&folder, &files, &all(KeyKind::Integer)).unwrap_err();
    assert!(refused.contains("r.csv:1: expected 2 columns, as the header before it has, found 3"), "{refused}");
}

#[test]
fn ldbc_files_load_by_their_names() {
    let folder = Folder::new();
    let files = [
        ("person_0_0.csv", "id|firstName|birthday\n933|Mahinda|1989-12-03\n4139|Baruch|1983-01-01\n"),
        ("person_knows_person_0_0.csv", "Person.id|Person.id|creationDate\n933|4139|2010-03-13T07:37:21.718+0000\n"),
    ];
    // Numbers of one space are unique, so they stay numbers.
    let found = read(&folder, &files, &all(KeyKind::Integer)).unwrap();
    assert_eq!((found.edges, found.vertices), (pairs(&[("933", "4139")]), vec!["933".into(), "4139".into()]));
    assert_eq!(rows(&found.properties), ["knows 2010-03-13T07:37:21.718Z"]);
    assert_eq!(rows(&found.vertex_properties), ["Person Mahinda 1989-12-03", "Person Baruch 1983-01-01"]);
    let more = [
        ("tagclass_0_0.csv", "id|name|url\n933|Thing|http://x\n"),
        ("comment_hasTag_tag_0_0.csv", "Comment.id|Tag.id\n933|7\n"),
        ("person_speaks_language_0_0.csv", "Person.id|language\n933|si\n"),
    ];
    let found = read(&folder, &[&files[..], &more].concat(), &all(KeyKind::Integer)).unwrap();
    assert_eq!(
        found.edges,
        pairs(&[("Person:933", "Person:4139"), ("Comment:933", "Tag:7"), ("Person:933", "language:si"),])
    );
    assert_eq!(found.vertices, ["Person:933", "Person:4139", "TagClass:933"]);
    assert_eq!(rows(&found.properties)[1..], ["hasTag -", "speaks -"]);
    // Names of files tell nothing if the caller leaves properties out.
    let found = read(&folder, &files, &SourceOptions::default()).unwrap();
    assert_eq!((found.properties.len(), found.vertex_properties.len()), (0, 0));
}

#[test]
fn numbers_of_several_spaces_are_refused() {
    let folder = Folder::new();
    let paths = [("likes.csv", LIKES), ("knows.csv", KNOWS)].map(|(name, text)| folder.file(name, text));
    let paths = paths.each_ref().map(AsRef::as_ref);
    let refused = read_files::<u64, u32>(&paths, &all(KeyKind::Integer)).unwrap_err();
    let expected =
        "likes.csv: keys are numbers of the spaces \"Person\" and \"Post\", which may be equal: key spaces need";
    assert!(refused.contains(expected), "{refused}");
    let numbers = read_files::<u64, u32>(&[paths[1]], &all(KeyKind::Integer)).unwrap();
    assert_eq!(numbers.pairs(), [(1, 2)]);
    let colon = folder.file("colon.csv", ":ID(a:b)\n1\n");
    let refused = read_files::<Span, u32>(&[&colon], &all(KeyKind::String)).unwrap_err();
    assert!(refused.contains("colon.csv: a key space is a name without ':', not \"a:b\""), "{refused}");
}

#[test]
fn arrays_are_lists_of_their_type() {
    let folder = Folder::new();
    let text = ":ID,a:string[],b:long[],c:float[],d:boolean[],e:datetime[],f:point[]\n\
                1,\"x;\"\"y\"\"; z\",1;2,0.5,true;false,2024-02-29T01:00+01:00,p\n\
                2,\"\",\"\",\"\",\"\",\"\",\"\"\n3,,,,,,\n";
    let found = read(&folder, &[("a.csv", text)], &all(KeyKind::Integer)).unwrap();
    let expected = [
        r#"["x","\"y\""," z"] [1,2] [0.5] [true,false] ["2024-02-29T00:00:00Z"] ["p"]"#,
        "[] [] [] [] [] []",
        "- - - - - -",
    ];
    assert_eq!(rows(&found.vertex_properties), expected);
    let escaped = "~id,a:String[]\nv,x\\;y;z\n";
    let found = read(&folder, &[("b.csv", escaped)], &all(KeyKind::String)).unwrap();
    assert_eq!(rows(&found.vertex_properties), [r#"["x;y","z"]"#]);
    // Elsewhere, the field of a list is its JSON.
    let plain = "source,target,a:i64[]\n1,2,\"[1, 2]\"\n";
    let found = read(&folder, &[("c.csv", plain)], &all(KeyKind::Integer)).unwrap();
    assert_eq!(rows(&found.properties), ["[1,2]"]);
}

#[test]
fn wrong_items_of_arrays_are_refused() {
    let folder = Folder::new();
    let refused = |text: &str, expected: &str| {
        let error = read(&folder, &[("a.csv", text)], &all(KeyKind::Integer)).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    };
    refused(":ID,b:long[]\n1,1\n2,1;x\n", "a.csv:3: column 'b': expected a whole number of type i64, found 'x'");
    refused(":ID,b:long[]\n1,1;;2\n", "a.csv:2: column 'b': expected a whole number of type i64, found ''");
    refused("~id,b:Bool[]\n1,true;no\n", "a.csv:2: column 'b': expected true or false, found 'no'");
    let plain = "source,target,b:i64[]\n1,2,1;2\n";
    refused(plain, "a.csv:2: column 'b': expected a list of whole numbers of type i64 such as [1,2], found '1;2'");
}
