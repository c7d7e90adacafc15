//! `anden export`.

use std::path::{Path, PathBuf};

use anden::View;
use anden::export::{ExportFormat, Output};
use anden_formats::{Aside, OutputContent, require_uncompressed};
use serde_json::json;

use super::{
    note_unknown_types, open_selected, output_format, require_apart, require_no_database_file, session, view,
    write_aside_watched,
};
use crate::args::{ExportArgs, Global};
use crate::console::{Console, count, duration, size};
use crate::failure::{CommandFailure, Result, complain};

/// Writes the graph to a file or to standard output.
pub fn execute(global: &Global, args: &ExportArgs) -> Result {
    let to_stdout = args.file == Path::new("-");
    if to_stdout && global.json {
        return Err(CommandFailure::Usage("export to - and --json both want standard output: give a file".into()));
    }
    let format = format(args)?;
    let vertex_format =
        args.vertices.as_deref().map(|path| output_format(path, OutputContent::Vertices)).transpose()?;
    if let Some(vertices) = &args.vertices {
        if vertices == Path::new("-") {
            return Err(CommandFailure::Usage("--vertices - is no file: name one".into()));
        }
        // One file would replace the other.
        require_apart(&args.file, vertices, "--vertices")?;
    }
    let (session, watch) = session(global)?;
    let database = open_selected(&args.database, &session, &args.selection)?;
    let view = view(&database, &args.selection, global)?;
    let start = std::time::Instant::now();
    watch.clean_up_from_here();
    if !args.selection.types.is_empty() && view.num_edges() == 0 {
        note_unknown_types(&database, &args.selection, global)?;
    }
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
    let mut console = Console::after("the file was written");
    if global.json {
        console.object(&json!({
            "vertices": view.num_vertices(),
            "edges": num_edges,
            "bytes": bytes,
            "seconds": seconds,
            "left_out": left_out,
        }))?;
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
        let hint =
            "GraphML, GEXF and JSON hold all properties, CSV and Parquet those of edges, --vertices FILE.csv those of vertices";
        complain(&format!("note: the export leaves out {what}; {hint}"));
    }
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
