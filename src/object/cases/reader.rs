//! Reading cases line by line.

use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use serde_json::Value as Json;
use thiserror::Error;

use super::case::Case;
use crate::btf::Btf;
use crate::program::Program;
use crate::util::compressed;

/// Maximum bytes of a line: a program of a million instructions has 16 million digits.
const MAX_LINE: u64 = 256 << 20;

/// A line that is not a case, or a case that is not a program.
#[derive(Debug, Error)]
#[error("{file}:{line}: {problem}")]
#[non_exhaustive]
pub struct CaseError {
    /// The file.
    pub file: String,
    /// The line, from 1; 0 for a case that wasn't read from a file.
    pub line: usize,
    /// What is wrong.
    pub problem: CaseProblem,
}

/// What is wrong with a case.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaseProblem {
    /// The file can't be read.
    #[error("can't be read: {0}")]
    Unreadable(#[from] io::Error),
    /// The line is not a JSON object.
    #[error("not a JSON object: {0}")]
    NotJson(String),
    /// A key's value is wrong, or a key is missing.
    #[error("key '{key}': {text}")]
    Key {
        /// The key, with the index or name of the part where useful.
        key: String,
        /// What is wrong with it.
        text: String,
    },
}

impl CaseProblem {
    pub(crate) fn key(key: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Key {
            key: key.into(),
            text: text.into(),
        }
    }
}

/// The folder with the BTF of the cases in a directory: `NAME.btf` for the name in a case.
pub(crate) fn types_folder(directory: &Path) -> PathBuf {
    directory.join("btf")
}

/// Reads one line.
///
/// # Errors
/// Not a JSON object, or an invalid or missing key.
pub fn read_case(line: &str) -> Result<Case, CaseProblem> {
    let json: Json =
        serde_json::from_str(line).map_err(|error| CaseProblem::NotJson(error.to_string()))?;
    let Json::Object(object) = json else {
        return Err(CaseProblem::NotJson("another JSON value".to_owned()));
    };
    Case::from_json(object).map_err(|(key, text)| CaseProblem::key(key, text))
}

/// Iterator over the cases of a file. A line that is not a case is an error; reading
/// continues with the next line.
///
/// ```no_run
/// use bpflab::object::cases::Cases;
///
/// let mut cases = Cases::open("cases.jsonl.xz")?;
/// while let Some(case) = cases.next() {
///     let case = case?;
///     let program = cases.program(&case)?;
///     println!("{}: {} instructions", case.id, program.insns.len());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Cases {
    file: String,
    /// Its directory, whose [`types_folder`] has the BTF.
    directory: PathBuf,
    lines: Box<dyn BufRead>,
    line: usize,
    done: bool,
    btf: FxHashMap<String, Btf>,
    kernel: Option<Btf>,
}

impl Cases {
    /// Opens a file of cases, plain or packed with gzip or xz.
    ///
    /// # Errors
    /// The file can't be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CaseError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let directory = path.parent().map(Path::to_owned).unwrap_or_default();
        match compressed::open(path) {
            Ok(lines) => Ok(Self::new(&file, directory, lines)),
            Err(error) => Err(CaseError {
                file,
                line: 0,
                problem: error.into(),
            }),
        }
    }

    /// Reads cases from any reader, such as standard input, plain or packed; `name` is used
    /// in messages, and BTF is looked up in `directory`.
    ///
    /// # Errors
    /// The first bytes can't be read.
    pub fn read(
        name: &str,
        directory: impl Into<PathBuf>,
        input: impl BufRead + 'static,
    ) -> Result<Self, CaseError> {
        match compressed::unpack(input) {
            Ok(lines) => Ok(Self::new(name, directory.into(), lines)),
            Err(error) => Err(CaseError {
                file: name.to_owned(),
                line: 0,
                problem: error.into(),
            }),
        }
    }

    fn new(file: &str, directory: PathBuf, lines: Box<dyn BufRead>) -> Self {
        Self {
            file: file.to_owned(),
            directory,
            lines,
            line: 0,
            done: false,
            btf: FxHashMap::default(),
            kernel: None,
        }
    }

    /// Sets the BTF of the kernel that the cases were made for: `attach_btf_id` and kfunc
    /// calls refer to it.
    pub fn set_kernel(&mut self, btf: Btf) {
        self.kernel = Some(btf);
    }

    /// Builds the program of a case.
    ///
    /// # Errors
    /// BTF that can't be read, or numbers that Linux 6.18 doesn't define.
    pub fn program(&mut self, case: &Case) -> Result<Program, CaseError> {
        let btf = match case.btf.as_str() {
            "" => None,
            name => Some(self.btf(name).map_err(|problem| self.error(problem))?),
        };
        case.to_program(btf, self.kernel.clone())
            .map_err(|problem| self.error(problem))
    }

    /// Loads the BTF of this name; cached.
    fn btf(&mut self, name: &str) -> Result<Btf, CaseProblem> {
        if let Some(btf) = self.btf.get(name) {
            return Ok(btf.clone());
        }
        // The name is used in a path: it must not lead out of the directory.
        if name.contains(['/', '\\']) || name.starts_with('.') {
            return Err(CaseProblem::key(
                "btf",
                format!("'{name}' is not a file name"),
            ));
        }
        let path = types_folder(&self.directory).join(format!("{name}.btf"));
        let bytes = compressed::read(&path)
            .map_err(|error| CaseProblem::key("btf", format!("{}: {error}", path.display())))?;
        let btf = Btf::parse(&bytes)
            .map_err(|error| CaseProblem::key("btf", format!("{}: {error}", path.display())))?;
        self.btf.insert(name.to_owned(), btf.clone());
        Ok(btf)
    }

    fn error(&self, problem: CaseProblem) -> CaseError {
        CaseError {
            file: self.file.clone(),
            line: self.line,
            problem,
        }
    }

    fn next_line(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        let read = io::Read::take(&mut self.lines, MAX_LINE).read_line(&mut line)?;
        if read as u64 == MAX_LINE {
            let text = "line of more than 256 megabytes";
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        self.line += 1;
        Ok((read > 0).then_some(line))
    }
}

impl Iterator for Cases {
    type Item = Result<Case, CaseError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.done {
            match self.next_line() {
                Ok(None) => self.done = true,
                Ok(Some(line)) if line.trim().is_empty() => {}
                Ok(Some(line)) => {
                    return Some(read_case(&line).map_err(|problem| self.error(problem)));
                }
                Err(error) => {
                    // The position after a failed read is unknown.
                    self.done = true;
                    return Some(Err(self.error(error.into())));
                }
            }
        }
        None
    }
}
