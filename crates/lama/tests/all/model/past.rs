//! A graph with a past, in memory: one set of edges for each snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anden_lama::{
    ArcData, ChangedArc, DictionaryKeys, GraphOptions, Key, KeyScheme, LevelChanges, NewRows, PropertyChanges, Result,
    RunWriter, Side, Store, View,
};
use base::VertexId;
use base::storage::Storage;
use graph::property::{PropertyColumn, PropertyType};
use graph::{Direction, Graph, InEdges, Weight, WeightType, WeightedEdges};

use super::IDENTITY;
use super::properties::{Properties, Rows};

/// Splitmix64.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// The graph at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub options: GraphOptions,
    pub keys: Vec<Key>,
    pub dead: BTreeSet<VertexId>,
    /// Rows and weights of the edges of each pair, sorted; of an undirected one from its smaller end.
    pub edges: BTreeMap<(VertexId, VertexId), Vec<ArcData>>,
    pub properties: Properties,
    pub rows: Rows,
}

/// The arcs of both sides, sorted.
type Arcs = (Vec<ChangedArc>, Vec<ChangedArc>);

impl Content {
    /// A graph with so many vertices and no edges.
    pub fn new(options: GraphOptions, num_vertices: usize) -> Self {
        let (keys, dead, edges, properties, mut rows) = <(_, _, _, _, Rows)>::default();
        if options.edge_properties {
            rows.add_column(PropertyType::I64);
        }
        let mut content = Self { options, keys, dead, edges, properties, rows };
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
        }
    }

    /// Adds an edge, or gives it another weight; of a multigraph one more.
    pub fn add_edge(&mut self, source: VertexId, target: VertexId, weight: u32) {
        let bits = self.bits_of(weight);
        // Each edge has a row of its own, and so one weight.
        let row = if self.options.has_rows() { self.rows.push(weight) } else { 0 };
        let edges = self.edges.entry(self.ends(source, target)).or_default();
        if !self.options.multigraph {
            edges.clear();
        }
        edges.push(ArcData { row, weight: bits });
        edges.sort_unstable();
    }

    /// Gives an edge of a pair in a multigraph another weight and other values; it stays the edge that it is.
    fn change_edge(&mut self, source: VertexId, target: VertexId, weight: u32) {
        let (ends, bits) = (self.ends(source, target), self.bits_of(weight));
        let edges = self.edges.get_mut(&ends).unwrap();
        let old = edges.remove(weight as usize % edges.len());
        edges.push(ArcData { row: self.rows.replace(old.row, weight), weight: bits });
        edges.sort_unstable();
    }

    /// The bits of a weight of the graph's type.
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
        self.edges.remove(&self.ends(source, target));
    }

    pub fn remove_vertex(&mut self, vertex: VertexId) {
        self.edges.retain(|&(source, target), _| source != vertex && target != vertex);
        self.properties.forget(vertex);
        self.dead.insert(vertex);
    }

    fn ends(&self, source: VertexId, target: VertexId) -> (VertexId, VertexId) {
        match self.options.direction {
            Direction::Undirected if source > target => (target, source),
            _ => (source, target),
        }
    }

    fn live(&self, random: &mut Random) -> Option<VertexId> {
        let vertex = random.below(self.keys.len()) as VertexId;
        Some(vertex).filter(|vertex| (*vertex as usize) < self.keys.len() && !self.dead.contains(vertex))
    }

    /// Changes a little of everything.
    pub fn evolve(&mut self, random: &mut Random) {
        if random.below(3) == 0 {
            self.add_vertices(random.below(5));
        }
        for _ in 0..random.below(12) {
            if let (Some(source), Some(target)) = (self.live(random), self.live(random)) {
                self.add_edge(source, target, random.below(100) as u32);
            }
        }
        for _ in 0..random.below(6) {
            let place = random.below(self.edges.len());
            if let Some((&(source, target), _)) = self.edges.iter().nth(place) {
                match random.below(3) {
                    0 => self.add_edge(source, target, random.below(100) as u32),
                    _ => self.remove_edge(source, target),
                }
            }
        }
        if random.below(4) == 0
            && let Some(vertex) = self.live(random)
        {
            self.remove_vertex(vertex);
        }
        if random.below(3) == 0
            && let Some(&vertex) = self.dead.iter().nth(random.below(self.dead.len()))
        {
            self.dead.remove(&vertex);
        }
    }

    /// Changes a little of everything, and of the properties of vertices.
    pub fn evolve_all(&mut self, random: &mut Random) {
        self.evolve(random);
        if self.options.multigraph {
            for _ in 0..random.below(4) {
                let place = random.below(self.edges.len());
                if let Some((&(source, target), _)) = self.edges.iter().nth(place) {
                    self.change_edge(source, target, random.below(100) as u32);
                }
            }
        }
        if self.options.edge_properties && self.rows.schema.len() < 4 && random.below(3) == 0 {
            self.rows.add_column(PropertyType::ALL[random.below(PropertyType::ALL.len())].0);
        }
        if self.properties.schema.len() < 5 && random.below(3) == 0 {
            self.properties.add(random);
        }
        for _ in 0..random.below(10) {
            if let Some(vertex) = self.live(random) {
                self.properties.set(vertex, random);
            }
        }
    }

    /// The arcs of out-lists and in-lists; in-lists are empty where the graph stores none.
    fn arcs(&self) -> Arcs {
        let (mut out, mut inward) = (Vec::new(), Vec::new());
        for (&(source, target), edges) in &self.edges {
            for &data in edges {
                out.push(ChangedArc { list: source, neighbour: target, data });
                let reverse = ChangedArc { list: target, neighbour: source, data };
                match self.options.direction {
                    Direction::Undirected if source != target => out.push(reverse),
                    Direction::Directed if self.options.in_edges => inward.push(reverse),
                    _ => {}
                }
            }
        }
        out.sort_unstable();
        inward.sort_unstable();
        (out, inward)
    }

    pub fn num_edges(&self) -> u64 {
        self.edges.values().map(|edges| edges.len() as u64).sum()
    }

    /// The edges as arcs, an undirected one from its smaller end.
    pub fn edge_arcs(&self) -> Vec<ChangedArc> {
        let pairs = self.edges.iter();
        pairs
            .flat_map(|(&(list, neighbour), edges)| edges.iter().map(move |&data| ChangedArc { list, neighbour, data }))
            .collect()
    }

    /// What leads from `old` to this graph.
    pub fn changes_from(&self, old: &Self) -> Changes {
        let ((out, inward), (old_out, old_in)) = (self.arcs(), old.arcs());
        let first = old.keys.len();
        let mut sorted: Vec<VertexId> = (0..(self.keys.len() - first) as VertexId).collect();
        sorted.sort_by_key(|&v| &self.keys[first + v as usize]);
        let out_added = minus(&out, &old_out);
        // Rows of edges that came and went between the snapshots are not written, nor are rows without values.
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
            died: self.dead.difference(&old.dead).copied().collect(),
            returned: old.dead.difference(&self.dead).copied().collect(),
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
        assert!(self.dead.is_empty(), "a load knows no dead vertices");
        let builder = Store::create_as(storage, path, self.options, IDENTITY)?;
        let run = builder.run_writer(self.keys.len())?;
        let (out, inward) = self.arcs();
        self.append_lists(&run, Side::Out, &out)?;
        if self.options.in_edges && self.options.direction == Direction::Directed {
            self.append_lists(&run, Side::In, &inward)?;
        }
        let run = run.finish()?;
        let changes = self.changes_from(&Self::new(self.options, 0));
        let dictionary = changes.with_keys(|keys| builder.write_dictionary(keys))?;
        self.properties.write(&builder)?;
        self.rows.write(&builder)?;
        builder.publish(run, dictionary, self.num_edges(), name)
    }

    /// Writes the graph as the newest snapshot of a new database; `levels` lead to it.
    pub fn write_many(
        &self,
        storage: Arc<dyn Storage>,
        path: &Path,
        levels: &[Changes],
        names: &[Option<&str>],
        first_bound: usize,
    ) -> Result<Store> {
        let builder = Store::create_as(storage, path, self.options, IDENTITY)?;
        let run = builder.run_writer(self.keys.len())?;
        let (out, inward) = self.arcs();
        self.append_lists(&run, Side::Out, &out)?;
        if self.options.in_edges && self.options.direction == Direction::Directed {
            self.append_lists(&run, Side::In, &inward)?;
        }
        let run = run.finish()?;
        let changes = self.changes_from(&Self::new(self.options, 0));
        let dictionary = changes.with_keys(|keys| builder.write_dictionary(keys))?;
        // The rows of all snapshots are written at once.
        self.rows.write(&builder)?;
        let mut writer = builder.levels_writer(first_bound);
        let mut append =
            |changes: &LevelChanges<'_>| writer.append(&LevelChanges { rows: NewRows::default(), ..*changes });
        levels.iter().try_for_each(|changes| changes.with(&mut append))?;
        builder.publish_many(run, dictionary, self.num_edges(), writer.finish()?, names)
    }

    fn append_lists(&self, run: &RunWriter, side: Side, arcs: &[ChangedArc]) -> Result<()> {
        match self.options.weight_type {
            None => self.append_typed(run, side, arcs, |_| None::<u32>),
            Some(WeightType::U32) => self.append_typed(run, side, arcs, |bits| Some(u32::of_bits(bits))),
            Some(WeightType::I64) => self.append_typed(run, side, arcs, |bits| Some(i64::of_bits(bits))),
            Some(WeightType::F32) => self.append_typed(run, side, arcs, |bits| Some(f32::of_bits(bits))),
            Some(WeightType::F64) => self.append_typed(run, side, arcs, |bits| Some(f64::of_bits(bits))),
        }
    }

    fn append_typed<W: Weight>(
        &self,
        run: &RunWriter,
        side: Side,
        arcs: &[ChangedArc],
        weight: impl Fn(u64) -> Option<W>,
    ) -> Result<()> {
        let mut degrees = vec![0; self.keys.len()];
        arcs.iter().for_each(|arc| degrees[arc.list as usize] += 1);
        let targets: Vec<VertexId> = arcs.iter().map(|arc| arc.neighbour).collect();
        let weights: Vec<W> = arcs.iter().filter_map(|arc| weight(arc.data.weight)).collect();
        let rows = arcs.iter().filter(|_| self.options.has_rows()).map(|arc| arc.data.row);
        run.append(side, &degrees, &targets, &weights, &rows.collect::<Vec<_>>())
    }

    /// Everything that the view answers is what this graph answers; or the damage that the view reports.
    ///
    /// # Panics
    /// If an answer is wrong and no damage is reported.
    pub fn compare(&self, view: &View) -> Result<()> {
        self.compare_edges(view)?;
        self.compare_found(view)?;
        assert_eq!(view.num_vertices(), self.keys.len() - self.dead.len());
        for (id, key) in self.keys.iter().enumerate() {
            let id = id as VertexId;
            assert_eq!(view.key(id)?, *key);
            assert_eq!(view.vertex_dead_or_alive(key)?, Some((id, !self.dead.contains(&id))), "{key}");
            assert_eq!(view.vertex(key)?, Some(id).filter(|id| !self.dead.contains(id)));
            assert_eq!(view.is_live(id), !self.dead.contains(&id));
        }
        self.properties.compare(view)?;
        let mut younger = self.clone();
        younger.add_vertices(1);
        assert_eq!(view.vertex(&younger.keys[self.keys.len()])?, None);
        assert!(view.key(self.keys.len() as VertexId).is_err());
        Ok(())
    }

    /// The edges of the view are those of this graph.
    pub fn compare_edges(&self, view: &View) -> Result<()> {
        let (out, inward) = self.arcs();
        let found_out = arcs_of(view, Side::Out);
        let found_in = view.has_in_edges().then(|| arcs_of(view, Side::In));
        view.check()?;
        assert_eq!(view.vertex_bound(), self.keys.len());
        assert_eq!((view.num_edges(), view.num_arcs()), (self.num_edges(), out.len() as u64));
        if self.options.direction == Direction::Undirected {
            assert_eq!(found_in.as_ref(), Some(&out));
        } else {
            assert_eq!(found_in, self.options.in_edges.then_some(inward));
        }
        assert_eq!(found_out, out);
        self.rows.compare(view, found_out.iter().map(|arc| arc.data.row))
    }

    /// A search for the edges of the view finds them.
    fn compare_found(&self, view: &View) -> Result<()> {
        let (out, _) = self.arcs();
        let mut finder = view.finder();
        for arcs in out.chunk_by(|a, b| a.list == b.list) {
            let list = arcs[0].list;
            let mut wanted: Vec<VertexId> = arcs.iter().map(|arc| arc.neighbour).collect();
            wanted.dedup();
            let mut found = Vec::new();
            finder.find(list, wanted.iter().copied(), |place, data| {
                found.push(ChangedArc { list, neighbour: wanted[place], data });
            })?;
            found.sort_unstable();
            assert_eq!(found, arcs);
            // The other way round, one by one: a search passes over nothing that a later one looks for.
            for &neighbour in wanted.iter().rev() {
                let mut found = Vec::new();
                finder.find(list, [neighbour], |_, data| found.push(ChangedArc { list, neighbour, data }))?;
                found.sort_unstable();
                assert!(found.iter().eq(arcs.iter().filter(|arc| arc.neighbour == neighbour)));
            }
        }
        Ok(())
    }
}

/// The arcs of a side, from lists and, if there are any, weights and rows; degrees agree with them.
fn arcs_of(view: &View, side: Side) -> Vec<ChangedArc> {
    let mut arcs = Vec::new();
    for list in 0..view.vertex_bound() as VertexId {
        let mut targets = Vec::new();
        let mut body = |fragment: &[VertexId]| {
            assert!(fragment.is_sorted());
            targets.extend_from_slice(fragment);
            ControlFlow::Continue(())
        };
        let (_, degree) = match side {
            Side::Out => (view.for_each_out_fragment(list, &mut body), view.out_degree(list)),
            Side::In => (view.for_each_in_fragment(list, &mut body), view.in_degree(list)),
        };
        targets.sort_unstable();
        let (weights, rows) = columns_of(view, side, list);
        if view.check().is_ok() {
            assert_eq!(degree, targets.len(), "{side:?} {list}");
            for column in [&weights, &rows].into_iter().flatten() {
                let neighbours = column.iter().map(|&(neighbour, _)| neighbour);
                assert!(neighbours.eq(targets.iter().copied()), "{side:?} {list}");
            }
        }
        let of = |column: &Option<Column>, place: usize| column.as_ref().map_or(0, |column| column[place].1);
        let len = [&weights, &rows].into_iter().flatten().map(Vec::len).fold(targets.len(), usize::min);
        let found = targets[..len].iter().enumerate().map(|(place, &neighbour)| {
            let data = ArcData { row: of(&rows, place), weight: of(&weights, place) };
            ChangedArc { list, neighbour, data }
        });
        arcs.extend(found);
    }
    arcs.sort_unstable();
    arcs
}

/// Neighbors with the bits of weights, or with rows.
type Column = Vec<(VertexId, u64)>;

/// The weights and the rows of a list, where the graph has them, by neighbor.
fn columns_of(view: &View, side: Side, list: VertexId) -> (Option<Column>, Option<Column>) {
    let options = view.options();
    if options.multigraph && options.weight_type.is_some() && options.has_rows() {
        // From here on, parallel edges stand in one order in both columns: the list is not made on its own each time.
        let _ = match side {
            Side::Out => view.for_each_out_page(list..list + 1, |_| ControlFlow::Break(())),
            Side::In => view.for_each_in_page(list..list + 1, |_| ControlFlow::Break(())),
        };
    }
    let weights = options.weight_type.map(|weight_type| match weight_type {
        WeightType::U32 => weighted::<u32>(view, side, list),
        WeightType::I64 => weighted::<i64>(view, side, list),
        WeightType::F32 => weighted::<f32>(view, side, list),
        WeightType::F64 => weighted::<f64>(view, side, list),
    });
    (weights, options.has_rows().then(|| with_rows(view, side, list)))
}

fn with_rows(view: &View, side: Side, list: VertexId) -> Column {
    let mut column = Column::new();
    let body = |targets: &[VertexId], rows: &[u64]| {
        column.extend(targets.iter().copied().zip(rows.iter().copied()));
        ControlFlow::Continue(())
    };
    let _ = match side {
        Side::Out => view.for_each_out_row(list, body),
        Side::In => view.for_each_in_row(list, body),
    };
    column.sort_by_key(|&(neighbour, _)| neighbour);
    column
}

fn weighted<W: Weight>(view: &View, side: Side, list: VertexId) -> Column {
    let mut column = Column::new();
    let body = |targets: &[VertexId], weights: &[W]| {
        column.extend(targets.iter().copied().zip(weights.iter().map(|weight| weight.bits())));
        ControlFlow::Continue(())
    };
    let _ = match side {
        Side::Out => view.for_each_weighted_out_fragment(list, body),
        Side::In => view.for_each_weighted_in_fragment(list, body),
    };
    column.sort_by_key(|&(neighbour, _)| neighbour);
    column
}

/// The elements of a sorted multiset that another does not have.
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

/// What an append takes, with its memory.
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

    /// Calls `body` with the changes as an append takes them.
    pub fn with<R>(&self, body: impl FnOnce(&LevelChanges<'_>) -> R) -> R {
        self.with_keys(|keys| {
            body(&LevelChanges {
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

/// What a database with a past must show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// What users see, with its number and name, oldest first.
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

    /// The database shows all of this.
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
            assert_eq!(info.num_vertices, (content.keys.len() - content.dead.len()) as u64, "snapshot {number}");
            let edges = content.edge_arcs();
            let old_edges = before.map_or(Vec::new(), Content::edge_arcs);
            let counts = (minus(&edges, &old_edges).len() as u64, minus(&old_edges, &edges).len() as u64);
            assert_eq!((info.added, info.removed), counts, "snapshot {number}");
            before = Some(content);
        }
        self.newest.compare(&store.view()?)
    }

    /// The window is what `last` has and the snapshot before `first` has not.
    pub fn compare_window(&self, store: &Store, first: usize, last: usize) -> Result<()> {
        let mut expected = self.snapshots[last].2.clone();
        if first > 0 {
            let old = self.snapshots[first - 1].2.edge_arcs();
            let added = minus(&expected.edge_arcs(), &old);
            expected.edges.clear();
            for arc in added {
                expected.edges.entry((arc.list, arc.neighbour)).or_default().push(arc.data);
            }
        }
        expected.compare_edges(&store.window(self.snapshots[first].0, self.snapshots[last].0)?)
    }

    pub fn compare_diff(&self, store: &Store, a: usize, b: usize) -> Result<()> {
        let ((a, _, old), (b, _, new)) = (&self.snapshots[a], &self.snapshots[b]);
        let diff = store.diff(*a, *b)?;
        let (edges, old_edges) = (new.edge_arcs(), old.edge_arcs());
        assert_eq!((&diff.added, &diff.removed), (&minus(&edges, &old_edges), &minus(&old_edges, &edges)));
        let is_live = |content: &Content, v: &VertexId| (*v as usize) < content.keys.len() && !content.dead.contains(v);
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
