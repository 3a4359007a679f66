//! The `bpflab` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    bpflab::cli::main()
}
