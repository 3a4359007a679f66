//! `--target OBJ[:PROGRAM]|id:N`: the program whose functions others replace or trace.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::exit::Failure;
use super::input::{KernelArguments, no_program};
use crate::object::{Entry, Object};
use crate::program::TargetProgram;
use crate::spec::ProgType;

/// The option's value.
#[derive(Debug, Clone)]
pub(super) enum TargetArgument {
    /// A program of an object.
    Object(ObjectTarget),
    /// A program in the running kernel, by its id.
    Loaded(u32),
}

/// A program of an object.
#[derive(Debug, Clone)]
pub(super) struct ObjectTarget {
    path: PathBuf,
    program: Option<String>,
}

impl FromStr for TargetArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(id) = text.strip_prefix("id:") {
            let id = id.parse().map_err(|_| {
                format!("'{id}' is no id of a program, which is a number (`bpftool prog`)")
            })?;
            return Ok(Self::Loaded(id));
        }
        Ok(Self::Object(text.into()))
    }
}

impl From<&str> for ObjectTarget {
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

impl ObjectTarget {
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

/// The program with this id in the running kernel.
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub(super) fn loaded(id: u32) -> Result<TargetProgram, Failure> {
    use super::exit::Exit;

    crate::kernel::loaded_target(id).map_err(|error| {
        let text = format!("--target id:{id}: {error}");
        match error.is_unavailable() {
            true => Failure::with(Exit::Unavailable, text),
            false => Failure::bad(text),
        }
    })
}

/// A warning if the attach type of a loaded program decides, which the kernel does not tell.
pub(super) fn assumed_attach_type(target: &TargetProgram) -> Option<String> {
    let id = target.kernel_id?;
    let program = &target.program;
    let prog_type = program.prog_type;
    let assumed = match program.expected_attach_type {
        Some(assumed) if prog_type.attach_types().len() > 1 => assumed.to_string(),
        None if matches!(prog_type, ProgType::Xdp | ProgType::Lsm) => "none".to_owned(),
        _ => return None,
    };
    Some(format!(
        "--target id:{id}: the kernel does not tell the attach type of a program; taken for this \
         one of type {prog_type}: {assumed}"
    ))
}

/// A build without access to the running kernel.
#[cfg(not(all(feature = "kernel", target_os = "linux")))]
pub(super) fn loaded(id: u32) -> Result<TargetProgram, Failure> {
    Err(Failure::bad(format!(
        "--target id:{id} needs Linux and a build with the feature 'kernel'"
    )))
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
