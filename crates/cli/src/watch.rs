//! The person at the terminal: progress bars, and Ctrl-C.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anden::{Progress, StandardInput};
use indicatif::{ProgressBar, ProgressStyle};

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
    /// Starts to listen for Ctrl-C. It ends the process at once, unless there is something to
    /// [clean up](Self::clean_up_from_here); a second one always does.
    pub fn new(is_quiet: bool) -> Self {
        // Without a handler the process ends at once, which leaves the database whole as well.
        let _ = ctrlc::set_handler(|| {
            if INTERRUPT.swap(true, Ordering::Relaxed) || !MUST_CLEAN_UP.load(Ordering::Relaxed) {
                if let Some(line) = Failure::Cancelled.line() {
                    complain(&line);
                }
                std::process::exit(Failure::Cancelled.status().into());
            }
            StandardInput::stop();
        });
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

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
