//! `anden run`.

use std::path::Path;

use anden::changes::AppendReport;
use anden::export::{ExportFormat, Output};
use anden::job::{JobOutput, Value, Values};
use anden::{Database, Job, Key, OpenOptions, Parameters, Session, View};
use anden_formats::OutputContent;
use serde_json::{Map, json};

use super::{add_prefetch_json, note_unknown_types, open_selected, output_format, session, view, write_aside_watched};
use crate::args::{Global, RunArgs};
use crate::console::{Console, ConsoleTable, count, duration, scores, size};
use crate::failure::{CommandFailure, Result};
use crate::text::{key_text, push_key, push_value, value_json, value_text};
use crate::watch::Watch;

/// Runs a kernel one or more times. Prints, writes and checks the result of the last run.
pub fn execute(global: &Global, args: &RunArgs) -> Result {
    let job = job(args)?;
    let to_stdout = args.output.as_deref() == Some(Path::new("-"));
    if to_stdout && global.json {
        return Err(CommandFailure::Usage(
            "--output - and --json both want standard output: give --output a file".into(),
        ));
    }
    // Checked before the kernel runs, because a run may take long.
    let format = args.output.as_deref().map(|path| output_format(path, OutputContent::Values)).transpose()?;
    let (session, watch) = session(global)?;
    // Times of all runs then mean the same work.
    let session = if args.keep_preparation { session } else { session.with_cache(Some(0)) };
    let database = match &args.store {
        None => open_selected(&args.database, &session, &args.selection)?,
        // Opened before the kernel runs, so that another writer is an error at once.
        Some(name) => open_to_store(&session, args, name)?,
    };
    let view = view(&database, &args.selection, global)?;
    let mut runs = RunMeasurements::default();
    let output = runs.repeat(&job, &view, args.repeat);
    watch.clear();
    let output = output?;
    // An empty part is often a misspelled type.
    if view.num_edges() == 0 {
        note_unknown_types(&database, &args.selection, global)?;
    }
    // Checked before the values are written, so that no file holds a wrong result.
    if args.check {
        output.check(&view).map_err(|what| {
            CommandFailure::failed(format!("the result of {} is wrong: {what}; please report this", args.kernel))
        })?;
    }
    if let (Some(path), Some(format)) = (&args.output, format) {
        // A kernel leaves no files, so only now a signal must not end the process at once.
        watch.clean_up_from_here();
        write_values(&job, &output, &view, &watch, path, format)?;
    }
    let stored = args.store.as_deref().map(|name| store(&database, &view, &output, &watch, name)).transpose()?;
    let has_written = args.output.is_some() && !to_stdout;
    let mut console = match (has_written, &stored) {
        (_, Some(_)) => Console::after("the values were stored"),
        (true, None) => Console::after("the file was written"),
        (false, None) => Console::new(),
    };
    if global.json {
        let mut object = runs.json(&job, &output, &view, session.num_threads(), args);
        if let Some((name, report)) = args.store.as_ref().zip(stored.as_ref()) {
            object["stored"] = json!({ "property": name, "snapshot": report.snapshot });
        }
        console.object(&object)?;
    } else if !(to_stdout || global.quiet && (has_written || stored.is_some())) {
        runs.print(&mut console, &job, &output, &view, session.num_threads(), args)?;
        if let Some((name, report)) = args.store.as_ref().zip(stored.as_ref()) {
            console.line(format_args!("stored {name} in snapshot {}", report.snapshot))?;
        }
    }
    console.finish()
}

/// Opens the database to store values under a name.
fn open_to_store(session: &Session, args: &RunArgs, name: &str) -> Result<Database> {
    if name.is_empty() {
        return Err(CommandFailure::Usage("--store: the property needs a name".into()));
    }
    let io = args.selection.io.unwrap_or_default();
    Ok(Database::open_with(&args.database, &OpenOptions { io, ..session.into() })?)
}

/// Stores the value of each vertex as a property.
fn store(database: &Database, view: &View, output: &JobOutput, watch: &Watch, name: &str) -> Result<AppendReport> {
    // A signal now cancels the append, which removes its unfinished files.
    watch.clean_up_from_here();
    let Some(values) = output.values_by_key(view)? else {
        return Err(CommandFailure::failed("--store: the kernel gives no value for each vertex"));
    };
    let stored = database.store_values(view, name, &values);
    watch.clear();
    Ok(stored?)
}

fn job(args: &RunArgs) -> Result<Job> {
    let given = args.parameters.clone();
    let parameters = Parameters {
        source: given.source.into_iter().map(Key::from).collect(),
        sources: given.sources,
        seed: given.seed,
        iterations: given.iterations,
        tolerance: given.tolerance,
        damping: given.damping,
        delta: given.delta,
        algorithm: given.algorithm,
        weight: given.weight,
        parents: given.parents,
        top: given.top,
        variant: given.variant.unwrap_or_default(),
        // Some kernels need more time for values by vertex: request them only to write them.
        values: args.output.is_some() || args.store.is_some(),
    };
    Job::new(&args.kernel, parameters).map_err(|error| match error {
        error @ anden::Error::Unsupported(_) => error.into(),
        // A parameter that this kernel does not take is a fault of the command line: status 2.
        misfit => CommandFailure::Usage(misfit.to_string()),
    })
}

/// Measurements of all runs.
#[derive(Default)]
struct RunMeasurements {
    seconds: Vec<f64>,
    preparation_seconds: Vec<f64>,
    /// For each run, whether an earlier one prepared for it.
    was_prepared: Vec<bool>,
    peak_bytes: u64,
}

impl RunMeasurements {
    fn repeat(&mut self, job: &Job, view: &View, times: u32) -> Result<JobOutput> {
        let mut last = None;
        for _ in 0..times {
            // Free the previous result first, so that it does not count as memory of this run.
            drop(last.take());
            let output = view.run(job)?;
            self.seconds.push(output.seconds);
            self.preparation_seconds.extend(output.preparation_seconds);
            self.was_prepared.extend(output.was_prepared);
            self.peak_bytes = self.peak_bytes.max(output.peak_bytes);
            last = Some(output);
        }
        last.ok_or_else(|| CommandFailure::Usage("--repeat: at least 1".into()))
    }

    fn json(&self, job: &Job, output: &JobOutput, view: &View, threads: usize, args: &RunArgs) -> serde_json::Value {
        let result: Map<String, serde_json::Value> =
            output.summary.iter().map(|(name, value)| ((*name).to_owned(), value_json(value))).collect();
        let mut object = json!({
            "kernel": job.kernel().name,
            "vertices": view.num_vertices(),
            "edges": view.num_edges(),
            "threads": threads,
            "view": view.name(),
            "seconds": self.seconds,
            "median_seconds": median(&self.seconds),
            "peak_bytes": self.peak_bytes,
            "result": result,
        });
        if !self.preparation_seconds.is_empty() {
            object["preparation_seconds"] = json!(self.preparation_seconds);
        }
        if !self.was_prepared.is_empty() {
            object["prepared"] = json!(self.was_prepared);
        }
        if args.check {
            object["check"] = json!("ok");
        }
        add_prefetch_json(&mut object, &view.prefetch_stats());
        object
    }

    fn print(
        &self,
        console: &mut Console,
        job: &Job,
        output: &JobOutput,
        view: &View,
        threads: usize,
        args: &RunArgs,
    ) -> Result {
        let (vertices, edges) = (count(view.num_vertices() as u64), count(view.num_edges()));
        let plural = if threads == 1 { "" } else { "s" };
        console.line(format_args!(
            "{} on {vertices} vertices and {edges} edges, {threads} thread{plural}",
            job.kernel().name
        ))?;
        let mut table = ConsoleTable::new();
        let spread = match self.seconds.iter().copied().reduce(f64::max) {
            // Only for several runs: a single one has no spread.
            Some(slowest) if self.seconds.len() > 1 => {
                let fastest = self.seconds.iter().copied().fold(f64::INFINITY, f64::min);
                format!(" (median of {}: {} to {})", self.seconds.len(), duration(fastest), duration(slowest))
            }
            _ => String::new(),
        };
        table.pair("  time", format!("{}{spread}", duration(median(&self.seconds))));
        if !self.preparation_seconds.is_empty() {
            table.pair("  of that preparation", duration(median(&self.preparation_seconds)));
        }
        table.pair("  peak memory", size(self.peak_bytes));
        if args.check {
            table.pair("  check", "ok");
        }
        let is_figure = |value: &Value| !matches!(value, Value::Ranking(_) | Value::Counts(_));
        for (name, value) in output.summary.iter().filter(|(_, value)| is_figure(value)) {
            table.pair(&format!("  {}", name.replace('_', " ")), value_text(value));
        }
        console.table(&table)?;
        // Rankings follow the table, because their columns have other widths.
        for (name, value) in &output.summary {
            let rows: Vec<(&Key, String)> = match value {
                Value::Ranking(ranking) => {
                    ranking.iter().map(|(key, _)| key).zip(scores(ranking.iter().map(|(_, score)| *score))).collect()
                }
                Value::Counts(counts) => counts.iter().map(|(key, number)| (key, count(*number))).collect(),
                _ => continue,
            };
            console.line(format_args!("  {name}"))?;
            let mut table = ConsoleTable::new();
            for (key, shown) in rows {
                table.row([format!("    {}", key_text(key)), shown]);
            }
            console.table(&table)?;
        }
        Ok(())
    }
}

/// The median; 0 without values.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    // A total order, because `sort` needs one and floats have none.
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// Writes the key and the value of each vertex, in ascending order of keys.
fn write_values(
    job: &Job,
    output: &JobOutput,
    view: &View,
    watch: &Watch,
    path: &Path,
    format: ExportFormat,
) -> Result {
    let Some(values) = output.values_by_key(view)? else {
        let kernel = job.kernel().name;
        return Err(CommandFailure::failed(format!("--output: {kernel} gives no value for each vertex")));
    };
    // Standard output is always text: it has no name that could tell another format.
    if path == Path::new("-") {
        return write_lines(&mut Output::new(path, std::io::stdout()), &values, view);
    }
    let ((), file) = write_aside_watched(path, watch, |output| {
        // Text follows Graphalytics, which has words for missing values.
        if format == ExportFormat::EDGE_LIST {
            return write_lines(output, &values, view);
        }
        Ok(view.export_values(job.value_name(), &values, format, output)?)
    })?;
    Ok(file.publish().map_err(anden::Error::from)?)
}

/// Writes `key value` lines as in Graphalytics.
fn write_lines(output: &mut Output<'_>, values: &Values<'_>, view: &View) -> Result {
    let progress = view.context().progress;
    let mut line = String::new();
    for vertex in view.vertices_by_key()? {
        // A signal only cancels by now, so check for each line.
        progress.check().map_err(anden::Error::from)?;
        line.clear();
        push_key(&mut line, view.key_ref(vertex)?);
        line.push(' ');
        push_value(&mut line, values, vertex as usize, |v| view.key_ref(v))?;
        line.push('\n');
        output.write(line.as_bytes()).map_err(anden::Error::from)?;
    }
    Ok(output.flush().map_err(anden::Error::from)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!([median(&[]), median(&[3.0]), median(&[9.0, 1.0]), median(&[9.0, 1.0, 2.0])], [0.0, 3.0, 5.0, 2.0]);
    }
}
