//! Checksums of blocks, programs and objects: CRC-32 as in gzip and Ethernet (polynomial
//! 0x04c11db7, reflected). They detect damage and mix-ups, not forgery.

use crate::instrument::{AccessedState, Flow, Length, Moment, Plan};
use crate::program::{Initial, MapDef, Program};

/// CRC-32 of bytes.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// CRC-32 of a program's instructions after relocation, 8 bytes a slot; they name maps by
/// number in the object. If it is equal, the program is the recorded one.
#[must_use]
pub fn program_checksum(program: &Program) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    for insn in &program.insns {
        crc.update(&insn.to_bytes());
    }
    crc.finalize()
}

/// CRC-32 of a map's initial entries, in the object's order: the kind in 32 bits (0 bytes, 1 a
/// map, 2 a program), then key and value, or the index and the map's number or the program's
/// name. Bytes and names follow their length in 64 bits. Zeros at the end of a value are left
/// out.
#[must_use]
pub fn initial_checksum(map: &MapDef) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    let put_bytes = |crc: &mut crc32fast::Hasher, bytes: &[u8]| {
        crc.update(&(bytes.len() as u64).to_le_bytes());
        crc.update(bytes);
    };
    for entry in &map.initial {
        match entry {
            Initial::Bytes { key, value } => {
                let used = value.iter().rposition(|byte| *byte != 0);
                let used = used.map_or(0, |last| last + 1);
                crc.update(&0u32.to_le_bytes());
                put_bytes(&mut crc, key);
                put_bytes(&mut crc, value.get(..used).unwrap_or_default());
            }
            Initial::Map { index, map } => {
                let numbers = [1, *index, map.0];
                numbers.iter().for_each(|n| crc.update(&n.to_le_bytes()));
            }
            Initial::Program { index, name } => {
                let numbers = [2, *index];
                numbers.iter().for_each(|n| crc.update(&n.to_le_bytes()));
                put_bytes(&mut crc, name.as_bytes());
            }
        }
    }
    crc.finalize()
}

/// CRC-32 of a plan's sites, in numbers of 32 bits: of each site its instruction, moment and
/// source, and of each field its flow and length. A log can only be read with sites of the same
/// checksum. Never 0, which means unknown sites.
#[must_use]
pub fn sites_checksum(plan: &Plan) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    let mut put = |number: u32| crc.update(&number.to_le_bytes());
    for site in plan.sites() {
        put(site.pc.0);
        put(u32::from(site.moment == Moment::After));
        put(u32::from(site.accesses == AccessedState::World));
        put(u32::try_from(site.fields.len()).unwrap_or(u32::MAX));
        for field in &site.fields {
            put(u32::from(field.flow == Flow::Output));
            let (is_counted, bytes) = match field.length {
                Length::Fixed(bytes) => (false, bytes),
                Length::Counted { most, .. } => (true, most.into()),
            };
            put(is_counted.into());
            put(bytes);
        }
    }
    crc.finalize().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::{RawInsn, assemble_with};
    use crate::spec::ProgType;

    #[test]
    fn it_is_the_crc_of_gzip() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn sites_are_told_apart() {
        let of = |text: &str| {
            let mut program = Program::new("p", ProgType::RawTracepoint, Vec::new());
            program.insns = assemble_with(text, &program).unwrap().slots;
            sites_checksum(&Plan::new(&program).unwrap())
        };
        let none = of("r0 = 0\nexit");
        let time = of("call bpf_ktime_get_ns\nr0 = 0\nexit");
        let later = of("r1 = 1\ncall bpf_ktime_get_ns\nr0 = 0\nexit");
        assert!(none != 0 && none != time && time != later);
        assert_eq!(time, of("call bpf_ktime_get_ns\nr0 = 0\nexit"));
    }

    #[test]
    fn a_program_has_that_of_its_bytes() {
        let code = [0xb7, 0, 0, 0, 1, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0];
        let program = Program::new("p", ProgType::Tracepoint, RawInsn::slots(&code).0);
        assert_eq!(program_checksum(&program), checksum(&code));
    }
}
