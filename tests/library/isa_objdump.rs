//! Assembles the output of `llvm-objdump` for real code.

use crate::shared;

use std::path::{Path, PathBuf};
use std::process::Command;

use bpflab::isa::assemble;

use shared::{Need, skip};

/// The instruction bytes in a listing, eight per slot.
fn listed_bytes(listing: &str) -> Vec<[u8; 8]> {
    let columns = listing.lines().filter_map(|line| line.split('\t').nth(1));
    let bytes: Vec<u8> = columns
        .filter(|column| column.len() >= 23 && column.split(' ').all(|byte| byte.len() == 2))
        .flat_map(|column| {
            column
                .split(' ')
                .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        })
        .collect();
    bytes.as_chunks().0.to_vec()
}

/// The listing without instruction bytes.
fn without_bytes(listing: &str) -> String {
    let lines = listing
        .lines()
        .map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
            [position, bytes, text] if bytes.len() >= 23 => format!("{position}\t{text}\n"),
            _ => format!("{line}\n"),
        });
    lines.collect()
}

fn assembled(listing: &str) -> Vec<[u8; 8]> {
    assemble(listing)
        .unwrap()
        .iter()
        .map(|slot| slot.to_bytes())
        .collect()
}

/// Assembles a listing with and without its bytes; returns the number of slots.
fn check(listing: &str) -> usize {
    let bytes = listed_bytes(listing);
    assert_eq!(assembled(listing), bytes);
    // Without the bytes, LLVM's text does not distinguish helper and subprogram in `call
    // 5`.
    let calls = |slots: &[[u8; 8]]| -> Vec<[u8; 8]> {
        let normal = |slot: &[u8; 8]| if slot[0] == 0x85 { [0x85; 8] } else { *slot };
        slots.iter().map(normal).collect()
    };
    if !listing.contains("<unknown>") {
        assert_eq!(calls(&assembled(&without_bytes(listing))), calls(&bytes));
    }
    bytes.len()
}

#[test]
fn a_listing_is_assembled_to_its_bytes() {
    assert!(check(include_str!("isa_objdump.txt")) > 150);
}

fn run(program: &str, arguments: &[&str], file: &Path) -> Option<Vec<u8>> {
    let output = Command::new(program)
        .args(arguments)
        .arg(file)
        .output()
        .ok()?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(output.stdout)
}

#[test]
fn every_version_and_optimisation_is_assembled() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/library/isa_objdump.c");
    for version in ["v1", "v2", "v3", "v4"] {
        for level in ["-O0", "-O1", "-O2", "-Os"] {
            let object = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
                .join(format!("isa_objdump_{version}{level}.o"));
            let (cpu, output) = (format!("-mcpu={version}"), object.to_string_lossy());
            let compile = ["-target", "bpf", &cpu, level, "-c", "-o", &output];
            if run("clang-19", &compile, &source).is_none() {
                skip(Need::Clang, "clang-19 is not installed");
                return;
            }
            let Some(listing) = run("llvm-objdump-19", &["-dr", "--mcpu=v4"], &object) else {
                skip(Need::Clang, "llvm-objdump-19 is not installed");
                return;
            };
            assert!(check(&String::from_utf8(listing).unwrap()) > 150);
        }
    }
}
