//! `anden generate`.

use std::io;
use std::path::Path;

use anden::generate::{Generator, GridParams, RmatParams, UniformParams};
use anden::{Output, OutputContent, OutputFormat, Session};
use serde_json::json;

use super::{output_format, session, write_aside_watched};
use crate::args::{GenerateArgs, GenerateCommon, Global, Shape};
use crate::console::{Console, count, duration, size};
use crate::failure::{Failure, Result};
use crate::watch::Watch;

/// Makes a random graph.
pub fn execute(global: &Global, args: &GenerateArgs) -> Result {
    let (generator, common) = generator(&args.shape)?;
    let path = common.output.as_path();
    let to_stdout = path == Path::new("-");
    if to_stdout && global.json {
        return Err(Failure::Usage("generate to standard output and --json both want it: give -o a file".into()));
    }
    let form = Form::of(path, &generator)?;
    let (session, watch) = session(global)?;
    form.require_memory(&generator, &session)?;
    let start = std::time::Instant::now();
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
            "peak_bytes": anden::resident_peak(),
        }))?;
    } else if !global.quiet {
        let (vertices, edges) = (count(generator.num_vertices()), count(num_edges));
        let (bytes, time) = (size(bytes), duration(seconds));
        console.line(format_args!("wrote {}: {vertices} vertices, {edges} edges, {bytes}, {time}", path.display()))?;
    }
    console.finish()
}

fn generator(shape: &Shape) -> Result<(Generator, &GenerateCommon)> {
    let (generator, common) = match *shape {
        Shape::Rmat { scale, degree, a, b, c, ref common } => {
            let params = RmatParams { scale, degree: degree.into(), a, b, c, seed: common.seed };
            (Generator::rmat(&params), common)
        }
        Shape::Uniform { scale, degree, ref common } => {
            let params = UniformParams { scale, degree: degree.into(), seed: common.seed };
            (Generator::uniform(&params), common)
        }
        Shape::Grid { width, height, ref common } => {
            let params = GridParams { width: width.into(), height: height.into(), seed: common.seed };
            (Generator::grid(&params), common)
        }
    };
    let generator = generator.and_then(|generator| match &common.weights {
        Some(weights) => generator.with_weights(weights.clone()),
        None => Ok(generator),
    });
    Ok((generator.map_err(anden::Error::from)?, common))
}

/// How the graph is written.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Serialized,
}

impl Form {
    fn of(path: &Path, generator: &Generator) -> Result<Self> {
        match output_format(path, OutputContent::RandomEdges)? {
            OutputFormat::Gapbs if generator.has_weights() => {
                Err(Failure::failed(format!("{}: a .sg file holds no weights: call it .wsg", path.display())))
            }
            OutputFormat::WeightedGapbs if !generator.has_weights() => {
                Err(Failure::failed(format!("{}: a .wsg file needs --weights", path.display())))
            }
            OutputFormat::Gapbs | OutputFormat::WeightedGapbs => Ok(Self::Serialized),
            _ => Ok(Self::Text),
        }
    }

    /// Refuses what does not fit in memory before anything is made.
    fn require_memory(self, generator: &Generator, session: &Session) -> Result {
        let threads = session.num_threads();
        let (num_bytes, form) = match self {
            Self::Text => (generator.edge_list_bytes(threads), "text"),
            Self::Serialized => (generator.gapbs_bytes(threads), "a serialized graph"),
        };
        let (vertices, edges) = (count(generator.num_vertices()), count(generator.num_edges()));
        Ok(session.require_memory(&format!("making {vertices} vertices and {edges} edges as {form}"), num_bytes)?)
    }

    /// Returns how many edges were written: a serialized graph has no loops and no repeated edges.
    fn write(self, generator: &Generator, session: &Session, watch: &Watch, output: &mut Output<'_>) -> Result<u64> {
        let written = match self {
            Self::Text => generator.write_edge_list(session.pool(), output).map(|()| generator.num_edges()),
            Self::Serialized => generator.write_gapbs(session.pool(), watch, output),
        };
        written.map_err(|error| anden::Error::from(error).into())
    }
}
