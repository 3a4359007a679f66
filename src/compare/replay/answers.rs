//! Results of map helpers that only the recorded kernel can determine: a replay continues
//! with the recorded result, and its own may differ.

use crate::compare::recording::KernelInfo;
use crate::instrument::{Plan, Site, What};
use crate::isa::{CallTarget, Insn, decode};
use crate::program::Program;
use crate::spec::MapType;
use crate::spec::helpers::id;
use crate::util::HelperId;

use super::touch::Touches;

/// For each site of a program, by number: how far a replay must get the same result.
#[derive(Debug, Default)]
pub(super) struct Answers(Vec<Answer>);

/// How far a replay must get the recorded result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// All of it.
    Whole,
    /// Not at all: the hash of a bloom filter has a random seed (`bloom_map_alloc`,
    /// `kernel/bpf/bloom_filter.c`).
    KernelOnly,
    /// The low 32 bits. Before Linux 6.4 map operations returned an `int`, and the verifier
    /// inlines calls of them, so the sign is not extended (`struct bpf_map_ops`,
    /// `include/linux/bpf.h`).
    LowHalf,
}

/// The first release whose map operations return a `long`.
const LONG_SINCE: (u32, u32) = (6, 4);

/// The helpers that the verifier replaces by an operation of the map.
const OPERATIONS: [HelperId; 5] = [
    id::map_update_elem,
    id::map_delete_elem,
    id::map_push_elem,
    id::map_pop_elem,
    id::map_peek_elem,
];

impl Answers {
    /// The answers of a program that was recorded in this kernel.
    pub fn of(program: &Program, plan: &Plan, touches: &Touches, kernel: &KernelInfo) -> Self {
        let is_narrow = release(&kernel.release).is_some_and(|release| release < LONG_SINCE);
        let answer = |site: &Site| {
            let insns = program.insns.get(site.pc.index()..);
            let insn = insns.map(|insns| decode(insns, site.pc));
            let Some(Ok(Insn::Call(CallTarget::Helper(helper)))) = insn else {
                return Answer::Whole;
            };
            let touched = touches.get(site.number).iter();
            let mut maps = touched.flat_map(|touch| touches.maps(touch.map));
            let is_bloom = |map| {
                let map = program.map(map);
                map.is_some_and(|map| map.map_type == MapType::BloomFilter)
            };
            match helper {
                id::map_peek_elem if maps.any(is_bloom) => Answer::KernelOnly,
                _ if is_narrow && OPERATIONS.contains(&helper) => Answer::LowHalf,
                _ => Answer::Whole,
            }
        };
        Self(plan.sites().iter().map(answer).collect())
    }

    /// Whether a replay may get `got` where the kernel's run got `expected`.
    pub fn may_differ(&self, site: u16, what: What, expected: &[u8], got: &[u8]) -> bool {
        if what != What::Result {
            return false;
        }
        match self.0.get(usize::from(site)) {
            Some(Answer::KernelOnly) => true,
            Some(Answer::LowHalf) => expected.len() == 8 && expected.get(..4) == got.get(..4),
            Some(Answer::Whole) | None => false,
        }
    }
}

/// The first two numbers of a kernel's release, `6.1.0-41-amd64`.
fn release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_ordered() {
        assert_eq!(release("6.18.44-fc-v657"), Some((6, 18)));
        assert_eq!(release("6.4-rc1"), Some((6, 4)));
        assert!(release("6.1.0-41-amd64").unwrap() < LONG_SINCE);
        assert!(release("5.15.0").unwrap() < LONG_SINCE);
        assert_eq!((release(""), release("linux")), (None, None));
    }

    #[test]
    fn only_results_may_differ_and_only_as_said() {
        let answers = Answers(vec![Answer::Whole, Answer::KernelOnly, Answer::LowHalf]);
        let (narrow, wide) = (0xffff_ffef_u64.to_le_bytes(), (-17_i64).to_le_bytes());
        let may = |site, what, got: [u8; 8]| answers.may_differ(site, what, &narrow, &got);
        assert!(!may(0, What::Result, wide));
        assert!(may(1, What::Result, 0_u64.to_le_bytes()));
        assert!(may(2, What::Result, wide));
        assert!(!may(2, What::Result, (-16_i64).to_le_bytes()));
        for site in 0..4 {
            assert!(!may(site, What::Loaded, wide), "{site}");
        }
    }
}
