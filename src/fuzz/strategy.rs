//! The ways of making programs.

/// A way of making programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strategy {
    /// The whole instruction set, maps, helpers, functions, callbacks, packets.
    Whole,
    /// The same without behaviour that depends on the machine.
    Defined,
    /// Programs that tail-call one another from functions.
    TailCalls,
    /// Typed pointers, kfuncs, references, dynptrs, iterators of a kernel.
    Objects,
    /// The same with mistakes, such as a missing null check.
    Mistakes,
    /// Ranges of scalars in 32 and 64 bits, sign extension.
    Scalars,
    /// Spills and fills of all widths.
    Spills,
    /// Variable offsets into map values and the stack.
    Offsets,
    /// Registers that are linked with others.
    Linked,
    /// Scalars that have to be precise, and pruning.
    Precision,
    /// Loops, and their convergence.
    Loops,
    /// References across branches and calls.
    References,
    /// Sizes and keys that helpers get.
    Helpers,
    /// Frames that functions and helpers write to, and elements that are deleted while in use.
    Frames,
    /// Bytes of the stack that nobody wrote.
    Unwritten,
    /// Paths that meet with different states.
    Joins,
    /// Maps whose contents are constants.
    Constants,
    /// Operations on small maps of all types.
    Maps,
    /// Arithmetic with pointers of all kinds.
    Pointers,
    /// Packet pointers and the packet's end.
    Packets,
    /// Sequences that engines run as one operation.
    Idioms,
    /// Objects in lists and trees, locks.
    Graphs,
    /// Memory of arenas.
    Arenas,
    /// Implementations of members of structures of operations.
    StructOps,
    /// Programs that replace a function of another one.
    Extensions,
    /// Programs of the other strategies, or from files, with small changes and parts of others.
    Mutants,
}

impl Strategy {
    /// All strategies with their names and their shares of the default mix.
    pub const ALL: [(Self, &str, u64); 26] = [
        (Self::Whole, "whole", 5),
        (Self::Defined, "defined", 4),
        (Self::TailCalls, "tail-calls", 1),
        (Self::Objects, "objects", 3),
        (Self::Mistakes, "mistakes", 3),
        (Self::Scalars, "scalars", 20),
        (Self::Spills, "spills", 10),
        (Self::Offsets, "offsets", 12),
        (Self::Linked, "linked", 10),
        (Self::Precision, "precision", 10),
        (Self::Loops, "loops", 8),
        (Self::References, "references", 6),
        (Self::Helpers, "helpers", 5),
        (Self::Frames, "frames", 6),
        (Self::Unwritten, "unwritten", 3),
        (Self::Joins, "joins", 12),
        (Self::Constants, "constants", 3),
        (Self::Maps, "maps", 8),
        (Self::Pointers, "pointers", 8),
        (Self::Packets, "packets", 7),
        (Self::Idioms, "idioms", 10),
        (Self::Graphs, "graphs", 6),
        (Self::Arenas, "arenas", 3),
        (Self::StructOps, "struct-ops", 4),
        (Self::Extensions, "extensions", 4),
        (Self::Mutants, "mutants", 10),
    ];

    /// The strategy of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known, _)| *known == name);
        found.map(|(strategy, ..)| *strategy)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(known, ..)| *known == self);
        found.map_or("", |(_, name, _)| name)
    }

    /// Whether it needs the types of a kernel.
    #[must_use]
    pub const fn needs_kernel_types(self) -> bool {
        matches!(
            self,
            Self::Objects | Self::Mistakes | Self::Graphs | Self::Arenas | Self::StructOps
        )
    }
}
