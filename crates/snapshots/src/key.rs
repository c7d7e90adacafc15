//! Keys: the user's names of vertices.

use std::fmt;

use anden_graph::SPACE_SEPARATOR;

/// An owned key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A number.
    Integer(u64),
    /// A string.
    String(String),
}

/// A key borrowed from a dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyRef<'a> {
    /// A number.
    Integer(u64),
    /// A string.
    String(&'a str),
}

impl Key {
    /// The key `key` in the key space `space`: the text `SPACE:KEY`, as on the command line. `space` has no colon.
    pub fn in_space(space: &str, key: impl fmt::Display) -> Self {
        Self::String(format!("{space}{SPACE_SEPARATOR}{key}"))
    }
}

impl<'a> KeyRef<'a> {
    /// The key space, and the key in it; `None` for a number, and for text without a space.
    pub fn space(self) -> Option<(&'a str, &'a str)> {
        match self {
            Self::Integer(_) => None,
            Self::String(text) => text.split_once(SPACE_SEPARATOR),
        }
    }
}

impl From<u64> for Key {
    fn from(key: u64) -> Self {
        Self::Integer(key)
    }
}

impl From<&str> for Key {
    fn from(key: &str) -> Self {
        Self::String(key.to_owned())
    }
}

impl From<String> for Key {
    fn from(key: String) -> Self {
        Self::String(key)
    }
}

impl From<KeyRef<'_>> for Key {
    fn from(key: KeyRef<'_>) -> Self {
        match key {
            KeyRef::Integer(key) => Self::Integer(key),
            KeyRef::String(key) => Self::String(key.to_owned()),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(key) => key.fmt(f),
            Self::String(key) => key.fmt(f),
        }
    }
}

impl fmt::Display for KeyRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(key) => key.fmt(f),
            Self::String(key) => key.fmt(f),
        }
    }
}
