//! The names of forms that kernels prepare from a graph and that a database stores.
//!
//! Kernels make and read the forms, storages keep their bytes: both know them by these names.

/// A form of a graph that a kernel prepares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum StoredForm {
    /// The edges in the bins of PageRank. The parameter is the number of bits of a partition.
    Bins = 1,
    /// The oriented copy of triangles and clustering coefficients. The parameter is the number of hubs.
    Oriented = 2,
    /// The in-lists of a graph without them. The parameter is 0.
    InLists = 3,
}

impl StoredForm {
    /// Every form.
    pub const ALL: [Self; 3] = [Self::Bins, Self::Oriented, Self::InLists];

    /// The form with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|form| *form as u32 == number)
    }

    /// The name that users see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bins => "bins",
            Self::Oriented => "oriented",
            Self::InLists => "in-lists",
        }
    }
}

/// A form, and the parameter that it is prepared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoredFormKey {
    /// The form.
    pub form: StoredForm,
    /// Its parameter.
    pub parameter: u64,
}

impl std::fmt::Display for StoredFormKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.form {
            StoredForm::Bins | StoredForm::Oriented => write!(f, "{} of {}", self.form.name(), self.parameter),
            StoredForm::InLists => f.write_str(self.form.name()),
        }
    }
}

/// The content of a form: arrays of little-endian numbers, each as its pieces in order.
pub type FormArrays<'a> = Vec<Vec<&'a [u8]>>;

/// Takes the arrays of a form, each as a whole. The error says what is wrong with them.
pub type StoredFormReader<'a> = dyn FnMut(&[&[u8]]) -> Result<(), String> + 'a;
