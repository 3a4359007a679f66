//! What messages call a region.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A region's name. Most are words of ours: an event has its context in memory without a
/// copy of the word.
#[derive(Debug, Clone)]
pub enum Name {
    /// The same for all regions of a kind.
    Fixed(&'static str),
    /// That of one map or program, which its regions share.
    Shared(Arc<str>),
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Fixed(name) => name,
            Self::Shared(name) => name,
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl From<&'static str> for Name {
    fn from(name: &'static str) -> Self {
        Self::Fixed(name)
    }
}

impl From<Arc<str>> for Name {
    fn from(name: Arc<str>) -> Self {
        Self::Shared(name)
    }
}

impl From<String> for Name {
    fn from(name: String) -> Self {
        Self::Shared(name.into())
    }
}
