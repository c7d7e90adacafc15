//! A serial replay of a history in the commit order that the database reports.

use std::collections::BTreeMap;

use super::{Action, Element, History, Object, Run};

/// Replays the committed transactions in the order of their positions and compares each read with the model.
///
/// A transaction that was answered before another one began must have the smaller position. A read-only transaction has
/// the position of the last commit that it saw, or the one directly after. Read-only transactions at one position are
/// replayed in the order of their start times.
///
/// # Errors
/// The first transaction whose position contradicts real time, or the first read that differs from the model.
pub fn replay(history: &History) -> Result<(), String> {
    let mut order: Vec<(&Run, (u64, u64))> =
        history.runs.iter().filter_map(|run| run.position().map(|position| (run, position))).collect();
    // Positions may be equal among transactions that only read; then the earlier one comes first.
    order.sort_by_key(|&(run, position)| (position, run.begun));
    let mut lists: BTreeMap<Object, Vec<Element>> = BTreeMap::new();
    let mut latest = (0, (0, 0));
    for (run, position) in order {
        let (begun, before) = latest;
        if run.ended < begun {
            let Run { client, ended, .. } = run;
            let what = format!("client {client} was answered at {ended}, and has position {position:?}");
            return Err(format!("{what}, behind one that began at {begun}, which has {before:?}"));
        }
        // Only the largest earlier begin can contradict a later transaction.
        latest = latest.max((run.begun, position));
        for action in &run.actions {
            match action {
                Action::Append(object, element) => lists.entry(*object).or_default().push(*element),
                Action::Read(object, seen) => {
                    let mut expected = lists.get(object).cloned().unwrap_or_default();
                    // A set shows no order, so both sides are compared ascending.
                    if !history.is_list(*object) {
                        expected.sort_unstable();
                    }
                    if expected != *seen {
                        return Err(format!(
                            "client {} at {position:?} read {seen:?} of object {object}, which is {expected:?} then",
                            run.client
                        ));
                    }
                }
            }
        }
    }
    Ok(())
}
