//! Labelled reachability on snapshots and windows, against a plain search.

use std::collections::{BTreeMap, BTreeSet};

use anden::changes::Maintenance;
use anden::load::InputPath;
use anden::{AppendOptions, Changes, Database, Error, KeyScheme, LoadOptions, Options, Session, View, WeightType};
use anden_examples::labelled_reach::labelled_reach;

const NUM_VERTICES: u64 = 300;

/// Reproducible pseudo-random numbers.
fn numbers() -> impl FnMut(u64) -> u64 {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    }
}

/// The edges of a version and their labels.
type Edges = BTreeMap<(u64, u64), u32>;

/// A database of six snapshots, with the edges of each.
fn history(path: &std::path::Path, session: &Session) -> (Database, Vec<Edges>) {
    let mut next = numbers();
    let mut edges: Edges = (0..900).map(|_| ((next(NUM_VERTICES), next(NUM_VERTICES)), 1 << next(5))).collect();
    let input = path.with_extension("txt");
    std::fs::write(&input, edges.iter().map(|((u, v), label)| format!("{u} {v} {label}\n")).collect::<String>())
        .unwrap();
    let graph = Options { weight_type: Some(WeightType::U32), keys: KeyScheme::Integer, ..Options::default() };
    let options = LoadOptions { graph, ..LoadOptions::default() };
    let (db, _) = Database::load(path, &[InputPath::File(input)], &options, session).unwrap();
    let mut versions = vec![edges.clone()];
    for _ in 0..5 {
        let mut changes = Changes::default();
        let mut added = BTreeSet::new();
        for _ in 0..40 {
            let (edge, label) = ((next(NUM_VERTICES), next(NUM_VERTICES)), 1 << next(5));
            if added.insert(edge) {
                edges.insert(edge, label);
                changes = changes.add_weighted_edge(edge.0, edge.1, label);
            }
        }
        for _ in 0..40 {
            let gone = *edges.keys().nth(next(edges.len() as u64) as usize).unwrap();
            if !added.contains(&gone) {
                edges.remove(&gone);
                changes = changes.remove_edge(gone.0, gone.1);
            }
        }
        db.append_with(&changes, &AppendOptions { maintenance: Maintenance::Never, ..AppendOptions::default() })
            .unwrap();
        versions.push(edges.clone());
    }
    (db, versions)
}

/// The reachable vertices, by one edge at a time until no vertex is new.
fn plain(edges: &Edges, source: u64, labels: u32) -> BTreeSet<u64> {
    let mut reached = BTreeSet::from([source]);
    loop {
        let allowed = edges.iter().filter(|(edge, label)| *label & labels != 0 && reached.contains(&edge.0));
        let new: Vec<u64> = allowed.map(|(edge, _)| edge.1).filter(|target| !reached.contains(target)).collect();
        if new.is_empty() {
            return reached;
        }
        reached.extend(new);
    }
}

fn check(what: &str, view: &View, edges: &Edges) {
    for source in [edges.keys().next().unwrap().0, edges.keys().last().unwrap().0] {
        for labels in [0, 1, 0b10110, u32::MAX] {
            let found = labelled_reach(view, source, labels).unwrap();
            let wanted = plain(edges, source, labels);
            for key in 0..NUM_VERTICES {
                let is_reached = view.vertex(key).is_ok_and(|vertex| found[vertex as usize]);
                assert_eq!(is_reached, wanted.contains(&key), "{what}, from {source} by {labels:b}: {key}");
            }
        }
    }
}

#[test]
fn every_snapshot_and_every_window() {
    let folder = tempfile::tempdir().unwrap();
    for threads in [1, 2] {
        let session = Session::new(threads).unwrap();
        let (db, versions) = history(&folder.path().join(format!("{threads}.anden")), &session);
        for (number, edges) in (1..).zip(&versions) {
            check(&format!("snapshot {number}"), &db.snapshot(number).unwrap(), edges);
        }
        for (first, last) in [(2, 2), (2, 4), (3, 6)] {
            // The edges at the end of the window that did not exist, or had another label, before it.
            let (before, after) = (&versions[first - 2], &versions[last - 1]);
            let added = after.iter().filter(|(edge, label)| before.get(edge) != Some(label));
            let added: Edges = added.map(|(&edge, &label)| (edge, label)).collect();
            check(&format!("window {first}..{last}"), &db.window(first as u32..=last as u32).unwrap(), &added);
        }
        db.merge().unwrap();
        check("merged", &db.view().unwrap(), versions.last().unwrap());
        check("behind the merged run", &db.snapshot(2).unwrap(), &versions[1]);
    }
}

#[test]
fn unknown_vertex_and_unlabelled_graph_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::new(1).unwrap();
    let (db, _) = history(&folder.path().join("db"), &session);
    assert!(matches!(labelled_reach(&db.view().unwrap(), 12_345, 1), Err(Error::NotFound { .. })));
    let input = folder.path().join("plain.txt");
    std::fs::write(&input, "1 2\n").unwrap();
    let plain = folder.path().join("plain.anden");
    let (db, _) = Database::load(plain, &[InputPath::File(input)], &LoadOptions::default(), &session).unwrap();
    assert!(matches!(labelled_reach(&db.view().unwrap(), 1, 1), Err(Error::Unsupported(_))));
}
