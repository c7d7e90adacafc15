//! The floors: a crate may depend only on crates of lower floors.
//!
//! The root manifest gives each crate its floor (`[workspace.metadata.floors]`). It also lists the third-party crates
//! that belong to `front-floor` and above (`[workspace.metadata] front-only`), because nothing below parses options
//! or prints, and those that a few crates share (`[workspace.metadata.only-in]`). Some crates must be [without circles](circles) among their modules. Development dependencies
//! are exempt, because a test may use any crate. A member without a floor (a bench, a test kit, this program) may use
//! every floor, and no floor may use it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{Fault, circles};

/// A member of the workspace and its dependencies, without development dependencies.
#[derive(Debug)]
struct Member {
    manifest: PathBuf,
    /// Pairs of the package and the key that names it in the manifest.
    dependencies: Vec<(String, String)>,
}

/// The rules about floors in the root manifest.
#[derive(Debug, Default)]
struct Plan {
    floors: BTreeMap<String, u64>,
    /// The lowest floor that may use the crates of `front_only`.
    front_floor: u64,
    front_only: Vec<String>,
    /// By third-party crate: the members with a floor that may use it.
    only_in: BTreeMap<String, Vec<String>>,
    without_circles: Vec<String>,
}

/// Reads the workspace at `root` through `cargo metadata`. Returns the faults and a summary line.
pub fn check_workspace(root: &Path) -> Result<(Vec<Fault>, String)> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")?;
    let plan = read_plan(&metadata["metadata"])?;
    let members = read_members(&metadata, root)?;
    let mut faults = check(&plan, &members);
    for fault in &mut faults {
        locate(root, fault);
    }
    for name in &plan.without_circles {
        let member = members.get(name).with_context(|| format!("without-circles: {name} is no member"))?;
        faults.extend(circles::check_crate(root, &member.manifest.with_file_name("src"))?);
    }
    Ok((faults, format!("{} crates on {} floors", members.len(), floor_count(&plan))))
}

fn floor_count(plan: &Plan) -> usize {
    let mut floors: Vec<u64> = plan.floors.values().copied().collect();
    floors.sort_unstable();
    floors.dedup();
    floors.len()
}

fn read_plan(metadata: &Value) -> Result<Plan> {
    let table = metadata["floors"].as_object().context("the root manifest has no [workspace.metadata.floors]")?;
    let mut plan = Plan::default();
    for (name, floor) in table {
        let floor = floor.as_u64().with_context(|| format!("the floor of {name} is {floor}, expected a number"))?;
        plan.floors.insert(name.clone(), floor);
    }
    let names = |key: &str, list: &Value| -> Result<Vec<String>> {
        let names = list.as_array().into_iter().flatten();
        let name = |name: &Value| Some(name.as_str()?.to_owned());
        names.map(name).collect::<Option<_>>().with_context(|| format!("{key} holds something that is no name"))
    };
    plan.front_only = names("front-only", &metadata["front-only"])?;
    if !plan.front_only.is_empty() {
        plan.front_floor = metadata["front-floor"].as_u64().context("the root manifest has no front-floor")?;
    }
    plan.without_circles = names("without-circles", &metadata["without-circles"])?;
    for (target, list) in metadata["only-in"].as_object().into_iter().flatten() {
        plan.only_in.insert(target.clone(), names("only-in", list)?);
    }
    Ok(plan)
}

fn read_members(metadata: &Value, root: &Path) -> Result<BTreeMap<String, Member>> {
    let mut members = BTreeMap::new();
    for package in metadata["packages"].as_array().context("cargo metadata lists no packages")? {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let name = text(&package["name"]).context("a package has no name")?;
        let manifest = PathBuf::from(text(&package["manifest_path"]).context("a package has no manifest")?);
        let mut dependencies = Vec::new();
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            if dependency["kind"] != "dev" {
                let target = text(&dependency["name"]).context("a dependency has no name")?;
                let key = text(&dependency["rename"]).unwrap_or_else(|| target.clone());
                dependencies.push((target, key));
            }
        }
        let manifest = manifest.strip_prefix(root).map_or_else(|_| manifest.clone(), Path::to_path_buf);
        members.insert(name, Member { manifest, dependencies });
    }
    Ok(members)
}

/// The faults, without lines yet. Each message begins with the key of the dependency.
fn check(plan: &Plan, members: &BTreeMap<String, Member>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for name in plan.floors.keys().filter(|name| !members.contains_key(*name)) {
        faults.push(Fault::new(Path::new("Cargo.toml"), 1, format!("{name}: has a floor, but is no member")));
    }
    for (name, member) in members {
        let Some(&floor) = plan.floors.get(name) else { continue };
        for (target, key) in &member.dependencies {
            let message = match plan.floors.get(target) {
                Some(&below) if below < floor => continue,
                Some(&same) if same == floor => {
                    format!("{key}: {name} depends sideways on {target}, both on floor {floor}")
                }
                Some(&above) => format!("{key}: {name} (floor {floor}) depends upward on {target} (floor {above})"),
                None if members.contains_key(target) => {
                    format!("{key}: {name} depends on {target}, which has no floor and serves development only")
                }
                None if floor < plan.front_floor && plan.front_only.contains(target) => {
                    let front = plan.front_floor;
                    format!(
                        "{key}: {name} (floor {floor}) depends on {target}, which belongs to floor {front} and above"
                    )
                }
                None => match plan.only_in.get(target) {
                    Some(users) if !users.contains(name) => {
                        format!("{key}: {name} depends on {target}, which belongs to {} alone", users.join(" and "))
                    }
                    _ => continue,
                },
            };
            faults.push(Fault::new(&member.manifest, 1, message));
        }
    }
    faults
}

/// Moves a fault to the line of its manifest that names the dependency.
fn locate(root: &Path, fault: &mut Fault) {
    let Ok(text) = fs::read_to_string(root.join(&fault.path)) else { return };
    let Some((key, _)) = fault.message.split_once(':') else { return };
    let names_key = |line: &str| {
        let rest = line.trim_start().trim_start_matches('"').strip_prefix(key);
        rest.is_some_and(|rest| rest.starts_with(['.', ' ', '=', '"']))
    };
    if let Some(index) = text.lines().position(names_key) {
        fault.line = index + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn dependency(name: &str, kind: Option<&str>, rename: Option<&str>) -> Value {
        json!({ "name": name, "kind": kind, "rename": rename })
    }

    fn faults(packages: &[(&str, Vec<Value>)]) -> Vec<String> {
        let packages: Vec<Value> = packages
            .iter()
            .map(|(name, dependencies)| {
                json!({
                    "name": name,
                    "manifest_path": format!("crates/{name}/Cargo.toml"),
                    "dependencies": dependencies
                })
            })
            .collect();
        let floors = json!({
            "floors": { "x-base": 0, "left": 1, "right": 1, "top": 2 },
            "front-floor": 2,
            "front-only": ["clap"],
            "only-in": { "serde_json": ["right", "top"] },
        });
        let plan = read_plan(&floors).unwrap();
        let members = read_members(&json!({ "packages": packages }), Path::new("")).unwrap();
        check(&plan, &members).iter().map(ToString::to_string).collect()
    }

    fn house(left: Vec<Value>, top: Vec<Value>) -> Vec<String> {
        let base = || dependency("x-base", None, Some("base"));
        let left = [vec![base()], left].concat();
        let kit = vec![base(), dependency("top", None, None)];
        faults(&[("x-base", vec![]), ("left", left), ("right", vec![base()]), ("top", top), ("kit", kit)])
    }

    #[test]
    fn downward_edges_and_strangers_are_fine() {
        let top = vec![dependency("left", None, None), dependency("clap", None, None)];
        assert_eq!(house(vec![dependency("libc", None, None)], top), [""; 0]);
    }

    #[test]
    fn upward_and_sideways_edges_are_faults() {
        let found =
            house(vec![dependency("right", None, None), dependency("top", Some("build"), Some("roof"))], vec![]);
        assert_eq!(
            found,
            [
                "crates/left/Cargo.toml:1: right: left depends sideways on right, both on floor 1",
                "crates/left/Cargo.toml:1: roof: left (floor 1) depends upward on top (floor 2)",
            ]
        );
    }

    #[test]
    fn a_crate_on_itself_is_sideways() {
        assert_eq!(house(vec![dependency("left", None, None)], vec![]).len(), 1);
    }

    #[test]
    fn only_dev_dependencies_may_lack_a_floor() {
        assert_eq!(
            house(vec![dependency("kit", Some("dev"), None), dependency("top", Some("dev"), None)], vec![]).len(),
            0
        );
        let found = house(vec![], vec![dependency("kit", None, None)]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("top depends on kit, which has no floor"), "{found:?}");
    }

    #[test]
    fn crates_of_front_ends_are_kept_there() {
        let found = house(vec![dependency("clap", None, None)], vec![]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("clap, which belongs to floor 2 and above"), "{found:?}");
    }

    #[test]
    fn some_crates_may_share_a_dependency() {
        let json = || vec![dependency("serde_json", None, None)];
        assert_eq!(house(vec![], json()), [""; 0]);
        let found = house(json(), vec![]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("serde_json, which belongs to right and top alone"), "{found:?}");
    }

    #[test]
    fn a_floor_without_its_crate_is_a_fault() {
        let found = faults(&[("x-base", vec![]), ("left", vec![]), ("right", vec![])]);
        assert_eq!(found, ["Cargo.toml:1: top: has a floor, but is no member"]);
    }

    #[test]
    fn a_fault_points_at_the_line_of_the_dependency() {
        let folder = std::env::temp_dir().join(format!("xtask-floors-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("Cargo.toml"), "[dependencies]\nbased = \"1\"\nbase.workspace = true\n").unwrap();
        let mut fault = Fault::new(Path::new("Cargo.toml"), 1, "base: any");
        locate(&folder, &mut fault);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(fault.line, 3);
    }
}
