//! The program as make calls it: planted faults in a small workspace are printed, and give the exit status.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A workspace of two crates on two floors, removed on drop.
struct Workspace(PathBuf);

impl Workspace {
    fn new(name: &str, lower_needs_upper: &str) -> Self {
        let root = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        let workspace = Self(root);
        workspace.write(
            "Cargo.toml",
            "[workspace]\nmembers = [\"lower\", \"upper\"]\nresolver = \"3\"\n\
             [workspace.metadata.floors]\nlower = 0\nroof = 1\n",
        );
        workspace.write("lower/Cargo.toml", &manifest("lower", lower_needs_upper));
        workspace.write("upper/Cargo.toml", &manifest("roof", "[dependencies]\nlower = { path = \"../lower\" }\n"));
        for crate_name in ["lower", "upper"] {
            workspace.write(&format!("{crate_name}/src/lib.rs"), "//! Doc.\n#![forbid(unsafe_code)]\n");
        }
        workspace
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs xtask. Returns the exit status and standard output.
    fn xtask(&self, arguments: &str) -> (i32, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(arguments.split(' '))
            .env("CARGO_MANIFEST_DIR", self.0.join("xtask"))
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), text)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn manifest(name: &str, rest: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n{rest}")
}

#[test]
fn a_house_in_order_passes() {
    let workspace = Workspace::new("order", "");
    assert_eq!(workspace.xtask("floors"), (0, "floors: 2 crates on 2 floors, 0 faults\n".to_owned()));
}

#[test]
fn development_dependencies_may_look_upward() {
    let workspace = Workspace::new("dev", "[dev-dependencies]\nroof = { path = \"../upper\" }\n");
    assert_eq!(workspace.xtask("floors").0, 0);
}

#[test]
fn renamed_upward_dependency_is_found_with_line() {
    let renamed = "[build-dependencies]\nattic = { package = \"roof\", path = \"../upper\" }\n";
    let (status, text) = Workspace::new("upward", renamed).xtask("floors");
    assert_eq!(status, 1);
    let first = text.lines().next().unwrap();
    assert_eq!(first, "lower/Cargo.toml:7: attic: lower (floor 0) depends upward on roof (floor 1)");
}

#[test]
fn breaches_of_style_are_found_with_their_lines() {
    let workspace = Workspace::new("style", "");
    let git = Command::new("git").args(["init", "--quiet"]).current_dir(&workspace.0).status().unwrap();
    assert!(git.success());
    assert_eq!(workspace.xtask("tidy").0, 0);
    workspace.write("upper/src/lib.rs", "//! Doc.\nfn f() {\n    unsafe { g() }\n}\n");
    let (status, text) = workspace.xtask("tidy");
    assert_eq!(status, 1);
    let expected = [
        "upper/src/lib.rs:1: the root of a crate without unsafe code says #![forbid(unsafe_code)]",
        "upper/src/lib.rs:3: unsafe code belongs to crates/base",
        "tidy: 2 Rust files, median 4 lines, longest 4, 2 faults",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn limits_follow_falling_counts() {
    let workspace = Workspace::new("limits", "");
    let git = Command::new("git").args(["init", "--quiet"]).current_dir(&workspace.0).status().unwrap();
    assert!(git.success());
    workspace.write("xtask/limits.toml", "document-inversion = 2\n");
    workspace.write("a.md", "Of a page, the lists.\n");
    let (status, text) = workspace.xtask("tidy");
    assert_eq!(status, 1);
    assert!(text.starts_with("xtask/limits.toml:1: document-inversion: 1, below the limit 2;"), "{text}");
    assert_eq!(workspace.xtask("tidy --lower"), (0, "document-inversion: 2 to 1\n".to_owned()));
    assert_eq!(workspace.xtask("tidy").0, 0);
    assert_eq!(workspace.xtask("tidy --lower"), (0, "no limit is above its count\n".to_owned()));
    let place = "a.md:1: document-inversion: Of a page, the lists.\n";
    assert_eq!(workspace.xtask("tidy --counts a.md"), (0, place.to_owned()));
    assert!(workspace.xtask("tidy --counts").1.contains("1  a.md: document-inversion 1\n"));
    workspace.write("a.md", "Of a page, the lists.\n\n[b](b.md)\n");
    assert!(workspace.xtask("tidy").1.starts_with("a.md:3: broken link 'b.md': the repository has no b.md\n"));
}

#[test]
fn directory_without_workspace_is_an_error() {
    let workspace = Workspace::new("nowhere", "");
    fs::remove_file(Path::new(&workspace.0).join("Cargo.toml")).unwrap();
    let (status, text) = workspace.xtask("floors");
    assert_eq!(status, 1);
    assert!(text.starts_with("xtask: cargo metadata failed"), "{text}");
    assert_eq!(workspace.xtask("tidy").0, 1, "no git checkout");
}

#[test]
fn an_unknown_command_does_not_parse() {
    let (status, text) = Workspace::new("unknown", "").xtask("tidiness");
    assert_eq!(status, 2);
    assert!(text.starts_with("usage:"), "{text}");
}
