//! Kernels with less memory than the graph takes. Needs the right to limit memory.

use std::path::Path;
use std::process::Command;

use testkit::memory_group::MemoryGroup;

use crate::writer::anden;

fn run(command: &mut Command) -> String {
    let ended = command.output().unwrap();
    assert!(ended.status.success(), "{command:?}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap()
}

/// `key value` of every vertex.
fn values(text: &str) -> Vec<(u64, f64)> {
    let pairs = text.lines().map(|line| line.split_once(' ').unwrap());
    pairs.map(|(key, value)| (key.parse().unwrap(), value.parse().unwrap())).collect()
}

/// Lets the system forget what it has of a file.
fn evict(file: &Path) {
    let mut input = std::ffi::OsString::from("if=");
    input.push(file);
    run(Command::new("dd").arg(input).args(["iflag=nocache", "count=0", "status=none"]));
}

#[test]
fn a_quarter_of_the_graph_in_memory_gives_the_same_results() {
    let folder = tempfile::tempdir().unwrap();
    let (input, database) = (folder.path().join("graph.sg"), folder.path().join("db"));
    run(anden().args(["generate", "rmat", "--scale", "19", "--degree", "32", "--quiet", "-o"]).arg(&input));
    run(anden().args(["load", "--ids", "dense", "--quiet"]).arg(&database).arg(&input));
    let files: Vec<_> = std::fs::read_dir(&database).unwrap().map(|entry| entry.unwrap().path()).collect();
    let num_bytes: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
    let group = match MemoryGroup::new(num_bytes / 4) {
        Ok(group) => group,
        Err(error) => {
            println!("skipped: little memory needs the right to limit it: {error:#}");
            return;
        }
    };
    for kernel in [&["wcc"][..], &["bfs", "--source", "0"], &["cdlp", "--iterations", "2"], &["pagerank"]] {
        let arguments = |command: &mut Command| {
            command.arg("run").arg(&database).args(kernel).args(["--output", "-", "--quiet"]);
        };
        let mut command = anden();
        arguments(&mut command);
        let expected = values(&run(&mut command));
        files.iter().for_each(|file| evict(file));
        // The shell joins the group, so that the program has nothing yet that counts elsewhere.
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(group.members()).arg(env!("CARGO_BIN_EXE_anden"));
        arguments(&mut command);
        let found = values(&run(&mut command));
        assert_eq!(found.len(), expected.len(), "{kernel:?}");
        for (found, expected) in found.iter().zip(&expected) {
            let is_near = (found.1 - expected.1).abs() <= 1e-9 * expected.1.abs();
            assert!(found.0 == expected.0 && is_near, "{kernel:?}: {found:?}, {expected:?} was expected");
        }
        println!("pressure: {kernel:?} of {num_bytes} bytes in {} of memory", num_bytes / 4);
    }
}
