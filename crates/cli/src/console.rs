//! Standard output: one JSON object, or aligned tables with readable numbers.

use std::io::{self, BufWriter, StdoutLock, Write};

pub use anden::size;
use serde_json::Value;

use crate::failure::{Failure, Result};

/// Standard output, buffered. Nothing reaches it before [`finish`](Self::finish) or a full buffer.
pub struct Console {
    out: BufWriter<StdoutLock<'static>>,
    /// What was done before anything is printed, if anything was.
    done: Option<&'static str>,
}

impl Console {
    /// Takes standard output.
    pub fn new() -> Self {
        Self { out: BufWriter::new(io::stdout().lock()), done: None }
    }

    /// The same, for the report of what was `done`, as in "the database was made": who cannot be told that is told so.
    pub fn after(done: &'static str) -> Self {
        Self { done: Some(done), ..Self::new() }
    }

    /// Prints a line.
    pub fn line(&mut self, text: impl std::fmt::Display) -> Result {
        writeln!(self.out, "{text}").map_err(|error| self.failed(error))
    }

    /// Prints one JSON object.
    pub fn object(&mut self, object: &Value) -> Result {
        self.line(object)
    }

    /// Prints a table.
    pub fn table(&mut self, table: &Table) -> Result {
        self.bytes(table.to_string().as_bytes())
    }

    /// Prints text as it is.
    pub fn bytes(&mut self, text: &[u8]) -> Result {
        self.out.write_all(text).map_err(|error| self.failed(error))
    }

    /// Hands over what is still buffered.
    pub fn finish(mut self) -> Result {
        self.out.flush().map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> Failure {
        match (Failure::stdout(error), self.done) {
            (Failure::Failed(error), Some(done)) => Failure::failed(format!("{done}, but {error}")),
            (failure, _) => failure,
        }
    }
}

/// Rows of cells in aligned columns: the first column to the left, numbers to the right.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    has_header: bool,
}

impl Table {
    /// A table without a header.
    pub fn new() -> Self {
        Self::default()
    }

    /// A table with a header.
    pub fn with_header(names: &[&str]) -> Self {
        Self { rows: vec![names.iter().map(ToString::to_string).collect()], has_header: true }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) -> &mut Self {
        self.rows.push(cells.into_iter().collect());
        self
    }

    /// Adds a row of a name and a value.
    pub fn pair(&mut self, name: &str, value: impl std::fmt::Display) -> &mut Self {
        self.row([name.to_owned(), value.to_string()])
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let num_columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
        let widths: Vec<usize> =
            (0..num_columns).map(|i| cells(i).map(|cell| cell.chars().count()).max().unwrap_or(0)).collect();
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
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// `1,342,296`
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

/// `12.4 ms`, `3.21 s`
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} us", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.2} s"),
        s => format!("{:.0} min {:02.0} s", (s / 60.0).floor(), s % 60.0),
    }
}

/// Up to six significant digits, without a tail of zeros.
pub fn real(value: f64) -> String {
    if !value.is_finite() {
        return if value > 0.0 { "infinity".into() } else { value.to_string() };
    }
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{}{}", if value < 0.0 { "-" } else { "" }, count(value.abs() as u64));
    }
    if value.abs() < 1e-4 || value.abs() >= 1e9 {
        return format!("{value:.4e}");
    }
    let decimals = (5 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Scores with the same number of decimals: six significant digits of the largest.
pub fn scores(values: impl Iterator<Item = f64> + Clone) -> Vec<String> {
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
        assert_eq!(duration(125.0), "2 min 05 s");
        assert_eq!([real(1.0), real(0.0123456789), real(2.5e-7)], ["1", "0.0123457", "2.5000e-7"]);
        assert_eq!([real(f64::INFINITY), real(1440081.0), real(12.5)], ["infinity", "1,440,081", "12.5"]);
    }

    #[test]
    fn scores_have_the_same_decimals() {
        assert_eq!(scores([0.12732, 0.0206179].into_iter()), ["0.127320", "0.020618"]);
        assert_eq!(scores([1234.5, 2.25].into_iter()), ["1234.50", "2.25"]);
        assert_eq!(scores([0.0].into_iter()), ["0.00000"]);
    }

    #[test]
    fn columns_align() {
        let mut table = Table::with_header(&["name", "count"]);
        table.row(["a".into(), "7".into()]).row(["long name".into(), "1,000".into()]);
        assert_eq!(table.to_string(), "name       count\na              7\nlong name  1,000\n");
    }
}
