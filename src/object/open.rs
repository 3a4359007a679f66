//! Opening objects.

use std::path::Path;

use super::error::{ErrorLocation, ObjectError, Problem};
use super::link::{self, Input};
use super::model::Object;
use super::{collect, elf};

impl Object {
    /// Opens an object file from clang, `bpftool gen object` or another BPF compiler.
    ///
    /// # Errors
    /// A file that can't be read or isn't such an object, with section and offset. Errors
    /// in single programs are reported when the programs are built ([`Object::programs`]).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ObjectError> {
        let path = path.as_ref();
        Self::parse(&path.display().to_string(), &read(path)?)
    }

    /// Opens an object from bytes. `name` is used in messages and as the prefix of libbpf's
    /// names for maps of global data.
    ///
    /// # Errors
    /// As for [`Object::open`].
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, ObjectError> {
        elf::read(bytes)
            .and_then(|image| collect::collect(name, &image))
            .map_err(|error| error.of(name))
    }

    /// Links object files into one, as `bpftool gen object` does: `extern` functions, maps
    /// and variables resolve to another file's definition, a strong definition overrides
    /// `__weak` ones, and static symbols stay separate. `name` is the name of the result;
    /// each file is given as name and bytes.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use bpflab::Object;
    ///
    /// let main = std::fs::read("tests/objects/link_main.bpf.o")?;
    /// let library = std::fs::read("tests/objects/link_library.bpf.o")?;
    /// let object = Object::link("tool", &[("main", &main), ("library", &library)])?;
    ///
    /// let program = object.program("main_program")?;
    /// assert!(program.subprograms.iter().any(|function| function.name == "library_scale"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Object::open`], and for conflicting definitions, with the file's name.
    pub fn link(name: &str, files: &[(&str, &[u8])]) -> Result<Self, ObjectError> {
        let mut inputs = Vec::with_capacity(files.len());
        for (file, bytes) in files {
            let image = elf::read(bytes).map_err(|error| error.of(file))?;
            inputs.push(Input::new(file, image)?);
        }
        link::link(&inputs)
            .and_then(|image| collect::collect(name, &image))
            .map_err(|error| error.of(name))
    }

    /// Opens and links the files at these paths ([`Object::link`]).
    ///
    /// # Errors
    /// As for [`Object::link`].
    pub fn link_files<P: AsRef<Path>>(name: &str, paths: &[P]) -> Result<Self, ObjectError> {
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            let path = path.as_ref();
            files.push((path.display().to_string(), read(path)?));
        }
        let files: Vec<(&str, &[u8])> = files
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
            .collect();
        Self::link(name, &files)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, ObjectError> {
    std::fs::read(path).map_err(|error| {
        let problem = Problem::Unreadable(error.to_string());
        ObjectError::new(ErrorLocation::Object, problem).of(&path.display().to_string())
    })
}
