//! Opening objects.

use std::path::Path;

use super::error::{ObjectError, Place, Problem};
use super::model::Object;
use super::{collect, elf};

impl Object {
    /// Opens an object file that clang, `bpftool gen object` or another compiler for
    /// BPF made.
    ///
    /// # Errors
    /// A file that can't be read or isn't such an object, with the section and the
    /// offset at which it goes wrong. What breaks single programs is reported when
    /// they are taken out ([`Object::programs`]).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ObjectError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| {
            ObjectError::new(Place::Object, Problem::Unreadable(error.to_string())).of(&name)
        })?;
        Self::parse(&name, &bytes)
    }

    /// Opens an object of these bytes. `name` is what messages call it; libbpf's
    /// names for maps of global data begin with it.
    ///
    /// # Errors
    /// As for [`Object::open`].
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, ObjectError> {
        elf::read(bytes)
            .and_then(|image| collect::collect(name, &image))
            .map_err(|error| error.of(name))
    }
}
