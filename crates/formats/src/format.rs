//! The name of an input format.

/// A format of inputs, by its name. [`Format::all`] lists the formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    name: &'static str,
}

impl Format {
    /// The handle of a registered format.
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name }
    }

    /// The name that users type.
    pub fn name(self) -> &'static str {
        self.name
    }
}
