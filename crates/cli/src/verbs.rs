//! What each verb does: call the library, print what it says.

mod export;
mod generate;
mod info;
mod load;
mod manual;
mod query;
mod run;
mod snapshots;
mod verify;

use std::path::Path;
use std::sync::Arc;

use anden::{Database, Session, View};

use crate::args::{Cli, Global, Selection, Verb};
use crate::failure::{Failure, Result};
use crate::watch::Watch;

/// Executes the command line.
pub fn execute(cli: Cli) -> Result {
    let global = &cli.global;
    match cli.verb {
        Verb::Load(args) => load::execute(global, &args),
        Verb::Info(args) => info::execute(global, &args),
        Verb::Run(args) => run::execute(global, &args),
        Verb::Query(args) => query::execute(global, &args),
        Verb::Verify(args) => verify::execute(global, &args),
        Verb::Export(args) => export::execute(global, &args),
        Verb::Generate(args) => generate::execute(global, &args),
        Verb::Snapshots(args) => snapshots::execute(global, &args),
        Verb::Completions { shell } => manual::completions(shell),
        Verb::Man { directory } => manual::pages(directory.as_deref()),
        Verb::Append(_) => Err(Failure::not_yet("verb append")),
        Verb::Apply(_) => Err(Failure::not_yet("verb apply")),
        Verb::Checkpoint(_) => Err(Failure::not_yet("verb checkpoint")),
        Verb::Merge(_) => Err(Failure::not_yet("verb merge")),
        Verb::Drop(_) => Err(Failure::not_yet("verb drop")),
        Verb::Diff(_) => Err(Failure::not_yet("verb diff")),
        Verb::Retain(_) => Err(Failure::not_yet("verb retain")),
    }
}

/// The threads, the budget and the watcher that the options of every verb ask for.
fn session(global: &Global) -> Result<(Session, Arc<Watch>)> {
    let watch = Arc::new(Watch::new(global.quiet));
    let session = Session::new(global.threads.unwrap_or(0))?;
    Ok((session.with_memory(global.memory).with_progress(watch.clone()), watch))
}

/// Opens a database for reading.
fn open(path: &Path, session: &Session) -> Result<Database> {
    Ok(Database::open_read_only_in(path, session)?)
}

/// The version of the graph that is asked for.
fn view(database: &Database, selection: &Selection) -> Result<View> {
    selection.refuse_what_comes_later()?;
    Ok(match &selection.snapshot {
        Some(snapshot) => database.snapshot(snapshot)?,
        None => database.view()?,
    })
}

impl Selection {
    /// Refuses what this version does not do yet, by name.
    fn refuse_what_comes_later(&self) -> Result {
        if self.window.is_some() {
            return Err(Failure::not_yet("--window"));
        }
        if let Some(policy) = self.prefetch.as_deref().filter(|policy| !["auto", "off"].contains(policy)) {
            return Err(Failure::not_yet(format!("--prefetch {policy}")));
        }
        if self.io.as_deref() == Some("pread") {
            return Err(Failure::not_yet("--io pread"));
        }
        Ok(())
    }
}
