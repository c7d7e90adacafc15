//! A graph with several snapshots in memory: one set of edges for each.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anden_base::VertexId;
use anden_base::storage::Storage;
use anden_graph::property::{PropertyColumn, PropertyType};
use anden_graph::{Graph, GraphKind, Weight, WeightType, WeightedEdges};
use anden_snapshots::{
    ArcData, BaseWriter, ChangedArc, DeltaChanges, DictionaryKeys, Direction, GraphOptions, Key, KeyScheme, NewRows,
    PropertyChanges, Result, SnapshotTag, SnapshotView, Store,
};
use anden_testkit::{ModelGraph, Random};

use super::IDENTITY;
use super::properties::{Properties, Rows, random_type};

/// A number below `bound`. The golden databases depend on the remainder.
pub fn below(random: &mut Random, bound: usize) -> usize {
    (random.next_u64() % bound.max(1) as u64) as usize
}

/// The graph at one snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub options: GraphOptions,
    pub keys: Vec<Key>,
    /// The live vertices, and the edges with their rows and weights. Those of a pair ascend.
    pub graph: ModelGraph<VertexId, ArcData>,
    pub properties: Properties,
    pub rows: Rows,
}

/// The arcs of both directions, sorted.
type Arcs = (Vec<ChangedArc>, Vec<ChangedArc>);

impl Content {
    /// A graph with `num_vertices` vertices and no edges.
    pub fn new(options: GraphOptions, num_vertices: usize) -> Self {
        let graph = ModelGraph::new(options.graph_kind).multigraph(options.multigraph);
        let (keys, properties, mut rows) = <(_, _, Rows)>::default();
        if options.edge_properties {
            rows.add_column(PropertyType::I64);
        }
        let mut content = Self { options, keys, graph, properties, rows };
        content.add_vertices(num_vertices);
        content
    }

    pub fn add_vertices(&mut self, num_vertices: usize) {
        for id in self.keys.len()..self.keys.len() + num_vertices {
            let number = (id as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.keys.push(match self.options.keys {
                KeyScheme::Dense => Key::Integer(id as u64),
                KeyScheme::Integer => Key::Integer(number),
                KeyScheme::String => Key::from(format!("ключ {number}")),
            });
            self.graph.add_vertex(id as VertexId);
        }
    }

    /// Adds an edge. In a simple graph, an existing edge gets the new weight instead.
    pub fn add_edge(&mut self, source: VertexId, target: VertexId, weight: u32) {
        let bits = self.bits_of(weight);
        // The row determines the weight, because each edge has a row of its own.
        let row = if self.options.has_rows() { self.rows.push(weight) } else { 0 };
        self.graph.add_edge(source, target, ArcData { row, weight: bits });
    }

    /// Changes the weight and the values of an edge of a multigraph. It stays the same edge.
    fn change_edge(&mut self, source: VertexId, target: VertexId, weight: u32) {
        let bits = self.bits_of(weight);
        let mut edges = self.graph.remove_edges(source, target);
        let old = edges.remove(weight as usize % edges.len());
        // The newest row is the largest.
        edges.push(ArcData { row: self.rows.replace(old.row, weight), weight: bits });
        edges.into_iter().for_each(|edge| self.graph.add_edge(source, target, edge));
    }

    /// The bits of a weight in the graph's type.
    fn bits_of(&self, weight: u32) -> u64 {
        match self.options.weight_type {
            None => 0,
            Some(WeightType::U32) => weight.bits(),
            Some(WeightType::I64) => (i64::from(weight) - 50).bits(),
            Some(WeightType::F32) => (weight as f32 / 3.0).bits(),
            Some(WeightType::F64) => (f64::from(weight) / 7.0).bits(),
        }
    }

    pub fn remove_edge(&mut self, source: VertexId, target: VertexId) {
        self.graph.remove_edges(source, target);
    }

    pub fn remove_vertex(&mut self, vertex: VertexId) {
        self.graph.remove_vertex(vertex);
        self.properties.forget(vertex);
    }

    /// The removed vertices.
    pub fn dead(&self) -> BTreeSet<VertexId> {
        (0..self.keys.len() as VertexId).filter(|&vertex| !self.graph.has_vertex(vertex)).collect()
    }

    /// Brings the removed vertices back.
    pub fn revive(&mut self) {
        self.dead().into_iter().for_each(|vertex| self.graph.add_vertex(vertex));
    }

    fn live(&self, random: &mut Random) -> Option<VertexId> {
        let vertex = below(random, self.keys.len()) as VertexId;
        Some(vertex).filter(|&vertex| self.graph.has_vertex(vertex))
    }

    /// Makes a few random changes of every kind.
    pub fn evolve(&mut self, random: &mut Random) {
        if below(random, 3) == 0 {
            self.add_vertices(below(random, 5));
        }
        for _ in 0..below(random, 12) {
            if let (Some(source), Some(target)) = (self.live(random), self.live(random)) {
                self.add_edge(source, target, below(random, 100) as u32);
            }
        }
        for _ in 0..below(random, 6) {
            let place = below(random, self.graph.num_pairs());
            if let Some((source, target)) = self.graph.nth_pair(place) {
                match below(random, 3) {
                    0 => self.add_edge(source, target, below(random, 100) as u32),
                    _ => self.remove_edge(source, target),
                }
            }
        }
        if below(random, 4) == 0
            && let Some(vertex) = self.live(random)
        {
            self.remove_vertex(vertex);
        }
        let dead = self.dead();
        if below(random, 3) == 0
            && let Some(&vertex) = dead.iter().nth(below(random, dead.len()))
        {
            self.graph.add_vertex(vertex);
        }
    }

    /// Makes a few random changes of every kind, also of vertex properties.
    pub fn evolve_all(&mut self, random: &mut Random) {
        self.evolve(random);
        if self.options.multigraph {
            for _ in 0..below(random, 4) {
                let place = below(random, self.graph.num_pairs());
                if let Some((source, target)) = self.graph.nth_pair(place) {
                    self.change_edge(source, target, below(random, 100) as u32);
                }
            }
        }
        if self.options.edge_properties && self.rows.schema.len() < 4 && below(random, 3) == 0 {
            self.rows.add_column(random_type(random, self.rows.schema.len()));
        }
        if self.properties.schema.len() < 5 && below(random, 3) == 0 {
            self.properties.add(random);
        }
        for _ in 0..below(random, 10) {
            if let Some(vertex) = self.live(random) {
                self.properties.set(vertex, random);
            }
        }
    }

    /// The arcs of out-lists and in-lists. In-lists are empty if the graph stores none.
    fn arcs(&self) -> Arcs {
        let (mut out, mut inward) = (Vec::new(), Vec::new());
        let has_in_lists = self.options.graph_kind == GraphKind::Directed && self.options.in_edges;
        for (source, target, &data) in self.graph.arcs() {
            out.push(ChangedArc { list: source, neighbor: target, data });
            if has_in_lists {
                inward.push(ChangedArc { list: target, neighbor: source, data });
            }
        }
        out.sort_unstable();
        inward.sort_unstable();
        (out, inward)
    }

    pub fn num_edges(&self) -> u64 {
        self.graph.num_edges()
    }

    /// The edges as arcs. An undirected edge starts at its smaller end.
    pub fn edge_arcs(&self) -> Vec<ChangedArc> {
        self.graph.edges().map(|(list, neighbor, &data)| ChangedArc { list, neighbor, data }).collect()
    }

    /// The changes from `old` to this graph.
    pub fn changes_from(&self, old: &Self) -> Changes {
        let ((out, inward), (old_out, old_in)) = (self.arcs(), old.arcs());
        let first = old.keys.len();
        let mut sorted: Vec<VertexId> = (0..(self.keys.len() - first) as VertexId).collect();
        sorted.sort_by_key(|&v| &self.keys[first + v as usize]);
        let out_added = minus(&out, &old_out);
        // Rows of edges that were added and removed between the snapshots are not written, nor are rows without values.
        let mut numbers = Vec::new();
        if self.options.has_rows() {
            let rows = out_added.iter().map(|arc| arc.data.row);
            numbers.extend(rows.filter(|&row| self.options.edge_properties || self.rows.first(row) != row));
            numbers.sort_unstable();
            numbers.dedup();
        }
        Changes {
            options: self.options,
            vertex_bound: self.keys.len(),
            died: self.dead().difference(&old.dead()).copied().collect(),
            returned: old.dead().difference(&self.dead()).copied().collect(),
            out_added,
            out_removed: minus(&old_out, &out),
            in_added: minus(&inward, &old_in),
            in_removed: minus(&old_in, &inward),
            num_edges_added: minus(&self.edge_arcs(), &old.edge_arcs()).len() as u64,
            num_edges_removed: minus(&old.edge_arcs(), &self.edge_arcs()).len() as u64,
            new_properties: self.properties.schema[old.properties.schema.len().min(self.properties.schema.len())..]
                .to_vec(),
            properties: self.properties.changes_from(&old.properties),
            new_edge_properties: self.rows.schema[old.rows.schema.len().min(self.rows.schema.len())..].to_vec(),
            rows: self.rows.columns_of(&numbers),
            first_rows: self.rows.firsts_of(&numbers),
            numbers,
            next_row: self.rows.len() as u64,
            keys: self.keys[first..].to_vec(),
            sorted,
        }
    }

    /// Writes the graph as a new database with one snapshot.
    pub fn write(&self, storage: Arc<dyn Storage>, path: &Path, name: Option<&str>) -> Result<Store> {
        assert!(self.dead().is_empty(), "a load knows no dead vertices");
        let builder = Store::create_as(storage, path, self.options, IDENTITY)?;
        let writer = builder.base_writer(self.keys.len())?;
        let (out, inward) = self.arcs();
        self.append_lists(&writer, Direction::Out, &out)?;
        if self.options.in_edges && self.options.graph_kind == GraphKind::Directed {
            self.append_lists(&writer, Direction::In, &inward)?;
        }
        let base = writer.finish()?;
        let changes = self.changes_from(&Self::new(self.options, 0));
        let dictionary = changes.with_keys(|keys| builder.write_dictionary(keys))?;
        self.properties.write(&builder)?;
        self.rows.write(&builder)?;
        builder.publish(base, dictionary, self.num_edges(), name)
    }

    /// Writes the graph as the newest snapshot of a new database, with the deltas `deltas` below it.
    pub fn write_many(
        &self,
        storage: Arc<dyn Storage>,
        path: &Path,
        deltas: &[Changes],
        names: &[Option<&str>],
        first_bound: usize,
    ) -> Result<Store> {
        let builder = Store::create_as(storage, path, self.options, IDENTITY)?;
        let writer = builder.base_writer(self.keys.len())?;
        let (out, inward) = self.arcs();
        self.append_lists(&writer, Direction::Out, &out)?;
        if self.options.in_edges && self.options.graph_kind == GraphKind::Directed {
            self.append_lists(&writer, Direction::In, &inward)?;
        }
        let base = writer.finish()?;
        let changes = self.changes_from(&Self::new(self.options, 0));
        let dictionary = changes.with_keys(|keys| builder.write_dictionary(keys))?;
        // One call writes the rows of all snapshots.
        self.rows.write(&builder)?;
        let mut writer = builder.deltas_writer(first_bound);
        let mut append =
            |changes: &DeltaChanges<'_>| writer.append(&DeltaChanges { rows: NewRows::default(), ..*changes });
        deltas.iter().try_for_each(|changes| changes.with(&mut append))?;
        let tags: Vec<_> = names.iter().map(|&name| SnapshotTag::from(name)).collect();
        builder.publish_many(base, dictionary, self.num_edges(), writer.finish()?, &tags)
    }

    fn append_lists(&self, writer: &BaseWriter, direction: Direction, arcs: &[ChangedArc]) -> Result<()> {
        match self.options.weight_type {
            None => self.append_typed(writer, direction, arcs, |_| None::<u32>),
            Some(WeightType::U32) => self.append_typed(writer, direction, arcs, |bits| Some(u32::of_bits(bits))),
            Some(WeightType::I64) => self.append_typed(writer, direction, arcs, |bits| Some(i64::of_bits(bits))),
            Some(WeightType::F32) => self.append_typed(writer, direction, arcs, |bits| Some(f32::of_bits(bits))),
            Some(WeightType::F64) => self.append_typed(writer, direction, arcs, |bits| Some(f64::of_bits(bits))),
        }
    }

    fn append_typed<W: Weight>(
        &self,
        writer: &BaseWriter,
        direction: Direction,
        arcs: &[ChangedArc],
        weight: impl Fn(u64) -> Option<W>,
    ) -> Result<()> {
        let mut degrees = vec![0; self.keys.len()];
        arcs.iter().for_each(|arc| degrees[arc.list as usize] += 1);
        let targets: Vec<VertexId> = arcs.iter().map(|arc| arc.neighbor).collect();
        let weights: Vec<W> = arcs.iter().filter_map(|arc| weight(arc.data.weight)).collect();
        let rows = arcs.iter().filter(|_| self.options.has_rows()).map(|arc| arc.data.row);
        writer.append(direction, &degrees, &targets, &weights, &rows.collect::<Vec<_>>())
    }

    /// Compares all answers of the view with this graph. Returns the damage that the view reports.
    ///
    /// # Panics
    /// If an answer is wrong and no damage is reported.
    pub fn compare(&self, view: &SnapshotView) -> Result<()> {
        self.compare_edges(view)?;
        self.compare_found(view)?;
        assert_eq!(view.num_vertices(), self.graph.vertices().len());
        for (id, key) in self.keys.iter().enumerate() {
            let id = id as VertexId;
            assert_eq!(view.key(id)?, *key);
            let is_live = self.graph.has_vertex(id);
            assert_eq!(view.vertex_dead_or_alive(key)?, Some((id, is_live)), "{key}");
            assert_eq!(view.vertex(key)?, is_live.then_some(id));
            assert_eq!(view.is_live(id), is_live);
        }
        self.properties.compare(view)?;
        let mut younger = self.clone();
        younger.add_vertices(1);
        assert_eq!(view.vertex(&younger.keys[self.keys.len()])?, None);
        assert!(view.key(self.keys.len() as VertexId).is_err());
        Ok(())
    }

    /// Compares the edges of the view with this graph.
    pub fn compare_edges(&self, view: &SnapshotView) -> Result<()> {
        let (out, inward) = self.arcs();
        let found_out = arcs_of(view, Direction::Out);
        let found_in = view.has_lists(Direction::In).then(|| arcs_of(view, Direction::In));
        view.check()?;
        assert_eq!(view.vertex_bound(), self.keys.len());
        assert_eq!((view.num_edges(), view.num_arcs()), (self.num_edges(), out.len() as u64));
        if self.options.graph_kind == GraphKind::Undirected {
            assert_eq!(found_in.as_ref(), Some(&out));
        } else {
            assert_eq!(found_in, self.options.in_edges.then_some(inward));
        }
        assert_eq!(found_out, out);
        self.rows.compare(view, found_out.iter().map(|arc| arc.data.row))
    }

    /// Requires that searches find the edges of the view.
    fn compare_found(&self, view: &SnapshotView) -> Result<()> {
        let (out, _) = self.arcs();
        let mut finder = view.finder();
        for arcs in out.chunk_by(|a, b| a.list == b.list) {
            let list = arcs[0].list;
            let mut wanted: Vec<VertexId> = arcs.iter().map(|arc| arc.neighbor).collect();
            wanted.dedup();
            let mut found = Vec::new();
            finder.find(list, wanted.iter().copied(), |place, data| {
                found.push(ChangedArc { list, neighbor: wanted[place], data });
            })?;
            found.sort_unstable();
            assert_eq!(found, arcs);
            // Descending, one by one: a search must not skip entries that a later search needs.
            for &neighbor in wanted.iter().rev() {
                let mut found = Vec::new();
                finder.find(list, [neighbor], |_, data| found.push(ChangedArc { list, neighbor, data }))?;
                found.sort_unstable();
                assert!(found.iter().eq(arcs.iter().filter(|arc| arc.neighbor == neighbor)));
            }
        }
        Ok(())
    }
}

/// The arcs of a direction, from lists, weights and rows. Checks that degrees agree.
pub fn arcs_of(view: &SnapshotView, direction: Direction) -> Vec<ChangedArc> {
    let mut arcs = Vec::new();
    for list in 0..view.vertex_bound() as VertexId {
        let mut targets = Vec::new();
        let mut body = |fragment: &[VertexId]| {
            assert!(fragment.is_sorted());
            targets.extend_from_slice(fragment);
            ControlFlow::Continue(())
        };
        let (_, degree) = match direction {
            Direction::Out => {
                (view.for_each_fragment(Direction::Out, list, &mut body), view.degree(Direction::Out, list))
            }
            Direction::In => (view.for_each_fragment(Direction::In, list, &mut body), view.degree(Direction::In, list)),
        };
        targets.sort_unstable();
        let (weights, rows) = columns_of(view, direction, list);
        if view.check().is_ok() {
            assert_eq!(degree, targets.len(), "{direction:?} {list}");
            for column in [&weights, &rows].into_iter().flatten() {
                let neighbors = column.iter().map(|&(neighbor, _)| neighbor);
                assert!(neighbors.eq(targets.iter().copied()), "{direction:?} {list}");
            }
        }
        let of = |column: &Option<Column>, place: usize| column.as_ref().map_or(0, |column| column[place].1);
        let len = [&weights, &rows].into_iter().flatten().map(Vec::len).fold(targets.len(), usize::min);
        let found = targets[..len].iter().enumerate().map(|(place, &neighbor)| {
            let data = ArcData { row: of(&rows, place), weight: of(&weights, place) };
            ChangedArc { list, neighbor, data }
        });
        arcs.extend(found);
    }
    arcs.sort_unstable();
    arcs
}

/// Neighbors with the bits of their weights, or with their rows.
type Column = Vec<(VertexId, u64)>;

/// The weights and the rows of a list, by neighbor, if the graph has them.
fn columns_of(view: &SnapshotView, direction: Direction, list: VertexId) -> (Option<Column>, Option<Column>) {
    let options = view.options();
    if options.multigraph && options.weight_type.is_some() && options.has_rows() {
        // After a page read, parallel edges have one order in both columns, because the list is not merged on demand
        // each time.
        let _ = view.for_each_page(direction, list..list + 1, |_| ControlFlow::Break(()));
    }
    let weights = options.weight_type.map(|weight_type| match weight_type {
        WeightType::U32 => weighted::<u32>(view, direction, list),
        WeightType::I64 => weighted::<i64>(view, direction, list),
        WeightType::F32 => weighted::<f32>(view, direction, list),
        WeightType::F64 => weighted::<f64>(view, direction, list),
    });
    (weights, options.has_rows().then(|| with_rows(view, direction, list)))
}

fn with_rows(view: &SnapshotView, direction: Direction, list: VertexId) -> Column {
    let mut column = Column::new();
    let body = |targets: &[VertexId], rows: &[u64]| {
        column.extend(targets.iter().copied().zip(rows.iter().copied()));
        ControlFlow::Continue(())
    };
    let _ = view.for_each_row(direction, list, body);
    column.sort_by_key(|&(neighbor, _)| neighbor);
    column
}

fn weighted<W: Weight>(view: &SnapshotView, direction: Direction, list: VertexId) -> Column {
    let mut column = Column::new();
    let body = |targets: &[VertexId], weights: &[W]| {
        column.extend(targets.iter().copied().zip(weights.iter().map(|weight| weight.bits())));
        ControlFlow::Continue(())
    };
    let _ = view.for_each_weighted_fragment(direction, list, body);
    column.sort_by_key(|&(neighbor, _)| neighbor);
    column
}

/// The elements of a sorted multiset without those of another.
pub fn minus(all: &[ChangedArc], other: &[ChangedArc]) -> Vec<ChangedArc> {
    let mut rest = Vec::new();
    let mut other = other.iter().peekable();
    for arc in all {
        while other.next_if(|&other| other < arc).is_some() {}
        if other.next_if(|&other| other == arc).is_none() {
            rest.push(*arc);
        }
    }
    rest
}

/// The input of an append, with its memory.
#[derive(Clone, Debug)]
pub struct Changes {
    options: GraphOptions,
    pub vertex_bound: usize,
    pub died: Vec<VertexId>,
    pub returned: Vec<VertexId>,
    pub out_added: Vec<ChangedArc>,
    pub out_removed: Vec<ChangedArc>,
    pub in_added: Vec<ChangedArc>,
    pub in_removed: Vec<ChangedArc>,
    pub num_edges_added: u64,
    pub num_edges_removed: u64,
    pub new_properties: Vec<(String, PropertyType)>,
    pub properties: Vec<PropertyChanges>,
    pub new_edge_properties: Vec<(String, PropertyType)>,
    pub numbers: Vec<u64>,
    pub next_row: u64,
    pub rows: Vec<PropertyColumn>,
    pub first_rows: Option<PropertyColumn>,
    keys: Vec<Key>,
    sorted: Vec<VertexId>,
}

impl Changes {
    fn with_keys<R>(&self, body: impl FnOnce(DictionaryKeys<'_>) -> R) -> R {
        let sorted = (!self.sorted.is_sorted()).then_some(&self.sorted[..]);
        match self.options.keys {
            KeyScheme::Dense => body(DictionaryKeys::Dense(self.keys.len() as u64)),
            KeyScheme::Integer => {
                let number = |key: &Key| match key {
                    Key::Integer(key) => *key,
                    Key::String(key) => panic!("{key:?} is no number"),
                };
                let by_id: Vec<u64> = self.keys.iter().map(number).collect();
                body(DictionaryKeys::Integers { by_id: &by_id, sorted })
            }
            KeyScheme::String => {
                let texts: Vec<String> = self.keys.iter().map(Key::to_string).collect();
                let mut offsets = vec![0];
                texts.iter().for_each(|text| offsets.push(offsets[offsets.len() - 1] + text.len() as u64));
                body(DictionaryKeys::Strings { text: texts.concat().as_bytes(), offsets: &offsets, sorted })
            }
        }
    }

    /// Calls `body` with the changes in the type of an append.
    pub fn with<R>(&self, body: impl FnOnce(&DeltaChanges<'_>) -> R) -> R {
        self.with_keys(|keys| {
            body(&DeltaChanges {
                epoch: 0,
                vertex_bound: self.vertex_bound,
                died: &self.died,
                returned: &self.returned,
                keys: Some(keys),
                out_added: &self.out_added,
                out_removed: &self.out_removed,
                in_added: &self.in_added,
                in_removed: &self.in_removed,
                num_edges_added: self.num_edges_added,
                num_edges_removed: self.num_edges_removed,
                new_properties: &self.new_properties,
                properties: &self.properties,
                new_edge_properties: &self.new_edge_properties,
                rows: NewRows {
                    numbers: &self.numbers,
                    next_row: self.next_row,
                    columns: &self.rows,
                    first_rows: self.first_rows.as_ref(),
                },
            })
        })
    }
}

/// The expected content of a database with several snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// The visible snapshots with numbers and names, oldest first.
    pub snapshots: Vec<(u32, Option<String>, Content)>,
    pub newest: Content,
    pub next_number: u32,
}

impl Past {
    pub fn new(first: Content, name: Option<&str>) -> Self {
        let snapshots = vec![(1, name.map(str::to_owned), first.clone())];
        Self { snapshots, newest: first, next_number: 2 }
    }

    pub fn append(&mut self, content: Content, name: Option<&str>) {
        self.snapshots.push((self.next_number, name.map(str::to_owned), content.clone()));
        self.newest = content;
        self.next_number += 1;
    }

    pub fn forget(&mut self, numbers: &[u32]) {
        self.snapshots.retain(|(number, ..)| !numbers.contains(number));
    }

    pub fn numbers(&self) -> Vec<u32> {
        self.snapshots.iter().map(|(number, ..)| *number).collect()
    }

    /// Compares the database with the expected content.
    ///
    /// # Panics
    /// If an answer is wrong and no damage is reported.
    pub fn compare(&self, store: &Store) -> Result<()> {
        let mut before: Option<&Content> = None;
        let infos = store.snapshots();
        assert_eq!(infos.iter().map(|info| info.number).collect::<Vec<_>>(), self.numbers());
        for ((number, name, content), info) in self.snapshots.iter().zip(infos) {
            content.compare(&store.snapshot(*number)?)?;
            assert_eq!((&info.name, info.num_edges), (name, content.num_edges()), "snapshot {number}");
            assert_eq!(info.num_vertices, content.graph.vertices().len() as u64, "snapshot {number}");
            let edges = content.edge_arcs();
            let old_edges = before.map_or(Vec::new(), Content::edge_arcs);
            let counts = (minus(&edges, &old_edges).len() as u64, minus(&old_edges, &edges).len() as u64);
            assert_eq!((info.added, info.removed), counts, "snapshot {number}");
            before = Some(content);
        }
        self.newest.compare(&store.view()?)
    }

    /// Compares a window, which holds the edges of `last` that the snapshot before `first` lacks.
    pub fn compare_window(&self, store: &Store, first: usize, last: usize) -> Result<()> {
        let mut expected = self.snapshots[last].2.clone();
        if first > 0 {
            expected.graph = expected.graph.minus(&self.snapshots[first - 1].2.graph);
        }
        expected.compare_edges(&store.window(self.snapshots[first].0, self.snapshots[last].0)?)
    }

    pub fn compare_diff(&self, store: &Store, a: usize, b: usize) -> Result<()> {
        let ((a, _, old), (b, _, new)) = (&self.snapshots[a], &self.snapshots[b]);
        let diff = store.diff(*a, *b)?;
        let (edges, old_edges) = (new.edge_arcs(), old.edge_arcs());
        assert_eq!((&diff.added, &diff.removed), (&minus(&edges, &old_edges), &minus(&old_edges, &edges)));
        let is_live = |content: &Content, v: &VertexId| content.graph.has_vertex(*v);
        let bound = old.keys.len().max(new.keys.len()) as VertexId;
        let (died, returned): (Vec<_>, Vec<_>) =
            (0..bound).filter(|v| is_live(old, v) != is_live(new, v)).partition(|v| is_live(old, v));
        let is_new = |v: &VertexId| diff.new_vertices.contains(v);
        assert_eq!(diff.died.iter().copied().filter(|v| !is_new(v)).collect::<Vec<_>>(), died);
        let born = diff.new_vertices.clone().filter(|v| !diff.died.contains(v));
        let mut returning: Vec<VertexId> = diff.returned.iter().copied().chain(born).collect();
        returning.sort_unstable();
        assert_eq!(returning, returned);
        let expected = new.properties.changes_from(&old.properties);
        let longer = if new.properties.schema.len() > old.properties.schema.len() { new } else { old };
        let name = |column: u32| longer.properties.schema[column as usize].0.clone();
        let expected: Vec<_> = expected.into_iter().map(|changes| (name(changes.column()), changes)).collect();
        assert_eq!(diff.properties, expected);
        Ok(())
    }
}
