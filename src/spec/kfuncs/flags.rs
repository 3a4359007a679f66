//! Flags of kfuncs.

use bitflags::bitflags;

use crate::spec::call::{Effects, IteratorStep};

bitflags! {
    /// Flags of a kfunc's registration (`KF_…`, `include/linux/btf.h`), with the kernel's
    /// bits.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct KfuncFlags: u32 {
        /// Acquires a reference, which is the result.
        const ACQUIRE = 1 << 0;
        /// Releases the reference in the first argument.
        const RELEASE = 1 << 1;
        /// The result may be null.
        const RET_NULL = 1 << 2;
        /// Pointers have to be valid.
        const TRUSTED_ARGS = 1 << 4;
        /// Only for programs that may sleep.
        const SLEEPABLE = 1 << 5;
        /// May crash the machine; requires `CAP_SYS_BOOT`.
        const DESTRUCTIVE = 1 << 6;
        /// Pointers have to be valid, or protected by an RCU read section.
        const RCU = 1 << 7;
        /// Creates an iterator.
        const ITER_NEW = 1 << 8;
        /// Advances an iterator.
        const ITER_NEXT = 1 << 9;
        /// Destroys an iterator.
        const ITER_DESTROY = 1 << 10;
        /// The iterator works inside an RCU read section.
        const RCU_PROTECTED = 1 << 11;
        /// Calls keep the caller's registers.
        const FASTCALL = 1 << 12;
        /// The result points into an arena.
        const ARENA_RET = 1 << 13;
        /// The first argument points into an arena.
        const ARENA_ARG1 = 1 << 14;
        /// The second argument points into an arena.
        const ARENA_ARG2 = 1 << 15;
    }
}

impl KfuncFlags {
    /// The effects that follow from the flags.
    pub(super) fn effects(self) -> Effects {
        let effects = [
            (Self::ACQUIRE, Effects::ACQUIRES),
            (Self::RELEASE, Effects::RELEASES),
            (Self::SLEEPABLE, Effects::MIGHT_SLEEP),
            (Self::DESTRUCTIVE, Effects::DESTRUCTIVE),
            (Self::FASTCALL, Effects::FASTCALL),
        ];
        let effects = effects.into_iter().filter(|(flag, _)| self.contains(*flag));
        effects.map(|(_, effect)| effect).collect()
    }

    /// What the kfunc does to its iterator.
    pub(super) const fn iterator_step(self) -> Option<IteratorStep> {
        if self.contains(Self::ITER_NEW) {
            Some(IteratorStep::New)
        } else if self.contains(Self::ITER_NEXT) {
            Some(IteratorStep::Next)
        } else if self.contains(Self::ITER_DESTROY) {
            Some(IteratorStep::Destroy)
        } else {
            None
        }
    }
}
