//! A process that commits edge after edge, and what is left of its work.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use anden::{Database, Graph};

/// Lines that a writer gets; more than it can apply before it ends.
const NUM_LINES: u64 = 200_000;

/// The program.
pub fn anden() -> Command {
    Command::new(env!("CARGO_BIN_EXE_anden"))
}

/// Makes a database without edges but one from 0 to 1.
pub fn create(database: &Path) {
    let input = database.with_extension("txt");
    std::fs::write(&input, "0 1\n").unwrap();
    let made = anden().args(["load", "--quiet", "--ids", "dense"]).arg(database).arg(&input).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// How many edges there are: one leads from each number below it to the next, and no other.
pub fn num_edges(database: &Path, place: &str) -> u64 {
    let database = Database::open_read_only(database).unwrap_or_else(|error| panic!("{place}: {error}"));
    let view = database.view().unwrap_or_else(|error| panic!("{place}: {error}"));
    let num_edges = view.num_edges();
    let graph = view.graph();
    for vertex in 0..num_edges {
        let mut targets = Vec::new();
        let _ = graph.for_each_out_fragment(vertex as u32, |list| {
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
    /// The edges, or lines, that are answered.
    pub num_answered: u64,
}

impl Writer {
    /// Lets `command` add edges behind the first `first`, without an end.
    pub fn start(command: Command, first: u64) -> Self {
        Self::start_some(command, first, NUM_LINES)
    }

    /// The same, so many edges.
    pub fn start_some(command: Command, first: u64, num_edges: u64) -> Self {
        Self::start_lines(command, first, num_edges, edge_line)
    }

    /// Gives `command` the lines from number `first` on.
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
                // A line that was cut by the end of the process is no answer.
                let Ok(line) = line.parse() else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { process, feeder, answers, first, num_answered: first }
    }

    /// The same for `anden apply DB - --acks -` with these arguments.
    pub fn apply(database: &Path, arguments: &[&str], first: u64) -> Self {
        Self::apply_lines(database, arguments, first, edge_line)
    }

    /// The same with lines of any kind.
    pub fn apply_lines(database: &Path, arguments: &[&str], first: u64, line: fn(u64) -> String) -> Self {
        let mut command = anden();
        command.arg("apply").arg(database).args(["-", "--acks", "-", "--quiet"]).args(arguments);
        Self::start_lines(command, first, NUM_LINES, line)
    }

    /// Waits for another answer; false where there will be none.
    pub fn wait_for_answer(&mut self) -> bool {
        match self.answers.recv() {
            Ok(line) => {
                self.num_answered = self.first + line;
                true
            }
            Err(_) => false,
        }
    }

    /// Waits until the process has ended, and takes its last answers; gives what it said on standard error.
    pub fn end(mut self) -> (u64, bool, String) {
        while self.wait_for_answer() {}
        let ended = self.process.wait_with_output().unwrap();
        self.feeder.join().unwrap();
        (self.num_answered, ended.status.success(), String::from_utf8_lossy(&ended.stderr).into_owned())
    }

    /// Ends the process without a warning.
    pub fn kill(mut self) -> u64 {
        self.process.kill().unwrap();
        self.end().0
    }
}
