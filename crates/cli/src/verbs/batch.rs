//! `anden query --batch`: one question a line, one line of JSON for each answer.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Instant;

use anden::View;
use anden_base::standard_input::StandardInput;
use anden_formats::split_columns;
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use serde_json::{Value, json};

use super::query::answer;
use crate::args::QuestionLine;
use crate::console::Console;
use crate::failure::{CommandFailure, Result};
use crate::watch::Watch;

/// Most bytes of a line. A longer one is no question, and would only take memory.
const MAX_LINE: u64 = 1 << 20;

/// Answers the questions of a file.
pub fn execute(view: &View, watch: &Watch, path: &Path) -> Result {
    let mut lines = QuestionLines::open(path)?;
    // The parser is built once: that takes longer than a small question.
    let mut parser = QuestionLine::command();
    let mut console = Console::new();
    let (mut num_asked, mut num_failed) = (0_u64, 0_u64);
    while let Some(line) = lines.next_question()? {
        num_asked += 1;
        let start = Instant::now();
        let answered = line.map_err(CommandFailure::Usage).and_then(|text| answer(view, &parsed(&mut parser, &text)?));
        let seconds = start.elapsed().as_secs_f64();
        watch.clear();
        let object = match answered {
            Ok(answer) => answer.object(seconds),
            Err(failure @ (CommandFailure::Usage(_) | CommandFailure::Failed(_))) => {
                num_failed += 1;
                json!({ "error": failure.line() })
            }
            Err(end) => return Err(end),
        };
        console.object(&numbered(lines.number, object))?;
        // A program that asks one question after the other waits for each answer.
        if lines.may_wait {
            console.flush()?;
        }
    }
    console.finish()?;
    match num_failed {
        0 => Ok(()),
        _ => Err(CommandFailure::failed(format!(
            "{}: {num_failed} of {num_asked} questions failed; their answers have \"error\"",
            path.display()
        ))),
    }
}

/// The object with the number of its line in front.
fn numbered(number: u64, object: Value) -> Value {
    let mut all = json!({ "line": number });
    if let (Value::Object(all), Value::Object(object)) = (&mut all, object) {
        all.extend(object);
    }
    all
}

/// Parses a question as the command line does.
fn parsed(parser: &mut clap::Command, text: &str) -> Result<crate::args::Query> {
    let wrong = |what: String| CommandFailure::Usage(what);
    let columns = split_columns(text).map_err(|expected| wrong(format!("expected {expected}")))?;
    let found = parser.try_get_matches_from_mut(columns);
    let question = found.and_then(|mut matches| QuestionLine::from_arg_matches_mut(&mut matches));
    question.map(|line| line.query).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => wrong("a batch shows no help".into()),
        _ => {
            let text = error.render().to_string();
            // The usage and the hint to the help take several lines, and are those of the command line.
            let text = text.split("\n\nUsage:").next().unwrap_or(&text);
            let text = text.split("\n\nFor more information").next().unwrap_or(text);
            wrong(text.strip_prefix("error: ").unwrap_or(text).trim_end().to_owned())
        }
    })
}

/// The lines of a file of questions.
struct QuestionLines {
    name: String,
    input: BufReader<Box<dyn Read>>,
    number: u64,
    /// Whether a read may wait for another program.
    may_wait: bool,
}

impl QuestionLines {
    fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let input: Box<dyn Read> = match path == Path::new("-") {
            true => Box::new(StandardInput::open(path).map_err(anden::Error::from)?),
            false => {
                let failed = |error| CommandFailure::failed(format!("{name}: cannot read: {error}"));
                Box::new(File::open(path).map_err(failed)?)
            }
        };
        Ok(Self { name, input: BufReader::new(input), number: 0, may_wait: path == Path::new("-") })
    }

    /// The next question; the inner error says why a line is none.
    fn next_question(&mut self) -> Result<Option<std::result::Result<String, String>>> {
        loop {
            let mut bytes = Vec::new();
            let failed = |error| CommandFailure::failed(format!("{}: cannot read: {error}", self.name));
            let num_read = self.input.by_ref().take(MAX_LINE).read_until(b'\n', &mut bytes).map_err(failed)?;
            if num_read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if num_read as u64 == MAX_LINE && !bytes.ends_with(b"\n") {
                self.skip_line()?;
                return Ok(Some(Err(format!("the line has more than {MAX_LINE} bytes"))));
            }
            let Ok(text) = String::from_utf8(bytes) else { return Ok(Some(Err("the line is not UTF-8".into()))) };
            // Editors of some systems begin a file with a mark of its encoding.
            let text = if self.number == 1 { text.trim_start_matches('\u{feff}') } else { &text };
            let text = text.trim();
            if !text.is_empty() && !text.starts_with('#') {
                return Ok(Some(Ok(text.to_owned())));
            }
        }
    }

    /// Skips the rest of a line, without memory for it.
    fn skip_line(&mut self) -> Result {
        let failed = |error| CommandFailure::failed(format!("{}: cannot read: {error}", self.name));
        loop {
            let buffer = self.input.fill_buf().map_err(failed)?;
            let (end, num_bytes) = match buffer.iter().position(|&byte| byte == b'\n') {
                Some(place) => (true, place + 1),
                None => (buffer.is_empty(), buffer.len()),
            };
            self.input.consume(num_bytes);
            if end {
                return Ok(());
            }
        }
    }
}
