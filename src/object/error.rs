//! What can be wrong with an object, and where.

use std::fmt;

use thiserror::Error;

/// Something wrong with an object: what, where in it, and in which one. It is
/// one word wide, so that results stay small.
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
    place: Place,
    problem: Problem,
}

/// Where in an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The object as a whole.
    Object,
    /// A byte of the file.
    File {
        /// Bytes from its start.
        offset: u64,
    },
    /// A byte of a section.
    Section {
        /// Its name; `#7` where that is not readable.
        name: String,
        /// Bytes from the section's start.
        offset: u64,
    },
    /// An instruction of a function.
    Program {
        /// Name of the function.
        name: String,
        /// The section it stands in.
        section: String,
        /// Bytes from the section's start.
        offset: u64,
        /// `file.c:12: source line`, where BTF.ext has it.
        source: Option<String>,
    },
    /// A program that isn't there.
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
        /// As it was asked for: `conf.limits[2]`.
        path: String,
    },
}

impl fmt::Display for Place {
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
    /// Not an object that BPF programs come in.
    #[error("{0}")]
    NotBpf(String),
    /// The ELF structure contradicts itself or the file's length.
    #[error("{0}")]
    Malformed(String),
    /// `.BTF`, `.BTF.ext` or what they say is wrong.
    #[error("BTF: {0}")]
    Btf(String),
    /// There is no BTF, and something needs it.
    #[error("needs BTF, and the object has none: compile it with -g")]
    NoBtf,
    /// A map's declaration is wrong.
    #[error("{0}")]
    MapDefinition(String),
    /// An instruction or a map refers to something it can't.
    #[error("{0}")]
    Relocation(String),
    /// An extern without a value.
    #[error("{0}")]
    Unresolved(String),
    /// A kernel configuration value doesn't fit the variable.
    #[error("{0}")]
    Kconfig(String),
    /// Nothing has this name.
    #[error("{what}; there {}", .known.list())]
    Unknown {
        /// `no such program`.
        what: &'static str,
        /// What there is.
        known: Known,
    },
    /// A value doesn't fit a variable or a map.
    #[error("{0}")]
    Value(String),
    /// Objects that can't be linked together.
    #[error("{0}")]
    Link(String),
    /// More than bpflab is ready to build from a file of this size.
    #[error("{0}")]
    TooLarge(String),
}

/// Names that would have been right.
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
    /// A problem at a place of an object that will be named later.
    #[must_use]
    pub fn new(place: Place, problem: Problem) -> Self {
        Self(Box::new(Inner {
            object: String::new(),
            place,
            problem,
        }))
    }

    /// The same, of the object of this name; an object named already stays.
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

    /// Where it is wrong.
    #[must_use]
    pub fn place(&self) -> &Place {
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
        Self::new(Place::Section { name, offset }, problem)
    }

    /// A problem of a map.
    pub(super) fn map(name: &str, problem: Problem) -> Self {
        let name = name.to_owned();
        Self::new(Place::Map { name }, problem)
    }

    /// A problem of an extern.
    pub(super) fn external(name: &str, problem: Problem) -> Self {
        let name = name.to_owned();
        Self::new(Place::Extern { name }, problem)
    }
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.object.is_empty() {
            write!(f, "{}: ", self.0.object)?;
        }
        if self.0.place != Place::Object {
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
