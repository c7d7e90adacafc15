//! Standard output: one JSON object, or aligned tables for people.

use std::io::{self, BufWriter, StdoutLock, Write};

pub use anden_base::size::size;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;

use crate::failure::{CommandFailure, Result};

/// Buffered standard output. Output appears at [`finish`](Self::finish) or when the buffer is full.
pub struct Console {
    out: BufWriter<StdoutLock<'static>>,
    /// The work completed before the output, for error messages.
    done: Option<&'static str>,
}

impl Console {
    /// Locks standard output.
    pub fn new() -> Self {
        // Locked for its whole life, so a write costs no further lock.
        Self { out: BufWriter::new(io::stdout().lock()), done: None }
    }

    /// A console for the report of completed work, as in "the database was made". If the output fails, the error says
    /// what was done.
    pub fn after(done: &'static str) -> Self {
        Self { done: Some(done), ..Self::new() }
    }

    pub fn line(&mut self, text: impl std::fmt::Display) -> Result {
        writeln!(self.out, "{text}").map_err(|error| self.failed(error))
    }

    pub fn object(&mut self, object: &Value) -> Result {
        self.line(object)
    }

    pub fn table(&mut self, table: &ConsoleTable) -> Result {
        self.bytes(table.to_string().as_bytes())
    }

    /// Prints bytes unchanged.
    pub fn bytes(&mut self, text: &[u8]) -> Result {
        self.out.write_all(text).map_err(|error| self.failed(error))
    }

    /// Writes the buffer, so that a waiting reader gets what was printed.
    pub fn flush(&mut self) -> Result {
        self.out.flush().map_err(|error| self.failed(error))
    }

    /// Ends a command whose reader has closed the pipe, as `head` does.
    pub fn require_reader(&self) -> Result {
        let mut output = [PollFd::new(self.out.get_ref(), PollFlags::empty())];
        // If the system call fails, the next write reports a closed pipe.
        match poll(&mut output, Some(&Timespec::default())) {
            Ok(_) if output[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => Err(CommandFailure::ClosedPipe),
            _ => Ok(()),
        }
    }

    /// Writes the rest of the buffer.
    pub fn finish(mut self) -> Result {
        self.flush()
    }

    fn failed(&self, error: io::Error) -> CommandFailure {
        // The work is done by now, so the message must not sound as if nothing had happened.
        match (CommandFailure::stdout(error), self.done) {
            (CommandFailure::Failed(error), Some(done)) => CommandFailure::failed(format!("{done}, but {error}")),
            (failure, _) => failure,
        }
    }
}

/// A table with aligned columns: the first one and text to the left, numbers to the right.
#[derive(Debug, Default)]
pub struct ConsoleTable {
    rows: Vec<Vec<String>>,
    has_header: bool,
}

impl ConsoleTable {
    /// A table without a header.
    pub fn new() -> Self {
        Self::default()
    }

    /// A table with a header.
    pub fn with_header(names: &[&str]) -> Self {
        Self { rows: vec![names.iter().map(ToString::to_string).collect()], has_header: true }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) -> &mut Self {
        self.rows.push(cells.into_iter().collect());
        self
    }

    /// Adds a row with a name and a value.
    pub fn pair(&mut self, name: &str, value: impl std::fmt::Display) -> &mut Self {
        self.row([name.to_owned(), value.to_string()])
    }
}

impl std::fmt::Display for ConsoleTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let num_columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
        let widths: Vec<usize> =
            // Widths count characters, because a character may take several bytes.
            (0..num_columns).map(|i| cells(i).map(|cell| cell.chars().count()).max().unwrap_or(0)).collect();
        // A header says nothing about the values of its column.
        let body = usize::from(self.has_header);
        let is_number = |cell: &String| cell.chars().all(|c| c.is_ascii_digit() || "-+.,e".contains(c));
        let right: Vec<bool> = (0..num_columns)
            .map(|i| i > 0 && self.rows.iter().skip(body).filter_map(|row| row.get(i)).all(is_number))
            .collect();
        for row in &self.rows {
            let mut line = String::new();
            for (i, cell) in row.iter().enumerate() {
                let width = widths[i];
                let gap = if i == 0 { "" } else { "  " };
                line += &if right[i] { format!("{gap}{cell:>width$}") } else { format!("{gap}{cell:<width$}") };
            }
            // Padding at the end of a line would only wrap it on narrow terminals.
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Formats a count: `1,342,296`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats seconds: `12.4 ms`, `3.21 s`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} us", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        // Below two minutes, decimals still tell runs apart.
        s if s < 120.0 => format!("{s:.2} s"),
        s => {
            // Rounded first: 179.7 s would else show as 2 min 60 s.
            let s = s.round();
            format!("{:.0} min {:02.0} s", (s / 60.0).floor(), s % 60.0)
        }
    }
}

/// Formats a number with up to six significant digits, without trailing zeros.
pub fn real(value: f64) -> String {
    if !value.is_finite() {
        // `Display` of a float has `inf`, which reads like a name in running text.
        return match value.is_nan() {
            true => value.to_string(),
            false => if value > 0.0 { "infinity" } else { "-infinity" }.to_owned(),
        };
    }
    let sign = if value < 0.0 { "-" } else { "" };
    // Below 1e15, an `f64` holds every whole number, so all digits are exact.
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{sign}{}", count(value.abs() as u64));
    }
    // Very small and very large numbers would need many zeros.
    if value.abs() < 1e-4 || value.abs() >= 1e9 {
        return format!("{value:.4e}");
    }
    let decimals = (5 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    // Only zeros behind the decimal point may go: 1,200,000 must not become 12.
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    // Below 1e9, the whole part is a `u64`.
    format!("{sign}{}{point}{fraction}", count(whole.parse().unwrap_or(0)))
}

/// Formats scores with equal numbers of decimals, so that the largest has six significant digits.
pub fn scores(values: impl Iterator<Item = f64> + Clone) -> Vec<String> {
    // An infinite score would leave no decimals for the others.
    let largest = values.clone().map(f64::abs).filter(|value| value.is_finite()).fold(0.0, f64::max);
    let digits = if largest > 0.0 { largest.log10().floor() as i32 + 1 } else { 1 };
    let decimals = (6 - digits).clamp(0, 12) as usize;
    values.map(|value| format!("{value:.decimals$}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!([count(0), count(999), count(1000), count(1_342_296)], ["0", "999", "1,000", "1,342,296"]);
        assert_eq!([duration(2.5e-5), duration(0.0124), duration(3.214)], ["25 us", "12.4 ms", "3.21 s"]);
        assert_eq!([duration(125.0), duration(179.7)], ["2 min 05 s", "3 min 00 s"]);
        assert_eq!([real(1.0), real(0.0123456789), real(2.5e-7)], ["1", "0.0123457", "2.5000e-7"]);
        assert_eq!([real(f64::INFINITY), real(1440081.0), real(12.5)], ["infinity", "1,440,081", "12.5"]);
        assert_eq!([real(f64::NEG_INFINITY), real(-1440081.0), real(f64::NAN)], ["-infinity", "-1,440,081", "NaN"]);
        assert_eq!([real(1440081.5), real(-1234.5), real(999_999.96)], ["1,440,082", "-1,234.5", "1,000,000"]);
        assert_eq!([real(1200.00001), real(-0.5), real(-0.0)], ["1,200", "-0.5", "0"]);
    }

    #[test]
    fn scores_have_the_same_decimals() {
        assert_eq!(scores([0.12732, 0.0206179].into_iter()), ["0.127320", "0.020618"]);
        assert_eq!(scores([1234.5, 2.25].into_iter()), ["1234.50", "2.25"]);
        assert_eq!(scores([0.0].into_iter()), ["0.00000"]);
    }

    #[test]
    fn columns_align() {
        let mut table = ConsoleTable::with_header(&["name", "count"]);
        table.row(["a".into(), "7".into()]).row(["long name".into(), "1,000".into()]);
        assert_eq!(table.to_string(), "name       count\na              7\nlong name  1,000\n");
    }
}
