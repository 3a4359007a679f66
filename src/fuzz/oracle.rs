//! The oracles of a campaign.

use bitflags::bitflags;

bitflags! {
    /// Oracles: each judges a program in its own way.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Oracle: u16 {
        /// Every register and stack slot of a run lies in a state that the verifier explored.
        const STATE = 1;
        /// The running kernel has the same verdict: errno, error line, processed instructions.
        const VERDICT = 1 << 1;
        /// All engines, also those of another build, and the kernel's test run have the same results.
        const VALUE = 1 << 2;
        /// An accepted program never faults.
        const SAFETY = 1 << 3;
        /// The verdict does not depend on what it must not depend on.
        const SAMENESS = 1 << 4;
        /// Decoding and encoding, and other pairs, return what was given.
        const ROUND_TRIP = 1 << 5;
        /// No uninitialised byte leaves an accepted program.
        const MEMORY = 1 << 6;
    }
}

impl Oracle {
    /// The oracles with their names.
    pub const NAMES: [(Self, &str); 7] = [
        (Self::STATE, "state"),
        (Self::VERDICT, "verdict"),
        (Self::VALUE, "value"),
        (Self::SAFETY, "safety"),
        (Self::SAMENESS, "sameness"),
        (Self::ROUND_TRIP, "round-trip"),
        (Self::MEMORY, "memory"),
    ];

    /// The oracles that judge bpflab and the kernel: all but [`Self::MEMORY`], which judges the
    /// program. Generated programs send uninitialised bytes on purpose.
    pub const OF_VERIFIER: Self = Self::all().difference(Self::MEMORY);

    /// The oracle of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(oracle, _)| *oracle)
    }

    /// The name of a single oracle.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(known, _)| *known == self);
        found.map_or("several", |(_, name)| name)
    }

    /// The names of all that it contains.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        let all = Self::NAMES.iter();
        all.filter(|(oracle, _)| self.contains(*oracle))
            .map(|(_, name)| *name)
            .collect()
    }
}
