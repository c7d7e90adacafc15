//! The matrix of ratios: a row for each graph, a column for each kernel.

use super::ours::phases;
use crate::harness::{Pairs, geometric_mean};
use crate::kernels::Kernel;
use crate::machine;
use crate::report::{Line, at_most, number};

/// The largest ratio that no cell should exceed, for long and for short runs.
const TARGET: f64 = 1.0;
const SHORT_TARGET: f64 = 1.2;
/// Runs below this time in seconds are short.
const SHORT_SECONDS: f64 = 0.002;

/// The measurements of one kernel on one graph.
#[derive(Debug)]
pub(super) struct FamilyCell {
    pub(super) kernel: Kernel,
    /// Our median times: of the first run with opening, of opening, and of later runs.
    pub(super) first_seconds: f64,
    pub(super) open_seconds: f64,
    pub(super) warm_seconds: f64,
    /// Our median time of later runs that use what the first one prepared.
    pub(super) kept_seconds: f64,
    /// Our median time of the first [phase](phases) of later runs; `None` if the kernel reports none.
    pub(super) first_phase_seconds: Option<f64>,
    pub(super) peers: Vec<PeerPairs>,
}

/// Pairs of our runs and those of another side.
#[derive(Debug)]
pub(super) struct PeerPairs {
    pub(super) name: String,
    /// Opening and the first run; empty if the other side does not report its first run.
    pub(super) first: Pairs,
    /// Later runs, with preparation.
    pub(super) warm: Pairs,
    /// Later runs, of which ours use kept preparation.
    pub(super) kept: Pairs,
}

/// The measurements on one graph.
#[derive(Debug)]
pub(super) struct FamilyRow {
    pub(super) graph: String,
    pub(super) num_vertices: usize,
    pub(super) num_edges: u64,
    pub(super) cells: Vec<FamilyCell>,
}

impl FamilyRow {
    /// The innermost cache that holds a number for each vertex, which is what most kernels read at random.
    fn cache_text(&self, caches: &[(u32, u64)]) -> String {
        let num_bytes = (self.num_vertices * size_of::<u64>()) as u64;
        let cache = caches.iter().find(|(_, size)| num_bytes <= *size);
        let place = cache.map_or_else(|| "memory".to_owned(), |(level, _)| format!("L{level}"));
        format!("{}: {} MB, {place}", self.graph, number(num_bytes as f64 / 1e6))
    }
}

/// A figure of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FamilyFigure {
    /// Opening and the first run in a process.
    First,
    /// Later runs, each with its preparation.
    Warm,
    /// Later runs with kept preparation.
    Kept,
}

impl FamilyFigure {
    fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Warm => "warm",
            Self::Kept => "kept",
        }
    }

    fn pairs(self, peer: &PeerPairs) -> &Pairs {
        match self {
            Self::First => &peer.first,
            Self::Warm => &peer.warm,
            Self::Kept => &peer.kept,
        }
    }
}

impl FamilyCell {
    fn seconds(&self, figure: FamilyFigure) -> f64 {
        match figure {
            FamilyFigure::First => self.first_seconds,
            FamilyFigure::Warm => self.warm_seconds,
            FamilyFigure::Kept => self.kept_seconds,
        }
    }

    /// The other side with the smallest median time.
    pub(super) fn best(&self, figure: FamilyFigure) -> Option<&PeerPairs> {
        let measured = self.peers.iter().filter(|peer| !figure.pairs(peer).is_empty());
        measured.min_by(|a, b| figure.pairs(a).other().total_cmp(&figure.pairs(b).other()))
    }

    /// The ratio to the best other side.
    fn ratio(&self, figure: FamilyFigure) -> Option<f64> {
        Some(figure.pairs(self.best(figure)?).ratio().0)
    }

    /// The bound of the cell: a few microseconds more or less decide short runs.
    fn target(&self, figure: FamilyFigure) -> f64 {
        let is_long = figure != FamilyFigure::First && self.seconds(figure) >= SHORT_SECONDS;
        if is_long { TARGET } else { SHORT_TARGET }
    }

    /// The lines of a report. The bound stands at the best other side.
    pub(super) fn lines(&self) -> Vec<Line> {
        let kernel = self.kernel.name();
        let mut lines = Vec::new();
        for figure in [FamilyFigure::First, FamilyFigure::Warm, FamilyFigure::Kept] {
            let name = format!("{kernel}, {}", figure.name());
            let best = self.best(figure).map(|peer| peer.name.as_str());
            if best.is_none() {
                lines.push(Line::figure(&name, "s", self.seconds(figure), "no other side"));
            }
            for peer in self.peers.iter().filter(|peer| !figure.pairs(peer).is_empty()) {
                let pairs = figure.pairs(peer);
                let is_best = best == Some(peer.name.as_str());
                let bound = if is_best { at_most(self.target(figure), pairs.ratio().0) } else { String::new() };
                lines.push(Line::compared(&name, pairs, &peer.name, bound));
            }
        }
        lines.push(Line::figure(format!("{kernel}: open"), "s", self.open_seconds, "part of first"));
        if let (Some(time), Some((phase, _))) = (self.first_phase_seconds, phases(self.kernel)) {
            lines.push(Line::figure(format!("{kernel}: {phase}"), "s", time, "part of warm"));
        }
        lines
    }

    fn ratio_text(&self, figure: FamilyFigure) -> String {
        let Some(best) = self.best(figure) else { return format!("{} s", number(self.seconds(figure))) };
        let (ratio, low, high) = figure.pairs(best).ratio();
        // All programs of GAP are one side to a reader; the report names the program.
        format!("{ratio:.2} [{low:.2}, {high:.2}] {}", best.name)
    }

    /// Our time, and the phase in which most of it goes.
    fn phase_text(&self) -> String {
        let milliseconds = number(self.warm_seconds * 1e3);
        let (Some(time), Some((first, second))) = (self.first_phase_seconds, phases(self.kernel)) else {
            return format!("{milliseconds} ms");
        };
        let percent = |part: f64| (100.0 * part / self.warm_seconds).round();
        match 2.0 * time > self.warm_seconds {
            true => format!("{milliseconds} ms, {first} {} %", percent(time)),
            false => format!("{milliseconds} ms, {second} {} %", percent(self.warm_seconds - time)),
        }
    }

    fn open_text(&self) -> String {
        let (open, first) = (self.open_seconds, self.first_seconds);
        format!("{} ms, open {} %", number(first * 1e3), (100.0 * open / first).round())
    }
}

/// The matrices of all graphs as text.
pub(super) fn text(kernels: &[Kernel], rows: &[FamilyRow]) -> String {
    let mut text = String::new();
    for (figure, title) in [
        (FamilyFigure::Warm, "Warm, preparation redone: our time ÷ that of the best other side"),
        (FamilyFigure::Kept, "Warm, preparation kept: our time ÷ that of the best other side"),
        (FamilyFigure::First, "First: opening and one run ÷ reading and one run of the best program of GAP"),
    ] {
        text += &table(title, kernels, rows, |cell| cell.ratio_text(figure));
        text += &summary(figure, rows);
    }
    let caches = machine::caches();
    text += &table_of(
        "Nanoseconds an edge of warm runs; 8 bytes a vertex, and the innermost cache that holds them",
        kernels,
        rows,
        |row| row.cache_text(&caches),
        |row, cell| number(cell.warm_seconds * 1e9 / row.num_edges as f64),
    );
    text += &table("Phases of warm runs: our time, the larger phase", kernels, rows, FamilyCell::phase_text);
    text += &table("Phases of first runs: our time, the share of opening", kernels, rows, FamilyCell::open_text);
    text
}

fn table(title: &str, kernels: &[Kernel], rows: &[FamilyRow], cell_text: impl Fn(&FamilyCell) -> String) -> String {
    table_of(title, kernels, rows, |row| row.graph.clone(), |_, cell| cell_text(cell))
}

fn table_of(
    title: &str,
    kernels: &[Kernel],
    rows: &[FamilyRow],
    row_text: impl Fn(&FamilyRow) -> String,
    cell_text: impl Fn(&FamilyRow, &FamilyCell) -> String,
) -> String {
    let head = kernels.iter().map(|kernel| kernel.name()).collect::<Vec<_>>().join(" | ");
    let mut text = format!("\n{title}\n\n| graph | {head} |\n| --- |{}\n", " ---: |".repeat(kernels.len()));
    for row in rows {
        let cell_of = |kernel: &Kernel| row.cells.iter().find(|cell| cell.kernel == *kernel);
        let text_of = |kernel| cell_of(kernel).map_or(String::new(), |cell| cell_text(row, cell));
        let cells: Vec<_> = kernels.iter().map(text_of).collect();
        text += &format!("| {} | {} |\n", row_text(row), cells.join(" | "));
    }
    text + "\n"
}

/// The geometric mean and the worst cell.
fn summary(figure: FamilyFigure, rows: &[FamilyRow]) -> String {
    let cells = rows.iter().flat_map(|row| row.cells.iter().map(move |cell| (&row.graph, cell)));
    let measured: Vec<_> = cells.filter_map(|(graph, cell)| Some((cell.ratio(figure)?, graph, cell))).collect();
    let Some((worst, graph, cell)) = measured.iter().max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return format!("{}: no other side ran\n", figure.name());
    };
    let ratios: Vec<f64> = measured.iter().map(|(ratio, ..)| *ratio).collect();
    let num_above = measured.iter().filter(|(ratio, _, cell)| *ratio > cell.target(figure)).count();
    format!(
        "{}: geometric mean {:.2} of {} cells; worst {worst:.2}, {} on {graph}; {num_above} cells above their bound\n",
        figure.name(),
        geometric_mean(&ratios),
        ratios.len(),
        cell.kernel.name(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(ours: f64, other: f64) -> Pairs {
        let mut pairs = Pairs::default();
        pairs.push(ours, other);
        pairs
    }

    fn cell(kernel: Kernel, peers: Vec<PeerPairs>) -> FamilyCell {
        let first_phase_seconds = (kernel == Kernel::PageRank).then_some(0.75);
        let (first_seconds, open_seconds, warm_seconds, kept_seconds) = (2.0, 0.5, 1.0, 0.25);
        FamilyCell { kernel, first_seconds, open_seconds, warm_seconds, kept_seconds, first_phase_seconds, peers }
    }

    fn peer(name: &str, warm: f64, first: Option<f64>) -> PeerPairs {
        let first = first.map_or_else(Pairs::default, |other| pairs(2.0, other));
        PeerPairs { name: name.into(), first, warm: pairs(1.0, warm), kept: pairs(0.25, warm) }
    }

    #[test]
    fn cells_compare_with_the_best_side() {
        let peers = vec![peer("GAPBS pr", 2.0, Some(1.0)), peer("SciPy", 0.5, None)];
        let cells = vec![cell(Kernel::PageRank, peers), cell(Kernel::Bfs, vec![])];
        let row = FamilyRow { graph: "kron".to_owned(), num_vertices: 1 << 17, num_edges: 1 << 20, cells };
        assert_eq!(row.cache_text(&[(1, 1 << 15), (2, 1 << 20)]), "kron: 1.049 MB, L2");
        assert_eq!(row.cache_text(&[(1, 1 << 15)]), "kron: 1.049 MB, memory");
        let rows = [row];
        let text = text(&[Kernel::PageRank, Kernel::Bfs], &rows);
        for expected in [
            "| kron | 2.00 [2.00, 2.00] SciPy | 1.000 s |",
            "warm: geometric mean 2.00 of 1 cells; worst 2.00, pagerank f32 on kron; 1 cells above",
            "kept: geometric mean 0.50 of 1 cells; worst 0.50, pagerank f32 on kron; 0 cells above",
            "| kron | 2.00 [2.00, 2.00] GAPBS pr | 2.000 s |",
            "| kron | 1000 ms, preparation 75 % | 1000 ms |",
            "| kron | 2000 ms, open 25 % |",
            " | 953.7 | 953.7 |",
        ] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
        let bounds = rows[0].cells[0].lines().into_iter().map(|line| line.bound).collect::<Vec<_>>();
        assert_eq!(bounds, ["≤ 1.2, missed", "", "≤ 1, missed", "", "≤ 1", "part of first", "part of warm"]);
    }
}
