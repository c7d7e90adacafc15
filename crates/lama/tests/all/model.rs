//! Graphs in memory, written to a database and compared with what it shows.

pub mod deaf;
pub mod past;
pub mod properties;
pub mod samples;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anden_lama::{
    DatabaseId, Dictionary, DictionaryKeys, GraphOptions, Identity, Key, KeyScheme, Result, RunWriter, Side, Store,
    View,
};
use base::VertexId;
use base::storage::Storage;
use graph::property::{ColumnBuilder, PropertySchema, PropertyType, PropertyValue};
use graph::{Adjacency, Csr, CsrBuilder, Direction, Graph, InEdges, Page, SingleFragment, Weight, WeightedEdges};

/// The same id and time in every run.
pub const IDENTITY: Identity = Identity { id: DatabaseId(*b"an id of a graph"), unix_time: Some(1_700_000_000) };

/// A graph with the keys of its vertices.
#[derive(Clone, Debug)]
pub struct Model {
    pub options: GraphOptions,
    pub csr: Csr,
    pub keys: Vec<Key>,
    /// Vertices whose lists one append takes.
    pub chunk: usize,
}

impl Model {
    /// The graph with these edges; vertex `v` has the key `keys[v]`.
    pub fn new<W: Weight>(options: GraphOptions, keys: Vec<Key>, edges: &[(VertexId, VertexId, W)]) -> Self {
        let mut builder = CsrBuilder::new(options.direction, keys.len());
        if options.multigraph {
            builder = builder.keep_parallel();
        }
        edges.iter().for_each(|&(source, target, weight)| builder.edge(source, target, weight));
        let csr = if options.weight_type.is_some() { builder.build_weighted() } else { builder.build() };
        Self { options, csr: csr.unwrap(), keys, chunk: 7 }
    }

    /// Writes the database.
    pub fn write(&self, storage: Arc<dyn Storage>, path: &Path) -> Result<Store> {
        let builder = Store::create_as(storage, path, self.options, IDENTITY)?;
        let scratch = builder.temp_file("sorting")?;
        scratch.write_at(0, b"soon gone")?;
        let run = builder.run_writer(self.keys.len())?;
        self.write_side(&run, Side::Out, self.csr.out_lists())?;
        if self.options.in_edges && self.options.direction == Direction::Directed {
            self.write_side(&run, Side::In, self.csr.in_lists().unwrap())?;
        }
        let run = run.finish()?;
        let dictionary = self.write_keys(|keys| builder.write_dictionary(keys))?;
        if self.options.has_rows() {
            let properties = [("number".to_owned(), PropertyType::I64), ("kind".to_owned(), PropertyType::String)];
            let schema = PropertySchema::new(properties.into_iter().filter(|_| self.options.edge_properties))?;
            let of_edges: [fn(u64) -> PropertyValue<'static>; 2] = [|row| PropertyValue::I64(number_of(row)), kind_of];
            builder.write_edge_rows(&schema, self.num_rows(), &|place, take| {
                let mut column = ColumnBuilder::new(schema.get(place).unwrap().1);
                (0..self.num_rows()).for_each(|row| column.push(of_edges[place](row)).unwrap());
                take(&column.finish())
            })?;
        }
        drop(scratch);
        builder.publish(run, dictionary, self.csr.num_edges(), Some("first"))
    }

    fn write_side(&self, run: &RunWriter, side: Side, lists: &Adjacency) -> Result<()> {
        match self.options.weight_type {
            None => self.append_lists::<u32>(run, side, lists, &[]),
            Some(graph::WeightType::U32) => self.append_lists(run, side, lists, column::<u32>(lists)),
            Some(graph::WeightType::I64) => self.append_lists(run, side, lists, column::<i64>(lists)),
            Some(graph::WeightType::F32) => self.append_lists(run, side, lists, column::<f32>(lists)),
            Some(graph::WeightType::F64) => self.append_lists(run, side, lists, column::<f64>(lists)),
        }
    }

    fn append_lists<W: Weight>(&self, run: &RunWriter, side: Side, lists: &Adjacency, weights: &[W]) -> Result<()> {
        let rows = self.rows(side);
        // What has no edges at the end is left for the writer to pad.
        let last = (0..self.keys.len()).rev().find(|&v| lists.offsets()[v] < lists.offsets()[v + 1]);
        for first in (0..last.map_or(0, |last| last + 1)).step_by(self.chunk) {
            let end = self.keys.len().min(first + self.chunk);
            let edges = lists.offsets()[first] as usize..lists.offsets()[end] as usize;
            let degrees: Vec<u32> =
                lists.offsets()[first..=end].windows(2).map(|pair| (pair[1] - pair[0]) as u32).collect();
            let weights = if weights.is_empty() { weights } else { &weights[edges.clone()] };
            let rows = if rows.is_empty() { &rows } else { &rows[edges.clone()] };
            run.append(side, &degrees, &lists.targets()[edges], weights, rows)?;
        }
        Ok(())
    }

    /// One row for each entry of the out-lists.
    fn num_rows(&self) -> u64 {
        self.csr.out_lists().targets().len() as u64
    }

    /// The rows beside the entries of a side; none where the graph has none. An edge has the row with the number of its
    /// entry in the out-list of its source, or of its smaller end.
    fn rows(&self, side: Side) -> Vec<u64> {
        let (out, mut rows) = (self.csr.out_lists(), Vec::new());
        let lists = if side == Side::Out { Some(out) } else { self.csr.in_lists() };
        let Some(lists) = lists.filter(|_| self.options.has_rows()) else { return rows };
        let list_of = |lists: &Adjacency, v: VertexId| {
            lists.offsets()[v as usize] as usize..lists.offsets()[v as usize + 1] as usize
        };
        for v in 0..self.keys.len() as VertexId {
            let list = &lists.targets()[list_of(lists, v)];
            for (place, &neighbor) in list.iter().enumerate() {
                let (source, target) = match (side, self.options.direction) {
                    (_, Direction::Undirected) => (v.min(neighbor), v.max(neighbor)),
                    (Side::Out, _) => (v, neighbor),
                    (Side::In, _) => (neighbor, v),
                };
                // Parallel edges have one order everywhere.
                let num_before = place - list.partition_point(|&other| other < neighbor);
                let of_source = list_of(out, source);
                let first = out.targets()[of_source.clone()].partition_point(|&other| other < target);
                rows.push((of_source.start + first + num_before) as u64);
            }
        }
        rows
    }

    fn write_keys<R>(&self, write: impl Fn(DictionaryKeys<'_>) -> R) -> R {
        let mut sorted: Vec<VertexId> = (0..self.keys.len() as VertexId).collect();
        sorted.sort_by_key(|&v| &self.keys[v as usize]);
        let sorted = (!sorted.is_sorted()).then_some(&sorted[..]);
        match self.options.keys {
            KeyScheme::Dense => write(DictionaryKeys::Dense(self.keys.len() as u64)),
            KeyScheme::Integer => {
                let number = |key: &Key| match key {
                    Key::Integer(key) => *key,
                    Key::String(key) => panic!("{key:?} is no number"),
                };
                let by_id: Vec<u64> = self.keys.iter().map(number).collect();
                write(DictionaryKeys::Integers { by_id: &by_id, sorted })
            }
            KeyScheme::String => {
                let texts: Vec<String> = self.keys.iter().map(Key::to_string).collect();
                let ends = texts.iter().scan(0, |end, text| {
                    *end += text.len() as u64;
                    Some(*end)
                });
                let offsets: Vec<u64> = std::iter::once(0).chain(ends).collect();
                write(DictionaryKeys::Strings { text: texts.concat().as_bytes(), offsets: &offsets, sorted })
            }
        }
    }

    /// Everything that the view and its dictionary answer is what the model answers; or the first damage that the view
    /// or the dictionary reports.
    ///
    /// # Panics
    /// If an answer is wrong and no damage is reported.
    pub fn compare(&self, view: &View) -> Result<()> {
        let answers = answers(view);
        let sides = if view.has_in_edges() { &[Side::Out, Side::In][..] } else { &[Side::Out] };
        let rows: Vec<_> = sides.iter().map(|&side| rows(view, side)).collect();
        let keys = self.check_keys(view.dictionary());
        view.check()?;
        keys?;
        assert_eq!(answers, self.answers());
        for (&side, rows) in sides.iter().zip(rows) {
            assert_eq!(rows, self.rows(side), "{side:?}");
            if view.edge_properties().schema().len() > 1 {
                let gathered = view.edge_properties().gather(&[0, 1], &rows)?;
                let [numbers, kinds] = &gathered[..] else { panic!("{gathered:?}") };
                let expected = rows.iter().map(|&row| PropertyValue::I64(number_of(row)));
                assert!(numbers.iter().eq(expected), "{side:?}");
                assert!(kinds.iter().eq(rows.iter().map(|&row| kind_of(row))), "{side:?}");
            }
        }
        Ok(())
    }

    fn check_keys(&self, dictionary: &Dictionary) -> Result<()> {
        assert_eq!(dictionary.len(), self.keys.len() as u64);
        for (id, key) in self.keys.iter().enumerate() {
            assert_eq!(dictionary.key(id as VertexId)?, *key);
            assert_eq!(dictionary.vertex(key)?, Some(id as VertexId));
        }
        for absent in [Key::Integer(u64::MAX - 3), Key::from("~ no such key"), Key::from("")] {
            assert!(self.keys.contains(&absent) || dictionary.vertex(&absent)?.is_none());
        }
        assert!(dictionary.key(self.keys.len() as VertexId).is_err());
        Ok(())
    }

    fn answers(&self) -> Answers {
        let mut answers = answers(&self.csr);
        answers.is_multigraph = self.options.multigraph;
        if self.options.direction == Direction::Directed && !self.options.in_edges {
            answers.in_lists = None;
        }
        answers
    }
}

/// The value of the property of a row.
fn number_of(row: u64) -> i64 {
    row as i64 * 7 - 3
}

/// One of few strings, which are stored as a dictionary.
fn kind_of(row: u64) -> PropertyValue<'static> {
    match row % 4 {
        0 => PropertyValue::Null,
        kind => PropertyValue::String(["", "rail", "Straße"][kind as usize - 1]),
    }
}

/// The rows of a side of a view, list after list; none where it has none.
fn rows(view: &View, side: Side) -> Vec<u64> {
    let mut rows = Vec::new();
    let mut body = |targets: &[VertexId], some: &[u64]| {
        assert_eq!(targets.len(), some.len());
        rows.extend_from_slice(some);
        ControlFlow::Continue(())
    };
    for v in 0..view.vertex_bound() as VertexId {
        let _ = match side {
            Side::Out => view.for_each_out_row(v, &mut body),
            Side::In => view.for_each_in_row(v, &mut body),
        };
    }
    rows
}

fn column<W: Weight>(lists: &Adjacency) -> &[W] {
    W::of(lists.weights().unwrap()).unwrap()
}

/// All that a graph answers.
#[derive(Clone, Debug, PartialEq)]
struct Answers {
    counts: (usize, usize, u64, u64, Direction),
    is_multigraph: bool,
    out_lists: Lists,
    in_lists: Option<Lists>,
    single: Vec<Vec<VertexId>>,
}

/// The lists of one side, from every method that gives them.
#[derive(Clone, Debug, Default, PartialEq)]
struct Lists {
    degrees: Vec<usize>,
    fragments: Vec<Vec<VertexId>>,
    pages: Vec<Vec<VertexId>>,
    some_pages: Vec<Vec<VertexId>>,
    weights: Vec<Vec<(VertexId, String)>>,
}

fn answers<G: InEdges + WeightedEdges + SingleFragment>(graph: &G) -> Answers {
    let bound = graph.vertex_bound();
    let middle = (bound / 3) as VertexId..(bound - bound / 4) as VertexId;
    let vertices = || 0..bound as VertexId;
    // Whole pages come last: a view that somebody listens to reads lists one by one until then.
    let out_lists = Lists {
        degrees: vertices().map(|v| graph.out_degree(v)).collect(),
        fragments: vertices().map(|v| gather(|body| graph.for_each_out_fragment(v, body))).collect(),
        weights: weights(graph, true),
        pages: page_lists(bound, |body| graph.for_each_out_page(vertices(), body)),
        some_pages: page_lists(bound, |body| graph.for_each_out_page(middle.clone(), body)),
    };
    let in_lists = graph.has_in_edges().then(|| Lists {
        degrees: vertices().map(|v| graph.in_degree(v)).collect(),
        fragments: vertices().map(|v| gather(|body| graph.for_each_in_fragment(v, body))).collect(),
        weights: weights(graph, false),
        pages: page_lists(bound, |body| graph.for_each_in_page(vertices(), body)),
        some_pages: page_lists(bound, |body| graph.for_each_in_page(middle.clone(), body)),
    });
    Answers {
        counts: (bound, graph.num_vertices(), graph.num_edges(), graph.num_arcs(), graph.direction()),
        is_multigraph: graph.is_multigraph(),
        out_lists,
        in_lists,
        single: vertices().map(|v| graph.out_list(v).unwrap().to_vec()).collect(),
    }
}

fn gather(each: impl Fn(&mut dyn FnMut(&[VertexId]) -> ControlFlow<()>) -> ControlFlow<()>) -> Vec<VertexId> {
    let mut all = Vec::new();
    let _ = each(&mut |fragment| {
        all.extend_from_slice(fragment);
        ControlFlow::Continue(())
    });
    all
}

fn page_lists<O: graph::PageOffset>(
    bound: usize,
    each: impl Fn(&mut dyn FnMut(Page<'_, O>) -> ControlFlow<()>) -> ControlFlow<()>,
) -> Vec<Vec<VertexId>> {
    let mut lists = vec![Vec::new(); bound];
    let _ = each(&mut |page| {
        match page {
            Page::Dense(page) => {
                for (index, (v, list)) in page.lists().enumerate() {
                    assert_eq!((page.list(index), page.degree(index)), (list, list.len()));
                    lists[v as usize] = list.to_vec();
                }
            }
            Page::Empty(_) => {}
            Page::Patched(vertices) => panic!("patched page {vertices:?}"),
        }
        ControlFlow::Continue(())
    });
    lists
}

fn weights<G: WeightedEdges>(graph: &G, out: bool) -> Vec<Vec<(VertexId, String)>> {
    match graph.weight_type() {
        None => Vec::new(),
        Some(graph::WeightType::U32) => weights_of::<G, u32>(graph, out),
        Some(graph::WeightType::I64) => weights_of::<G, i64>(graph, out),
        Some(graph::WeightType::F32) => weights_of::<G, f32>(graph, out),
        Some(graph::WeightType::F64) => weights_of::<G, f64>(graph, out),
    }
}

fn weights_of<G: WeightedEdges, W: Weight>(graph: &G, out: bool) -> Vec<Vec<(VertexId, String)>> {
    let list = |v: VertexId| {
        let mut list = Vec::new();
        let body = |targets: &[VertexId], weights: &[W]| {
            list.extend(targets.iter().zip(weights).map(|(&target, weight)| (target, weight.to_string())));
            ControlFlow::Continue(())
        };
        let _ = if out {
            graph.for_each_weighted_out_fragment(v, body)
        } else {
            graph.for_each_weighted_in_fragment(v, body)
        };
        list
    };
    (0..graph.vertex_bound() as VertexId).map(list).collect()
}
