//! `anden apply` from an input that stalls: updates already read are committed and answered after `--flush`.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::scene::Scene;

/// The time limit for an answer. It takes a fraction of a second, but a busy machine gets a minute.
const DEADLINE: Duration = Duration::from_secs(60);

/// A running `apply` with an open input.
struct Apply {
    child: Child,
    input: Box<dyn Write>,
    acks: Receiver<String>,
}

impl Apply {
    /// Starts the program with `file` as the updates, and acks on standard output.
    fn start(scene: &Scene, file: &str, stdin: Stdio, options: &[&str]) -> (Child, Receiver<String>) {
        let mut command = scene.command(&[&["apply", "db", file, "--acks", "-"], options].concat());
        let mut child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, acks) = channel();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|ack| sender.send(ack)));
        (child, acks)
    }

    fn from_pipe(scene: &Scene, options: &[&str]) -> Self {
        let (mut child, acks) = Self::start(scene, "-", Stdio::piped(), options);
        let input = Box::new(child.stdin.take().unwrap());
        Self { child, input, acks }
    }

    fn from_fifo(scene: &Scene, options: &[&str]) -> Self {
        assert!(Command::new("mkfifo").arg(scene.path("fifo")).status().unwrap().success());
        let (child, acks) = Self::start(scene, "fifo", Stdio::null(), options);
        Self { child, input: Box::new(OpenOptions::new().write(true).open(scene.path("fifo")).unwrap()), acks }
    }

    fn from_socket(scene: &Scene, options: &[&str]) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (child, acks) = Self::start(scene, "-", Stdio::from(OwnedFd::from(theirs)), options);
        Self { child, input: Box::new(ours), acks }
    }

    fn feed(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).unwrap();
    }

    #[track_caller]
    fn answers(&self, line: &str) {
        assert_eq!(self.acks.recv_timeout(DEADLINE).as_deref(), Ok(line));
    }

    /// Kills the process while its input is open.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends the input. Returns the output and the remaining answers.
    fn finish(self) -> (Output, Vec<String>) {
        drop(self.input);
        (self.child.wait_with_output().unwrap(), self.acks.iter().collect())
    }
}

fn has_edge(scene: &Scene, target: &str) -> bool {
    scene.anden(&["query", "db", "edge", "1", target]).succeeded().stdout == "true\n"
}

#[test]
fn idle_updates_are_answered_and_survive_a_kill() {
    type Start = fn(&Scene, &[&str]) -> Apply;
    let inputs: [(&str, Start); 3] =
        [("pipe", Apply::from_pipe), ("fifo", Apply::from_fifo), ("socket", Apply::from_socket)];
    let options: [&[&str]; 6] = [
        &[],
        &["--flush", "0"],
        &["--durability", "batched", "--flush", "20"],
        &["--strict", "--batch", "1000000"],
        &["--memory", "1G", "--flush", "10ms"],
        &["--batch", "2", "--flush", "0.05s"],
    ];
    for (kind, start) in inputs {
        for options in options {
            let scene = Scene::with_small(&[]);
            let mut apply = start(&scene, options);
            // An incomplete line delays no other.
            apply.feed("v+ 77\n+ 1 77\n+ 1 ");
            apply.answers("2");
            assert!(has_edge(&scene, "77"), "{kind} {options:?}: visible to others while the input is open");
            apply.feed("3\n# more\n\n");
            apply.answers("3");
            apply.feed("v+ 78\n+ 1 78\n");
            apply.answers("7");
            apply.kill();
            assert!(has_edge(&scene, "77") && has_edge(&scene, "78"), "{kind} {options:?}");
            scene.anden(&["verify", "db"]).succeeded();
        }
    }
}

#[test]
fn idle_compressed_updates_are_answered() {
    let scene = Scene::with_small(&[]);
    let mut apply = Apply::from_pipe(&scene, &[]);
    let mut packed = flate2::write::GzEncoder::new(apply.input, flate2::Compression::fast());
    packed.write_all(b"+ 1 77\n+ 1 7").unwrap();
    packed.flush().unwrap();
    apply.input = Box::new(packed);
    apply.answers("1");
    apply.feed("8\n");
    apply.input.flush().unwrap();
    apply.answers("2");
    apply.kill();
    assert!(has_edge(&scene, "77") && has_edge(&scene, "78"));
}

/// The time counts from the first waiting update, not from the last line.
#[test]
fn trickling_input_does_not_put_commits_off() {
    let scene = Scene::with_small(&[]);
    let mut apply = Apply::from_pipe(&scene, &["--flush", "200ms", "--batch", "1000000"]);
    let start = Instant::now();
    loop {
        apply.feed("+ 1 77\n");
        if apply.acks.recv_timeout(Duration::from_millis(5)).is_ok() {
            break;
        }
        assert!(start.elapsed() < DEADLINE, "a line now and then keeps the others from being committed");
    }
    apply.kill();
    assert!(has_edge(&scene, "77"));
}

#[test]
fn batch_is_not_split_before_the_flush_time() {
    let scene = Scene::with_small(&[]);
    let mut apply = Apply::from_pipe(&scene, &["--flush", "3600s"]);
    // More comments than a pipe holds, so that the first update is read long before the last is written.
    let comments = "# nothing\n".repeat(50_000);
    for part in ["+ 1 77\n", &comments, "+ 1 78\n"] {
        apply.feed(part);
    }
    let (output, acks) = apply.finish();
    assert_eq!((output.status.code(), acks), (Some(0), vec!["50002".to_owned()]));
}

#[test]
fn regular_file_is_never_idle() {
    let scene = Scene::with_small(&[]);
    let arguments = ["apply", "db", "-", "--flush", "0", "--json"];
    let ran = scene.anden_with_input(&arguments, "+ 1 77\n+ 1 78\n".repeat(100_000).as_bytes()).succeeded();
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["updates"], &report["transactions"]), (&json!(200_000), &json!(200)));
}

#[test]
fn errors_after_a_flush_name_their_line() {
    for (options, line, expected) in [
        (&["--strict"][..], "- 1 99", "-:4: there is no edge from 1 to 99 to remove"),
        (&[], "- 1", "-:4: expected `- SOURCE TARGET [#NUMBER] [WEIGHT]`"),
        (&[], "+ 1 x", "-:4: "),
    ] {
        let scene = Scene::with_small(&[]);
        let mut apply = Apply::from_pipe(&scene, options);
        apply.feed("+ 1 4\n");
        apply.answers("1");
        apply.feed(&format!("# nothing\n+ 1 5\n{line}\n"));
        let (output, acks) = apply.finish();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), acks.len()), (Some(1), 0), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
        assert!(has_edge(&scene, "4") && !has_edge(&scene, "5"));
    }
}

#[test]
fn snapshots_are_made_of_flushed_batches() {
    let scene = Scene::with_small(&[]);
    let mut apply = Apply::from_pipe(&scene, &["--checkpoint-every", "2"]);
    for line in 1..=3 {
        apply.feed(&format!("+ 1 {}\n", 70 + line));
        // The answer to the third comes after the checkpoint of the first two.
        apply.answers(&line.to_string());
    }
    assert_eq!(scene.json(&["info", "db"])["snapshots"].as_array().unwrap().len(), 2);
    apply.kill();
    assert!((71..=73).all(|target| has_edge(&scene, &target.to_string())));
}

#[test]
fn interrupt_keeps_what_was_answered() {
    let scene = Scene::with_small(&[]);
    let mut apply = Apply::from_pipe(&scene, &[]);
    apply.feed("+ 1 77\n");
    apply.answers("1");
    assert!(Command::new("kill").args(["-INT", &apply.child.id().to_string()]).status().unwrap().success());
    let output = apply.child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(has_edge(&scene, "77"));
}
