//! A process that commits edge after edge, and the check of its remains.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use anden::Database;
use anden::graph::Graph;
use anden_graph::Direction;

/// The lines for a writer, more than it can apply before it ends.
const NUM_LINES: u64 = 200_000;

/// The program.
pub fn anden() -> Command {
    Command::new(env!("CARGO_BIN_EXE_anden"))
}

/// Creates a database with one edge, from 0 to 1.
pub fn create(database: &Path) {
    create_path(database, 1);
}

/// Creates a database with edges from each number below `num_edges` to the next.
pub fn create_path(database: &Path, num_edges: u64) {
    let input = database.with_extension("txt");
    let edges: String = (0..num_edges).map(|number| format!("{number} {}\n", number + 1)).collect();
    std::fs::write(&input, edges).unwrap();
    let made = anden().args(["load", "--quiet", "--ids", "dense"]).arg(database).arg(&input).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// The number of edges. Requires that they lead from each smaller number to the next.
pub fn num_edges(database: &Path, place: &str) -> u64 {
    let database = Database::open_read_only(database).unwrap_or_else(|error| panic!("{place}: {error}"));
    let view = database.view().unwrap_or_else(|error| panic!("{place}: {error}"));
    let num_edges = view.num_edges();
    let graph = view.graph();
    for vertex in 0..num_edges {
        let mut targets = Vec::new();
        let _ = graph.for_each_fragment(Direction::Out, vertex as u32, |list| {
            targets.extend_from_slice(list);
            std::ops::ControlFlow::Continue(())
        });
        assert_eq!(targets, [vertex as u32 + 1], "{place}: edge {vertex} of {num_edges}");
    }
    num_edges
}

/// The line that adds an edge.
pub fn edge_line(edge: u64) -> String {
    format!("+ {edge} {}\n", edge + 1)
}

/// A running writer.
pub struct Writer {
    pub process: Child,
    feeder: JoinHandle<()>,
    answers: Receiver<u64>,
    first: u64,
    /// The number of answered edges or lines.
    pub num_answered: u64,
}

impl Writer {
    /// Starts `command`, which adds edges after the first `first`, without an end.
    pub fn start(command: Command, first: u64) -> Self {
        Self::start_some(command, first, NUM_LINES)
    }

    /// Starts `command`, which adds `num_edges` edges after the first `first`.
    pub fn start_some(command: Command, first: u64, num_edges: u64) -> Self {
        Self::start_lines(command, first, num_edges, edge_line)
    }

    /// Starts `command` with the lines from number `first` on.
    fn start_lines(mut command: Command, first: u64, num_lines: u64, line: fn(u64) -> String) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut input = process.stdin.take().unwrap();
        let feeder = std::thread::spawn(move || {
            let mut lines = String::new();
            for number in first..first + num_lines {
                lines.push_str(&line(number));
                if number % 64 == 0 || number + 1 == first + num_lines {
                    if input.write_all(lines.as_bytes()).is_err() {
                        return;
                    }
                    lines.clear();
                }
            }
        });
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // A line that the end of the process cut is no answer.
                let Ok(line) = line.parse() else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { process, feeder, answers, first, num_answered: first }
    }

    /// Starts `anden apply DB - --acks -` with these arguments.
    pub fn apply(database: &Path, arguments: &[&str], first: u64) -> Self {
        Self::apply_lines(database, arguments, first, edge_line)
    }

    /// As [`apply`](Self::apply), with lines of any kind.
    pub fn apply_lines(database: &Path, arguments: &[&str], first: u64, line: fn(u64) -> String) -> Self {
        let mut command = anden();
        command.arg("apply").arg(database).args(["-", "--acks", "-", "--quiet"]).args(arguments);
        Self::start_lines(command, first, NUM_LINES, line)
    }

    /// Waits for another answer. Returns false if none will come.
    pub fn wait_for_answer(&mut self) -> bool {
        match self.answers.recv() {
            Ok(line) => {
                self.num_answered = self.first + line;
                true
            }
            Err(_) => false,
        }
    }

    /// Waits until the process has ended, and takes its last answers. Returns their number, whether the status is 0,
    /// and standard error.
    pub fn end(mut self) -> (u64, bool, String) {
        while self.wait_for_answer() {}
        let ended = self.process.wait_with_output().unwrap();
        self.feeder.join().unwrap();
        (self.num_answered, ended.status.success(), String::from_utf8_lossy(&ended.stderr).into_owned())
    }

    /// Kills the process. Returns the number of answers.
    pub fn kill(mut self) -> u64 {
        self.process.kill().unwrap();
        self.end().0
    }
}
