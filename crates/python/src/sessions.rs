//! Sessions: the threads and the memory budget of databases.

use anden::Session;
use parking_lot::Mutex;

use crate::error::{Result, invalid};

/// The most threads that a caller may ask for.
const MOST_THREADS: usize = 4096;

/// The sessions of this process, by the number of threads. Small databases share one set of threads.
static SESSIONS: Mutex<Vec<(u32, usize, Session)>> = Mutex::new(Vec::new());

/// A session with this many threads; 0: one for each core.
pub fn session(threads: usize, memory: Option<u64>) -> Result<Session> {
    if threads > MOST_THREADS {
        return Err(invalid(format!("threads is from 0 (one for each core) to {MOST_THREADS}, not {threads}")));
    }
    let process = std::process::id();
    let mut sessions = SESSIONS.lock();
    let known = sessions.iter().find(|(owner, number, _)| (*owner, *number) == (process, threads));
    let session = match known {
        Some((.., session)) => session.clone(),
        None => {
            // A forked child has none of the threads of its parent's sessions.
            let session = Session::new(threads)?;
            sessions.push((process, threads, session.clone()));
            session
        }
    };
    Ok(session.with_memory(memory))
}
