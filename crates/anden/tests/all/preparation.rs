//! Kept preparation of kernels: results stay equal, and a run on an equal graph uses it again.

use anden::job::JobOutput;
use anden::job::Parameter;
use anden::kernel::Medium;
use anden::{Changes, Database, Job, Key, Options, Parameters, Session, Update, View};
use anden_testkit::Random;

const NUM_VERTICES: u64 = 200;
/// Kernels that report whether an earlier run prepared for them.
const REPORTING: [&str; 3] = ["pagerank", "triangles", "lcc"];

fn edges(seed: u64, num_edges: u64) -> Vec<Update> {
    let mut random = Random::new(seed);
    let mut vertex = || random.below_u64(NUM_VERTICES);
    let updates = (0..num_edges).map(|_| (vertex(), vertex()));
    let updates = updates.filter(|(source, target)| source != target).collect::<std::collections::BTreeSet<_>>();
    updates
        .into_iter()
        .map(|(source, target)| Update::add_edge_with(source, target, [("amount", target as i64)]))
        .collect()
}

fn database(threads: usize, cache: Option<u64>, has_in_edges: bool) -> Database {
    let session = Session::new(threads).unwrap().with_cache(cache);
    let options = Options { edge_properties: true, in_edges: has_in_edges, ..Options::default() };
    let db = Database::in_memory_with(options, &session).unwrap();
    db.apply(&edges(1, 2000)).unwrap();
    db.checkpoint(None).unwrap();
    db
}

/// All kernels, with values by vertex.
fn run_all(view: &View) -> Vec<(&'static str, JobOutput)> {
    let run = |kernel: &'static anden::job::Kernel| {
        let is_search = kernel.parameters.contains(&Parameter::Source) && kernel.name != "pagerank";
        let parameters = Parameters {
            source: if is_search { vec![Key::from(1_u64)] } else { Vec::new() },
            variant: Medium::Memory,
            values: kernel.name != "triangles",
            ..Parameters::default()
        };
        (kernel.name, view.run(&Job::new(kernel.name, parameters).unwrap()).unwrap())
    };
    // Searches by weight need weights.
    Job::table().iter().filter(|kernel| kernel.name != "sssp").map(run).collect()
}

fn values(outputs: &[(&'static str, JobOutput)]) -> Vec<String> {
    let shown = |(name, output): &(&str, JobOutput)| format!("{name:10} {:?} {:?}", output.summary, output.values());
    outputs.iter().map(shown).collect()
}

/// Runs all kernels twice on a view with a cache, and once on an equal view without one.
fn check(kept: &View, without: &View, is_prepared: [bool; 2], what: &str) {
    let wanted = run_all(without);
    for is_prepared in is_prepared {
        let found = run_all(kept);
        for (found, wanted) in values(&found).iter().zip(values(&wanted)) {
            assert!(*found == wanted, "{what}: {}", &found[..10]);
        }
        for (name, output) in found {
            let expected = REPORTING.contains(&name).then_some(is_prepared);
            assert_eq!(output.was_prepared, expected, "{what}: {name}");
        }
    }
    assert!(wanted.iter().all(|(_, output)| output.was_prepared != Some(true)), "{what}");
}

#[test]
fn kept_preparation_changes_no_result() {
    for (threads, has_in_edges) in [(1, true), (4, true), (4, false)] {
        let (db, off) = (database(threads, None, has_in_edges), database(1, Some(0), has_in_edges));
        let both = |change: &dyn Fn(&Database)| [&db, &off].into_iter().for_each(change);
        let views = |open: &dyn Fn(&Database) -> View| (open(&db), open(&off));
        let check = |is_prepared, what: &str, open: &dyn Fn(&Database) -> View| {
            let (kept, without) = views(open);
            check(&kept, &without, is_prepared, &format!("{what}, {threads} threads"));
        };
        let first = db.snapshots().last().unwrap().number;
        let part = |view: View| view.filter(Some("amount > 50"), None).unwrap();
        check([false, true], "a snapshot", &|db| db.view().unwrap());
        check([true, true], "another view of it", &|db| db.snapshot(first).unwrap());
        check([false, true], "a part", &|db| part(db.view().unwrap()));
        check([true, true], "the part again", &|db| part(db.snapshot(first).unwrap()));

        both(&|db| {
            db.apply(&edges(2, 200)).unwrap();
        });
        check([false, false], "a memtable", &|db| db.view().unwrap());
        check([false, false], "a part of a memtable", &|db| part(db.view().unwrap()));
        check([true, true], "the snapshot below", &|db| db.snapshot(first).unwrap());
        both(&|db| drop(db.checkpoint(None).unwrap()));
        check([false, true], "a later snapshot", &|db| db.view().unwrap());
        check([true, true], "the snapshot before", &|db| db.snapshot(first).unwrap());
        check([false, false], "a window", &|db| db.window(first + 1..=first + 1).unwrap());

        both(&|db| drop(db.append(&Changes::default().remove_edge(1, 2).add_edge(2, 1)).unwrap()));
        check([false, true], "an appended snapshot", &|db| db.view().unwrap());
        both(&|db| {
            db.merge().unwrap();
        });
        check([false, true], "after a merge", &|db| db.view().unwrap());
        both(&|db| db.drop_snapshot(first).unwrap());
        check([false, true], "after a drop", &|db| db.view().unwrap());
    }
}

/// A clone has another address, and an own context keeps nothing.
#[test]
fn contexts_keep_forms_of_their_view_only() {
    let db = database(2, None, true);
    let (view, params) = (db.view().unwrap(), anden::kernel::lcc::LccParams::default());
    let lcc = |of: &View, graph: &View| anden::kernel::lcc::lcc(&of.context(), graph.graph(), &params).unwrap();
    assert!(!lcc(&view, &view).was_prepared);
    assert!(lcc(&view, &view).was_prepared);
    let part = view.filter(Some("amount > 50"), None).unwrap();
    let expected = lcc(&part, &part).coefficients;
    let other = lcc(&view, &part);
    assert_eq!((other.was_prepared, other.coefficients), (false, expected));
}
