//! Pseudo sources of a 64-bit immediate (`BPF_PSEUDO_*`).

use crate::util::TypeId;

/// Passes the table of pseudo sources to a macro.
///
/// Columns: name, documentation, source field, the payload's fields with their types: the
/// first is the immediate of the first slot, the second that of the second slot.
macro_rules! for_each_pseudo_source {
    ($expand:ident $(, $argument:tt)*) => {
        $expand! {
            $($argument)*
            MapFd "A map, by file descriptor: the map's address." {
                1, fd: i32
            }
            MapValue "A place in the one value of an array map, by file descriptor." {
                2, fd: i32, off: u32
            }
            BtfId "A kernel variable, by BTF id; `btf_fd` is 0 for vmlinux, else a module's BTF." {
                3, id: TypeId, btf_fd: i32
            }
            Func "A subprogram, `rel` slots after the next: a callback's address." {
                4, rel: i32
            }
            MapIdx "A map, by index into the `fd_array` of the load command." {
                5, index: u32
            }
            MapIdxValue "A place in an array map's value, by index into `fd_array`." {
                6, index: u32, off: u32
            }
        }
    };
}

/// A number in one immediate field.
pub(super) trait ImmField: Copy {
    fn from_imm(imm: i32) -> Self;
    fn to_imm(self) -> i32;
}

impl ImmField for i32 {
    fn from_imm(imm: i32) -> Self {
        imm
    }
    fn to_imm(self) -> i32 {
        self
    }
}

impl ImmField for u32 {
    fn from_imm(imm: i32) -> Self {
        imm.cast_unsigned()
    }
    fn to_imm(self) -> i32 {
        self.cast_signed()
    }
}

impl ImmField for TypeId {
    fn from_imm(imm: i32) -> Self {
        Self(imm.cast_unsigned())
    }
    fn to_imm(self) -> i32 {
        self.0.cast_signed()
    }
}

macro_rules! second {
    () => {
        0
    };
    ($value:expr) => {
        ImmField::to_imm($value)
    };
}

macro_rules! is_there {
    () => {
        false
    };
    ($field:ident) => {
        true
    };
}

macro_rules! define {
    ($($name:ident $doc:literal {
        $src:literal, $first:ident: $first_type:ty $(, $second:ident: $second_type:ty)?
    })*) => {
        /// A 64-bit immediate that the loader replaces by an address.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum Pseudo {
            $(
                #[doc = $doc]
                $name {
                    #[doc = "Immediate of the first slot."]
                    $first: $first_type,
                    $(#[doc = "Immediate of the second slot."] $second: $second_type,)?
                },
            )*
        }

        /// The kinds of [`Pseudo`], without payload.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub enum PseudoKind {
            $(#[doc = $doc] $name,)*
        }

        impl PseudoKind {
            /// Every kind, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The source field of the first slot.
            #[must_use]
            pub const fn src(self) -> u8 {
                match self { $(Self::$name => $src,)* }
            }

            /// The kind with this source field.
            #[must_use]
            pub const fn from_src(src: u8) -> Option<Self> {
                match src {
                    $($src => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Whether the second slot's immediate is used.
            #[must_use]
            pub const fn has_second(self) -> bool {
                match self { $(Self::$name => is_there!($($second)?),)* }
            }

            /// The pseudo source with these immediates of the first and second slot; an
            /// unused second one is dropped.
            #[must_use]
            pub fn with_imms(self, first: i32, second: i32) -> Pseudo {
                match self {
                    $(Self::$name => Pseudo::$name {
                        $first: ImmField::from_imm(first),
                        $($second: ImmField::from_imm(second),)?
                    },)*
                }
            }
        }

        impl Pseudo {
            /// The kind.
            #[must_use]
            pub const fn kind(self) -> PseudoKind {
                match self { $(Self::$name { .. } => PseudoKind::$name,)* }
            }

            /// The immediates of the first and of the second slot.
            #[must_use]
            pub fn imms(self) -> (i32, i32) {
                match self {
                    $(Self::$name { $first $(, $second)? } =>
                        ($first.to_imm(), second!($($second)?)),)*
                }
            }
        }
    };
}
for_each_pseudo_source!(define);
