//! The person at the terminal: progress bars, and Ctrl-C.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anden::{Progress, StandardInput};
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{Failure, complain};

static INTERRUPT: AtomicBool = AtomicBool::new(false);
static MUST_CLEAN_UP: AtomicBool = AtomicBool::new(false);

/// Shows stages on standard error if that is a terminal, and passes Ctrl-C on to the work.
#[derive(Debug)]
pub struct Watch {
    is_visible: bool,
    bar: Mutex<Option<ProgressBar>>,
}

impl Watch {
    /// Starts to listen for Ctrl-C, SIGTERM and SIGHUP. The first one ends the process at once, unless there is something
    /// to [clean up](Self::clean_up_from_here); a second one always does. Signals that the parent process had ignored, as
    /// `nohup` does, stay ignored.
    pub fn new(is_quiet: bool) -> Self {
        // Without a handler the process ends at once, which leaves the database whole as well.
        let _ = listen();
        Self { is_visible: !is_quiet && std::io::stderr().is_terminal(), bar: Mutex::new(None) }
    }

    /// From now on files are written that must go if the work stops: Ctrl-C lets it stop by itself.
    pub fn clean_up_from_here(&self) {
        MUST_CLEAN_UP.store(true, Ordering::Relaxed);
    }

    /// Takes the last bar off the terminal.
    pub fn clear(&self) {
        if let Some(bar) = self.bar.lock().unwrap_or_else(|e| e.into_inner()).take() {
            bar.finish_and_clear();
        }
    }
}

impl Progress for Watch {
    fn stage(&self, name: &str, total: Option<u64>) {
        if !self.is_visible {
            return;
        }
        self.clear();
        let bar = match total {
            Some(total) => ProgressBar::new(total).with_style(style("{msg:<24} {wide_bar} {percent:>3} % {eta:>4}")),
            None => ProgressBar::new_spinner().with_style(style("{msg:<24} {spinner} {elapsed}")),
        };
        bar.set_message(name.to_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        *self.bar.lock().unwrap_or_else(|e| e.into_inner()) = Some(bar);
    }

    fn advance(&self, amount: u64) {
        if !self.is_visible {
            return;
        }
        if let Some(bar) = &*self.bar.lock().unwrap_or_else(|e| e.into_inner()) {
            bar.inc(amount);
        }
    }

    fn is_cancelled(&self) -> bool {
        INTERRUPT.load(Ordering::Relaxed)
    }
}

/// Starts the thread that signals wake.
fn listen() -> std::io::Result<()> {
    // A handler would replace "ignored", so it has to be asked before.
    let mut signals = Signals::new(heeded([SIGINT, SIGTERM, SIGHUP]))?;
    let wake = move || {
        for _ in &mut signals {
            if INTERRUPT.swap(true, Ordering::Relaxed) || !MUST_CLEAN_UP.load(Ordering::Relaxed) {
                if let Some(line) = Failure::Cancelled.line() {
                    complain(&line);
                }
                std::process::exit(Failure::Cancelled.status().into());
            }
            StandardInput::stop();
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wake).map(drop)
}

/// The signals among some that this process does not ignore; all of them where the kernel does not tell.
fn heeded(signals: impl IntoIterator<Item = i32>) -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored_signals(&status);
    signals.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0).collect()
}

/// The mask of ignored signals, with bit 0 for signal 1, of a text as that of `/proc/self/status` (see proc(5)).
fn ignored_signals(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_mask() {
        let status = "Name:\tanden\nSigBlk:\t0000000000000003\nSigIgn:\t0000000000001001\nSigCgt:\t00000000ffffffff\n";
        let ignored = |signal: i32| ignored_signals(status) >> (signal - 1) & 1 == 1;
        // SIGPIPE is 13.
        assert_eq!([SIGHUP, SIGINT, SIGTERM, 13].map(ignored), [true, false, false, true]);
        assert_eq!((ignored_signals(""), ignored_signals("SigIgn:\tx")), (0, 0));
    }
}
