//! The one place that prints.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, Write};

use anstream::AutoStream;
use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;
use serde_json::json;

use super::exit::{Exit, Failure};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// Prints values as text or as JSON lines. Colours vanish where the output is no
/// terminal.
pub(super) struct Printer {
    out: BufWriter<AutoStream<io::Stdout>>,
    json: bool,
}

impl Printer {
    /// A printer to the standard output.
    pub fn new(json: bool) -> Self {
        Self {
            out: BufWriter::new(AutoStream::auto(io::stdout())),
            json,
        }
    }

    /// Whether it prints JSON.
    pub const fn is_json(&self) -> bool {
        self.json
    }

    /// Prints a value: its text, or its JSON in one line.
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
        Ok(writeln!(self.out, "{line}")?)
    }

    /// Prints text, which ends its own lines.
    pub fn text(&mut self, text: impl Display) -> Result<(), Failure> {
        Ok(write!(self.out, "{text}")?)
    }

    /// Shows a failure on the standard error, under `--json` as a value, too. It need
    /// not be the end of the verb: the exit code comes back.
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

    /// Shows on the standard error what is no error, but matters.
    pub fn warn(&mut self, text: &str) -> Result<(), Failure> {
        self.out.flush()?;
        say(WARNING, "warning", text);
        Ok(())
    }

    /// Shows an error on the standard error only.
    pub fn complain(&mut self, text: &str) -> Result<(), Failure> {
        // What was printed comes before the error about what follows.
        self.out.flush()?;
        say(ERROR, "error", text);
        Ok(())
    }

    /// Writes what is left, shows what went wrong, and gives the exit code. A reader
    /// that has seen enough (`| head`) is no error.
    pub fn finish(mut self, done: Result<Exit, Failure>) -> Exit {
        let told = done.or_else(|failure| self.failure(failure));
        match told.and_then(|exit| Ok(self.out.flush().map(|()| exit)?)) {
            Ok(exit) | Err(Failure::Error { exit, .. }) => exit,
            Err(Failure::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Exit::Fine,
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

/// Tells the standard error. Where that can't be written, nobody is there to be told so: the
/// exit code says enough.
fn say(style: Style, word: &str, text: impl Display) {
    let _ = writeln!(anstream::stderr(), "{style}{word}{style:#}: {text}");
}
