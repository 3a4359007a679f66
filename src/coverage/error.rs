//! Why coverage can't be measured or read.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::record::VARIABLE;

/// Why coverage can't be measured or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CoverageError {
    /// The file for the counts can't be made or written.
    #[error(
        "{VARIABLE}: {}: the counts of executed instructions can't be written: {error}; \
         name a folder that can be written",
        path.display()
    )]
    Write {
        /// The folder or file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// A folder or file can't be read.
    #[error("{}: can't be read: {error}", path.display())]
    Read {
        /// The folder or file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// A folder has no counts.
    #[error(
        "{}: no coverage data; run tests, `bpflab run` or `bpflab replay` with {VARIABLE}={}",
        .0.display(), .0.display()
    )]
    Nothing(PathBuf),
    /// A line of a file is not what bpflab writes.
    #[error(
        "{}:{line}: damaged coverage data: {problem}; delete the file and measure again",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}
