//! Errors in an object, with their location.

use std::fmt;

use thiserror::Error;

/// An error in an object: problem, location and the object's name. One word wide, so that
/// results stay small.
///
/// ```
/// use bpflab::Object;
/// let error = Object::parse("notes.txt", b"not an object at all").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "notes.txt: offset 0x0: not an ELF file (it begins with 6e 6f 74 20); \
///      compile one with clang -target bpf -g -O2 -c"
/// );
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ObjectError(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    object: String,
    place: ErrorLocation,
    problem: Problem,
}

/// Location of an error in an object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorLocation {
    /// The object as a whole.
    Object,
    /// A byte of the file.
    File {
        /// Bytes from its start.
        offset: u64,
    },
    /// A byte of a section.
    Section {
        /// Its name; `#7` if unreadable.
        name: String,
        /// Bytes from the section's start.
        offset: u64,
    },
    /// An instruction of a function.
    Program {
        /// Name of the function.
        name: String,
        /// Its section.
        section: String,
        /// Bytes from the section's start.
        offset: u64,
        /// `file.c:12: source line`, if in BTF.ext.
        source: Option<String>,
    },
    /// A program that doesn't exist.
    Entry {
        /// Its name.
        name: String,
    },
    /// A map.
    Map {
        /// Its name.
        name: String,
    },
    /// A variable or function that the object declares and does not define.
    Extern {
        /// Its name.
        name: String,
    },
    /// A global variable, or a part of one.
    Global {
        /// The requested path: `conf.limits[2]`.
        path: String,
    },
}

impl fmt::Display for ErrorLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object => f.write_str("object"),
            Self::File { offset } => write!(f, "offset {offset:#x}"),
            Self::Section { name, offset } => write!(f, "section '{name}', offset {offset:#x}"),
            Self::Program {
                name,
                section,
                offset,
                source,
            } => {
                write!(
                    f,
                    "program '{name}' (section '{section}', offset {offset:#x}"
                )?;
                match source {
                    Some(source) => write!(f, "; {source})"),
                    None => f.write_str(")"),
                }
            }
            Self::Entry { name } => write!(f, "program '{name}'"),
            Self::Map { name } => write!(f, "map '{name}'"),
            Self::Extern { name } => write!(f, "extern '{name}'"),
            Self::Global { path } => write!(f, "global '{path}'"),
        }
    }
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file can't be read.
    #[error("can't be read: {0}")]
    Unreadable(String),
    /// Not an object file of BPF programs.
    #[error("{0}")]
    NotBpf(String),
    /// Inconsistent or truncated ELF data.
    #[error("{0}")]
    Malformed(String),
    /// Invalid `.BTF` or `.BTF.ext`.
    #[error("BTF: {0}")]
    Btf(String),
    /// BTF is required but missing.
    #[error("needs BTF, and the object has none: compile it with -g")]
    NoBtf,
    /// Invalid map declaration.
    #[error("{0}")]
    MapDefinition(String),
    /// An instruction or a map refers to an invalid target.
    #[error("{0}")]
    Relocation(String),
    /// An unresolved extern.
    #[error("{0}")]
    Unresolved(String),
    /// A kernel configuration value doesn't fit the variable.
    #[error("{0}")]
    Kconfig(String),
    /// Unknown name.
    #[error("{what}; there {}", .known.list())]
    Unknown {
        /// `no such program`.
        what: &'static str,
        /// The existing names.
        known: Known,
    },
    /// A value doesn't fit a variable or a map.
    #[error("{0}")]
    Value(String),
    /// Objects that can't be linked.
    #[error("{0}")]
    Link(String),
    /// More than bpflab builds from a file of this size.
    #[error("{0}")]
    TooLarge(String),
}

/// The existing names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known(pub Vec<String>);

impl Known {
    fn list(&self) -> String {
        match self.0.as_slice() {
            [] => "is none".to_owned(),
            [one] => format!("is '{one}'"),
            many => format!("are '{}'", many.join("', '")),
        }
    }
}

impl ObjectError {
    /// A problem at a location; the object's name is added by [`of`](Self::of).
    #[must_use]
    pub fn new(place: ErrorLocation, problem: Problem) -> Self {
        Self(Box::new(Inner {
            object: String::new(),
            place,
            problem,
        }))
    }

    /// Sets the object's name unless it is set already.
    #[must_use]
    pub fn of(mut self, object: &str) -> Self {
        if self.0.object.is_empty() {
            object.clone_into(&mut self.0.object);
        }
        self
    }

    /// The object's name or path, as it was opened.
    #[must_use]
    pub fn object(&self) -> &str {
        &self.0.object
    }

    /// Where the problem is.
    #[must_use]
    pub fn place(&self) -> &ErrorLocation {
        &self.0.place
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    /// A problem at an offset of a section.
    pub(super) fn section(name: &str, offset: u64, problem: Problem) -> Self {
        let name = name.to_owned();
        Self::new(ErrorLocation::Section { name, offset }, problem)
    }

    /// A problem of a map.
    pub(super) fn map(name: &str, problem: Problem) -> Self {
        let name = name.to_owned();
        Self::new(ErrorLocation::Map { name }, problem)
    }

    /// A problem of an extern.
    pub(super) fn external(name: &str, problem: Problem) -> Self {
        let name = name.to_owned();
        Self::new(ErrorLocation::Extern { name }, problem)
    }
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.object.is_empty() {
            write!(f, "{}: ", self.0.object)?;
        }
        if self.0.place != ErrorLocation::Object {
            write!(f, "{}: ", self.0.place)?;
        }
        self.0.problem.fmt(f)
    }
}

impl fmt::Debug for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ObjectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        None
    }
}
