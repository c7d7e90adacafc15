//! Clients that run concurrently for some time.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

/// The stop signal for clients.
pub(super) struct Clock<'a> {
    is_over: &'a AtomicBool,
}

impl Clock<'_> {
    pub(super) fn is_running(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }
}

/// The work of a client, which runs until its clock stops.
pub(super) type Client<'a, R> = Box<dyn FnOnce(&Clock<'_>) -> Result<R> + Send + 'a>;

/// Runs each client on a thread of its own for `time`. Returns the results, and the seconds until the last client was
/// done.
pub(super) fn side_by_side<R: Send>(clients: Vec<Client<'_, R>>, time: Duration) -> Result<(Vec<R>, f64)> {
    let is_over = AtomicBool::new(false);
    let start = Barrier::new(clients.len() + 1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = clients
            .into_iter()
            .map(|client| {
                scope.spawn(|| {
                    start.wait();
                    let done = client(&Clock { is_over: &is_over });
                    // Without this client, the others would measure another load.
                    if done.is_err() {
                        is_over.store(true, Ordering::Relaxed);
                    }
                    done
                })
            })
            .collect();
        start.wait();
        let begin = Instant::now();
        while begin.elapsed() < time && !is_over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5).min(time));
        }
        is_over.store(true, Ordering::Relaxed);
        let done = threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a client ended early"))?);
        let done = done.collect::<Result<Vec<R>>>()?;
        Ok((done, begin.elapsed().as_secs_f64()))
    })
}

/// The value that `per_mille` of the values do not exceed, or 0 without values. Sorts the values.
pub(super) fn quantile(values: &mut [f64], per_mille: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        len => values[(len * per_mille / 1000).min(len - 1)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_run_until_time_is_up_or_one_fails() {
        let count = |clock: &Clock<'_>| {
            let mut number = 0_u64;
            loop {
                number += 1;
                std::thread::yield_now();
                if !clock.is_running() {
                    return Ok(number);
                }
            }
        };
        let (numbers, seconds) =
            side_by_side(vec![Box::new(count), Box::new(count)], Duration::from_millis(20)).unwrap();
        assert!(numbers.iter().all(|&number| number > 0) && seconds >= 0.02, "{numbers:?} in {seconds} s");
        let clients: Vec<Client<'_, u64>> = vec![Box::new(count), Box::new(|_| Err(anyhow!("no")))];
        assert_eq!(side_by_side(clients, Duration::from_secs(3600)).unwrap_err().to_string(), "no");
    }

    #[test]
    fn quantiles_are_values() {
        let mut values: Vec<f64> = (0..1000).rev().map(f64::from).collect();
        assert_eq!(
            (quantile(&mut values, 500), quantile(&mut values, 999), quantile(&mut [], 500)),
            (500.0, 999.0, 0.0)
        );
    }
}
