//! `anden export`.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anden::export::{ExportFormat, Output};
use anden::{Key, Progress, Session, View};
use anden_base::standard_input::StandardInput;
use anden_formats::{Aside, OutputContent, require_uncompressed, split_columns};
use serde_json::{Value, json};

use super::{
    note_unknown_types, open_selected, require_apart, require_no_database_file, session, view, write_aside_watched,
};
use crate::args::{ExportArgs, Global};
use crate::console::{Console, count, duration, size};
use crate::failure::{CommandFailure, Result, complain};

/// Writes the graph to a file or to standard output.
pub fn execute(global: &Global, args: &ExportArgs) -> Result {
    check(global, args)?;
    let to_stdout = args.file == Path::new("-");
    let format = format(args)?;
    if format.is_folder() {
        return execute_folder(global, args, format);
    }
    let vertex_format = args.vertices.as_deref().map(|path| vertex_format(format, path)).transpose()?;
    if let Some(vertices) = &args.vertices {
        if vertices == Path::new("-") {
            return Err(CommandFailure::Usage("--vertices - is no file: name one".into()));
        }
        // One file would replace the other.
        require_apart(&args.file, vertices, "--vertices")?;
    }
    let (session, watch) = session(global)?;
    let view = selected(global, args, &session)?;
    let start = std::time::Instant::now();
    watch.clean_up_from_here();
    // Both files are complete before the first is renamed, because one of them alone is useless.
    let vertices_aside = |(path, format): (&PathBuf, ExportFormat)| -> Result<Aside> {
        Ok(write_aside_watched(path, &watch, |output| Ok(view.export_vertices(format, output)?))?.1)
    };
    let vertices = args.vertices.as_ref().zip(vertex_format).map(vertices_aside).transpose()?;
    let left_out = view.left_out(format, vertex_format);
    // Standard output holds the graph, so the report would be read as edges.
    if to_stdout {
        let written = view.export(format, &mut Output::stopping(&args.file, std::io::stdout(), &*watch));
        watch.clear();
        written?;
        say_left_out(global, &left_out);
        say_pair(global, args, format);
        publish(vertices)?;
        return say_matrix_rows(global, args, format, &view);
    }
    let (num_edges, file) = write_aside_watched(&args.file, &watch, |output| Ok(view.export(format, output)?))?;
    // Vertices first: a reader that waits for the edges then finds both files.
    publish(vertices)?;
    publish(Some(file))?;
    watch.clear();
    // The file may be gone by now, which is no reason to fail after the work.
    let bytes = std::fs::metadata(&args.file).map_or(0, |metadata| metadata.len());
    let seconds = start.elapsed().as_secs_f64();
    say_left_out(global, &left_out);
    say_pair(global, args, format);
    let mut console = Console::after("the file was written");
    if global.json {
        console.object(&report(&view, (num_edges, bytes, seconds), &left_out))?;
    } else if !global.quiet {
        let (edges, bytes, time) = (count(num_edges), size(bytes), duration(seconds));
        console.line(format_args!("wrote {}: {edges} edges, {bytes}, {time}", args.file.display()))?;
        if let Some(path) = &args.vertices {
            console.line(format_args!("wrote {}: {} vertices", path.display(), count(view.num_vertices() as u64)))?;
        }
    }
    say_matrix_rows(global, args, format, &view)?;
    console.finish()
}

/// Refuses options that contradict each other.
fn check(global: &Global, args: &ExportArgs) -> Result {
    if args.file == Path::new("-") && global.json {
        return Err(CommandFailure::Usage("export to - and --json both want standard output: give a file".into()));
    }
    if args.direction.is_given() && args.ego.is_none() {
        return Err(CommandFailure::Usage("--in, --out and --both choose the steps of --ego, which is missing".into()));
    }
    Ok(())
}

/// Writes the graph to a folder of files.
fn execute_folder(global: &Global, args: &ExportArgs, format: ExportFormat) -> Result {
    let name = format.name();
    if args.file == Path::new("-") {
        return Err(CommandFailure::Usage(format!("--format {name} writes a folder, not standard output: name one")));
    }
    if args.vertices.is_some() {
        return Err(CommandFailure::Usage(format!("--vertices: the folder of --format {name} holds the vertices")));
    }
    let (session, watch) = session(global)?;
    let view = selected(global, args, &session)?;
    let start = std::time::Instant::now();
    watch.clean_up_from_here();
    let written = view.export_folder(format, &args.file);
    watch.clear();
    // The error of an interrupted write may be any, so the signal decides the message.
    if watch.is_cancelled() {
        return Err(CommandFailure::Cancelled);
    }
    let (num_edges, seconds) = (written?, start.elapsed().as_secs_f64());
    let (bytes, left_out) = (folder_bytes(&args.file), view.left_out(format, None));
    say_left_out(global, &left_out);
    let mut console = Console::after("the folder was written");
    if global.json {
        console.object(&report(&view, (num_edges, bytes, seconds), &left_out))?;
    } else if !global.quiet {
        let (vertices, edges) = (count(view.num_vertices() as u64), count(num_edges));
        let (bytes, time) = (size(bytes), duration(seconds));
        console
            .line(format_args!("wrote {}: {vertices} vertices, {edges} edges, {bytes}, {time}", args.file.display()))?;
    }
    console.finish()
}

/// The part of the graph to write. Prints notes about what the selection does not find.
fn selected(global: &Global, args: &ExportArgs, session: &Session) -> Result<View> {
    let database = open_selected(&args.database, session, &args.selection)?;
    let view = induced(view(&database, &args.selection, global)?, args)?;
    if !args.selection.types.is_empty() && view.num_edges() == 0 {
        note_unknown_types(&database, &args.selection, global)?;
    }
    Ok(view)
}

/// The object of `--json`.
fn report(view: &View, (num_edges, bytes, seconds): (u64, u64, f64), left_out: &[String]) -> Value {
    json!({
        "vertices": view.num_vertices(),
        "edges": num_edges,
        "bytes": bytes,
        "seconds": seconds,
        "left_out": left_out,
    })
}

/// The bytes of all files below a folder; 0 for those that are gone by now.
fn folder_bytes(folder: &Path) -> u64 {
    let bytes_of = |path: PathBuf| match path.is_dir() {
        true => folder_bytes(&path),
        false => std::fs::metadata(&path).map_or(0, |metadata| metadata.len()),
    };
    std::fs::read_dir(folder).map_or(0, |entries| entries.flatten().map(|entry| bytes_of(entry.path())).sum())
}

/// Prints a note if the loader of a format needs a file of vertices beside the edges.
fn say_pair(global: &Global, args: &ExportArgs, format: ExportFormat) {
    if format.is_pair() && args.vertices.is_none() && !global.quiet {
        let name = format.name();
        complain(&format!("note: {name} loads vertices from a file of their own: --vertices FILE writes it"));
    }
}

/// The part of the graph that `--ego` or `--vertices-in` asks for.
fn induced(view: View, args: &ExportArgs) -> Result<View> {
    if let Some([vertex, steps]) = args.ego.as_deref() {
        let wrong = |_| CommandFailure::Usage(format!("--ego {vertex} {steps}: K is a number of steps"));
        let steps = steps.parse().map_err(wrong)?;
        return Ok(view.ego(vertex.as_str(), steps, args.direction.neighbors())?);
    }
    match &args.vertices_in {
        Some(path) => Ok(view.induced(&keys_in(&view, path)?)?),
        None => Ok(view),
    }
}

/// The keys in a file: the first column of each line.
fn keys_in(view: &View, path: &Path) -> Result<Vec<Key>> {
    let failed = |what: String| CommandFailure::failed(format!("{}: {what}", path.display()));
    let mut text = String::new();
    let read = match path == Path::new("-") {
        true => StandardInput::open(path).map_err(anden::Error::from)?.read_to_string(&mut text),
        false => File::open(path).and_then(|mut file| file.read_to_string(&mut text)),
    };
    read.map_err(|error| failed(format!("cannot read: {error}")))?;
    let mut keys = Vec::new();
    for (line, number) in text.trim_start_matches('\u{feff}').lines().zip(1_u64..) {
        let at_line = |what: &str| CommandFailure::failed(format!("{}:{number}: {what}", path.display()));
        let columns = split_columns(line).map_err(|expected| at_line(&format!("expected {expected}")))?;
        let Some(key) = columns.into_iter().next() else { continue };
        let key = Key::from(key);
        // Looked up here, because only here the line is known.
        view.vertex(key.clone()).map_err(|error| at_line(&error.to_string()))?;
        keys.push(key);
    }
    Ok(keys)
}

/// Prints a note if the rows of a matrix do not tell the keys of their vertices.
fn say_matrix_rows(global: &Global, args: &ExportArgs, format: ExportFormat, view: &View) -> Result {
    // Without the keys of the rows, the vertices of the matrix cannot be told.
    if format.has_matrix_rows() && args.vertices.is_none() && !global.quiet && !view.has_keys_of_matrix()? {
        complain("the rows of the matrix are not the keys: --vertices FILE writes the key of each row");
    }
    Ok(())
}

/// Prints a note about properties that the files do not hold.
fn say_left_out(global: &Global, left_out: &[String]) {
    if !left_out.is_empty() && !global.quiet {
        let what = left_out.join(", ");
        let hint = "GraphML, GEXF, JSON and Arrow hold all properties, CSV and Parquet those of edges, --vertices FILE.csv those of vertices";
        complain(&format!("note: the export leaves out {what}; {hint}"));
    }
}

/// The format of the file of vertices beside edges in `format`.
fn vertex_format(format: ExportFormat, path: &Path) -> Result<ExportFormat> {
    // Checked first, because `MANIFEST` and `LOCK` have no ending and would pass as text.
    require_no_database_file(path)?;
    format.of_vertices_at(path).map_err(|error| CommandFailure::Usage(error.to_string()))
}

fn publish(file: Option<Aside>) -> Result {
    Ok(file.map_or(Ok(()), Aside::publish).map_err(anden::Error::from)?)
}

fn format(args: &ExportArgs) -> Result<ExportFormat> {
    let path = &args.file;
    require_no_database_file(path)?;
    let Some(chosen) = args.format else {
        let of_name = ExportFormat::of_path(path, OutputContent::Edges);
        return of_name.map_err(|error| CommandFailure::Usage(format!("{error}, or choose one with --format")));
    };
    // No option makes compressed output.
    require_uncompressed(path, OutputContent::Edges).map_err(|error| CommandFailure::Usage(error.to_string()))?;
    Ok(chosen.for_path(path))
}
