//! The trait of an input format.
//!
//! A format is one file or folder below `readers` with an implementation of [`InputFormat`], and one line in the
//! registry. [`open`](InputFormat::open) adds parts to the collector, each with an [`InputContent`]. A format of lines
//! implements [`TextLines`] and takes blocks, headers and line numbers from [`TextInput`].
//!
//! [`InputContent`]: crate::part::InputContent
//! [`TextLines`]: crate::text_reader::TextLines
//! [`TextInput`]: crate::text_reader::TextInput

use std::path::Path;

use crate::collector::InputCollector;
use crate::probe::InputProbe;
use crate::{Error, Result};

/// How surely the beginning of an input has a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recognition {
    No,
    /// The format reads such text, unless it belongs to a format that Anden does not read.
    Likely,
    /// No other format has such text.
    Sure,
}

impl Recognition {
    /// `Likely` or `No`.
    pub(crate) fn likely_if(is_likely: bool) -> Self {
        if is_likely { Self::Likely } else { Self::No }
    }
}

/// A format of inputs.
pub(crate) trait InputFormat: Sync {
    /// The name that users type, and that messages and help texts list.
    fn name(&self) -> &'static str;

    /// The endings of names that tell the format, in lower case, and what each stands for in messages: `("csv", "CSV")`.
    /// An input with another name is recognised by its content.
    fn endings(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Whether the decompressed beginning of an input has this format. If several formats do, the last one in the
    /// registry wins.
    fn recognises(&self, text: &[u8]) -> Recognition;

    /// Whether the ending of a name suffices for this text, also if the content could be of a format that is not read.
    fn trusts_name(&self, _text: &[u8]) -> bool {
        false
    }

    /// Whether the files beside a file tell that it has this format, whatever its name and content tell.
    fn claims(&self, _path: &Path) -> bool {
        false
    }

    /// Opens an input of edges.
    ///
    /// # Errors
    /// The input cannot be read, or its beginning violates the format.
    fn open(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()>;

    /// Opens an input of vertices. By default, the format has none.
    ///
    /// # Errors
    /// As [`open`](Self::open); or the format has no files of vertices.
    fn open_vertices(&self, input: InputProbe, _to: &mut InputCollector<'_>) -> Result<()> {
        let what =
            format!("vertices are read from lists, CSV, Parquet and JSON lines, found the format {}", self.name());
        Err(input.bad(&what))
    }

    /// Opens an input of edges and vertices to remove. By default, the format cannot hold these.
    ///
    /// # Errors
    /// As [`open`](Self::open); or the format cannot hold removals.
    fn open_removals(&self, input: InputProbe, _to: &mut InputCollector<'_>) -> Result<()> {
        Err(self.no_removals(&input))
    }

    /// The error for a format that cannot hold removals.
    fn no_removals(&self, input: &InputProbe) -> Error {
        input.bad(&format!("what is to be removed is read from lists and CSV, found the format {}", self.name()))
    }

    /// Opens an input that a path names without being a file, such as a folder or the common prefix of several files.
    /// `None` if the path names none.
    fn open_missing(&self, _path: &Path, _to: &mut InputCollector<'_>) -> Option<Result<()>> {
        None
    }

    /// Whether a file or folder has this format, and says that keys are text.
    fn has_text_keys(&self, _path: &Path) -> bool {
        false
    }

    /// Whether every file under an ending of this format is a list of blank-separated keys, whatever the keys contain.
    fn is_list(&self) -> bool {
        false
    }

    /// Whether all weights are whole numbers.
    fn has_whole_weights(&self) -> bool {
        false
    }
}
