//! `bpflab man`: the manual pages, which come from the same text as `--help`.

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::{fs, io};

use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use serde::Serialize;

use super::exit::{Exit, Failure};
use super::printer::Printer;

/// Write manual pages
///
/// Writes a page for bpflab and one for each verb into DIR, which is created if it does not
/// exist. Without DIR, prints the page bpflab(1). The pages belong to this version of bpflab:
/// write them again after an update.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bpflab man ~/.local/share/man/man1; man bpflab-compare
  bpflab man | man -l -                          the first page, without installing it")]
pub(super) struct Arguments {
    /// Folder for the pages
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// A manual page.
#[derive(Debug, Serialize)]
struct Page {
    /// File name: `bpflab-run.1`.
    page: String,
    /// Text for `man`, in roff.
    #[serde(skip_serializing_if = "Option::is_none")]
    roff: Option<String>,
    /// The file that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
}

impl Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, &self.roff) {
            (Some(file), _) => writeln!(f, "{}", file.display()),
            (None, roff) => f.write_str(roff.as_deref().unwrap_or_default()),
        }
    }
}

/// Prints or writes the pages of `command` and its verbs.
pub(super) fn run(
    arguments: &Arguments,
    command: Command,
    printer: &mut Printer,
) -> Result<Exit, Failure> {
    let version = command.get_version().unwrap_or_default();
    let source = format!("{} {version}", command.get_name());
    // `bpflab help VERB` has no arguments of its own to describe.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let Some(folder) = &arguments.folder else {
        let (page, roff) = page(&command, None, &source)?;
        let (roff, file) = (Some(roff), None);
        printer.show(&Page { page, roff, file })?;
        return Ok(Exit::Fine);
    };
    let failed =
        |path: &PathBuf, error: io::Error| Failure::bad(format!("{}: {error}", path.display()));
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for (command, parent) in with_verbs(&command, None) {
        let (page, roff) = page(command, parent, &source)?;
        let file = folder.join(&page);
        fs::write(&file, roff).map_err(|error| failed(&file, error))?;
        let (roff, file) = (None, Some(file));
        printer.show(&Page { page, roff, file })?;
    }
    Ok(Exit::Fine)
}

/// The command, its verbs and their verbs, each with the page of the command above it.
fn with_verbs<'a>(
    command: &'a Command,
    parent: Option<&'a str>,
) -> Vec<(&'a Command, Option<&'a str>)> {
    let name = command.get_display_name().or(Some(command.get_name()));
    let verbs = command.get_subcommands();
    let verbs = verbs.flat_map(|verb| with_verbs(verb, name));
    std::iter::once((command, parent)).chain(verbs).collect()
}

/// The file name of a command's page, and its text.
fn page(command: &Command, parent: Option<&str>, source: &str) -> io::Result<(String, String)> {
    let man = Man::new(command.clone());
    let man = man.source(source).manual("bpflab manual");
    let help = command.get_after_help().map(ToString::to_string);
    let (notes, sections) = after_help(help.as_deref().unwrap_or_default());
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    notes.to_writer(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    sections.to_writer(&mut text)?;
    if let Some(parent) = parent {
        let mut roff = Roff::new();
        roff.control("SH", ["SEE ALSO"]);
        roff.text([bold(parent), roman("(1)")]);
        roff.to_writer(&mut text)?;
    }
    let text = String::from_utf8(text).map_err(io::Error::other)?;
    Ok((man.get_filename(), text))
}

/// The paragraphs below a verb's help: those that belong to the description, and the sections
/// on exit codes and examples. `clap_mangen` would fill the examples like prose.
fn after_help(text: &str) -> (Roff, Roff) {
    let (mut notes, mut sections) = (Roff::new(), Roff::new());
    for paragraph in text.split("\n\n") {
        if let Some(lines) = paragraph.strip_prefix("Examples:\n") {
            sections.control("SH", ["EXAMPLES"]).control("nf", []);
            for line in lines.lines() {
                sections.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
            }
            sections.control("fi", []);
        } else if paragraph.starts_with("Exit code") {
            sections.control("SH", ["EXIT STATUS"]);
            sections.text([roman(paragraph)]);
        } else if !paragraph.is_empty() {
            notes.control("PP", []);
            notes.text([roman(paragraph)]);
        }
    }
    (notes, sections)
}
