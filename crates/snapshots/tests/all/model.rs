//! Graphs in memory, written to a database and compared with it.

pub mod deaf;
pub mod past;
pub mod properties;
pub mod samples;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anden_base::VertexId;
use anden_base::storage::Storage;
use anden_graph::property::{ColumnBuilder, PropertySchema, PropertyType, PropertyValue};
use anden_graph::{Adjacency, Csr, CsrBuilder, Graph, GraphKind, Page, SingleFragment, Weight, WeightedEdges};
use anden_snapshots::{
    BaseWriter, DatabaseId, Dictionary, DictionaryKeys, Direction, GraphOptions, Identity, Key, KeyScheme, Result,
    SnapshotView, Store,
};

/// A fixed id and time.
pub const IDENTITY: Identity = Identity { id: DatabaseId(*b"an id of a graph"), unix_time: Some(1_700_000_000) };

/// A graph with the keys of its vertices.
#[derive(Clone, Debug)]
pub struct Model {
    pub options: GraphOptions,
    pub csr: Csr,
    pub keys: Vec<Key>,
    /// The number of vertices in one append.
    pub chunk: usize,
}

impl Model {
    /// The graph with these edges. Vertex `v` has the key `keys[v]`.
    pub fn new<W: Weight>(options: GraphOptions, keys: Vec<Key>, edges: &[(VertexId, VertexId, W)]) -> Self {
        let mut builder = CsrBuilder::new(options.graph_kind, keys.len());
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
        let writer = builder.base_writer(self.keys.len())?;
        self.write_direction(&writer, Direction::Out, self.csr.out_lists())?;
        if self.options.in_edges && self.options.graph_kind == GraphKind::Directed {
            self.write_direction(&writer, Direction::In, self.csr.in_lists().unwrap())?;
        }
        let base = writer.finish()?;
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
        builder.publish(base, dictionary, self.csr.num_edges(), Some("first"))
    }

    fn write_direction(&self, writer: &BaseWriter, direction: Direction, lists: &Adjacency) -> Result<()> {
        match self.options.weight_type {
            None => self.append_lists::<u32>(writer, direction, lists, &[]),
            Some(anden_graph::WeightType::U32) => self.append_lists(writer, direction, lists, column::<u32>(lists)),
            Some(anden_graph::WeightType::I64) => self.append_lists(writer, direction, lists, column::<i64>(lists)),
            Some(anden_graph::WeightType::F32) => self.append_lists(writer, direction, lists, column::<f32>(lists)),
            Some(anden_graph::WeightType::F64) => self.append_lists(writer, direction, lists, column::<f64>(lists)),
        }
    }

    fn append_lists<W: Weight>(
        &self,
        writer: &BaseWriter,
        direction: Direction,
        lists: &Adjacency,
        weights: &[W],
    ) -> Result<()> {
        let rows = self.rows(direction);
        // The writer pads the vertices without edges at the end.
        let last = (0..self.keys.len()).rev().find(|&v| lists.offsets()[v] < lists.offsets()[v + 1]);
        for first in (0..last.map_or(0, |last| last + 1)).step_by(self.chunk) {
            let end = self.keys.len().min(first + self.chunk);
            let edges = lists.offsets()[first] as usize..lists.offsets()[end] as usize;
            let degrees: Vec<u32> =
                lists.offsets()[first..=end].windows(2).map(|pair| (pair[1] - pair[0]) as u32).collect();
            let weights = if weights.is_empty() { weights } else { &weights[edges.clone()] };
            let rows = if rows.is_empty() { &rows } else { &rows[edges.clone()] };
            writer.append(direction, &degrees, &lists.targets()[edges], weights, rows)?;
        }
        Ok(())
    }

    /// One row for each entry of the out-lists.
    fn num_rows(&self) -> u64 {
        self.csr.out_lists().targets().len() as u64
    }

    /// The rows of a direction; empty if the graph has none. The row of an edge is the position of its entry in the
    /// out-list of its source, or of its smaller end.
    fn rows(&self, direction: Direction) -> Vec<u64> {
        let (out, mut rows) = (self.csr.out_lists(), Vec::new());
        let lists = if direction == Direction::Out { Some(out) } else { self.csr.in_lists() };
        let Some(lists) = lists.filter(|_| self.options.has_rows()) else { return rows };
        let list_of = |lists: &Adjacency, v: VertexId| {
            lists.offsets()[v as usize] as usize..lists.offsets()[v as usize + 1] as usize
        };
        for v in 0..self.keys.len() as VertexId {
            let list = &lists.targets()[list_of(lists, v)];
            for (place, &neighbor) in list.iter().enumerate() {
                let (source, target) = match (direction, self.options.graph_kind) {
                    (_, GraphKind::Undirected) => (v.min(neighbor), v.max(neighbor)),
                    (Direction::Out, _) => (v, neighbor),
                    (Direction::In, _) => (neighbor, v),
                };
                // Parallel edges have one order in all lists.
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

    /// Compares all answers of the view and its dictionary with the model. Returns the first damage that either
    /// reports.
    ///
    /// # Panics
    /// If an answer is wrong and no damage is reported.
    pub fn compare(&self, view: &SnapshotView) -> Result<()> {
        let answers = answers(view);
        let directions =
            if view.has_lists(Direction::In) { &[Direction::Out, Direction::In][..] } else { &[Direction::Out] };
        let rows: Vec<_> = directions.iter().map(|&direction| rows(view, direction)).collect();
        let keys = self.check_keys(view.dictionary());
        view.check()?;
        keys?;
        assert_eq!(answers, self.answers());
        for (&direction, rows) in directions.iter().zip(rows) {
            assert_eq!(rows, self.rows(direction), "{direction:?}");
            if view.edge_properties().schema().len() > 1 {
                let gathered = view.edge_properties().gather(&[0, 1], &rows)?;
                let [numbers, kinds] = &gathered[..] else { panic!("{gathered:?}") };
                let expected = rows.iter().map(|&row| PropertyValue::I64(number_of(row)));
                assert!(numbers.iter().eq(expected), "{direction:?}");
                assert!(kinds.iter().eq(rows.iter().map(|&row| kind_of(row))), "{direction:?}");
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
        if self.options.graph_kind == GraphKind::Directed && !self.options.in_edges {
            answers.in_lists = None;
        }
        answers
    }
}

/// The numeric property value of a row.
fn number_of(row: u64) -> i64 {
    row as i64 * 7 - 3
}

/// One of few strings, which a column stores as a dictionary.
fn kind_of(row: u64) -> PropertyValue<'static> {
    match row % 4 {
        0 => PropertyValue::Null,
        kind => PropertyValue::String(["", "rail", "Straße"][kind as usize - 1]),
    }
}

/// The rows of a direction of a view, list after list; empty without rows.
fn rows(view: &SnapshotView, direction: Direction) -> Vec<u64> {
    let mut rows = Vec::new();
    let mut body = |targets: &[VertexId], some: &[u64]| {
        assert_eq!(targets.len(), some.len());
        rows.extend_from_slice(some);
        ControlFlow::Continue(())
    };
    for v in 0..view.vertex_bound() as VertexId {
        let _ = view.for_each_row(direction, v, &mut body);
    }
    rows
}

fn column<W: Weight>(lists: &Adjacency) -> &[W] {
    W::of(lists.weights().unwrap()).unwrap()
}

/// All answers of a graph.
#[derive(Clone, Debug, PartialEq)]
struct Answers {
    counts: (usize, usize, u64, u64, GraphKind),
    is_multigraph: bool,
    out_lists: Lists,
    in_lists: Option<Lists>,
    single: Vec<Vec<VertexId>>,
}

/// The lists of one direction, from every method that returns them.
#[derive(Clone, Debug, Default, PartialEq)]
struct Lists {
    degrees: Vec<usize>,
    fragments: Vec<Vec<VertexId>>,
    pages: Vec<Vec<VertexId>>,
    some_pages: Vec<Vec<VertexId>>,
    weights: Vec<Vec<(VertexId, String)>>,
}

fn answers<G: WeightedEdges + SingleFragment>(graph: &G) -> Answers {
    let bound = graph.vertex_bound();
    let middle = (bound / 3) as VertexId..(bound - bound / 4) as VertexId;
    let vertices = || 0..bound as VertexId;
    // Whole pages come last: until then, a view with a prefetch hook reads lists one by one.
    let out_lists = Lists {
        degrees: vertices().map(|v| graph.degree(Direction::Out, v)).collect(),
        fragments: vertices().map(|v| gather(|body| graph.for_each_fragment(Direction::Out, v, body))).collect(),
        weights: weights(graph, true),
        pages: page_lists(bound, |body| graph.for_each_page(Direction::Out, vertices(), body)),
        some_pages: page_lists(bound, |body| graph.for_each_page(Direction::Out, middle.clone(), body)),
    };
    let in_lists = graph.has_lists(Direction::In).then(|| Lists {
        degrees: vertices().map(|v| graph.degree(Direction::In, v)).collect(),
        fragments: vertices().map(|v| gather(|body| graph.for_each_fragment(Direction::In, v, body))).collect(),
        weights: weights(graph, false),
        pages: page_lists(bound, |body| graph.for_each_page(Direction::In, vertices(), body)),
        some_pages: page_lists(bound, |body| graph.for_each_page(Direction::In, middle.clone(), body)),
    });
    Answers {
        counts: (bound, graph.num_vertices(), graph.num_edges(), graph.num_arcs(), graph.graph_kind()),
        is_multigraph: graph.is_multigraph(),
        out_lists,
        in_lists,
        single: vertices().map(|v| graph.list(Direction::Out, v).unwrap().to_vec()).collect(),
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

fn page_lists<O: anden_graph::PageOffset>(
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
        Some(anden_graph::WeightType::U32) => weights_of::<G, u32>(graph, out),
        Some(anden_graph::WeightType::I64) => weights_of::<G, i64>(graph, out),
        Some(anden_graph::WeightType::F32) => weights_of::<G, f32>(graph, out),
        Some(anden_graph::WeightType::F64) => weights_of::<G, f64>(graph, out),
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
            graph.for_each_weighted_fragment(Direction::Out, v, body)
        } else {
            graph.for_each_weighted_fragment(Direction::In, v, body)
        };
        list
    };
    (0..graph.vertex_bound() as VertexId).map(list).collect()
}
