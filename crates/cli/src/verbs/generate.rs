//! `anden generate`.

use std::io;
use std::path::Path;

use anden::Session;
use anden::export::{ExportFormat, Output};
use anden::graph::generate::{Generator, GridParams, RmatParams, UniformParams};
use anden_formats::{OutputContent, generated};
use serde_json::json;

use super::{output_format, session, write_aside_watched};
use crate::args::{GenerateArgs, GenerateCommon, GeneratorShape, Global};
use crate::console::{Console, count, duration, size};
use crate::failure::{CommandFailure, Result};
use crate::watch::Watch;

/// Generates a random graph.
pub fn execute(global: &Global, args: &GenerateArgs) -> Result {
    let (generator, common) = generator(&args.shape)?;
    let path = common.output.as_path();
    let to_stdout = path == Path::new("-");
    if to_stdout && global.json {
        return Err(CommandFailure::Usage(
            "generate to standard output and --json both want it: give -o a file".into(),
        ));
    }
    // Checked before any work, because the ending decides how much memory is needed.
    let form = GeneratedForm::of(path, &generator)?;
    let (session, watch) = session(global)?;
    form.require_memory(&generator, &session)?;
    let start = std::time::Instant::now();
    // Standard output has no file to remove, so a signal may end the process at once.
    if to_stdout {
        return form.write(&generator, &session, &watch, &mut Output::new(path, io::stdout())).map(|_| ());
    }
    watch.clean_up_from_here();
    let (num_edges, file) =
        write_aside_watched(path, &watch, |output| form.write(&generator, &session, &watch, output))?;
    file.publish().map_err(anden::Error::from)?;
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let seconds = start.elapsed().as_secs_f64();
    let mut console = Console::after("the file was written");
    if global.json {
        console.object(&json!({
            "vertices": generator.num_vertices(),
            "edges": num_edges,
            "bytes": bytes,
            "seconds": seconds,
            "peak_bytes": anden_base::memory::resident_peak(),
        }))?;
    } else if !global.quiet {
        let (vertices, edges) = (count(generator.num_vertices()), count(num_edges));
        let (bytes, time) = (size(bytes), duration(seconds));
        console.line(format_args!("wrote {}: {vertices} vertices, {edges} edges, {bytes}, {time}", path.display()))?;
    }
    console.finish()
}

fn generator(shape: &GeneratorShape) -> Result<(Generator, &GenerateCommon)> {
    let (generator, common) = match *shape {
        GeneratorShape::Rmat { scale, degree, a, b, c, ref common } => {
            let params = RmatParams { scale, degree: degree.into(), a, b, c, seed: common.seed };
            (Generator::rmat(&params), common)
        }
        GeneratorShape::Uniform { scale, degree, ref common } => {
            let params = UniformParams { scale, degree: degree.into(), seed: common.seed };
            (Generator::uniform(&params), common)
        }
        GeneratorShape::Grid { width, height, ref common } => {
            let params = GridParams { width: width.into(), height: height.into(), seed: common.seed };
            (Generator::grid(&params), common)
        }
    };
    // The generator has checked the shares, whose sum no single option shows.
    let generator = generator.and_then(|generator| match &common.weights {
        Some(weights) => generator.with_weights(weights.clone()),
        None => Ok(generator),
    });
    Ok((generator.map_err(anden::Error::from)?, common))
}

/// The form of the output.
#[derive(Clone, Copy)]
enum GeneratedForm {
    Text,
    Serialized,
}

impl GeneratedForm {
    fn of(path: &Path, generator: &Generator) -> Result<Self> {
        let format = output_format(path, OutputContent::RandomEdges)?;
        let refused = |why| Err(CommandFailure::Usage(format!("{}: {why}", path.display())));
        // Readers take the ending for the layout, so a wrong one would not be read.
        if format == ExportFormat::GAPBS && generator.has_weights() {
            return refused("a .sg file holds no weights: call it .wsg");
        }
        if format == ExportFormat::WEIGHTED_GAPBS && !generator.has_weights() {
            return refused("a .wsg file needs --weights");
        }
        // Both endings have one writer, so the name of the format decides.
        Ok(if format.name() == ExportFormat::GAPBS.name() { Self::Serialized } else { Self::Text })
    }

    /// Refuses a graph that does not fit in memory, before any work.
    fn require_memory(self, generator: &Generator, session: &Session) -> Result {
        let threads = session.num_threads();
        let (num_bytes, form) = match self {
            Self::Text => (generated::edge_list_bytes(generator, threads), "text"),
            Self::Serialized => (generated::gapbs_bytes(generator, threads), "a serialized graph"),
        };
        let (vertices, edges) = (count(generator.num_vertices()), count(generator.num_edges()));
        Ok(session.require_memory(&format!("making {vertices} vertices and {edges} edges as {form}"), num_bytes)?)
    }

    /// Writes the graph. Returns the number of edges: a serialized graph drops loops and repeated edges.
    fn write(self, generator: &Generator, session: &Session, watch: &Watch, output: &mut Output<'_>) -> Result<u64> {
        let written = match self {
            Self::Text => generated::write_edge_list(generator, session.pool(), output).map(|()| generator.num_edges()),
            Self::Serialized => generated::write_gapbs(generator, session.pool(), watch, output),
        };
        written.map_err(|error| anden::Error::from(error).into())
    }
}
