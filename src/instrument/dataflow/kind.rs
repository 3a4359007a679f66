//! What a register or a stack slot holds, as far as recording has to know.

use crate::program::{MapDef, Program};
use crate::spec::MapFlags;
use crate::util::{MapId, Pc};

/// What a register or a stack slot may hold. A pointer that may be null is of its pointer's
/// kind: nobody follows null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::instrument) enum Kind {
    /// Nothing that a program wrote: no path has come here.
    #[default]
    Nothing,
    /// A number, perhaps a known one.
    Scalar(Option<i32>),
    /// A pointer into a stack frame.
    Frame {
        /// Whose.
        owner: Owner,
        /// How far from the top of the frame, where that is known.
        off: Option<i16>,
    },
    /// A pointer into the context, how far if it is known.
    Context(Option<i32>),
    /// A map.
    Map(MapRef),
    /// A pointer into a value of the map.
    Value(MapRef),
    /// A pointer to what never changes: a frozen map that no program writes.
    Constant,
    /// A pointer into a ring-buffer record that is the run's own until it is submitted.
    Record {
        /// Bytes of the record.
        size: Option<u32>,
        /// How far into it.
        off: Option<i32>,
    },
    /// Memory of the run's own that only helpers and kernel functions fill, such as an
    /// iterator's number.
    Private,
    /// A pointer to memory that is not the world's, of one of the kinds above or another
    /// (a slice of a dynamic pointer).
    Own,
    /// A pointer into an arena.
    Arena,
    /// A pointer to the kernel's memory.
    Kernel,
    /// The address of a function.
    Function(Pc),
    /// A pointer to any memory, or what a program keeps where nobody looks.
    Unknown,
}

/// Whose frame it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::instrument) enum Owner {
    /// The function's own.
    Own,
    /// That of the function which called it.
    Caller,
    /// That of a function farther out.
    Outer,
}

/// A map, or those that a map of maps holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::instrument) struct MapRef {
    /// The map that the program names.
    pub(in crate::instrument) id: MapId,
    /// Whether it is one of those that it holds.
    pub(in crate::instrument) inner: bool,
}

impl MapRef {
    /// What the map is.
    pub(in crate::instrument) fn definition(self, program: &Program) -> Option<&MapDef> {
        let map = program.map(self.id)?;
        if self.inner {
            map.inner.as_deref()
        } else {
            Some(map)
        }
    }
}

/// Whether nothing ever changes what is in a map: neither programs nor user space.
pub(in crate::instrument) fn is_constant(map: &MapDef) -> bool {
    map.frozen && map.flags.contains(MapFlags::RDONLY_PROG)
}

impl Kind {
    /// A pointer to the start of a value of a map.
    pub(super) fn value(program: &Program, map: MapRef) -> Self {
        if map.definition(program).is_some_and(is_constant) {
            Self::Constant
        } else {
            Self::Value(map)
        }
    }

    /// A number of which nothing is known.
    pub(super) const NUMBER: Self = Self::Scalar(None);

    /// What is true whichever of the two it is.
    pub(super) fn join(self, other: Self) -> Self {
        use Kind::{
            Arena, Constant, Context, Frame, Function, Kernel, Map, Nothing, Own, Private, Record,
            Scalar, Unknown, Value,
        };
        match (self, other) {
            (a, b) if a == b => a,
            (Nothing, kind) | (kind, Nothing) => kind,
            (Scalar(_), Scalar(_)) => Self::NUMBER,
            // A pointer on one path: who follows it has come by that one.
            (Scalar(_), pointer) | (pointer, Scalar(_)) => pointer,
            (Frame { owner, .. }, Frame { owner: other, .. }) if owner == other => {
                Frame { owner, off: None }
            }
            (Context(_), Context(_)) => Context(None),
            (Record { size: a, .. }, Record { size: b, .. }) => Record {
                size: a.filter(|_| a == b),
                off: None,
            },
            (Unknown | Map(_) | Function(_) | Context(_) | Arena, _)
            | (_, Unknown | Map(_) | Function(_) | Context(_) | Arena)
            | (Kernel, _)
            | (_, Kernel) => Unknown,
            (Frame { .. } | Value(_) | Constant | Record { .. } | Private | Own, _) => Own,
        }
    }

    /// The pointer after something was added to it: a known number, or any.
    pub(super) fn moved(self, by: Option<i32>) -> Self {
        let sum = |off: Option<i32>| off?.checked_add(by?);
        match self {
            Self::Frame { owner, off } => Self::Frame {
                owner,
                off: sum(off.map(i32::from)).and_then(|off| i16::try_from(off).ok()),
            },
            Self::Context(off) => Self::Context(sum(off)),
            Self::Record { size, off } => Self::Record {
                size,
                off: sum(off),
            },
            Self::Scalar(number) => Self::Scalar(sum(number)),
            kind => kind,
        }
    }

    /// The pointer of an access at an offset.
    pub(in crate::instrument) fn moved_by(self, off: i16) -> Self {
        self.moved(Some(off.into()))
    }

    /// What a function sees of its caller's pointer.
    pub(super) fn inwards(self) -> Self {
        match self {
            Self::Frame {
                owner: Owner::Own,
                off,
            } => Self::Frame {
                owner: Owner::Caller,
                off,
            },
            Self::Frame { .. } => Self::Frame {
                owner: Owner::Outer,
                off: None,
            },
            kind => kind,
        }
    }

    /// What a caller gets of its function's pointer.
    pub(super) fn outwards(self) -> Self {
        match self {
            Self::Frame {
                owner: Owner::Caller,
                off,
            } => Self::Frame {
                owner: Owner::Own,
                off,
            },
            Self::Frame { .. } => Self::Unknown,
            kind => kind,
        }
    }

    /// Whether it is a pointer, or may be one.
    pub(in crate::instrument) const fn is_pointer(self) -> bool {
        !matches!(self, Self::Nothing | Self::Scalar(_))
    }

    /// Whether the number itself is the same in a replay: no address of the program's own
    /// memory.
    pub(in crate::instrument) const fn is_comparable(self) -> bool {
        matches!(self, Self::Nothing | Self::Scalar(_) | Self::Kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIST: MapRef = MapRef {
        id: MapId(0),
        inner: false,
    };

    fn frame(off: Option<i16>) -> Kind {
        Kind::Frame {
            owner: Owner::Own,
            off,
        }
    }

    #[test]
    fn joining_keeps_what_both_agree_on() {
        let cases = [
            (Kind::Scalar(Some(3)), Kind::Scalar(Some(4)), Kind::NUMBER),
            (Kind::Scalar(Some(0)), Kind::Value(HIST), Kind::Value(HIST)),
            (frame(Some(-8)), frame(Some(-16)), frame(None)),
            (frame(None), Kind::Value(HIST), Kind::Own),
            (Kind::Kernel, Kind::Value(HIST), Kind::Unknown),
            (Kind::Nothing, Kind::Kernel, Kind::Kernel),
            (Kind::Constant, Kind::Private, Kind::Own),
        ];
        for (a, b, both) in cases {
            assert_eq!(a.join(b), both, "{a:?} {b:?}");
            assert_eq!(b.join(a), both, "{b:?} {a:?}");
            assert_eq!(both.join(a), both, "more than {both:?}");
        }
    }

    #[test]
    fn offsets_move_with_pointers() {
        assert_eq!(frame(Some(0)).moved(Some(-24)), frame(Some(-24)));
        assert_eq!(frame(Some(-24)).moved(None), frame(None));
        assert_eq!(frame(Some(-8)).inwards().outwards(), frame(Some(-8)));
        assert_eq!(
            frame(Some(-8)).inwards().inwards().outwards(),
            Kind::Unknown
        );
    }
}
