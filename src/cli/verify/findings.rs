//! `--sarif`, `--code-quality`, `--annotations`: findings for code hosts.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::cli::exit::Failure;
use crate::cli::files::write_text;
use crate::cli::printer::Printer;
use crate::report::{Finding, GithubAnnotations, code_quality, sarif};

/// Where findings are written.
#[derive(Debug, Args)]
pub(in crate::cli) struct FindingArguments {
    /// Write the programs that are not accepted, and the changes that fail, as SARIF 2.1.0
    #[arg(long, value_name = "FILE", conflicts_with = "vs_kernel")]
    sarif: Option<PathBuf>,
    /// Write them as GitLab's code quality report
    #[arg(long, value_name = "FILE", conflicts_with = "vs_kernel")]
    code_quality: Option<PathBuf>,
    /// Print them to standard error, so that a code host shows them beside the source
    #[arg(long, value_name = "HOST", value_enum, conflicts_with = "vs_kernel")]
    annotations: Option<Host>,
}

/// A code host that reads annotations from the output of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Host {
    /// GitHub Actions
    Github,
}

impl FindingArguments {
    /// Whether any option asks for findings.
    pub(super) const fn any(&self) -> bool {
        self.sarif.is_some() || self.code_quality.is_some() || self.annotations.is_some()
    }

    /// Writes them all.
    pub(super) fn write(&self, findings: &[Finding], printer: &mut Printer) -> Result<(), Failure> {
        if let Some(file) = &self.sarif {
            write(file, &sarif(findings))?;
        }
        if let Some(file) = &self.code_quality {
            write(file, &code_quality(findings))?;
        }
        match self.annotations {
            Some(Host::Github) => printer.aside_text(GithubAnnotations(findings)),
            None => Ok(()),
        }
    }
}

fn write(file: &Path, value: &Value) -> Result<(), Failure> {
    write_text(file, &format!("{value:#}\n"))
}
