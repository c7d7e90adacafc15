//! Signals that the parent process ignores stay ignored. Other signals end the program without remains.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use anden_testkit::skipped;

use crate::scene::Scene;

/// More lines than a pipe holds. Once they are written, the program is reading and handles signals.
fn lines(first: u32) -> String {
    (first..first + 50_000).map(|i| format!("{i} {}\n", i + 1)).collect()
}

/// A load that waits on standard input, started by a shell that runs `before`.
fn load(scene: &Scene, before: &str) -> Child {
    let script = format!(r#"{before} exec "$0" load db - --quiet"#);
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_anden")]).current_dir(scene.path("."));
    let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(lines(0).as_bytes()).unwrap();
    child
}

fn kill(child: &Child, signal: &str) {
    let killed = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
}

/// Requires that the load continues and takes input after the signal.
fn survives(scene: &Scene, mut child: Child, signal: &str) {
    kill(&child, signal);
    let mut input = child.stdin.take().unwrap();
    // Without the fix, the program may have ended by now.
    let _ = input.write_all(lines(50_000).as_bytes());
    drop(input);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{signal}");
    assert_eq!(scene.json(&["info", "db"])["edges"], 100_000, "{signal}");
}

#[test]
fn ignored_signals_stay_ignored() {
    for signal in ["HUP", "INT", "TERM"] {
        let scene = Scene::new();
        let child = load(&scene, &format!("trap '' {signal};"));
        survives(&scene, child, signal);
        // The other signals are not ignored.
        let scene = Scene::new();
        let child = load(&scene, &format!("trap '' {signal};"));
        kill(&child, if signal == "TERM" { "INT" } else { "TERM" });
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130), "{signal}");
        assert!(scene.names().is_empty(), "{signal}: {:?}", scene.names());
    }
}

#[test]
fn default_signals_end_a_load_cleanly() {
    for signal in ["HUP", "INT", "TERM"] {
        let scene = Scene::new();
        let child = load(&scene, "");
        kill(&child, signal);
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(130), "{signal}: {stderr}");
        assert!(stderr.starts_with("anden: interrupted"), "{signal}: {stderr}");
        assert!(scene.names().is_empty(), "{signal}: {:?}", scene.names());
    }
}

#[test]
fn nohup_load_survives_a_hangup() {
    if Command::new("nohup").arg("true").output().is_err() {
        return skipped("there is no nohup");
    }
    let scene = Scene::new();
    let mut nohup = Command::new("nohup");
    nohup.args([env!("CARGO_BIN_EXE_anden"), "load", "db", "-", "--quiet"]).current_dir(scene.path("."));
    let mut child = nohup.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(lines(0).as_bytes()).unwrap();
    survives(&scene, child, "HUP");
}
