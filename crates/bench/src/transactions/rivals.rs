//! Other stores, set up as their documentation advises: SQLite with a table that is its own index, and redb.
//!
//! SQLite has one writer at a time. Its clients share one connection under a lock, which is faster than retries. Its
//! write-ahead log with `synchronous` at `FULL`, `NORMAL` and `OFF` promises roughly what our `sync`, `batched` and
//! `none` promise. The durabilities of redb are `Immediate` and `None`.

mod stores;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anden_base::VertexId;
use anden_graph::{Graph, GraphKind};
use anden_kernels::Context;
use anyhow::{Result, ensure};
use rusqlite::{Connection, Statement, params};

pub(super) use self::stores::{Promise, stores};
use super::ground::Ground;
use super::navigation::Question;
use crate::harness::{Pairs, seconds};
use crate::report::{Line, Report};
use crate::setting::Setting;

/// An SQLite database with a table of edges, under a lock.
struct Sqlite(Mutex<Connection>);

const INSERT: &str = "INSERT OR REPLACE INTO edges VALUES (?1, ?2, ?3)";

impl Sqlite {
    /// A new database with a table of edges.
    fn create(path: &Path, synchronous: &str) -> Result<Self> {
        let connection = Connection::open(path)?;
        connection.execute_batch(&format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA cache_size = -524288;
             PRAGMA mmap_size = 4294967296; PRAGMA temp_store = MEMORY;
             CREATE TABLE edges (source INTEGER, target INTEGER, weight INTEGER, PRIMARY KEY (source, target))
             WITHOUT ROWID;"
        ))?;
        Ok(Self(Mutex::new(connection)))
    }

    fn connection(&self) -> std::sync::MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Inserts the edges of a ground, undirected ones in both directions.
    fn fill(&self, ground: &Ground) -> Result<()> {
        let mut edges = ground.edges()?;
        if ground.database.snapshot(1)?.graph_kind() == GraphKind::Undirected {
            edges.extend(edges.clone().into_iter().map(|(source, target, weight)| (target, source, weight)));
        }
        edges.sort_unstable();
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        let mut insert = transaction.prepare(INSERT)?;
        for (source, target, weight) in edges {
            insert.execute(params![source, target, weight])?;
        }
        drop(insert);
        transaction.commit()?;
        connection.execute_batch("ANALYZE")?;
        Ok(())
    }
}

/// The path of a new file. Removes an old one and the files that SQLite keeps beside it.
fn fresh(directory: &Path, name: &str) -> Result<std::path::PathBuf> {
    for suffix in ["", "-wal", "-shm"] {
        let path = directory.join(format!("{name}{suffix}"));
        if path.exists() {
            std::fs::remove_file(path)?;
        }
    }
    Ok(directory.join(name))
}

/// The length of a path in hops. Rows come level by level, so the first row with the target ends the search.
const PATH: &str = "WITH RECURSIVE reached(vertex, hops) AS (VALUES (?1, 0) UNION
    SELECT edges.target, hops + 1 FROM reached JOIN edges ON edges.source = reached.vertex WHERE hops < 10)
    SELECT hops FROM reached WHERE vertex = ?2 LIMIT 1";
/// Friends of friends that are not friends.
const TWO_HOPS: &str = "SELECT count(*) FROM (SELECT DISTINCT far.target FROM edges AS near
    JOIN edges AS far ON far.source = near.target
    WHERE near.source = ?1 AND far.target <> ?1
    AND NOT EXISTS (SELECT 1 FROM edges WHERE source = ?1 AND target = far.target))";

/// The least weight of a path. Rows come in the order of their weights, so the first row with the target ends the
/// search. A recursive query cannot settle a vertex, so it reaches a vertex with every possible weight.
const WEIGHTED_PATH: &str = "WITH RECURSIVE reached(vertex, weight) AS (VALUES (?1, 0) UNION
    SELECT edges.target, reached.weight + edges.weight FROM reached JOIN edges ON edges.source = reached.vertex
    ORDER BY 2)
    SELECT weight FROM reached WHERE vertex = ?2 LIMIT 1";

const EDGES_OF: &str = "SELECT target, weight FROM edges WHERE source = ?1";

/// The least weight of a path by Dijkstra's algorithm, with one SQL query for the edges of each settled vertex.
fn least_weight(edges_of: &mut Statement<'_>, source: VertexId, target: VertexId) -> Result<u64> {
    let mut distances = HashMap::from([(source, 0)]);
    let mut queue = BinaryHeap::from([Reverse((0, source))]);
    while let Some(Reverse((distance, vertex))) = queue.pop() {
        if vertex == target {
            return Ok(distance);
        }
        if distances[&vertex] < distance {
            continue;
        }
        let mut rows = edges_of.query(params![vertex])?;
        while let Some(row) = rows.next()? {
            let (next, length) = (row.get(0)?, distance + row.get::<_, i64>(1)? as u64);
            if distances.get(&next).is_none_or(|&known| length < known) {
                distances.insert(next, length);
                queue.push(Reverse((length, next)));
            }
        }
    }
    Ok(u64::MAX)
}

/// A way to query SQLite.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    text: &'static str,
    /// Whether the statement returns the edges of a vertex, and Dijkstra's algorithm runs here.
    is_dijkstra: bool,
    /// The numbers of measurements of either side and of queries in each; smaller for a slow way.
    num_pairs: usize,
    num_queries: usize,
}

impl Way {
    /// All ways to ask `question`.
    fn all(question: Question, is_quick: bool) -> Vec<Self> {
        let query = |text| Self { name: "SQLite", text, is_dijkstra: false, num_pairs: 7, num_queries: 100 };
        let mut ways = match question {
            Question::Path => vec![query(PATH)],
            Question::TwoHops => vec![query(TWO_HOPS)],
            Question::WeightedPath => vec![
                Self { name: "Dijkstra over SQLite", is_dijkstra: true, ..query(EDGES_OF) },
                Self { name: "SQLite, recursive query", num_pairs: 3, num_queries: 3, ..query(WEIGHTED_PATH) },
            ],
        };
        if is_quick {
            ways.iter_mut().for_each(|way| (way.num_pairs, way.num_queries) = (1, 3));
        }
        ways
    }

    /// Runs the statement. Returns the answer.
    fn ask(self, statement: &mut Statement<'_>, question: Question, ends: (VertexId, VertexId)) -> Result<u64> {
        let (source, target) = ends;
        if self.is_dijkstra {
            return least_weight(statement, source, target);
        }
        let answer: i64 = match question {
            Question::TwoHops => statement.query_row(params![source], |row| row.get(0))?,
            Question::Path | Question::WeightedPath => {
                statement.query_row(params![source, target], |row| row.get(0))?
            }
        };
        Ok(answer as u64)
    }
}

/// Compares SQLite and ours on equal queries, one after the other on one thread.
pub(super) fn navigation(
    setting: &Setting,
    ground: &Ground,
    questions: &[Question],
    is_quick: bool,
    report: &mut Report,
) -> Result<()> {
    let sqlite = Sqlite::create(&fresh(&setting.scratch, "navigation.sqlite")?, "OFF")?;
    sqlite.fill(ground)?;
    let connection = sqlite.connection();
    let ctx = Context::new(&setting.pool);
    let ours = |question: Question, ends| question.ask(&ctx, &ground.database.view()?, ends);
    let ways =
        questions.iter().flat_map(|&question| Way::all(question, is_quick).into_iter().map(move |way| (question, way)));
    for (question, way) in ways {
        let mut statement = connection.prepare(way.text)?;
        let asked =
            |pair: usize| ground.pairs.iter().cycle().skip(pair * way.num_queries).take(way.num_queries).copied();
        for ends in asked(0) {
            let (ours, theirs) = (ours(question, ends)?, way.ask(&mut statement, question, ends)?);
            ensure!(ours == theirs, "{}: {ends:?}: {ours} here, {theirs} there", ground.name);
        }
        let time = |pair, ask: &mut dyn FnMut((VertexId, VertexId)) -> Result<u64>| -> Result<f64> {
            let (time, done) = seconds(|| asked(pair).try_for_each(|ends| ask(ends).map(drop)));
            done?;
            Ok(time / way.num_queries as f64)
        };
        let pairs = Pairs::alternate(
            way.num_pairs,
            |pair| time(pair, &mut |ends| ours(question, ends)),
            |pair| time(pair, &mut |ends| way.ask(&mut statement, question, ends)),
        )?;
        report.line(Line::compared(
            format!("{}: {}", ground.name, question.name()),
            &pairs,
            way.name,
            "≤ .01: ≥ 100 times as fast",
        ));
    }
    Ok(())
}
