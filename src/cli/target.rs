//! `--target OBJ[:PROGRAM]`: the program whose functions others replace or trace.

use std::path::{Path, PathBuf};

use super::exit::Failure;
use super::input::{KernelArguments, no_program};
use crate::object::{Entry, Object};
use crate::program::TargetProgram;

/// The option's value.
#[derive(Debug, Clone)]
pub(super) struct TargetArgument {
    path: PathBuf,
    program: Option<String>,
}

impl From<&str> for TargetArgument {
    fn from(text: &str) -> Self {
        match text.rsplit_once(':') {
            Some((path, name)) if is_c_name(name) => Self {
                path: path.into(),
                program: Some(name.to_owned()),
            },
            _ => Self {
                path: text.into(),
                program: None,
            },
        }
    }
}

impl TargetArgument {
    /// The object's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the object, which loads the program alone, and the program's name.
    pub fn open(&self, kernel: &KernelArguments) -> Result<(Object, String), Failure> {
        let mut object = kernel.open_bare(&self.path)?;
        let loaded = object.entries().iter().filter(|entry| entry.autoload());
        let loaded: Vec<_> = loaded.map(Entry::name).collect();
        let name = match (&self.program, loaded.as_slice()) {
            (Some(name), _) => name.clone(),
            (None, [only]) => (*only).to_owned(),
            (None, []) => return Err(no_program(&object)),
            (None, several) => {
                return Err(Failure::bad(format!(
                    "--target {path}: it has several programs; name one, as in \
                     {path}:PROGRAM: {}",
                    several.join(", "),
                    path = self.path.display()
                )));
            }
        };
        object.load_only([name.as_str()])?;
        Ok((object, name))
    }
}

/// Sets the program that an object's programs attach to.
pub(super) fn set_target(object: &mut Object, target: TargetProgram) -> Result<(), Failure> {
    object.set_attach_program(target);
    let mut entries = object.entries().iter();
    if entries.any(|entry| object.attach_program_of(entry).is_some()) {
        return Ok(());
    }
    let file = object.file();
    Err(Failure::bad(format!(
        "{file}: no program attaches to the one that --target names; the section of one that does \
         is 'freplace/FUNCTION', 'fentry/FUNCTION' or 'fexit/FUNCTION', with a function of it"
    )))
}

/// Whether a word can be the name of a C function; paths of files usually can't.
pub(super) fn is_c_name(word: &str) -> bool {
    !word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
