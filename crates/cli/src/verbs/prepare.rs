//! `anden prepare`.

use anden::kernel::{FormReport, PrepareReport};
use serde_json::json;

use super::{open_to_write, session};
use crate::args::{Global, PrepareArgs};
use crate::console::{Console, ConsoleTable, duration, size};
use crate::failure::Result;

/// Stores what kernels prepare.
pub fn execute(global: &Global, args: &PrepareArgs) -> Result {
    let (session, watch) = session(global)?;
    let database = open_to_write(&args.database, &session)?;
    watch.clean_up_from_here();
    let kernels: Vec<&str> = args.kernels.iter().map(String::as_str).collect();
    let prepared = database.prepare(&kernels);
    watch.clear();
    let report = prepared?;
    let mut console = Console::after("the forms were stored");
    if global.json {
        let forms: Vec<_> = report.forms.iter().map(form_json).collect();
        console.object(&json!({ "forms": forms, "without": report.without }))?;
    } else if !global.quiet {
        print(&mut console, &report)?;
    }
    console.finish()
}

fn form_json(report: &FormReport) -> serde_json::Value {
    json!({
        "form": report.form,
        "kernels": report.kernels,
        "bytes": report.bytes,
        "seconds": report.seconds,
        "stored_before": report.was_stored,
    })
}

fn print(console: &mut Console, report: &PrepareReport) -> Result {
    for kernel in &report.without {
        console.line(format_args!("{kernel} reads no prepared form of this graph"))?;
    }
    if report.forms.is_empty() && report.without.is_empty() {
        return console.line(format_args!("no kernel reads a prepared form of this graph"));
    }
    let mut table = ConsoleTable::new();
    for FormReport { form, kernels, bytes, seconds, was_stored } in &report.forms {
        let time = if *was_stored { "stored already".into() } else { duration(*seconds) };
        table.row([(*form).to_owned(), kernels.join(", "), size(*bytes), time]);
    }
    console.table(&table)
}
