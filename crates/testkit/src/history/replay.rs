//! The history again, one transaction at a time, in the order in which the database says that it committed them.

use std::collections::BTreeMap;

use super::{Action, Element, History, Object, Run};

/// Runs the committed transactions one after the other and compares what each read. What was answered before another began
/// must come before it. Who only reads has the position of the last that it saw, or one right behind it; of several that
/// only read at one position, those that began first come first.
///
/// # Errors
/// The first read that another order, or none, explains.
pub fn replay(history: &History) -> Result<(), String> {
    let mut order: Vec<(&Run, (u64, u64))> =
        history.runs.iter().filter_map(|run| run.position().map(|position| (run, position))).collect();
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
        latest = latest.max((run.begun, position));
        for action in &run.actions {
            match action {
                Action::Append(object, element) => lists.entry(*object).or_default().push(*element),
                Action::Read(object, seen) => {
                    let mut expected = lists.get(object).cloned().unwrap_or_default();
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
