//! Handles of maps and programs in a machine.

/// Defines a handle: an index into a table of the machine.
macro_rules! handle {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The handle as an index.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

handle!(
    /// A map in a machine, as the map id identifies one in the kernel. Several objects may
    /// share the map.
    MapHandle
);
handle!(
    /// A program in a machine, as the program id identifies one in the kernel.
    ProgramHandle
);
