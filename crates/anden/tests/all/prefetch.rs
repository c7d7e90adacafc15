//! What is read ahead changes no result, is counted, and ends with its views.

use anden::{
    AppendOptions, Changes, Database, Graph, InputPath, Job, LoadOptions, Maintenance, Medium, Options, Parameters,
    Prefetch, Session, Side, Sources, Tag, Value, Values, View, WeightType,
};
use proptest::prelude::*;
use testkit::Random;

/// A graph of random edges, some of them between a few vertices, with a level over it.
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

/// The values of a kernel by vertex, or what it says of all; floats rounded, for their sums depend on the order.
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

/// Everything that a view is asked, as text.
fn answers(view: &View) -> Vec<String> {
    answers_from(view, Medium::Auto)
}

/// The same by the ways for one medium.
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
    fn no_policy_changes_a_result(seed in any::<u64>(), direction in 0..3_u8) {
        let graph = Options {
            direction: if direction == 0 { anden::Direction::Undirected } else { anden::Direction::Directed },
            in_edges: direction != 2,
            weight_type: Some(WeightType::U32),
            ..Options::default()
        };
        let session = Session::new(2).unwrap();
        let (_folder, db) = load(seed, graph, &session);
        for snapshot in [1_u32, 2] {
            let with = |policy| db.snapshot(snapshot).unwrap().with_prefetch(policy);
            let expected = answers(&with(Prefetch::Off));
            let policies = Prefetch::ALL.map(|policy| (policy, Medium::Auto));
            // Either way with somebody who listens, and with nobody.
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
fn what_is_announced_is_counted() {
    let session = Session::new(2).unwrap();
    let (_folder, db) = load(7, Options::default(), &session);
    let view = db.view().unwrap();
    answers_without_weights(&view);
    assert!(!view.prefetch_stats().has_worked(), "a graph that fits in memory");
    let view = view.with_prefetch(Prefetch::Frontier);
    answers_without_weights(&view);
    let frontier = view.prefetch_stats().frontier;
    assert!(frontier.requested > 0 && frontier.dropped <= frontier.requested, "{frontier:?}");
    assert_eq!(db.stats().prefetch.sequential.requested, 0);
    answers_without_weights(&view.with_prefetch(Prefetch::Sequential));
    let stats = db.stats().prefetch;
    assert!(stats.sequential.requested > 0 && stats.frontier.requested >= frontier.requested, "{stats:?}");
    answers_without_weights(&view.with_prefetch(Prefetch::Neighbourhood));
    assert!(view.prefetch_stats().neighbourhood.requested > 0);
    assert_eq!(
        view.prefetch_stats().total().requested,
        view.prefetch_stats().by_policy().iter().map(|p| p.1.requested).sum()
    );
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

#[test]
fn a_walk_comes_to_its_vertices_in_their_order_and_announces_each_once() {
    let session = Session::new(2).unwrap();
    let (_folder, db) = load(11, Options::default(), &session);
    let view = db.view().unwrap();
    let mut random = Random::new(12);
    let bound = view.vertex_bound() as u32;
    let order: Vec<u32> = (0..3_000).map(|i| if i % 3 == 0 { i } else { random.below(bound) }).collect();
    let announced = |view: &View, num: usize, side: Side, tag: Tag| {
        let before = view.prefetch_stats();
        let mut num_arcs = 0;
        let walk = view.walk(order.iter().copied(), side, tag).take(num);
        let seen: Vec<u32> = walk.inspect(|&vertex| num_arcs += view.graph().out_degree(vertex)).collect();
        assert_eq!(seen, order[..num], "{side:?} {tag:?}");
        assert!(num_arcs > 0);
        let after = view.prefetch_stats();
        let difference = |now: anden::PolicyStats, then: anden::PolicyStats| now.requested - then.requested;
        (
            difference(after.frontier, before.frontier) as usize,
            difference(after.neighbourhood, before.neighbourhood) as usize,
        )
    };
    for tag in [Tag::Exact, Tag::Sequential, Tag::Neighbourhood] {
        assert_eq!(announced(&view, order.len(), Side::Out, tag), (0, 0), "a graph that fits in memory");
    }
    let listening = view.with_prefetch(Prefetch::Frontier);
    for (side, num_sides) in [(Side::Out, 1), (Side::In, 1), (Side::Both, 2)] {
        let all = num_sides * order.len();
        assert_eq!(announced(&listening, order.len(), side, Tag::Exact), (all, 0));
        assert_eq!(announced(&listening, order.len(), side, Tag::Sequential), (all, 0));
        assert_eq!(announced(&listening, order.len(), side, Tag::Neighbourhood), (0, all));
    }
    let (num_ahead, _) = announced(&listening, 10, Side::Out, Tag::Exact);
    assert_eq!(num_ahead, 256, "who stops early has announced no more than is ahead");
}

#[test]
fn a_walk_passes_on_what_does_not_exist() {
    let session = Session::new(1).unwrap();
    let (_folder, db) = load(13, Options::default(), &session);
    let view = db.view().unwrap().with_prefetch(Prefetch::Frontier);
    let vertices = [5, u32::MAX, 6, view.vertex_bound() as u32];
    for tag in [Tag::Exact, Tag::Sequential, Tag::Neighbourhood] {
        assert_eq!(view.walk(vertices, Side::Both, tag).collect::<Vec<_>>(), vertices);
    }
}

fn answers_without_weights(view: &View) {
    assert!(view.bfs(0_u64).unwrap().contains(&1));
    assert_eq!(view.wcc().unwrap()[0], 0);
    assert!(!view.khop(0_u64, 2).unwrap().is_empty());
}
