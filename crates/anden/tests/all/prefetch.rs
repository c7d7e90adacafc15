//! Prefetching changes no result, is counted, and ends with its views.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anden::changes::Maintenance;
use anden::graph::Graph;
use anden::job::{Sources, Value, Values};
use anden::kernel::{Medium, Tag};
use anden::load::InputPath;
use anden::session::Prefetch;
use anden::{
    AppendOptions, Changes, Database, Job, KeyScheme, LoadOptions, Neighbors, OpenOptions, Options, Parameters,
    Progress, Session, View, WeightType,
};
use anden_graph::Direction;
use anden_testkit::{Random, skipped};
use proptest::prelude::*;

/// A graph of random edges, some of them between a few vertices, with a delta over it.
fn load(seed: u64, graph: Options, session: &Session) -> (tempfile::TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::new(seed);
    let num_vertices = 3000 + random.below(3000);
    let mut text = String::from("0 1 1\n");
    for i in 0..20_000 {
        let (u, v) = (random.below(num_vertices), random.below(if i % 3 == 0 { 5 } else { num_vertices }));
        text.push_str(&format!("{u} {v} {}\n", 1 + i % 7));
    }
    let input = folder.path().join("edges.txt");
    std::fs::write(&input, text).unwrap();
    let options = LoadOptions { graph, ..LoadOptions::default() };
    let (db, _) = Database::load(folder.path().join("db"), &[InputPath::File(input)], &options, session).unwrap();
    let mut changes = Changes::default();
    for _ in 0..50 {
        changes = changes.remove_edge(random.below(num_vertices) as u64, random.below(5) as u64);
    }
    let options = AppendOptions { maintenance: Maintenance::Never, ..AppendOptions::default() };
    db.append_with(&changes, &options).unwrap();
    (folder, db)
}

/// The values of a kernel by vertex, or its summary, as text. Floats are rounded, because sums depend on the order.
fn run(view: &View, kernel: &str, parameters: Parameters) -> String {
    let output = view.run(&Job::new(kernel, parameters).unwrap()).unwrap();
    let round = |value: f64| format!("{value:.9e}");
    match output.values() {
        Some(Values::Reals(values)) => values.iter().map(|&value| round(value)).collect::<Vec<_>>().join(" "),
        Some(values) => format!("{values:?}"),
        None => {
            let exact = output.summary.iter().filter(|(_, value)| !matches!(value, Value::Real(_) | Value::Ranking(_)));
            format!("{:?}", exact.collect::<Vec<_>>())
        }
    }
}

/// The answers of a view to all queries, as text.
fn answers(view: &View) -> Vec<String> {
    answers_from(view, Medium::Auto)
}

/// The answers with the algorithms for one medium.
fn answers_from(view: &View, variant: Medium) -> Vec<String> {
    let mut all = Vec::new();
    for kernel in Job::table() {
        let mut parameters = Parameters { values: true, variant, ..Parameters::default() };
        match kernel.name {
            _ if kernel.needs == Sources::One => parameters.source = vec![0.into()],
            "bc" => parameters.source = vec![0.into(), 1.into()],
            "pagerank" => parameters.iterations = Some(5),
            _ => {}
        }
        all.push(format!("{}: {}", kernel.name, run(view, kernel.name, parameters)));
    }
    for key in [0_u64, 1, 2, 77, 500] {
        all.push(format!("{key}: {:?} {:?}", view.fof(key), view.khop(key, 3)));
        let path = view.path(key, 1_u64).map(|path| path.map(|path| path.length));
        all.push(format!("{key}: {path:?} {:?}", view.has_edge(key, 1_u64)));
        let paths = view.shortest_paths(key, 3_u64, 10);
        all.push(format!(
            "{key}: {paths:?} {:?}",
            view.weighted_path(key, 4_u64).map(|path| path.map(|path| path.length))
        ));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn no_policy_changes_a_result(seed in any::<u64>(), graph_kind in 0..3_u8) {
        let graph = Options {
            graph_kind: if graph_kind == 0 { anden::GraphKind::Undirected } else { anden::GraphKind::Directed },
            in_edges: graph_kind != 2,
            weight_type: Some(WeightType::U32),
            ..Options::default()
        };
        let session = Session::new(2).unwrap();
        let (_folder, db) = load(seed, graph, &session);
        for snapshot in [1_u32, 2] {
            let with = |policy| db.snapshot(snapshot).unwrap().with_prefetch(policy);
            let expected = answers(&with(Prefetch::Off));
            let policies = Prefetch::ALL.map(|policy| (policy, Medium::Auto));
            // The algorithms for both media, with and without a prefetcher.
            let others = [(Prefetch::Off, Medium::Disk), (Prefetch::Frontier, Medium::Memory)];
            for (policy, medium) in policies.into_iter().chain(others) {
                for (found, expected) in answers_from(&with(policy), medium).iter().zip(&expected) {
                    prop_assert_eq!(found, expected, "{}, {:?}, seed {}", policy, medium, seed);
                }
            }
        }
    }
}

#[test]
fn prefetch_stats_count_announcements_by_policy() {
    let session = Session::new(2).unwrap();
    let (_folder, db) = load(7, Options::default(), &session);
    let view = db.view().unwrap();
    answers_without_weights(&view);
    assert!(!view.prefetch_stats().has_worked(), "a graph that fits in memory");
    let view = view.with_prefetch(Prefetch::Frontier);
    answers_without_weights(&view);
    let frontier = view.prefetch_stats().frontier;
    assert!(frontier.requested > 0 && frontier.dropped <= frontier.requested, "{frontier:?}");
    assert_eq!(db.metrics().prefetch.sequential.requested, 0);
    answers_without_weights(&view.with_prefetch(Prefetch::Sequential));
    let stats = db.metrics().prefetch;
    assert!(stats.sequential.requested > 0 && stats.frontier.requested >= frontier.requested, "{stats:?}");
    answers_without_weights(&view.with_prefetch(Prefetch::Neighborhood));
    assert!(view.prefetch_stats().neighborhood.requested > 0);
    assert_eq!(
        view.prefetch_stats().total().requested,
        view.prefetch_stats().by_policy().iter().map(|p| p.1.requested).sum::<u64>()
    );
}

/// Records the stages of the work.
#[derive(Default)]
struct Stages(Mutex<Vec<String>>);

impl Progress for Stages {
    fn stage(&self, name: &str, _total: Option<u64>) {
        self.0.lock().unwrap().push(name.to_owned());
    }
}

/// If all lists fit in the free memory, to the byte, no prefetcher runs and kernels take the algorithms for memory.
#[test]
fn kernels_choose_their_ways_by_what_is_free() {
    let (folder, db) = load_large(&Session::new(2).unwrap());
    // Each arc has an entry in both directions, with a target and a weight.
    let list_bytes = db.view().unwrap().num_arcs() * 2 * 8;
    drop(db);
    for (free_bytes, fits) in [(u64::MAX, true), (list_bytes, true), (list_bytes - 1, false), (0, false)] {
        for variant in Medium::ALL {
            let stages = Arc::new(Stages::default());
            let session = Session::new(2).unwrap().with_free_memory(free_bytes).with_progress(stages.clone());
            let db = Database::open_with(
                folder.path().join("db"),
                &OpenOptions { read_only: true, ..OpenOptions::from(&session) },
            )
            .unwrap();
            let view = db.view().unwrap();
            run(&view, "kcore", Parameters { variant, ..Parameters::default() });
            let is_from_disk = variant == Medium::Disk || variant == Medium::Auto && !fits;
            let (taken, other) = if is_from_disk { ("sink", "peel") } else { ("peel", "sink") };
            let stages = stages.0.lock().unwrap();
            let has = |name: &str| stages.iter().any(|stage| *stage == format!("k-core: {name}"));
            assert!(has(taken) && !has(other), "{free_bytes} bytes, {variant:?}: {stages:?}");
            // Peeling reads scattered lists and announces none.
            let announces = is_from_disk && !fits;
            assert_eq!(view.prefetch_stats().has_worked(), announces, "{free_bytes} bytes, {variant:?}");
        }
    }
}

#[test]
fn kernels_announce_what_they_read() {
    let session = Session::new(2).unwrap();
    let (_folder, db) = load(9, Options::default(), &session);
    let scans = ["pagerank", "wcc", "scc", "kcore", "cdlp", "triangles", "lcc"];
    let searches = ["bfs", "bc"];
    let all = scans.map(|name| (name, Prefetch::Sequential)).into_iter();
    for (kernel, policy) in all.chain(searches.map(|name| (name, Prefetch::Frontier))) {
        let view = db.view().unwrap().with_prefetch(policy);
        let num_before = view.prefetch_stats().total().requested;
        let source = if policy == Prefetch::Frontier { vec![0.into()] } else { Vec::new() };
        run(&view, kernel, Parameters { source, ..Parameters::default() });
        assert!(view.prefetch_stats().total().requested > num_before, "{kernel} announces nothing");
    }
}

/// A database with more than a megabyte of lists in each direction, and its folder.
fn load_large(session: &Session) -> (tempfile::TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::new(21);
    let edges = (0..200_000).map(|i| format!("{} {} {}\n", random.below(20_000), random.below(20_000), 1 + i % 7));
    let input = folder.path().join("edges.txt");
    std::fs::write(&input, edges.collect::<String>()).unwrap();
    let graph = Options { keys: KeyScheme::Dense, weight_type: Some(WeightType::U32), ..Options::default() };
    let options = LoadOptions { graph, ..LoadOptions::default() };
    let (db, _) = Database::load(folder.path().join("db"), &[InputPath::File(input)], &options, session).unwrap();
    (folder, db)
}

/// Runs `body`. Returns the numbers of lists announced as neighborhoods, by scans, and exactly.
fn requested<R>(view: &View, body: impl FnOnce() -> R) -> ([u64; 3], R) {
    let counts = || view.prefetch_stats().by_policy().map(|(_, stats)| stats.requested);
    let before = counts();
    let result = body();
    let after = counts();
    ([0, 1, 2].map(|policy| after[policy] - before[policy]), result)
}

/// Walks over vertices and reads their lists. Returns the announced numbers.
fn walked(view: &View, vertices: &[u32], direction: Neighbors, tag: Tag) -> [u64; 3] {
    let (announced, num_arcs) = requested(view, || {
        let mut num_arcs = 0;
        let read = |&vertex: &u32| {
            let _ = view.graph().for_each_fragment(Direction::Out, vertex, |targets| {
                num_arcs += targets.iter().filter(|&&target| (target as usize) < view.vertex_bound()).count();
                ControlFlow::Continue(())
            });
        };
        let seen: Vec<u32> = view.walk(vertices.iter().copied(), direction, tag).inspect(read).collect();
        assert_eq!(seen, vertices, "{direction:?} {tag:?}");
        num_arcs
    });
    assert!(num_arcs > 0);
    announced
}

#[test]
fn walk_keeps_order_and_announces_each_vertex_once() {
    let session = Session::new(2).unwrap();
    let (folder, db) = load_large(&session);
    let view = db.view().unwrap();
    let bound = view.vertex_bound() as u32;
    let mut random = Random::new(12);
    let order: Vec<u32> = (0..3_000).map(|i| if i % 3 == 0 { i } else { random.below(bound) }).collect();
    let in_order: Vec<u32> = (0..bound).collect();
    for tag in [Tag::Exact, Tag::Sequential, Tag::Neighborhood] {
        assert_eq!(walked(&view, &order, Neighbors::Out, tag), [0; 3], "a graph that fits in memory");
    }
    let little = Session::new(2).unwrap().with_free_memory(0);
    let view =
        Database::open_with(folder.path().join("db"), &OpenOptions { read_only: true, ..OpenOptions::from(&little) })
            .unwrap()
            .view()
            .unwrap();
    for (direction, num_directions) in [(Neighbors::Out, 1), (Neighbors::In, 1), (Neighbors::Both, 2)] {
        let [all, all_in_order] = [&order, &in_order].map(|order| num_directions * order.len() as u64);
        assert_eq!(walked(&view, &order, direction, Tag::Exact), [0, 0, all]);
        assert_eq!(walked(&view, &in_order, direction, Tag::Sequential), [0, all_in_order, 0]);
        assert_eq!(walked(&view, &order, direction, Tag::Neighborhood), [all, 0, 0]);
    }
    let (announced, _) = requested(&view, || view.walk(order, Neighbors::Out, Tag::Exact).nth(9));
    assert_eq!(announced, [0, 0, 256], "a walk that stops early has announced only the lists ahead");
}

#[test]
fn chosen_policy_overrides_walk_tag() {
    let session = Session::new(2).unwrap();
    let (_folder, db) = load_large(&session);
    let view = db.view().unwrap();
    let all: Vec<u32> = (0..view.vertex_bound() as u32).collect();
    for tag in [Tag::Exact, Tag::Sequential, Tag::Neighborhood] {
        let found = Prefetch::ALL.map(|policy| walked(&view.with_prefetch(policy), &all, Neighbors::Out, tag));
        let num = all.len() as u64;
        // Auto, off, neighborhood, sequential, frontier.
        assert_eq!(found, [[0; 3], [0; 3], [num, 0, 0], [0, num, 0], [0, 0, num]], "{tag:?}");
    }
}

/// Regression: such a walk used the policy *frontier*, which keeps everything.
#[test]
fn ordered_walk_releases_passed_pages() {
    if std::fs::File::open("/proc/self/pagemap").is_err() {
        return skipped("the system does not say what this process has read");
    }
    let session = Session::new(2).unwrap().with_free_memory(0);
    let (_folder, db) = load_large(&session);
    let view = db.view().unwrap().with_prefetch(Prefetch::Sequential);
    let all: Vec<u32> = (0..view.vertex_bound() as u32).collect();
    let end = Instant::now() + Duration::from_secs(60);
    // The helper thread checks pages before it gives them back. On a busy machine, it may take a walk for ended and
    // skip it.
    let num_given_back = || {
        let sequential = view.prefetch_stats().sequential;
        sequential.useful + sequential.wasted
    };
    while num_given_back() == 0 {
        assert!(Instant::now() < end, "nothing is given back: {:?}", view.prefetch_stats());
        walked(&view, &all, Neighbors::Out, Tag::Sequential);
    }
    let sequential = view.prefetch_stats().sequential;
    assert!(sequential.issued + sequential.already_resident > 0, "{sequential:?}");
}

#[test]
fn a_walk_passes_on_what_does_not_exist() {
    let session = Session::new(1).unwrap();
    let (_folder, db) = load(13, Options::default(), &session);
    let view = db.view().unwrap().with_prefetch(Prefetch::Frontier);
    let vertices = [5, u32::MAX, 6, view.vertex_bound() as u32];
    for tag in [Tag::Exact, Tag::Sequential, Tag::Neighborhood] {
        assert_eq!(view.walk(vertices, Neighbors::Both, tag).collect::<Vec<_>>(), vertices);
    }
}

fn answers_without_weights(view: &View) {
    assert!(view.bfs(0_u64).unwrap().contains(&1));
    assert_eq!(view.wcc().unwrap()[0], 0);
    assert!(!view.khop(0_u64, 2).unwrap().is_empty());
}
