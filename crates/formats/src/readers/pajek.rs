//! Pajek networks: vertices with labels, then arcs and edges.
//!
//! `*Vertices n` announces the vertices 1 to n. A line has a number, a label, and optionally coordinates, a shape and
//! pairs of names and values, which become properties. `*Arcs` are directed, `*Edges` are not; a line has source,
//! target, optionally a weight (by default 1) and pairs. `*Arcslist` and `*Edgeslist` have a source and all its
//! targets. A relation, as in `*Arcs :2`, becomes the property `relation`.
//!
//! Labels are the keys if they are keys of the wanted type and unique, else the numbers. Arcs beside edges are read if
//! the user states a direction: in a directed graph, an edge becomes two arcs. Time intervals are left out with a note.
//! Matrices, partitions and a second network are refused.
//!
//! # Source
//! W. de Nooy, A. Mrvar, V. Batagelj: Exploratory Social Network Analysis with Pajek, 3rd edition, 2018.

use std::io::Read;

use anden_base::message::shown;
use anden_graph::GraphKind;
use anden_graph::property::PropertyType;

use crate::Result;
use crate::collector::InputCollector;
use crate::document::{
    Characters, DocumentFault, DocumentKey, DocumentResult, ElementBatch, ElementParser, KeyNames, LabelUse,
    ScannedParser, TextRange, open_scanned,
};
use crate::input_format::{InputFormat, Recognition};
use crate::number::parse_u64;
use crate::outcome::unexpected;
use crate::probe::InputProbe;

/// The format.
pub(super) struct Pajek;

impl InputFormat for Pajek {
    fn name(&self) -> &'static str {
        "pajek"
    }

    fn endings(&self) -> &'static [(&'static str, &'static str)] {
        &[("net", "a Pajek network")]
    }

    fn recognises(&self, text: &[u8]) -> Recognition {
        let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"%"));
        let word = first.and_then(|line| line.split(u8::is_ascii_whitespace).next()).unwrap_or_default();
        let is_pajek = ["*vertices", "*network"].iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
        if is_pajek { Recognition::Sure } else { Recognition::No }
    }

    fn open(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        let stated = to.options.graph_kind;
        let weights = to.options.weights.is_some();
        open_scanned(input, move |reader| PajekParser::new(reader, stated, weights), to)
    }
}

/// The section that the next lines belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PajekSection {
    /// Before the first section.
    Start,
    Vertices,
    /// Lines of one edge, or of a source and its targets.
    Edges {
        kind: GraphKind,
        is_list: bool,
    },
}

/// Splits a network.
struct PajekParser {
    text: Characters,
    /// The direction that the user states.
    stated: Option<GraphKind>,
    /// The direction of the edges met up to now.
    graph_kind: Option<GraphKind>,
    section: PajekSection,
    num_vertices: u64,
    /// The number of the next vertex that no line has named.
    next_vertex: u64,
    /// The number of vertices without lines.
    num_implied: u64,
    /// Bytes of the lines read.
    num_bytes: u64,
    /// The relation of the section.
    relation: Option<String>,
    names: KeyNames,
    weight: usize,
    label: usize,
    has_intervals: bool,
    /// The present line.
    current: Vec<u8>,
    /// Whether the present line waits until the vertices before it are returned.
    is_waiting: bool,
    /// The source of a list, and the place of its next target in the line.
    list: Option<(u64, usize)>,
}

impl PajekParser {
    fn new(reader: Box<dyn Read + Send>, stated: Option<GraphKind>, has_weights: bool) -> Self {
        let mut names = KeyNames::default();
        // The first two keys are always within the limit.
        let label = names.number("label", false).unwrap_or_default();
        let weight = if has_weights { names.number("weight", true).unwrap_or_default() } else { usize::MAX };
        if has_weights {
            let key = &mut names.keys_mut()[weight];
            (key.property_type, key.default) = (Some(PropertyType::F64), Some(b"1".to_vec()));
        }
        Self {
            text: Characters::new(reader),
            stated,
            graph_kind: None,
            section: PajekSection::Start,
            num_vertices: 0,
            next_vertex: 1,
            num_implied: 0,
            num_bytes: 0,
            relation: None,
            names,
            weight,
            label,
            has_intervals: false,
            current: Vec::new(),
            is_waiting: false,
            list: None,
        }
    }

    fn wrong(&self, what: String) -> DocumentFault {
        self.text.wrong(what)
    }

    /// Takes a line that begins a section.
    fn begin_section(&mut self) -> DocumentResult<()> {
        let line = String::from_utf8_lossy(&self.current).into_owned();
        let mut words = line.split_ascii_whitespace();
        let name = words.next().unwrap_or_default().to_ascii_lowercase();
        let (name, attached) = name.split_once(':').map_or((&name[..], None), |(name, number)| (name, Some(number)));
        let (kind, is_list) = match name {
            "*network" => return Ok(()),
            "*vertices" if self.section == PajekSection::Start => {
                let count = words.next();
                let Some(num_vertices) = count.and_then(|count| parse_u64(count.as_bytes())) else {
                    return Err(self.wrong(unexpected("a number of vertices", count.map(str::as_bytes))));
                };
                self.num_vertices = num_vertices;
                self.section = PajekSection::Vertices;
                return Ok(());
            }
            "*vertices" => return Err(self.wrong("a file with a second network is not read: split it".into())),
            "*arcs" => (GraphKind::Directed, false),
            "*edges" => (GraphKind::Undirected, false),
            "*arcslist" => (GraphKind::Directed, true),
            "*edgeslist" => (GraphKind::Undirected, true),
            _ => {
                let expected = "a section *Vertices, *Arcs, *Edges, *Arcslist or *Edgeslist";
                return Err(self.wrong(unexpected(expected, Some(line.as_bytes()))));
            }
        };
        if self.section == PajekSection::Start {
            return Err(self.wrong(unexpected("*Vertices before other sections", Some(line.as_bytes()))));
        }
        let number = attached.or_else(|| words.next()?.strip_prefix(':')).map(str::to_owned);
        self.relation = number.filter(|number| !number.is_empty());
        self.section = PajekSection::Edges { kind, is_list };
        Ok(())
    }

    /// Takes the direction of the edges of a line.
    fn direct(&mut self, kind: GraphKind) -> DocumentResult<()> {
        if *self.graph_kind.get_or_insert(kind) != kind && self.stated.is_none() {
            let what = "the network has arcs and edges: --directed or --undirected reads both kinds";
            return Err(self.wrong(what.into()));
        }
        Ok(())
    }

    /// Appends the next vertex that no line names.
    ///
    /// # Errors
    /// Vertices without lines leave no trace in the text. A limit refuses a number that would make a small text
    /// allocate huge arrays.
    fn push_implied(&mut self, batch: &mut ElementBatch) -> DocumentResult<()> {
        self.num_implied += 1;
        if self.num_implied > 16 * self.num_bytes + (1 << 20) {
            let (count, bytes) = (self.num_vertices, self.num_bytes);
            let what = format!("*Vertices promises {count} vertices, which a text of {bytes} bytes does not bear out");
            return Err(self.wrong(what));
        }
        let id = batch.push_text(self.next_vertex.to_string().as_bytes());
        batch.push_node(self.text.line, id);
        self.next_vertex += 1;
        Ok(())
    }

    /// Parses the number of a vertex.
    fn vertex(&self, token: Option<&[u8]>, name: &str) -> std::result::Result<u64, String> {
        let number = token.and_then(parse_u64).filter(|number| (1..=self.num_vertices).contains(number));
        number.ok_or_else(|| unexpected(&format!("a {name} from 1 to {}", self.num_vertices), token))
    }

    /// Appends the vertex of the present line.
    fn push_vertex(&mut self, batch: &mut ElementBatch) -> std::result::Result<(), String> {
        let mut at = 0;
        let line = std::mem::take(&mut self.current);
        let id = batch.push_text(next_word(&line, &mut at).unwrap_or_default());
        if let Some(label) = next_word(&line, &mut at) {
            batch.push_datum(self.label, label, true);
        }
        let mut start = at;
        for name in ["x", "y", "z"] {
            let Some(word) = next_word(&line, &mut at).filter(|word| is_number(word)) else { break };
            let key = self.names.number(name, false)?;
            batch.push_datum(key, word, false);
            start = at;
        }
        // A shape has no name before it, so it makes the number of words odd.
        let (mut at, mut num_words) = (start, 0);
        while next_word(&line, &mut at).is_some() {
            num_words += 1;
        }
        at = start;
        if num_words % 2 == 1 {
            let key = self.names.number("shape", false)?;
            batch.push_datum(key, next_word(&line, &mut at).unwrap_or_default(), false);
        }
        let read = self.push_pairs(&line, at, false, batch);
        batch.push_node(self.text.line, id);
        self.current = line;
        read
    }

    /// Appends the edge of the present line.
    fn push_edge(&mut self, kind: GraphKind, batch: &mut ElementBatch) -> std::result::Result<(), String> {
        let line = std::mem::take(&mut self.current);
        let mut at = 0;
        let mut first = next_word(&line, &mut at);
        let mut relation = self.relation.clone();
        // A line may begin with its relation, `2: 1 5`.
        if let Some(number) = first.and_then(|word| word.strip_suffix(b":")) {
            relation = Some(String::from_utf8_lossy(number).into_owned());
            first = next_word(&line, &mut at);
        }
        let source = self.vertex(first, "source")?;
        let target = self.vertex(next_word(&line, &mut at), "target")?;
        let ends = [source, target].map(|end| batch.push_text(end.to_string().as_bytes()));
        let start = at;
        match next_word(&line, &mut at).filter(|word| is_number(word)) {
            Some(weight) => {
                self.push_weight(weight, batch)?;
            }
            None => at = start,
        }
        if let Some(relation) = relation {
            let key = self.names.number("relation", true)?;
            batch.push_datum(key, relation.as_bytes(), false);
        }
        self.push_pairs(&line, at, true, batch)?;
        self.current = line;
        self.finish_edge(ends, kind, batch);
        Ok(())
    }

    fn push_weight(&mut self, weight: &[u8], batch: &mut ElementBatch) -> std::result::Result<(), String> {
        if self.weight == usize::MAX {
            self.weight = self.names.number("weight", true)?;
            self.names.keys_mut()[self.weight].property_type = Some(PropertyType::F64);
        }
        batch.push_datum(self.weight, weight, false);
        Ok(())
    }

    fn finish_edge(&self, [source, target]: [TextRange; 2], kind: GraphKind, batch: &mut ElementBatch) {
        let is_doubled = self.stated == Some(GraphKind::Directed) && kind == GraphKind::Undirected;
        batch.push_edge(self.text.line, (source, target), is_doubled);
    }

    /// Appends the next edge of a list; returns whether there is one.
    fn push_listed(&mut self, kind: GraphKind, batch: &mut ElementBatch) -> std::result::Result<bool, String> {
        let (source, mut at) = match self.list {
            Some(list) => list,
            None => {
                let mut at = 0;
                let first = next_word(&self.current, &mut at);
                (self.vertex(first, "source")?, at)
            }
        };
        let Some(word) = next_word(&self.current, &mut at) else {
            self.list = None;
            return Ok(false);
        };
        let target = self.vertex(Some(word), "target")?;
        self.list = Some((source, at));
        let ends = [source, target].map(|end| batch.push_text(end.to_string().as_bytes()));
        if let Some(relation) = self.relation.clone() {
            let key = self.names.number("relation", true)?;
            batch.push_datum(key, relation.as_bytes(), false);
        }
        self.finish_edge(ends, kind, batch);
        Ok(true)
    }

    /// Appends pairs of names and values.
    fn push_pairs(
        &mut self,
        line: &[u8],
        mut at: usize,
        is_edge: bool,
        batch: &mut ElementBatch,
    ) -> std::result::Result<(), String> {
        while let Some(name) = next_word(line, &mut at) {
            // A time interval such as [1-3] stands alone.
            if name.starts_with(b"[") {
                self.has_intervals = true;
                continue;
            }
            let name = String::from_utf8_lossy(name);
            let Some(value) = next_word(line, &mut at) else {
                return Err(format!("expected a value of {}, found the end of the line", shown(name.as_bytes())));
            };
            let key = self.names.number(&name, is_edge)?;
            batch.push_datum(key, value, false);
        }
        Ok(())
    }

    /// Takes the next line that is neither blank nor a comment; returns whether there is one.
    fn next_line(&mut self) -> DocumentResult<bool> {
        loop {
            if !self.text.take_line(&mut self.current)? {
                return Ok(false);
            }
            self.num_bytes += self.current.len() as u64 + 1;
            let (start, end) = crate::lines::trimmed(&self.current, 0, self.current.len());
            self.current.truncate(end);
            self.current.drain(..start);
            if !self.current.is_empty() && !self.current.starts_with(b"%") {
                return Ok(true);
            }
        }
    }
}

/// The next word of a line, or the text between quotes.
fn next_word<'a>(line: &'a [u8], at: &mut usize) -> Option<&'a [u8]> {
    let rest = &line[*at..];
    let start = *at + rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
    if line[start] == b'"' {
        let len = memchr::memchr(b'"', &line[start + 1..]).unwrap_or(line.len() - start - 1);
        *at = (start + len + 2).min(line.len());
        return Some(&line[start + 1..start + 1 + len]);
    }
    let end = line[start..].iter().position(u8::is_ascii_whitespace).map_or(line.len(), |len| start + len);
    *at = end;
    Some(&line[start..end])
}

fn is_number(word: &[u8]) -> bool {
    std::str::from_utf8(word).is_ok_and(|word| word.parse::<f64>().is_ok())
}

impl ElementParser for PajekParser {
    fn element(&mut self, batch: &mut ElementBatch) -> DocumentResult<bool> {
        loop {
            if self.list.is_none() && !self.is_waiting && !self.next_line()? {
                if self.section == PajekSection::Start {
                    return Err(self.text.wrong_here("expected a section *Vertices, found none".into()));
                }
                let is_implied = self.next_vertex <= self.num_vertices;
                return if is_implied { self.push_implied(batch).map(|()| true) } else { Ok(false) };
            }
            match self.section {
                _ if self.list.is_none() && self.current.starts_with(b"*") => {
                    self.is_waiting = false;
                    self.begin_section()?;
                }
                PajekSection::Start => {
                    return Err(self.wrong(unexpected("a section *Vertices", Some(&self.current))));
                }
                PajekSection::Vertices => {
                    let mut at = 0;
                    let number = self.vertex(next_word(&self.current, &mut at), "vertex");
                    let number = number.map_err(|what| self.wrong(what))?;
                    self.is_waiting = number > self.next_vertex;
                    if self.is_waiting {
                        return self.push_implied(batch).map(|()| true);
                    }
                    self.next_vertex = self.next_vertex.max(number + 1);
                    self.push_vertex(batch).map_err(|what| self.wrong(what))?;
                    return Ok(true);
                }
                PajekSection::Edges { kind, is_list } => {
                    self.direct(kind)?;
                    if !is_list {
                        self.push_edge(kind, batch).map_err(|what| self.wrong(what))?;
                        return Ok(true);
                    }
                    if self.push_listed(kind, batch).map_err(|what| self.wrong(what))? {
                        return Ok(true);
                    }
                }
            }
        }
    }

    fn num_lines(&self) -> u64 {
        // The present line is not done while elements of it are left.
        if self.is_waiting || self.list.is_some() { self.text.line } else { self.text.num_lines() }
    }
}

impl ScannedParser for PajekParser {
    fn keys(&self) -> &[DocumentKey] {
        self.names.keys()
    }

    fn graph_kind(&self) -> Option<GraphKind> {
        self.graph_kind
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.has_intervals {
            notes.push("time intervals are left out".to_owned());
        }
        notes
    }

    fn label_use(&self) -> LabelUse {
        LabelUse::Key
    }

    fn counts_nodes(&self) -> bool {
        true
    }
}
