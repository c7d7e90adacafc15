//! `anden export`.

use std::path::{Path, PathBuf};

use anden::{Aside, ExportFormat as Format, Output, OutputContent, OutputFormat, VertexFormat, require_uncompressed};
use serde_json::json;

use super::{
    note_unknown_types, open_selected, output_format, require_apart, require_no_database_file, session, view,
    write_aside_watched,
};
use crate::args::{ExportArgs, ExportFormat, Global};
use crate::console::{Console, count, duration, size};
use crate::failure::{Failure, Result, complain};

/// Writes the graph to a file or to standard output.
pub fn execute(global: &Global, args: &ExportArgs) -> Result {
    let to_stdout = args.file == Path::new("-");
    if to_stdout && global.json {
        return Err(Failure::Usage("export to - and --json both want standard output: give a file".into()));
    }
    let format = format(args)?;
    let vertex_format = args.vertices.as_deref().map(vertex_format).transpose()?;
    if let Some(vertices) = &args.vertices {
        if vertices == Path::new("-") {
            return Err(Failure::Usage("--vertices - is no file: name one".into()));
        }
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
    // Both files are whole before the first is at its place: of a graph in parts, one alone is of no use.
    let vertices_aside = |(path, format): (&PathBuf, VertexFormat)| -> Result<Aside> {
        Ok(write_aside_watched(path, &watch, |output| Ok(view.export_vertices(format, output)?))?.1)
    };
    let vertices = args.vertices.as_ref().zip(vertex_format).map(vertices_aside).transpose()?;
    let left_out = view.left_out(format, vertex_format);
    if to_stdout {
        let written = view.export(format, &mut Output::stopping(&args.file, std::io::stdout(), &*watch));
        watch.clear();
        written?;
        say_left_out(global, &left_out);
        return publish(vertices);
    }
    let (num_edges, file) = write_aside_watched(&args.file, &watch, |output| Ok(view.export(format, output)?))?;
    publish(vertices)?;
    publish(Some(file))?;
    watch.clear();
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
    if format == Format::Mtx && args.vertices.is_none() && !global.quiet && !view.has_keys_of_matrix()? {
        complain("the rows of the matrix are not the keys: --vertices FILE writes the key of each row");
    }
    console.finish()
}

/// Says which properties the files do not hold.
fn say_left_out(global: &Global, left_out: &[String]) {
    if !left_out.is_empty() && !global.quiet {
        let what = left_out.join(", ");
        let hint =
            "GraphML holds all properties, CSV and Parquet those of edges, --vertices FILE.csv those of vertices";
        complain(&format!("note: the export leaves out {what}; {hint}"));
    }
}

fn vertex_format(path: &Path) -> Result<VertexFormat> {
    Ok(match output_format(path, OutputContent::Vertices)? {
        OutputFormat::Csv => VertexFormat::Csv,
        OutputFormat::Parquet => VertexFormat::Parquet,
        _ => VertexFormat::List,
    })
}

fn publish(file: Option<Aside>) -> Result {
    Ok(file.map_or(Ok(()), Aside::publish).map_err(anden::Error::from)?)
}

fn format(args: &ExportArgs) -> Result<Format> {
    let path = &args.file;
    require_no_database_file(path)?;
    let of_name = anden::output_format(path, OutputContent::Edges);
    let Some(chosen) = args.format else {
        let format = of_name.map_err(|error| Failure::Usage(format!("{error}, or choose one with --format")))?;
        return Ok(match format {
            OutputFormat::Csv => Format::Csv,
            OutputFormat::Parquet => Format::Parquet,
            OutputFormat::GraphMl => Format::GraphMl,
            OutputFormat::Mtx => Format::Mtx,
            OutputFormat::Gapbs => Format::Gapbs,
            OutputFormat::WeightedGapbs => Format::WeightedGapbs,
            OutputFormat::Text | OutputFormat::JsonLines => Format::EdgeList,
        });
    };
    // No option makes a compressed file.
    require_uncompressed(path, OutputContent::Edges).map_err(|error| Failure::Usage(error.to_string()))?;
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_lowercase();
    Ok(match (chosen, of_name) {
        (ExportFormat::Csv, _) => Format::Csv,
        (ExportFormat::Edgelist, _) => Format::EdgeList,
        (ExportFormat::Gapbs, _) if ["el", "wel"].contains(&&*extension) => Format::EdgeList,
        (ExportFormat::Gapbs, Ok(OutputFormat::WeightedGapbs)) => Format::WeightedGapbs,
        (ExportFormat::Gapbs, _) => Format::Gapbs,
        (ExportFormat::Mtx, _) => Format::Mtx,
        (ExportFormat::Parquet, _) => Format::Parquet,
        (ExportFormat::Graphml, _) => Format::GraphMl,
    })
}
