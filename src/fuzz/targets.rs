//! The bodies of the fuzz targets: each takes any bytes, and panics where something is wrong.
//!
//! Targets that judge programs generate them from the bytes ([`crate::gen`]), so that a fuzzing
//! engine changes and shrinks valid programs.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::candidate::Candidate;
use super::judge::Judge;
use super::oracle::Oracle;
use super::round_trip::canonical;
use crate::r#gen::{Choices, Options, make};
use crate::isa::{RawInsn, assemble, decode_program, disassemble, encode};
use crate::program::{MapDef, Program};
use crate::spec::{MapType, ProgType, UpdateFlags};
use crate::util::Errno;
use crate::verifier::{self, verify};
use crate::vm::events::Event;
use crate::vm::maps;

/// A target: its name, its body, and what it takes.
pub type Target = (&'static str, fn(&[u8]), &'static str);

/// All targets.
pub const TARGETS: &[Target] = &[
    ("object", object, "an ELF object"),
    ("btf", btf, "BTF"),
    ("decode", decode, "instructions"),
    ("asm_roundtrip", asm_roundtrip, "assembly, or instructions"),
    ("verify", verify_bytes, "a program type, then instructions"),
    (
        "verify_vs_kernel",
        verify_vs_kernel,
        "the choices of a generated program",
    ),
    (
        "state_oracle",
        state_oracle,
        "the choices of a generated program",
    ),
    ("engines", engines, "the choices of a generated program"),
    (
        "maps_vs_model",
        maps_vs_model,
        "a kind of map, then operations",
    ),
    ("recording", recording, "a recording"),
    ("events", events, "fields of an event as text, or a packet"),
];

/// Most instructions of a program of bytes: exploring more takes long.
const MOST_INSNS: usize = 512;

/// An ELF object.
pub fn object(data: &[u8]) {
    crate::object::exercise(data);
}

/// BTF.
pub fn btf(data: &[u8]) {
    crate::btf::exercise(data);
}

/// Instructions: what can be decoded is encoded to the same, and printed.
pub fn decode(data: &[u8]) {
    let (slots, _) = RawInsn::slots(data);
    let program = Program::new("decode", ProgType::Xdp, slots.clone());
    let _ = disassemble(&slots, &program);
    if let Ok(insns) = decode_program(&slots) {
        assert_eq!(encode(&insns), canonical(&slots), "decode and encode");
    }
}

/// Assembly that is accepted is printed to text with the same instructions; and so are
/// instructions.
pub fn asm_roundtrip(data: &[u8]) {
    let slots = match std::str::from_utf8(data).map(assemble) {
        Ok(Ok(slots)) => slots,
        _ => RawInsn::slots(data).0,
    };
    if decode_program(&slots).is_err() {
        return;
    }
    let program = Program::new("text", ProgType::Xdp, slots);
    let text = disassemble(&program.insns, &program);
    match crate::isa::assemble_with(&text, &program) {
        Ok(again) => assert_eq!(again.slots, canonical(&program.insns), "{text}"),
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// Instructions of a program type: the verifier gives a verdict, and an accepted program does
/// not fault.
pub fn verify_bytes(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let all = ProgType::ALL;
    let prog_type = all[usize::from(*first) % all.len()];
    let (mut slots, _) = RawInsn::slots(rest);
    slots.truncate(MOST_INSNS);
    let mut program = Program::new("bytes", prog_type, slots);
    program.license = "GPL".to_owned();
    program.maps = Arc::new([
        MapDef::new("array", MapType::Array, 4, 32, 4),
        MapDef::new("hash", MapType::Hash, 8, 16, 8),
        MapDef::new("records", MapType::Ringbuf, 0, 0, 4096),
    ]);
    let program = Arc::new(program);
    let verdict = verify(&program, &verifier::Options::default()).verdict;
    if verdict.is_accepted() {
        // Contexts with pointers of these types would have to be made: random bytes are none.
        let oracles = match Event::packet([0; 64]).accepts(prog_type) {
            true => Oracle::SAFETY | Oracle::VALUE | Oracle::ROUND_TRIP,
            false => Oracle::ROUND_TRIP,
        };
        judge(&Candidate::new(program, vec![0; 64], 1), oracles);
    }
}

/// The problem of a candidate is a panic, which fuzzing engines look for.
fn judge(candidate: &Candidate, oracles: Oracle) {
    let kernel = oracles.contains(Oracle::VERDICT) && has_kernel();
    if let Some(problem) = Judge::new(oracles, kernel).judge(candidate) {
        let oracle = problem.oracle.name();
        let (kind, ours, other) = (problem.kind, problem.ours, problem.other);
        panic!("{oracle}: {kind}\n{ours}\n{other}\n{}", candidate.listing());
    }
}

/// Whether the running kernel can be asked, and is the release that bpflab models.
fn has_kernel() -> bool {
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    {
        use std::sync::LazyLock;

        use crate::kernel::Availability;

        static KERNEL: LazyLock<bool> = LazyLock::new(|| {
            let kernel = Availability::probe();
            kernel.usable() && kernel.release.starts_with("6.18.")
        });
        *KERNEL
    }
    #[cfg(not(all(feature = "kernel", target_os = "linux")))]
    {
        false
    }
}

/// The program of these choices.
fn candidate(data: &[u8], defined: bool) -> Candidate {
    let options = Options {
        defined,
        ..Options::default()
    };
    let made = make(&mut Choices::new(data), options);
    let seed = data.iter().fold(data.len() as u64, |seed, byte| {
        seed.wrapping_mul(31).wrapping_add(u64::from(*byte))
    });
    Candidate {
        others: made.others,
        defined,
        ..Candidate::new(made.program, made.input, seed)
    }
}

/// The running kernel has the same verdict; nothing is compared without one.
pub fn verify_vs_kernel(data: &[u8]) {
    judge(&candidate(data, true), Oracle::VERDICT);
}

/// Runs stay in the explored states, and don't fault.
pub fn state_oracle(data: &[u8]) {
    let oracles = Oracle::STATE | Oracle::SAFETY | Oracle::SAMENESS;
    judge(&candidate(data, false), oracles);
}

/// All engines have the same results.
pub fn engines(data: &[u8]) {
    judge(&candidate(data, false), Oracle::VALUE);
}

/// A hash or an array, and a sorted map of Rust: the same answers to the same operations.
pub fn maps_vs_model(data: &[u8]) {
    const ENTRIES: u32 = 4;
    let Some((kind, operations)) = data.split_first() else {
        return;
    };
    let is_array = kind & 1 == 1;
    let map_type = if is_array {
        MapType::Array
    } else {
        MapType::Hash
    };
    let def = MapDef::new("model", map_type, 4, 8, ENTRIES);
    let Ok(map) = maps::create(&def, 1) else {
        panic!("a map of 4 entries");
    };
    let mut model: BTreeMap<u32, u64> = BTreeMap::new();
    if is_array {
        model.extend((0..ENTRIES).map(|key| (key, 0)));
    }
    for operation in operations.chunks_exact(3) {
        let &[what, key, value] = operation else {
            return;
        };
        let key = u32::from(key % 8);
        let (bytes, value) = (key.to_le_bytes(), u64::from(value));
        match what % 3 {
            0 => {
                let flags = UpdateFlags::from_bits_retain(u64::from(what / 3 % 3));
                let expected = update(&mut model, key, value, flags, is_array, ENTRIES);
                let got = map.write(&bytes, &value.to_le_bytes(), flags);
                assert_eq!(got, expected, "update {key} {flags:?}");
            }
            1 => {
                let expected = match (is_array, model.remove(&key)) {
                    (true, old) => {
                        model.extend(old.map(|old| (key, old)));
                        Err(Errno::EINVAL)
                    }
                    (false, old) => old.map(drop).ok_or(Errno::ENOENT),
                };
                assert_eq!(map.remove(&bytes), expected, "delete {key}");
            }
            _ => {
                let expected = model.get(&key).map(|value| value.to_le_bytes().to_vec());
                let got = map.read(&bytes);
                assert_eq!(got, expected.ok_or(Errno::ENOENT), "look up {key}");
            }
        }
    }
    let keys = map.keys().unwrap_or_default();
    let mut keys: Vec<u32> = keys
        .as_chunks::<4>()
        .0
        .iter()
        .map(|key| u32::from_le_bytes(*key))
        .collect();
    keys.sort_unstable();
    assert_eq!(keys, model.keys().copied().collect::<Vec<_>>(), "keys");
}

/// An update of the model.
fn update(
    model: &mut BTreeMap<u32, u64>,
    key: u32,
    value: u64,
    flags: UpdateFlags,
    is_array: bool,
    entries: u32,
) -> Result<(), Errno> {
    let exists = model.contains_key(&key);
    if is_array && !exists {
        return Err(Errno::E2BIG);
    }
    if exists && flags.contains(UpdateFlags::NOEXIST) {
        return Err(Errno::EEXIST);
    }
    if !exists && flags.contains(UpdateFlags::EXIST) {
        return Err(Errno::ENOENT);
    }
    if !exists && model.len() >= entries as usize {
        return Err(Errno::E2BIG);
    }
    model.insert(key, value);
    Ok(())
}

/// A recording: read to its end or to an error. A whole one that is written again reads the same.
pub fn recording(data: &[u8]) {
    if let Err(failed) = super::recorded::again(data) {
        panic!("{failed}");
    }
}

/// Fields of events as text, `name=value` by lines; packets, as bytes and as hexadecimal.
pub fn events(data: &[u8]) {
    let _ = Event::packet(data).record();
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let _ = Event::packet_hex(text);
    let types = [
        ProgType::Xdp,
        ProgType::SchedCls,
        ProgType::SkLookup,
        ProgType::CgroupSock,
    ];
    for prog_type in types {
        let Ok(mut event) = Event::context(prog_type, crate::spec::context::Arch::HOST) else {
            continue;
        };
        for line in text.lines() {
            if let Ok(changed) = event.clone().assign(line) {
                event = changed;
            }
        }
        let _ = event.given_context(prog_type);
        let _ = event.record();
    }
}
