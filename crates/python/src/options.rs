//! Keyword arguments with the names of the command line's options.

use std::path::PathBuf;
use std::time::Duration;

use anden::session::{Io, Prefetch, parse_size};
use anden::{Durability, KeyScheme, Neighbors, Retention, WeightType};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyString};

use crate::error::{Failure, Result, invalid, wrong_type};

/// The keyword arguments of one function. Each is taken once; unknown ones are refused.
pub struct Keywords<'py> {
    function: &'static str,
    given: Vec<(String, Bound<'py, PyAny>)>,
}

impl<'py> Keywords<'py> {
    /// # Errors
    /// An argument has a name that is not `known`. The message suggests the nearest one.
    pub fn new(function: &'static str, given: Option<&Bound<'py, PyDict>>, known: &[&[&'static str]]) -> Result<Self> {
        let known: Vec<&str> = known.iter().copied().flatten().copied().collect();
        let mut arguments = Vec::new();
        for (name, value) in given.into_iter().flat_map(|given| given.iter()) {
            let name: String = name.extract()?;
            if !known.contains(&name.as_str()) {
                let hint = near(&name, known.iter().copied())
                    .map_or_else(|| format!("it takes {}", known.join(", ")), |near| format!("did you mean '{near}'?"));
                return Err(wrong_type(format!("{function}() got an unexpected keyword argument '{name}'; {hint}")));
            }
            // None stands for the default.
            if !value.is_none() {
                arguments.push((name, value));
            }
        }
        Ok(Self { function, given: arguments })
    }

    fn take_object(&mut self, name: &str) -> Option<Bound<'py, PyAny>> {
        let place = self.given.iter().position(|(given, _)| given == name)?;
        Some(self.given.swap_remove(place).1)
    }

    /// The argument `name` as `read` understands it; `None` if it is not given.
    pub fn take_with<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Bound<'py, PyAny>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.take_object(name).map(|value| read(&value).map_err(|error| self.named(name, error))).transpose()
    }

    /// The argument `name`; `None` if it is not given.
    pub fn take<T>(&mut self, name: &str) -> Result<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py>,
        for<'a> <T as FromPyObject<'a, 'py>>::Error: Into<PyErr>,
    {
        self.take_with(name, |value| {
            value.extract::<T>().map_err(|error| {
                let error: PyErr = error.into();
                Failure::Python(error)
            })
        })
    }

    /// Whether the argument `name` is given and true.
    pub fn is_set(&mut self, name: &str) -> Result<bool> {
        let flag = self.take_with(name, |value| match value.cast::<PyBool>() {
            Ok(flag) => Ok(flag.is_true()),
            Err(_) => Err(wrong_type(format!("True or False is expected, not {}", value.repr()?))),
        })?;
        Ok(flag.unwrap_or(false))
    }

    /// The argument `name`, which is one of some words.
    pub fn take_word<T: Copy>(&mut self, name: &str, words: &[(T, &str)]) -> Result<Option<T>> {
        self.take_with(name, |value| word(value, words))
    }

    /// Names the argument in the message of an error.
    fn named(&self, name: &str, error: Failure) -> Failure {
        let function = self.function;
        match error {
            Failure::Python(error) => Python::attach(|py| {
                let text = format!("{function}(): argument '{name}': {}", error.value(py));
                Failure::Python(PyErr::from_type(error.get_type(py), text))
            }),
            Failure::Engine(error) => invalid(format!("{function}(): argument '{name}': {error}")),
        }
    }
}

/// The nearest known name, if it is near enough to be meant.
pub fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let nearest = known.map(|known| (strsim::damerau_levenshtein(name, known), known)).min()?;
    (nearest.0 <= name.chars().count().div_ceil(3)).then_some(nearest.1)
}

/// One of some words.
pub fn word<T: Copy>(value: &Bound<'_, PyAny>, words: &[(T, &str)]) -> Result<T> {
    let known = || words.iter().map(|(_, word)| *word);
    let listed = || known().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(", ");
    let Ok(text) = value.cast::<PyString>() else {
        return Err(wrong_type(format!("one of {} is expected, not {}", listed(), value.repr()?)));
    };
    let text = text.to_str()?;
    match words.iter().find(|(_, word)| *word == text) {
        Some((found, _)) => Ok(*found),
        None => Err(match near(text, known()) {
            Some(near) => invalid(format!("'{text}' is not one of {}; did you mean '{near}'?", listed())),
            None => invalid(format!("'{text}' is not one of {}", listed())),
        }),
    }
}

/// A number of bytes: an int, or text such as `512M`.
pub fn size_of_text(value: &Bound<'_, PyAny>) -> Result<u64> {
    if let Ok(text) = value.cast::<PyString>() {
        let text = text.to_str()?;
        return parse_size(text).ok_or_else(|| invalid(format!("expected a size such as 512M or 4G, not '{text}'")));
    }
    if value.is_instance_of::<PyInt>()
        && let Ok(bytes @ 1..) = value.extract::<u64>()
    {
        return Ok(bytes);
    }
    Err(invalid(format!("expected a size in bytes or text such as '512M', not {}", value.repr()?)))
}

/// The direction of neighbors.
pub fn direction(value: Option<&Bound<'_, PyAny>>) -> Result<Neighbors> {
    const WORDS: [(Neighbors, &str); 3] = [(Neighbors::Out, "out"), (Neighbors::In, "in"), (Neighbors::Both, "both")];
    value.map_or(Ok(Neighbors::Out), |value| {
        word(value, &WORDS).map_err(|error| match error {
            Failure::Engine(error) => invalid(format!("direction: {error}")),
            error => error,
        })
    })
}

/// The words for types of keys.
pub const KEY_SCHEMES: [(KeyScheme, &str); 3] =
    [(KeyScheme::Integer, "integer"), (KeyScheme::String, "string"), (KeyScheme::Dense, "dense")];

/// The type of weights.
pub fn weight_type(value: &Bound<'_, PyAny>) -> Result<WeightType> {
    word(value, &WeightType::ALL)
}

/// A policy of prefetching.
pub fn prefetch(value: &Bound<'_, PyAny>) -> Result<Prefetch> {
    // The parser knows both spellings of a neighborhood; `word` makes the message for all other text.
    if let Ok(text) = value.extract::<&str>()
        && let Ok(policy) = text.parse()
    {
        return Ok(policy);
    }
    word(value, &Prefetch::ALL.map(|policy| (policy, policy.name())))
}

/// How files are read.
pub fn io(value: &Bound<'_, PyAny>) -> Result<Io> {
    word(value, &Io::ALL.map(|way| (way, way.name())))
}

/// A durability: `sync`, `batched`, `batched:MS` or `none`.
pub fn durability(value: &Bound<'_, PyAny>) -> Result<Durability> {
    let text: String = value.extract()?;
    let found = match text.split_once(':') {
        None if text == "sync" => Some(Durability::Sync),
        None if text == "none" => Some(Durability::None),
        None if text == "batched" => Some(Durability::batched()),
        Some(("batched", time)) => milliseconds(time).map(Durability::Batched),
        _ => None,
    };
    found.ok_or_else(|| invalid(format!("expected sync, batched, batched:MS or none, not '{text}'")))
}

/// A number of milliseconds.
pub fn milliseconds(text: &str) -> Option<Duration> {
    let seconds = text.trim_end_matches("ms").parse::<f64>().ok()? / 1e3;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Which snapshots are kept: `all`, `last:N`, `named` or `days:N`.
pub fn retention(text: &str) -> Result<Retention> {
    text.parse().map_err(|expected| invalid(format!("{expected}, not '{text}'")))
}

/// The path of an argument: text or an object with `__fspath__`.
pub fn path(value: &Bound<'_, PyAny>) -> Result<PathBuf> {
    value.extract().map_err(|_: PyErr| {
        let kind = value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
        wrong_type(format!("a path is a str or an os.PathLike, not {kind}"))
    })
}
