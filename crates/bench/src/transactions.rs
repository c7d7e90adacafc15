//! `transactions`: short queries, analyses and commits, alone and concurrently.
//!
//! The graphs are those of Janus (Kimura, Simitsis, Wilkinson, CIDR 2017): a road network that is a grid with 16 edges
//! a vertex, and a real road network if `--roads` gives one. Each query is a read transaction: it pins the newest
//! committed version, searches, and unpins.

mod commits;
mod conflicts;
mod ground;
mod indexes;
mod kinds;
mod mixed;
mod navigation;
mod recovery;
mod replay;
#[cfg(feature = "rivals")]
mod rivals;
mod stage;
mod upkeep;

use anyhow::{Result, bail};

use crate::report::Report;
use crate::setting::Setting;
use ground::Ground;
use navigation::Question;

/// The parts that `--kernel` selects.
const PARTS: [&str; 10] =
    ["navigation", "mixed", CHECKED, "commits", "kinds", "indexes", "conflicts", "recovery", "replay", "upkeep"];

/// This part runs only if selected: it takes several times as long as its analyses alone.
const CHECKED: &str = "checked";

/// The width and the height of the generated network, in vertices.
const WIDTH: u64 = 1000;
const QUICK_WIDTH: u64 = 120;

/// The graph in the title of the report.
pub fn title(is_quick: bool) -> String {
    let width = if is_quick { QUICK_WIDTH } else { WIDTH };
    format!("road:{width}:{width}")
}

/// Runs the benchmark.
pub fn run(setting: &Setting, is_quick: bool, report: &mut Report) -> Result<()> {
    if let Some(part) = setting.kernel.as_ref().filter(|part| !PARTS.contains(&part.as_str())) {
        bail!("--kernel {part}: one of {} expected", PARTS.join(", "));
    }
    let is_wanted = |part| setting.kernel.as_deref().is_none_or(|wanted| wanted == part);
    let width = if is_quick { QUICK_WIDTH } else { WIDTH };
    let made = [("grid", None)].into_iter();
    let given = setting.roads.iter().map(|path| ("roads", Some(path)));
    for (name, path) in made.chain(given) {
        let checks_all = setting.kernel.as_deref() == Some(CHECKED);
        if checks_all || ["navigation", "mixed"].into_iter().any(is_wanted) {
            let ground = match path {
                None => Ground::grid(setting, name, width)?,
                Some(path) => Ground::directed(setting, name, path)?,
            };
            if is_wanted("navigation") {
                navigation::lines(setting, &ground, &[Question::Path, Question::WeightedPath], is_quick, report)?;
            }
            if is_wanted("mixed") {
                mixed::lines(setting, &ground, is_quick, report)?;
            }
            if checks_all {
                mixed::checked(setting, &ground, report)?;
            }
        }
    }
    if let Some(path) = setting.social.as_ref().filter(|_| is_wanted("navigation")) {
        let ground = Ground::directed(setting, "social", path)?;
        navigation::lines(setting, &ground, &[Question::TwoHops], is_quick, report)?;
    }
    if is_wanted("commits") {
        commits::lines(setting, is_quick, report)?;
    }
    if is_wanted("kinds") {
        kinds::lines(setting, is_quick, report)?;
    }
    if is_wanted("indexes") {
        indexes::lines(setting, is_quick, report)?;
    }
    if is_wanted("conflicts") {
        conflicts::lines(setting, is_quick, report)?;
    }
    if is_wanted("recovery") {
        recovery::lines(setting, is_quick, report)?;
    }
    if is_wanted("replay") {
        replay::lines(setting, is_quick, report)?;
    }
    if is_wanted("upkeep") {
        upkeep::lines(setting, is_quick, report)?;
    }
    Ok(())
}
