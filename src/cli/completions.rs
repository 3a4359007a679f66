//! `bpflab completions`: the script that completes bpflab's arguments in a shell.

use std::fmt::{self, Display};

use clap::{Args, Command};
use clap_complete::Shell;
use serde::Serialize;

use super::exit::{Exit, Failure};
use super::printer::Printer;

/// Print a script that completes arguments in a shell
///
/// The script completes verbs, options and their values. It belongs to this version of bpflab:
/// write it again after an update.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bpflab completions bash > ~/.local/share/bash-completion/completions/bpflab
  bpflab completions fish > ~/.config/fish/completions/bpflab.fish
  bpflab completions zsh > ~/.zfunc/_bpflab      a folder of zsh's fpath
  source <(bpflab completions bash)              in this shell only")]
pub(super) struct Arguments {
    /// Shell that reads the script
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// A completion script.
#[derive(Debug, Serialize)]
struct Script {
    /// Name of the shell.
    shell: String,
    /// Text of the script.
    script: String,
}

impl Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.script)
    }
}

/// Prints the script for the arguments of `command`.
pub(super) fn run(
    arguments: &Arguments,
    mut command: Command,
    printer: &mut Printer,
) -> Result<Exit, Failure> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    printer.show(&Script {
        shell: arguments.shell.to_string(),
        script: String::from_utf8(script).map_err(Failure::bad)?,
    })?;
    Ok(Exit::Fine)
}
