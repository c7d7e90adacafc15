//! Opens inputs: finds their formats and lets these collect what the inputs state.

use crate::collector::InputCollector;
use crate::foreign;
use crate::input_format::{InputFormat, Recognition};
use crate::labeled::Said;
use crate::options::{LoneKeys, SourceOptions};
use crate::probe::InputProbe;
use crate::readers;
use crate::{Error, InputPath, Result};

/// Opens an input of edges; `said` applies to all its edges.
///
/// # Errors
/// The input cannot be read, or its beginning violates its format.
pub(crate) fn open_edges(input: &InputPath, said: &Said, to: &mut InputCollector<'_>) -> Result<()> {
    let first = to.parts.len();
    open_input(input, to)?;
    to.parts[first..].iter_mut().for_each(|part| part.said = said.or(&part.said));
    Ok(())
}

fn open_input(input: &InputPath, to: &mut InputCollector<'_>) -> Result<()> {
    if let InputPath::Arrow(rows) = input {
        return rows.open_edges(InputProbe::new(input)?, to);
    }
    let are_removals = to.options.lone_keys == LoneKeys::Vertices;
    let given = to.options.format.map(readers::reader);
    // A missing path may be the common prefix of several files, and a folder may hold them.
    if let InputPath::File(path) = input
        && !are_removals
        && (path.is_dir() || !path.exists())
    {
        let opened = match given {
            Some(reader) => reader.open_missing(path, to),
            None => readers::open_missing(path, to),
        };
        if let Some(opened) = opened {
            return opened;
        }
    }
    let probe = InputProbe::new(input)?;
    let reader = match given {
        // A format that the caller gives wins over the content.
        Some(reader) => reader,
        None => reader_of(&probe, to.options)?,
    };
    match are_removals {
        true => reader.open_removals(probe, to),
        false => reader.open(probe, to),
    }
}

/// Opens an input of vertices; `said` applies to all its vertices.
///
/// # Errors
/// The file cannot be read, or its beginning violates its format.
pub(crate) fn open_vertices(input: &InputPath, said: &Said, to: &mut InputCollector<'_>) -> Result<()> {
    let first = to.parts.len();
    let probe = InputProbe::new(input)?;
    match input {
        InputPath::Arrow(rows) => rows.open_vertices(probe, to)?,
        _ => reader_of(&probe, to.options)?.open_vertices(probe, to)?,
    }
    to.parts[first..].iter_mut().for_each(|part| part.said = said.or(&part.said));
    Ok(())
}

/// The reader of the format that the name tells, or else the content.
///
/// # Errors
/// The input has a format that Anden does not read.
fn reader_of(input: &InputProbe, options: &SourceOptions) -> Result<&'static dyn InputFormat> {
    if let Some(reader) = readers::of_files(&input.path).filter(|_| input.is_file()) {
        return Ok(reader);
    }
    // Errors are left to the reader of the format, which reads this text again.
    let text = input.text().unwrap_or_default();
    let named = readers::of_path(&input.path);
    let reader = named.unwrap_or_else(|| match options.delimiter {
        Some(_) => readers::csv(),
        None => readers::of_content(&text),
    });
    let is_trusted = named.is_some_and(|reader| reader.trusts_name(&text));
    // Misleading faults would follow from a name that promises another format.
    if !is_trusted && let Some(other) = readers::surely_of_content(&text).filter(|other| other.name() != reader.name())
    {
        let (ending, name) = other.endings()[0];
        return Err(Error::Foreign {
            path: input.path.clone(),
            found: format!("this is {name} with another ending"),
            hint: format!("say --format {}, or rename it to .{ending}", other.name()),
        });
    }
    // Checked even for known names, because a foreign file under such a name leads to misleading faults.
    if !is_trusted && reader.recognises(&text) != Recognition::Sure {
        foreign::refuse(&input.path, &input.head)?;
    }
    Ok(reader)
}
