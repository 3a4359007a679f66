//! Prints all output of the command.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, Write};

use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;
use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;
use serde_json::json;

use super::exit::{Exit, Failure};
use super::progress::Progress;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
#[cfg(all(feature = "kernel", target_os = "linux"))]
const NOTE: Style = AnsiColor::Cyan.on_default().bold();

/// When the output has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    Auto,
    Always,
    Never,
}

/// Sets when output has colours; [`Printer::new`] reads it.
pub(super) fn set_color(when: Color) {
    let choice = match when {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    };
    choice.write_global();
}

/// Prints values as text or as JSON lines. Colours are used on terminals only.
pub(super) struct Printer {
    out: BufWriter<AutoStream<io::Stdout>>,
    json: bool,
    quiet: bool,
    progress: Progress,
}

impl Printer {
    /// A printer to standard output. A quiet one prints no warnings, notes and progress.
    pub fn new(json: bool, quiet: bool) -> Self {
        Self {
            out: BufWriter::new(AutoStream::auto(io::stdout())),
            json,
            quiet,
            progress: Progress::default(),
        }
    }

    /// Says what the command is doing, on a terminal, until something is printed.
    pub fn working(&mut self, what: impl Display) {
        if !self.quiet {
            self.progress.set(what.to_string());
        }
    }

    /// Says nothing more of what the command is doing.
    pub fn worked(&mut self) {
        self.progress.clear();
    }

    /// Whether it prints JSON.
    pub const fn is_json(&self) -> bool {
        self.json
    }

    /// Prints a value as text, or as one line of JSON.
    pub fn show<T: Display + Serialize>(&mut self, value: &T) -> Result<(), Failure> {
        if self.json {
            self.row(value)
        } else {
            self.text(value)
        }
    }

    /// Prints a line of JSON.
    pub fn row<T: Serialize>(&mut self, value: &T) -> Result<(), Failure> {
        let line = serde_json::to_string(value).map_err(Failure::bad)?;
        self.progress.clear();
        Ok(writeln!(self.out, "{line}")?)
    }

    /// Prints text that contains its own newlines.
    pub fn text(&mut self, text: impl Display) -> Result<(), Failure> {
        self.progress.clear();
        Ok(write!(self.out, "{text}")?)
    }

    /// Prints all so far, for a command that goes on for long: a reader does not wait for it, and
    /// nothing is lost if the process is killed.
    pub fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }

    /// Prints a failure to standard error, and under `--json` to standard output, too. Returns
    /// the exit code, so that the verb can go on.
    pub fn failure(&mut self, failure: Failure) -> Result<Exit, Failure> {
        let Failure::Error { exit, text } = failure else {
            return Err(failure);
        };
        if self.json {
            self.row(&json!({ "error": text, "exit_code": exit as u8 }))?;
        }
        self.complain(&text)?;
        Ok(exit)
    }

    /// Prints a warning to standard error.
    pub fn warn(&mut self, text: &str) -> Result<(), Failure> {
        self.aside(WARNING, "warning", text)
    }

    /// Prints a note to standard error.
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    pub fn note(&mut self, text: &str) -> Result<(), Failure> {
        self.aside(NOTE, "note", text)
    }

    fn aside(&mut self, style: Style, word: &str, text: &str) -> Result<(), Failure> {
        if !self.quiet {
            self.progress.clear();
            self.out.flush()?;
            say(style, word, text);
        }
        Ok(())
    }

    /// Prints what another process has printed, at once: any bytes, so not by way of the stream
    /// that removes colours.
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.progress.clear();
        self.out.flush()?;
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    /// Prints text that contains its own newlines to standard error.
    pub fn aside_text(&mut self, text: impl Display) -> Result<(), Failure> {
        self.progress.clear();
        self.out.flush()?;
        Ok(write!(anstream::stderr(), "{text}")?)
    }

    /// Prints an error to standard error only.
    pub fn complain(&mut self, text: &str) -> Result<(), Failure> {
        self.progress.clear();
        // Output before the error comes first. The error is printed even if nobody reads the output.
        let flushed = self.out.flush();
        say(ERROR, "error", text);
        Ok(flushed?)
    }

    /// Flushes the output, prints a failure, and returns the exit code. A reader that closes
    /// the pipe (`| head`) is no error; the result, if it was known by then, is the exit code.
    pub fn finish(mut self, done: Result<Exit, Failure>) -> Exit {
        self.progress.clear();
        let exit = match &done {
            Ok(exit) | Err(Failure::Error { exit, .. }) => *exit,
            Err(Failure::Output(_)) => Exit::Fine,
        };
        let told = done.or_else(|failure| self.failure(failure));
        match told.and_then(|exit| Ok(self.out.flush().map(|()| exit)?)) {
            Ok(exit) | Err(Failure::Error { exit, .. }) => exit,
            Err(Failure::Output(error)) if error.kind() == ErrorKind::BrokenPipe => exit,
            Err(Failure::Output(error)) => {
                say(
                    ERROR,
                    "error",
                    format!("the output can't be written: {error}"),
                );
                Exit::Bad
            }
        }
    }
}

/// Prints to standard error. If that fails, only the exit code tells.
fn say(style: Style, word: &str, text: impl Display) {
    let _ = writeln!(anstream::stderr(), "{style}{word}{style:#}: {text}");
}
