//! `bpflab conformance-plugin`: the plugin of the bpf_conformance suite.

use std::ffi::OsString;

use clap::Args;

use super::exit::{Exit, Failure};
use super::printer::Printer;

/// Run the program on standard input, as a plugin of the bpf_conformance suite
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Memory that r1 points to, in hexadecimal; r2 is its length
    #[arg(value_name = "MEMORY", default_value = "")]
    memory: String,
    /// The program on standard input is an ELF file, not bare instructions
    #[arg(long)]
    elf: bool,
}

pub(super) fn run(_arguments: &Arguments, _printer: &mut Printer) -> Result<Exit, Failure> {
    Ok(Exit::Fine)
}

/// The suite puts the memory before the plugin's options, among which the verb is
/// (`--plugin_path bpflab --plugin_options conformance-plugin`); the verb is moved to
/// where it belongs.
pub(super) fn put_verb_first(words: &mut [OsString]) {
    if let [_, memory, verb, ..] = words
        && verb == "conformance-plugin"
        && memory.to_str().is_some_and(is_hex)
    {
        std::mem::swap(memory, verb);
    }
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit() || c == ' ')
}
