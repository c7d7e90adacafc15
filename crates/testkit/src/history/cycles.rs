//! Precedence between transactions, inferred from their reads, and a search for a cycle in it.
//!
//! The edges are those of Adya's thesis (MIT, 1999), and real time:
//! - *ww*: the writer of an element precedes the writer of the next element in the list order;
//! - *wr*: the writer of an element precedes its reader;
//! - *rw*: the reader of a list without an element precedes the writer of that element;
//! - *real time*: a transaction that was answered before another one began precedes it.
//!
//! The order of a list is that of its longest read; every other read must be a prefix of it. Elements that no
//! transaction read come after all elements that were read.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Action, Element, History, Object, Outcome};

/// Looks for evidence that no serial order explains the history: a cycle, a read of aborted or never appended elements,
/// a read of half a transaction, or two reads that disagree.
///
/// # Errors
/// The first such evidence.
pub fn find_cycle(history: &History) -> Result<(), String> {
    let writers = writers(history)?;
    let mut graph = Precedence::new(history.runs.len());
    let orders = orders(history)?;
    for (index, run) in history.runs.iter().enumerate() {
        if run.outcome == Outcome::Aborted {
            continue;
        }
        let mut own: HashMap<Object, Vec<Element>> = HashMap::new();
        for action in &run.actions {
            match action {
                Action::Append(object, element) => own.entry(*object).or_default().push(*element),
                Action::Read(object, seen) => {
                    let own = own.get(object).map_or(&[][..], Vec::as_slice);
                    graph.add_read(index, *object, seen, own, history, &writers, &orders)?;
                }
            }
        }
    }
    for (object, order) in &orders {
        for pair in order.windows(2) {
            graph.add(writers[&(*object, pair[0])], writers[&(*object, pair[1])], "ww");
        }
        // Elements that no transaction read come after the last read one. Their order among each other is unknown.
        if let Some(last) = order.last() {
            let last = writers[&(*object, *last)];
            let unseen = writers.range((*object, 0)..=(*object, Element::MAX));
            for (&(_, element), &writer) in unseen {
                if !order.contains(&element) && history.runs[writer].outcome != Outcome::Aborted {
                    graph.add(last, writer, "ww");
                }
            }
        }
    }
    graph.add_real_time(history);
    graph.require_no_cycle(history)
}

/// The transaction that appended each element of each object.
fn writers(history: &History) -> Result<BTreeMap<(Object, Element), usize>, String> {
    let mut writers = BTreeMap::new();
    for (index, run) in history.runs.iter().enumerate() {
        for (object, element) in run.appends() {
            // An element twice in one object would make its order ambiguous.
            if writers.insert((object, element), index).is_some() {
                return Err(format!(
                    "element {element} is appended to object {object} twice: the history is of no use"
                ));
            }
        }
    }
    Ok(writers)
}

/// The longest read of each list object. All other reads must be prefixes of it.
fn orders(history: &History) -> Result<BTreeMap<Object, Vec<Element>>, String> {
    let mut orders: BTreeMap<Object, Vec<Element>> = BTreeMap::new();
    let committed = || history.runs.iter().filter(|run| run.outcome != Outcome::Aborted);
    let reads = || {
        committed().flat_map(|run| &run.actions).filter_map(|action| match action {
            Action::Read(object, seen) if history.is_list(*object) => Some((*object, seen)),
            _ => None,
        })
    };
    for (object, seen) in reads() {
        let order = orders.entry(object).or_default();
        // Every other read is a prefix of the longest one, or contradicts it.
        if seen.len() > order.len() {
            order.clone_from(seen);
        }
    }
    for (object, seen) in reads() {
        if !orders[&object].starts_with(seen) {
            return Err(format!("object {object} was read as {seen:?} and as {:?}: neither is first", orders[&object]));
        }
    }
    Ok(orders)
}

/// Edges from transactions to those that come after them.
struct Precedence {
    edges: Vec<Vec<(usize, &'static str)>>,
}

impl Precedence {
    fn new(num_runs: usize) -> Self {
        Self { edges: vec![Vec::new(); num_runs] }
    }

    fn add(&mut self, first: usize, second: usize, why: &'static str) {
        // A transaction never precedes itself.
        if first != second {
            self.edges[first].push((second, why));
        }
    }

    /// Adds the edges that a read implies. `own` holds the reader's earlier appends to the object.
    #[expect(clippy::too_many_arguments, reason = "it is one step of one function")]
    fn add_read(
        &mut self,
        reader: usize,
        object: Object,
        seen: &[Element],
        own: &[Element],
        history: &History,
        writers: &BTreeMap<(Object, Element), usize>,
        orders: &BTreeMap<Object, Vec<Element>>,
    ) -> Result<(), String> {
        let all: HashSet<Element> = seen.iter().copied().collect();
        let read = || format!("transaction {reader} read {seen:?} of object {object}");
        for element in seen {
            let Some(&writer) = writers.get(&(object, *element)) else {
                return Err(format!("{}, and no transaction appended {element}", read()));
            };
            let run = &history.runs[writer];
            if run.outcome == Outcome::Aborted {
                return Err(format!("{}, and {element} was never committed", read()));
            }
            if writer == reader {
                if !own.contains(element) {
                    return Err(format!("{}, and appends {element} only later", read()));
                }
                continue;
            }
            // A reader sees all elements that the writer appended to the object, or none.
            let missed = run.appends().find(|(other, missed)| *other == object && !all.contains(missed));
            if let Some((_, missed)) = missed {
                return Err(format!("{}: {element} without {missed}, which were committed as one", read()));
            }
            self.add(writer, reader, "wr");
        }
        if let Some(missed) = own.iter().find(|element| !all.contains(element)) {
            return Err(format!("{}, without {missed}, which it had appended itself", read()));
        }
        let order = orders.get(&object).map_or(&[][..], Vec::as_slice);
        // In a list, an edge to the writer of the first missing element suffices: ww edges lead to the later ones.
        if history.is_list(object)
            && let Some(next) = order.get(seen.len())
        {
            self.add(reader, writers[&(object, *next)], "rw");
            return Ok(());
        }
        for (&(_, element), &writer) in writers.range((object, 0)..=(object, Element::MAX)) {
            if history.runs[writer].outcome != Outcome::Aborted && !all.contains(&element) && writer != reader {
                self.add(reader, writer, "rw");
            }
        }
        Ok(())
    }

    /// Adds the real-time edges: from each transaction to later ones, up to the first answer among those. Transactions
    /// that begin after that answer are reached through its edges.
    fn add_real_time(&mut self, history: &History) {
        let committed = |index: &usize| history.runs[*index].outcome != Outcome::Aborted;
        let mut by_begin: Vec<usize> = (0..history.runs.len()).filter(committed).collect();
        // Sorted by begin, so that all later transactions are a suffix.
        by_begin.sort_unstable_by_key(|&index| history.runs[index].begun);
        for &first in &by_begin {
            let ended = history.runs[first].ended;
            let next = by_begin.partition_point(|&index| history.runs[index].begun <= ended);
            let mut first_answer = u64::MAX;
            for &second in &by_begin[next..] {
                if history.runs[second].begun > first_answer {
                    break;
                }
                first_answer = first_answer.min(history.runs[second].ended);
                self.add(first, second, "real time");
            }
        }
    }

    /// Depth-first search with an explicit stack: long histories would overflow the call stack.
    fn require_no_cycle(&self, history: &History) -> Result<(), String> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done,
        }
        let mut states = vec![State::New; self.edges.len()];
        for start in 0..self.edges.len() {
            if states[start] != State::New {
                continue;
            }
            let mut path = vec![(start, 0)];
            states[start] = State::Open;
            while let Some((at, next)) = path.last_mut() {
                let Some(&(to, _)) = self.edges[*at].get(*next) else {
                    states[*at] = State::Done;
                    path.pop();
                    continue;
                };
                *next += 1;
                match states[to] {
                    State::New => {
                        states[to] = State::Open;
                        path.push((to, 0));
                    }
                    // A path on the stack that meets itself is a cycle.
                    State::Open => return Err(self.describe(&path, to, history)),
                    State::Done => {}
                }
            }
        }
        Ok(())
    }

    fn describe(&self, path: &[(usize, usize)], to: usize, history: &History) -> String {
        let start = path.iter().position(|&(at, _)| at == to).unwrap_or(0);
        let mut text = String::from("a cycle:");
        for &(at, next) in &path[start..] {
            let (to, why) = self.edges[at][next - 1];
            text += &format!("\n{at} before {to} ({why}): {:?}", history.runs[at]);
        }
        text
    }
}
