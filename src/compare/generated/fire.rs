//! Fires the programs: makes unused system calls with chosen arguments.

use crate::r#gen::Choices;
use crate::kernel::UnusedCall;

/// Generates system calls. Their arguments are numbers of all kinds and addresses: of readable
/// bytes and text in this process, in the kernel, and unmapped.
#[derive(Debug)]
pub(super) struct Calls {
    choices: Choices,
    /// The bytes that addresses point to.
    text: Box<[u8]>,
}

/// Bytes that determine a call, at most.
const CHOICES: usize = 64;
/// Addresses in kernels of x86-64 and arm64, and an invalid one.
const KERNEL: [u64; 3] = [0xffff_ffff_8100_0000, 0xffff_8000_8000_0000, u64::MAX - 7];

impl Calls {
    /// The same `count` calls for each seed, except for the addresses of this process.
    pub(super) fn new(seed: u64, count: usize) -> Self {
        let mut text = b"a name of ours\0and what lies behind it, \xff\xfe\xfd\x80, ".to_vec();
        text.extend((0..=u8::MAX).rev());
        Self {
            choices: Choices::seeded(seed, count * CHOICES),
            text: text.into(),
        }
    }

    /// Makes the next call.
    pub(super) fn make(&mut self) {
        let number = u32::try_from(self.choices.wide() & 0xffff).unwrap_or_default();
        let arguments = std::array::from_fn(|_| self.argument());
        UnusedCall::new(number).make(arguments);
    }

    fn argument(&mut self) -> u64 {
        match self.choices.below(8) {
            0..=2 => self.choices.below(256) as u64,
            3 | 4 => self.choices.wide(),
            5 | 6 => {
                let within = self.choices.below(self.text.len());
                self.text.as_ptr().addr() as u64 + within as u64
            }
            _ => self.choices.pick(&KERNEL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_of_all_kinds() {
        let mut calls = Calls::new(1, 40);
        let arguments: Vec<u64> = (0..240).map(|_| calls.argument()).collect();
        let start = calls.text.as_ptr().addr() as u64;
        let within = |at: &&u64| (start..start + calls.text.len() as u64).contains(at);
        assert!(arguments.iter().filter(within).count() > 20);
        assert!(arguments.iter().filter(|at| **at < 256).count() > 60);
        assert!(arguments.contains(&KERNEL[0]));
    }
}
