//! `anden export`.

use std::path::Path;

use anden::{Aside, ExportFormat as Format, Output, VertexFormat, View};
use serde_json::json;

use super::{open_selected, require_apart, require_plain, session, view, write_aside_watched};
use crate::args::{ExportArgs, ExportFormat, Global};
use crate::console::{Console, count, duration, size};
use crate::failure::{Failure, Result, complain};
use crate::watch::Watch;

/// Writes the graph to a file or to standard output.
pub fn execute(global: &Global, args: &ExportArgs) -> Result {
    let to_stdout = args.file == Path::new("-");
    if to_stdout && global.json {
        return Err(Failure::Usage("export to - and --json both want standard output: give a file".into()));
    }
    for path in [Some(&args.file), args.vertices.as_ref()].into_iter().flatten() {
        require_plain(path)?;
    }
    if let Some(vertices) = &args.vertices {
        if vertices == Path::new("-") {
            return Err(Failure::Usage("--vertices - is no file: name one".into()));
        }
        require_apart(&args.file, vertices, "--vertices")?;
    }
    let (session, watch) = session(global)?;
    let format = format(args)?;
    let database = open_selected(&args.database, &session, &args.selection)?;
    let view = view(&database, &args.selection)?;
    let start = std::time::Instant::now();
    watch.clean_up_from_here();
    // Both files are whole before the first is at its place: of a graph in parts, one alone is of no use.
    let vertices = args.vertices.as_ref().map(|path| vertices_aside(&view, path, &watch)).transpose()?;
    if to_stdout {
        let written = view.export(format, &mut Output::stopping(&args.file, std::io::stdout(), &*watch));
        watch.clear();
        written?;
        return publish(vertices);
    }
    let (num_edges, file) = write_aside_watched(&args.file, &watch, |output| Ok(view.export(format, output)?))?;
    publish(vertices)?;
    publish(Some(file))?;
    watch.clear();
    let bytes = std::fs::metadata(&args.file).map_or(0, |metadata| metadata.len());
    let seconds = start.elapsed().as_secs_f64();
    let mut console = Console::after("the file was written");
    if global.json {
        console.object(&json!({
            "vertices": view.num_vertices(),
            "edges": num_edges,
            "bytes": bytes,
            "seconds": seconds,
        }))?;
    } else if !global.quiet {
        let (edges, bytes, time) = (count(num_edges), size(bytes), duration(seconds));
        console.line(format_args!("wrote {}: {edges} edges, {bytes}, {time}", args.file.display()))?;
        if let Some(path) = &args.vertices {
            console.line(format_args!("wrote {}: {} vertices", path.display(), count(view.num_vertices() as u64)))?;
        }
    }
    if format == Format::Mtx && args.vertices.is_none() && !global.quiet && !view.has_keys_of_matrix()? {
        complain("the rows of the matrix are not the keys: --vertices FILE writes the key of each row");
    }
    console.finish()
}

/// Writes the keys of all vertices, in the format that the name says.
fn vertices_aside(view: &View, path: &Path, watch: &Watch) -> Result<Aside> {
    let format = match path.extension().and_then(|e| e.to_str()) {
        Some("csv") => VertexFormat::Csv,
        Some("parquet") => VertexFormat::Parquet,
        _ => VertexFormat::List,
    };
    Ok(write_aside_watched(path, watch, |output| Ok(view.export_vertices(format, output)?))?.1)
}

fn publish(file: Option<Aside>) -> Result {
    Ok(file.map_or(Ok(()), Aside::publish).map_err(anden::Error::from)?)
}

fn format(args: &ExportArgs) -> Result<Format> {
    let extension = args.file.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let chosen = args.format.unwrap_or(match extension {
        "csv" => ExportFormat::Csv,
        "sg" | "wsg" | "el" | "wel" => ExportFormat::Gapbs,
        "mtx" => ExportFormat::Mtx,
        "parquet" => ExportFormat::Parquet,
        "graphml" => ExportFormat::Graphml,
        _ => ExportFormat::Edgelist,
    });
    Ok(match chosen {
        ExportFormat::Csv => Format::Csv,
        ExportFormat::Edgelist => Format::EdgeList,
        ExportFormat::Gapbs if ["el", "wel"].contains(&extension) => Format::EdgeList,
        ExportFormat::Gapbs if extension == "wsg" => Format::WeightedGapbs,
        ExportFormat::Gapbs => Format::Gapbs,
        ExportFormat::Mtx => Format::Mtx,
        ExportFormat::Parquet => Format::Parquet,
        ExportFormat::Graphml => Format::GraphMl,
    })
}
