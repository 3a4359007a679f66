//! Peers that are no Rust crates: shared libraries, each named by an environment variable.
//! `docs/peers.md` says how they are built.

#![expect(unsafe_code, reason = "a library is opened")]

use libloading::Library;

use super::engine::Absent;

/// A peer in a shared library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its own name.
    pub name: &'static str,
    /// The environment variable with the path of its library.
    pub variable: &'static str,
}

impl Peer {
    /// Opens the library.
    ///
    /// # Errors
    /// The variable is not set, or its value is not the path of a library.
    pub fn open(self) -> Result<Library, Absent> {
        let Self { name, variable } = self;
        let path = std::env::var_os(variable).ok_or_else(|| self.not_installed())?;
        // SAFETY: whoever sets the variable vouches for the library's initialisers, which may
        // do anything.
        let library = unsafe { Library::new(path) };
        library.map_err(|error| format!("{name}: {variable}: {error}"))
    }

    /// Why the peer is missing: its variable is not set. A variable that is set to something
    /// else is an error where the library is opened.
    pub fn missing(self) -> Option<Absent> {
        match std::env::var_os(self.variable) {
            Some(_) => None,
            None => Some(self.not_installed()),
        }
    }

    fn not_installed(self) -> Absent {
        let Self { name, variable } = self;
        format!("{name}: not installed (`{variable}` names its library)")
    }
}
