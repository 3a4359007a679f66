//! The `bpflab` command.

fn main() {}
