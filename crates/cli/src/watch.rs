//! Progress bars on the terminal, and signals such as Ctrl-C.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anden::Progress;
use anden_base::standard_input::StandardInput;
use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{CommandFailure, complain};

static INTERRUPT: AtomicBool = AtomicBool::new(false);
static MUST_CLEAN_UP: AtomicBool = AtomicBool::new(false);
static IS_ENDLESS: AtomicBool = AtomicBool::new(false);

/// Shows progress on standard error if that is a terminal, and passes Ctrl-C on to the work.
#[derive(Debug)]
pub struct Watch {
    is_visible: bool,
    bar: Mutex<Option<ProgressBar>>,
}

impl Watch {
    /// Listens for Ctrl-C, SIGTERM and SIGHUP. The first signal ends the process at once, unless
    /// [`clean_up_from_here`](Self::clean_up_from_here) was called; a second signal always does. Signals that the
    /// parent process ignores, as `nohup` does, stay ignored.
    pub fn new(is_quiet: bool) -> Self {
        // An error is harmless: without a handler, a signal ends the process, and the database stays intact.
        let _ = listen();
        Self { is_visible: !is_quiet && std::io::stderr().is_terminal(), bar: Mutex::new(None) }
    }

    /// From now on, the first signal only cancels the work, so that the work removes its unfinished files.
    pub fn clean_up_from_here(&self) {
        // Relaxed: the flag guards no other memory, and the signal thread needs only its value.
        MUST_CLEAN_UP.store(true, Ordering::Relaxed);
    }

    /// From now on, a signal is the end that the user expects, and no interruption to report.
    pub fn runs_until_signal(&self) {
        IS_ENDLESS.store(true, Ordering::Relaxed);
    }

    /// The failure with which a signal ends the command.
    pub fn interruption() -> CommandFailure {
        if IS_ENDLESS.load(Ordering::Relaxed) { CommandFailure::Ended } else { CommandFailure::Cancelled }
    }

    /// Removes the progress bar.
    pub fn clear(&self) {
        if let Some(bar) = self.bar.lock().take() {
            bar.finish_and_clear();
        }
    }
}

impl Progress for Watch {
    fn stage(&self, name: &str, total: Option<u64>) {
        if !self.is_visible {
            return;
        }
        // The bar of the stage before must go before the next one is drawn.
        self.clear();
        let bar = match total {
            Some(total) => ProgressBar::new(total).with_style(style("{msg:<24} {wide_bar} {percent:>3} % {eta:>4}")),
            None => ProgressBar::new_spinner().with_style(style("{msg:<24} {spinner} {elapsed}")),
        };
        bar.set_message(name.to_owned());
        // Ten redraws a second are smooth enough and cost little.
        bar.enable_steady_tick(Duration::from_millis(100));
        *self.bar.lock() = Some(bar);
    }

    fn advance(&self, amount: u64) {
        // Called often, from many threads: a hidden bar costs no lock.
        if !self.is_visible {
            return;
        }
        if let Some(bar) = &*self.bar.lock() {
            bar.inc(amount);
        }
    }

    fn is_cancelled(&self) -> bool {
        // Relaxed: a check that misses the signal is followed by another one.
        INTERRUPT.load(Ordering::Relaxed)
    }
}

/// Starts the signal thread.
fn listen() -> std::io::Result<()> {
    // A handler would replace "ignored", so check that first.
    let heeded = heeded([SIGINT, SIGTERM, SIGHUP]);
    let mut signals = Signals::new([0; 0])?;
    let handle = signals.handle();
    let wake = move || {
        for _ in &mut signals {
            // A second signal means that the user no longer waits for a clean end.
            if INTERRUPT.swap(true, Ordering::Relaxed) || !MUST_CLEAN_UP.load(Ordering::Relaxed) {
                let interruption = Watch::interruption();
                if let Some(line) = interruption.line() {
                    complain(&line);
                }
                // An exit skips destructors, so a second signal may leave unfinished files.
                std::process::exit(interruption.status().into());
            }
            // The work may wait for standard input without a limit: wake it.
            StandardInput::stop();
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wake)?;
    // Handlers come last: without the thread, a signal that is caught would have no effect.
    heeded.into_iter().try_for_each(|signal| handle.add_signal(signal))
}

/// The signals that this process does not ignore; all of them if the system does not tell.
fn heeded(signals: impl IntoIterator<Item = i32>) -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored_signals(&status);
    signals.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0).collect()
}

/// The mask of ignored signals in the text of `/proc/self/status` (see proc(5)); bit 0 is signal 1.
fn ignored_signals(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn style(template: &str) -> ProgressStyle {
    // A wrong template is a fault of the program, and no reason to end the work.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_mask() {
        let status = "Name:\tanden\nSigBlk:\t0000000000000003\nSigIgn:\t0000000000001001\nSigCgt:\t00000000ffffffff\n";
        let ignored = |signal: i32| ignored_signals(status) >> (signal - 1) & 1 == 1;
        // 13 is SIGPIPE.
        assert_eq!([SIGHUP, SIGINT, SIGTERM, 13].map(ignored), [true, false, false, true]);
        assert_eq!((ignored_signals(""), ignored_signals("SigIgn:\tx")), (0, 0));
    }
}
