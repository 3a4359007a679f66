//! Names of regions in messages.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A region's name. Most are fixed strings, so that creating a context needs no allocation.
#[derive(Debug, Clone)]
pub enum Name {
    /// A fixed name, for all regions of a kind.
    Fixed(&'static str),
    /// A name that all regions of one map or program share.
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
