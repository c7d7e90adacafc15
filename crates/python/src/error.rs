//! Exceptions, and the one place where errors of the engine become exceptions.

use std::io;

use anden::Error;
use anden::error::NotFound;
use pyo3::exceptions::{PyException, PyLookupError, PyMemoryError, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::key::key_object;

/// The result of a function of this module.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a call fails: an error of the engine, or an exception.
#[derive(Debug)]
pub enum Failure {
    Engine(Box<Error>),
    Python(PyErr),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(Box::new(error))
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl<'a, 'py> From<pyo3::CastError<'a, 'py>> for Failure {
    fn from(error: pyo3::CastError<'a, 'py>) -> Self {
        Self::Python(error.into())
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Engine(error) => Python::attach(|py| raised(py, &error)),
            Failure::Python(error) => error,
        }
    }
}

/// A wrong argument: the exception `InvalidInput`.
pub fn invalid(text: impl Into<String>) -> Failure {
    Error::InvalidInput(text.into().into()).into()
}

/// An object that cannot be used in its state: the exception `Error`.
pub fn misused(text: impl Into<String>) -> Failure {
    Python::attach(|py| Failure::Python(PyErr::from_type(Classes::of(py).error.bind(py).clone(), text.into())))
}

/// An argument of a wrong type: the exception `TypeError`.
pub fn wrong_type(text: impl Into<String>) -> Failure {
    Failure::Python(PyTypeError::new_err(text.into()))
}

/// The exception classes.
struct Classes {
    error: Py<PyType>,
    not_found: Py<PyType>,
    invalid_input: Py<PyType>,
    exists: Py<PyType>,
    read_only: Py<PyType>,
    conflict: Py<PyType>,
    unique_violation: Py<PyType>,
    corrupt: Py<PyType>,
    locked: Py<PyType>,
    io: Py<PyType>,
    memory: Py<PyType>,
    unsupported: Py<PyType>,
    epoch_gone: Py<PyType>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

impl Classes {
    fn of(py: Python<'_>) -> &Self {
        // The classes are made when the module is imported, so this cannot fail later.
        CLASSES.get_or_init(py, || Self::new(py).expect("the exception classes can be made"))
    }

    fn new(py: Python<'_>) -> PyResult<Self> {
        let exception = py.get_type::<PyException>();
        let error = class(py, "Error", "The base of all exceptions of Anden.", &[&exception])?;
        let of = |name, about| class(py, name, about, &[error.bind(py)]);
        // Callers that catch the standard exception of a kind catch ours.
        let with = |name, about, other: Bound<'_, PyType>| class(py, name, about, &[error.bind(py), &other]);
        Ok(Self {
            not_found: with(
                "NotFound",
                "A vertex, an edge, a snapshot, a property, an index, a database or a file does not exist.",
                py.get_type::<PyLookupError>(),
            )?,
            invalid_input: with(
                "InvalidInput",
                "An argument, a name or an input file is not valid. Nothing was changed.",
                py.get_type::<PyValueError>(),
            )?,
            exists: of("Exists", "The path of a new database, the name of a new snapshot, or a new index exists.")?,
            read_only: of("ReadOnly", "The database was opened for reading only.")?,
            conflict: of("Conflict", "Another transaction changed data that this one read. A retry may succeed.")?,
            unique_violation: of(
                "UniqueViolation",
                "Another vertex has this value of a property with a unique index.",
            )?,
            corrupt: of("Corrupt", "A file holds bytes that no writer produces.")?,
            locked: of("Locked", "Another process has the database open for writing, or the process forked.")?,
            io: with("Io", "The operating system reported an error.", py.get_type::<PyOSError>())?,
            memory: with(
                "MemoryLimit",
                "The memory budget is too small. Nothing was changed.",
                py.get_type::<PyMemoryError>(),
            )?,
            unsupported: of("Unsupported", "The graph, or this version of it, lacks what the operation needs.")?,
            epoch_gone: of(
                "EpochGone",
                "Neither the log nor a snapshot leads on from an epoch. Begin again from a backup.",
            )?,
            error,
        })
    }

    /// The class for an error of the engine.
    fn class(&self, error: &Error) -> &Py<PyType> {
        match error {
            Error::NotFound { .. } => &self.not_found,
            Error::InvalidInput(_) => &self.invalid_input,
            Error::Exists(_) => &self.exists,
            Error::ReadOnly(_) => &self.read_only,
            Error::Conflict(_) => &self.conflict,
            Error::UniqueViolation { .. } => &self.unique_violation,
            Error::Corrupt(_) => &self.corrupt,
            Error::Locked(_) => &self.locked,
            Error::Io(_) => &self.io,
            Error::Memory { .. } => &self.memory,
            Error::Unsupported(_) => &self.unsupported,
            Error::EpochGone { .. } => &self.epoch_gone,
            _ => &self.error,
        }
    }

    fn all(&self) -> [&Py<PyType>; 13] {
        [
            &self.error,
            &self.not_found,
            &self.invalid_input,
            &self.exists,
            &self.read_only,
            &self.conflict,
            &self.unique_violation,
            &self.corrupt,
            &self.locked,
            &self.io,
            &self.memory,
            &self.unsupported,
            &self.epoch_gone,
        ]
    }
}

/// Makes an exception class of the package `anden`.
fn class(py: Python<'_>, name: &str, about: &str, bases: &[&Bound<'_, PyType>]) -> PyResult<Py<PyType>> {
    let members = PyDict::new(py);
    members.set_item("__module__", "anden")?;
    members.set_item("__doc__", about)?;
    let made = py.get_type::<PyType>().call1((name, PyTuple::new(py, bases)?, members))?;
    Ok(made.cast_into::<PyType>()?.unbind())
}

/// Adds the classes to the module.
pub fn add_classes(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for class in Classes::of(module.py()).all() {
        let class = class.bind(module.py());
        module.add(class.name()?, class)?;
    }
    Ok(())
}

/// The exception for an error of the engine. Attributes name what the error is about.
fn raised(py: Python<'_>, error: &Error) -> PyErr {
    let class = Classes::of(py).class(error).bind(py).clone();
    let raised = PyErr::from_type(class, in_python(&error.to_string()));
    // The attributes are an addition: without them, the exception still says everything.
    let _ = add_attributes(raised.value(py), error);
    raised
}

fn add_attributes(exception: &Bound<'_, PyAny>, error: &Error) -> PyResult<()> {
    let py = exception.py();
    match error {
        Error::NotFound { what: NotFound::Vertex(key), .. } => exception.setattr("vertex", key_object(py, key)?)?,
        Error::UniqueViolation { property, vertex, holder, .. } => {
            exception.setattr("property", property)?;
            exception.setattr("vertex", key_object(py, vertex)?)?;
            exception.setattr("holder", key_object(py, holder)?)?;
        }
        Error::EpochGone { since, earlier, later, .. } => {
            exception.setattr("since", since)?;
            exception.setattr("earlier", earlier)?;
            exception.setattr("later", later)?;
        }
        Error::Memory { needed, budget, .. } => {
            exception.setattr("needed", needed)?;
            exception.setattr("budget", budget)?;
        }
        Error::Io(_) => {
            let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
            exception.setattr("errno", cause.and_then(io::Error::raw_os_error))?;
        }
        _ => {}
    }
    if let Some(index) = error.update() {
        exception.setattr("update", index)?;
    }
    Ok(())
}

/// The text of an error with the names of arguments in place of those of options: `--out-only` becomes `out_only`.
fn in_python(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("--") {
        let (before, option) = (&rest[..start], &rest[start + 2..]);
        let len = option.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(option.len());
        // A dash inside a word or a lone `--` names no option.
        let is_option = len > 0 && before.chars().next_back().is_none_or(|c| c == ' ' || c == '(');
        words.push_str(before);
        words.push_str(&if is_option {
            option[..len].replace('-', "_")
        } else {
            rest[start..start + 2 + len].to_owned()
        });
        rest = &option[len..];
    }
    words.push_str(rest);
    words
}
