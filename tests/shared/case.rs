//! Log cases: assembly with the program's type and maps in comments at the top.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bpflab::isa::assemble_with;
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType};

/// The files of the cases.
pub fn all() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/verifier_log");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "s"))
        .collect();
    paths.sort();
    paths
}

pub fn read(path: &Path) -> Arc<Program> {
    program(&std::fs::read_to_string(path).unwrap())
}

/// The program of a text. `# type: xdp` sets its type (default: socket filter), `# map:
/// array numbers 4 8 16` declares a map: type, name, key and value size, entries.
pub fn program(text: &str) -> Arc<Program> {
    let mut program = Program::new("test", ProgType::SocketFilter, Vec::new());
    let (mut code, mut maps) = (String::new(), Vec::new());
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("# type: ") {
            program.prog_type = ProgType::from_name(name).unwrap_or_else(|| panic!("{name}"));
        } else if let Some(map) = line.strip_prefix("# map: ") {
            maps.push(map_def(map));
        } else {
            code.push_str(line);
            code.push('\n');
        }
    }
    program.license = "GPL".into();
    program.maps = maps.into();
    program.insns = assemble_with(&code, &program).unwrap().slots;
    Arc::new(program)
}

fn map_def(text: &str) -> MapDef {
    let words: Vec<_> = text.split(' ').collect();
    let number = |at: usize| words[at].parse().unwrap();
    let kind = MapType::from_name(words[0]).unwrap_or_else(|| panic!("{}", words[0]));
    MapDef::new(words[1], kind, number(2), number(3), number(4))
}
