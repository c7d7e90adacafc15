//! The data sets in `data/` give the outputs of another program, and wrong outputs are found.

use std::path::{Path, PathBuf};

use anden::Session;
use anden_examples::graphalytics::{Properties, run};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name)
}

/// The algorithms of the data sets.
const ALL: &str = "bfs, cdlp, lcc, pr, sssp, wcc";

/// A copy of a data set in a folder of its own, with one file changed.
fn copy(name: &str, folder: &Path, file: &str, change: impl Fn(&str) -> String) -> PathBuf {
    for entry in std::fs::read_dir(data("")).unwrap() {
        let path = entry.unwrap().path();
        let file_name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if file_name.starts_with(name) {
            let text = std::fs::read_to_string(&path).unwrap();
            let text = if file_name == file { change(&text) } else { text };
            std::fs::write(folder.join(file_name), text).unwrap();
        }
    }
    folder.join(format!("{name}.properties"))
}

#[test]
fn all_six_algorithms_are_right() {
    for name in ["primes-directed", "primes-undirected"] {
        let folder = tempfile::tempdir().unwrap();
        for threads in [1, 2] {
            let session = Session::new(threads).unwrap();
            let properties = data(&format!("{name}.properties"));
            let database = folder.path().join(format!("{threads}.anden"));
            let outcomes = run(&properties, &data(""), &database, &session).unwrap();
            let ran: Vec<&str> = outcomes.iter().map(|outcome| outcome.algorithm.as_str()).collect();
            assert_eq!(ran.join(", "), ALL, "{name}");
            for outcome in outcomes {
                assert_eq!(outcome.verdict, Some(Ok(())), "{name}, {}", outcome.algorithm);
            }
        }
    }
}

#[test]
fn a_wrong_output_is_found() {
    let session = Session::new(1).unwrap();
    let verdict_of = |algorithm: &str, file: &str, change: &dyn Fn(&str) -> String| {
        let folder = tempfile::tempdir().unwrap();
        let only = |text: &str| text.replace(ALL, algorithm);
        let properties = copy("primes-directed", folder.path(), "primes-directed.properties", only);
        let path = folder.path().join(file);
        std::fs::write(&path, change(&std::fs::read_to_string(&path).unwrap())).unwrap();
        run(&properties, folder.path(), &folder.path().join("db"), &session)
    };
    let replace = |from: &'static str, to: &'static str| move |text: &str| text.replacen(from, to, 1);
    let is_wrong = |algorithm: &str, file: &str, change: &dyn Fn(&str) -> String| {
        matches!(verdict_of(algorithm, file, change).unwrap()[0].verdict, Some(Err(_)))
    };
    assert!(is_wrong("bfs", "primes-directed-BFS", &replace("5 1", "5 2")));
    assert!(is_wrong("lcc", "primes-directed-LCC", &replace("2 0.5", "2 0.501")));
    assert!(is_wrong("cdlp", "primes-directed-CDLP", &replace("2 3\n", "2 2\n")));
    assert!(is_wrong("wcc", "primes-directed-WCC", &replace("29 29", "29 2")));
    assert!(is_wrong("bfs", "primes-directed-BFS", &replace("29 9223372036854775807\n", "")));
    assert!(verdict_of("bfs", "primes-directed-BFS", &replace("3 1", "2 1")).is_err(), "a vertex stands twice");
    assert!(verdict_of("bfs", "primes-directed-BFS", &replace("3 1", "3")).is_err(), "a value is missing");
}

#[test]
fn bad_properties_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.properties");
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        Properties::read(&path)
    };
    assert!(read("").is_err() && read("graph.x\n").is_err() && read("graph.x.a = 1\ngraph.y.a = 1\n").is_err());
    let good = read("# a comment\ngraph.x.bfs.source-vertex = 7\ngraph.x.algorithms = BFS , wcc\n").unwrap();
    assert_eq!((good.name.as_str(), good.algorithms()), ("x", vec!["bfs".to_owned(), "wcc".into()]));
    assert_eq!(good.number::<u64>("bfs.source-vertex").unwrap(), 7);
    assert!(good.number::<u64>("sssp.source-vertex").is_err() && !good.has_weights());
    assert!(Properties::read(&folder.path().join("nowhere")).is_err());
}
