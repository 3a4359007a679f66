//! Index and id types that can't be confused with one another.

use std::fmt;

/// Defines a `u32` newtype with the conversions that an index needs.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $show:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as an index into a slice.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of the entry at `index`; saturates at `u32::MAX`, which no
            /// table reaches.
            #[must_use]
            pub fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($show, "{}"), self.0)
            }
        }
    };
}

id!(
    /// Position of an instruction, counted in 8-byte slots from the start of the
    /// program, as the kernel counts (a 64-bit immediate takes two slots).
    Pc,
    "pc"
);
id!(
    /// A type in BTF; 0 is `void`.
    TypeId,
    "type#"
);
id!(
    /// A map of a [`Program`](crate::program::Program): its index in `maps`.
    MapId,
    "map#"
);
id!(
    /// Number of a BPF helper function, as `call` carries it (1 is
    /// `map_lookup_elem`; `include/uapi/linux/bpf.h`, `__BPF_FUNC_MAPPER`).
    HelperId,
    "helper#"
);
