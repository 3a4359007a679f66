//! The seed corpus of the fuzz targets.

use std::fs;
use std::io;
use std::path::Path;

use super::candidate::Candidate;
use super::random::Random;
use super::seeds::Seeds;
use super::strategy::Strategy;
use super::targets::TARGETS;
use crate::isa::disassemble;
use crate::spec::ProgType;

/// Inputs of each target that is seeded from generated programs.
const COUNT: u64 = 64;
/// The most random choices of an input.
const CHOICES: u64 = 300;

/// Writes inputs for each target into `directory/TARGET`; returns how many. `files` are objects
/// and recordings, which nothing here makes.
///
/// # Errors
/// Files that can't be written or read.
pub fn write_corpus(directory: &Path, files: &[impl AsRef<Path>]) -> io::Result<usize> {
    let mut count = 0;
    let mut put = |target: &str, bytes: &[u8]| {
        let folder = directory.join(target);
        fs::create_dir_all(&folder)?;
        count += 1;
        fs::write(folder.join(format!("seed-{count:05}")), bytes)
    };
    let seeds = Seeds::default();
    let strategies = Strategy::ALL.iter().map(|(strategy, ..)| *strategy);
    let strategies: Vec<_> = strategies
        .filter(|strategy| !strategy.needs_kernel_types())
        .collect();
    let mut random = Random(1);
    for number in 0..COUNT {
        let candidate = seeds.candidate(1, number, &strategies);
        let choices: Vec<u8> = (0..16 + random.index(usize::try_from(CHOICES).unwrap_or(64)))
            .map(|_| random.byte(256))
            .collect();
        for (target, ..) in TARGETS {
            match input(target, &candidate) {
                Some(bytes) => put(target, &bytes)?,
                None if is_of_choices(target) => put(target, &choices)?,
                None => {}
            }
        }
    }
    for (target, text) in [
        ("events", "mark=7\npriority=3\nprotocol=0x0800\n"),
        ("events", "remote_port=443\nlocal_ip4=10.0.0.1\n"),
        ("events", "ff ff ff ff ff ff 00 00 00 00 00 00 08 00 45 00"),
    ] {
        put(target, text.as_bytes())?;
    }
    for file in files {
        let bytes = fs::read(file)?;
        let target = match bytes.starts_with(b"\x7fELF") {
            true => "object",
            false => "recording",
        };
        put(target, &bytes)?;
    }
    Ok(count)
}

/// Whether a target takes any bytes as choices.
fn is_of_choices(target: &str) -> bool {
    [
        "verify_vs_kernel",
        "state_oracle",
        "engines",
        "maps_vs_model",
    ]
    .contains(&target)
}

/// The input of a target that comes from a program.
fn input(target: &str, candidate: &Candidate) -> Option<Vec<u8>> {
    let program = &candidate.program;
    let slots = program.insns.iter().flat_map(|insn| insn.to_bytes());
    Some(match target {
        "decode" => slots.collect(),
        "asm_roundtrip" => disassemble(&program.insns, &**program).into_bytes(),
        "verify" => {
            let all = ProgType::ALL;
            let at = all.iter().position(|known| *known == program.prog_type)?;
            [u8::try_from(at).ok()?].into_iter().chain(slots).collect()
        }
        "btf" => program.btf.as_ref()?.to_bytes(),
        _ => return None,
    })
}
