//! Small databases that together use every structure of the format.

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_graph::{GraphKind, StoredForm, StoredFormKey, WeightType};
use anden_snapshots::{IndexKind, MergeScope};
use anden_testkit::{FaultStorage, Random};

use super::past::{Content, Past};
use super::*;

/// Directed, with weights, in-lists and string keys in no order.
pub fn directed() -> Model {
    let options =
        GraphOptions { keys: KeyScheme::String, weight_type: Some(WeightType::F32), ..GraphOptions::default() };
    let keys = (0..60_u64).map(|v| Key::from(format!("vertex-{}", v * 7919 % 1009))).collect();
    let edges: Vec<_> = (0..240_u32).map(|i| (i * i % 59, i * 17 % 60, i as f32 / 4.0)).collect();
    Model::new(options, keys, &edges)
}

/// Undirected, dense keys, an empty page between two others.
pub fn undirected() -> Model {
    let options = GraphOptions { graph_kind: GraphKind::Undirected, keys: KeyScheme::Dense, ..GraphOptions::default() };
    let keys = (0..2100_u64).map(Key::Integer).collect();
    let edges: Vec<_> = (0..150_u32).map(|i| (i * i % 97, if i % 9 == 0 { 2099 - i } else { i }, 1_u32)).collect();
    Model::new(options, keys, &edges)
}

/// A multigraph without in-lists, integer keys in no order.
pub fn multigraph() -> Model {
    let options = GraphOptions {
        multigraph: true,
        in_edges: false,
        weight_type: Some(WeightType::I64),
        ..GraphOptions::default()
    };
    let keys = (0..40_u64).map(|v| Key::Integer(v.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let edges: Vec<_> = (0..200_u32).map(|i| (i * i % 39, i * 7 % 10, i64::from(i) - 100)).collect();
    Model::new(options, keys, &edges)
}

/// A graph with edge weights and properties, few enough for a small database.
pub fn properties() -> Model {
    let options = GraphOptions {
        keys: KeyScheme::Dense,
        weight_type: Some(WeightType::F64),
        edge_properties: true,
        ..GraphOptions::default()
    };
    let keys = (0..30_u64).map(Key::Integer).collect();
    let edges: Vec<_> = (0..90_u32).map(|i| (i * i % 29, i * 11 % 30, f64::from(i) / 8.0 - 4.0)).collect();
    Model::new(options, keys, &edges)
}

/// All samples of this kind, with their names.
pub fn all() -> Vec<(&'static str, Model)> {
    vec![
        ("directed", directed()),
        ("undirected", undirected()),
        ("multigraph", multigraph()),
        ("properties", properties()),
    ]
}

/// A database with six of eight snapshots kept, the base in the middle, a merged delta, removed vertices that returned,
/// and three parts of the dictionary.
pub fn versions() -> (FaultStorage, Past) {
    versions_at("db")
}

/// [`versions`] at another path.
pub fn versions_at(path: &str) -> (FaultStorage, Past) {
    let options =
        GraphOptions { keys: KeyScheme::String, weight_type: Some(WeightType::F32), ..GraphOptions::default() };
    write_versions(options, path)
}

/// [`versions`] with a multigraph with edge properties.
pub fn rows() -> (FaultStorage, Past) {
    rows_at("db")
}

/// [`rows`] at another path.
pub fn rows_at(path: &str) -> (FaultStorage, Past) {
    write_versions(GraphOptions { multigraph: true, edge_properties: true, ..GraphOptions::default() }, path)
}

/// [`versions`] with edge weights and properties.
pub fn weighted_rows() -> (FaultStorage, Past) {
    weighted_rows_at("db")
}

/// [`weighted_rows`] at another path.
pub fn weighted_rows_at(path: &str) -> (FaultStorage, Past) {
    let weight_type = Some(WeightType::F32);
    write_versions(GraphOptions { weight_type, edge_properties: true, ..GraphOptions::default() }, path)
}

/// [`versions`] with property indexes.
pub fn indexed() -> (FaultStorage, Past) {
    indexed_at("db")
}

/// [`indexed`] at another path.
pub fn indexed_at(path: &str) -> (FaultStorage, Past) {
    let index = |store: &Store, content: &Content, number: u32| {
        // One index is created before the merge and one after it.
        let place = match number {
            3 => 0,
            5 => content.properties.schema.len() - 1,
            _ => return,
        };
        let name = &content.properties.schema[place].0;
        store.publish_index(store.draft_index(name, IndexKind::Plain, &Silent).unwrap()).unwrap();
    };
    write_versions_with(GraphOptions::default(), path, index)
}

/// [`versions`] with prepared forms.
pub fn prepared() -> (FaultStorage, Past) {
    prepared_at("db")
}

/// [`prepared`] at another path.
pub fn prepared_at(path: &str) -> (FaultStorage, Past) {
    let store_form = |store: &Store, _: &Content, number: u32| match number {
        // The merge behind the fourth snapshot retires it.
        3 => store_form(store, StoredForm::Bins, 1),
        5 => store_form(store, StoredForm::Bins, 2),
        6 => store_form(store, StoredForm::Oriented, 3),
        _ => {}
    };
    write_versions_with(GraphOptions::default(), path, store_form)
}

/// Stores arrays of this byte as a form. The storage does not look at their content.
pub fn store_form(store: &Store, form: StoredForm, byte: u8) {
    let bytes = [byte; 300];
    let arrays = [vec![&bytes[..9], &bytes[..100]], Vec::new(), vec![&bytes[..]]];
    store.store_form(store.base_version(), StoredFormKey { form, parameter: 7 }, &arrays, &Silent).unwrap();
}

/// [`versions`] with these options, at another path.
pub fn write_versions(options: GraphOptions, path: &str) -> (FaultStorage, Past) {
    write_versions_with(options, path, |_, _, _| {})
}

/// [`write_versions`], with a callback after each snapshot.
fn write_versions_with(
    options: GraphOptions,
    path: &str,
    behind: impl Fn(&Store, &Content, u32),
) -> (FaultStorage, Past) {
    let pool = Pool::new(1).unwrap();
    let random = &mut Random::new(7);
    let mut content = Content::new(options, 40);
    for i in 0..70_u32 {
        content.add_edge(i * i % 37, i * 11 % 40, i);
    }
    content.properties.add(random);
    (0..30).for_each(|vertex| content.properties.set(vertex, random));
    let disk = FaultStorage::default();
    let store = content.write(Arc::new(disk.clone()), path.as_ref(), Some("first")).unwrap();
    let mut past = Past::new(content.clone(), Some("first"));
    for number in 2..=8_u32 {
        content.evolve_all(random);
        content.add_vertices(1);
        match number {
            3 => content.remove_vertex(5),
            6 => content.graph.add_vertex(5),
            _ => {}
        }
        let name = (number == 7).then_some("seventh");
        content.changes_from(&past.newest).with(|changes| store.append(changes, name)).unwrap();
        past.append(content.clone(), name);
        behind(&store, &content, number);
        if number == 4 {
            store.merge(MergeScope::All, &pool, &Silent).unwrap();
        }
    }
    store.drop_snapshots(&[2, 6], &Silent).unwrap();
    past.forget(&[2, 6]);
    store.merge(MergeScope::Newest(3), &pool, &Silent).unwrap();
    (disk, past)
}
