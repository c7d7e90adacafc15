//! The text beside the bits: Java properties.

use std::path::Path;

use anden_base::MAX_VERTICES;
use anden_base::message::shown;

use super::{BitCode, BvLayout};
use crate::number::parse_u64;
use crate::{Error, Result};

/// The class of graphs in this form, with or without its package.
const GRAPH_CLASS: &str = "BVGraph";
/// The largest window. Writers take 7 to 70; every list in the window is kept in memory.
const MAX_WINDOW: u64 = 1 << 10;

/// The facts that the properties state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BvProperties {
    pub(crate) num_vertices: u64,
    pub(crate) num_arcs: u64,
    pub(crate) layout: BvLayout,
}

/// Whether a text is the properties of a graph in this form.
pub(crate) fn is_properties(text: &[u8]) -> bool {
    text.split(|&byte| byte == b'\n').filter_map(entry).any(|(key, value)| key == b"graphclass" && is_class(value))
}

fn is_class(name: &[u8]) -> bool {
    name.rsplit(|&byte| byte == b'.').next() == Some(GRAPH_CLASS.as_bytes())
}

/// The key and the value of a line; `None` for comments and other lines.
fn entry(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii();
    if line.starts_with(b"#") || line.starts_with(b"!") {
        return None;
    }
    let at = line.iter().position(|byte| matches!(byte, b'=' | b':'))?;
    Some((line[..at].trim_ascii(), line[at + 1..].trim_ascii()))
}

impl BvProperties {
    /// Parses the properties.
    ///
    /// # Errors
    /// A count is missing, a value is none, or a code is not read.
    pub(crate) fn parse(path: &Path, text: &[u8]) -> Result<Self> {
        let (mut num_vertices, mut num_arcs, mut flags) = (None, None, (0, &b""[..]));
        let (mut layout, mut zeta_k) = (BvLayout::default(), 3);
        for (line, text) in (1_u64..).zip(text.split(|&byte| byte == b'\n')) {
            let Some((key, value)) = entry(text) else { continue };
            let bad = |expected: &str| bad_line(path, line, expected, value);
            let number = |most: u64, what: &str| {
                parse_u64(value).filter(|&n| n <= most).ok_or_else(|| bad(&format!("{what} of at most {most}")))
            };
            match key {
                b"graphclass" if !is_class(value) => return Err(bad(&format!("the graphclass {GRAPH_CLASS}"))),
                b"nodes" => num_vertices = Some(number(MAX_VERTICES as u64, "a number of nodes")?),
                b"arcs" => num_arcs = Some(number(u64::MAX, "a number of arcs")?),
                b"windowsize" => layout.window = number(MAX_WINDOW, "a windowsize")? as usize,
                b"minintervallength" => {
                    layout.min_interval = number(MAX_VERTICES as u64, "a minintervallength")?;
                }
                b"zetak" => zeta_k = number(7, "a zetak")?.max(1) as u32,
                b"version" => drop(number(1, "a version")?),
                b"endianness" if value != b"big" => return Err(bad("the endianness 'big'")),
                b"compressionflags" => flags = (line, value),
                _ => {}
            }
        }
        layout.residuals = BitCode::Zeta(zeta_k);
        // Read last, because zeta codes refer to `zetak` on any line.
        for flag in flags.1.split(|&byte| byte == b'|').map(<[u8]>::trim_ascii).filter(|flag| !flag.is_empty()) {
            let expected =
                "OUTDEGREES_, REFERENCES_, BLOCKS_, INTERVALS_ or RESIDUALS_ with UNARY, GAMMA, DELTA or ZETA";
            layout.take_flag(flag, zeta_k).ok_or_else(|| bad_line(path, flags.0, expected, flag))?;
        }
        let missing = |key: &str| {
            let what = format!("expected a line '{key}=', found none");
            Error::Input { path: path.to_owned(), what }
        };
        Ok(Self {
            num_vertices: num_vertices.ok_or_else(|| missing("nodes"))?,
            num_arcs: num_arcs.ok_or_else(|| missing("arcs"))?,
            layout,
        })
    }

    /// The properties as text. `num_bits` is the length of the bits.
    pub(crate) fn to_text(self, max_references: usize, num_bits: u64) -> String {
        let Self { num_vertices, num_arcs, layout } = self;
        let per_arc = if num_arcs == 0 { 0.0 } else { num_bits as f64 / num_arcs as f64 };
        let per_vertex = if num_vertices == 0 { 0.0 } else { num_bits as f64 / num_vertices as f64 };
        // The codes are the default ones, for which WebGraph writes no flags.
        format!(
            "#BVGraph properties\ngraphclass=it.unimi.dsi.webgraph.BVGraph\nversion=0\nnodes={num_vertices}\n\
             arcs={num_arcs}\nwindowsize={}\nmaxrefcount={max_references}\nminintervallength={}\nzetak=3\n\
             compressionflags=\nlength={num_bits}\nbitsperlink={per_arc:.3}\nbitspernode={per_vertex:.3}\n",
            layout.window, layout.min_interval
        )
    }
}

impl BvLayout {
    /// Takes the code of one kind of number, as in `BLOCKS_DELTA`. `None` if it is not read.
    fn take_flag(&mut self, flag: &[u8], zeta_k: u32) -> Option<()> {
        let (kind, code) = std::str::from_utf8(flag).ok()?.split_once('_')?;
        let code = match code {
            "UNARY" => BitCode::Unary,
            "GAMMA" => BitCode::Gamma,
            "DELTA" => BitCode::Delta,
            "ZETA" => BitCode::Zeta(zeta_k),
            _ => BitCode::Zeta(code.strip_prefix("ZETA")?.parse().ok().filter(|k| (1..=7).contains(k))?),
        };
        *match kind {
            "OUTDEGREES" => &mut self.outdegrees,
            "REFERENCES" => &mut self.references,
            "BLOCKS" => &mut self.blocks,
            "INTERVALS" => &mut self.intervals,
            "RESIDUALS" => &mut self.residuals,
            // Only a file that is not read here has these numbers.
            "OFFSETS" => return Some(()),
            _ => return None,
        } = code;
        Some(())
    }
}

fn bad_line(path: &Path, line: u64, expected: &str, found: &[u8]) -> Error {
    Error::Line { path: path.to_owned(), line, what: format!("expected {expected}, found {}", shown(found)) }
}
