//! The checksum of blocks, programs and objects: CRC-32 as in gzip and Ethernet
//! (polynomial 0x04c11db7, reflected). It finds damage and mix-ups, not forgery.

use crate::instrument::{Flow, Length, Moment, Plan, Source};
use crate::program::{Initial, MapDef, Program};

/// CRC-32 of bytes.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// That of a program's instructions after relocation, each slot in its 8 bytes; maps are
/// in it by their number in the object. Equal checksums mean: what was recorded is what
/// is going to be replayed.
#[must_use]
pub fn program_checksum(program: &Program) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    for insn in &program.insns {
        crc.update(&insn.to_bytes());
    }
    crc.finalize()
}

/// That of what a map holds at the start, entry by entry as its object has them: a number
/// of 32 bits for the kind (0 bytes, 1 a map, 2 a program), then key and value, or the index
/// and the number of the map or the name of the program; of bytes and names the length in 64
/// bits comes before. Zeros at the end of a value don't count.
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

/// That of what is logged where: of each site its instruction, its moment, where it is
/// from, and of each field which way it goes and how long it is, in numbers of 32 bits. A
/// log can only be read with sites of the same checksum. Never 0, which stands for
/// sites that nobody told of.
#[must_use]
pub fn sites_checksum(plan: &Plan) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    let mut put = |number: u32| crc.update(&number.to_le_bytes());
    for site in plan.sites() {
        put(site.pc.0);
        put(u32::from(site.moment == Moment::After));
        put(u32::from(site.source == Source::World));
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
