//! The kinds of values that registers and stack slots hold, as far as recording needs them.

use crate::program::{MapDef, Program};
use crate::spec::MapFlags;
use crate::util::{MapId, Pc};

/// What a register or a stack slot may hold. A pointer that may be null has its pointer's kind:
/// an accepted program does not dereference null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::instrument) enum Kind {
    /// Not written by the program, or not reached.
    #[default]
    Nothing,
    /// A number, with its value if known.
    Scalar(Option<i32>),
    /// A pointer into a stack frame.
    Frame {
        /// The frame's owner.
        owner: Owner,
        /// Distance from the top of the frame, if known.
        off: Option<i16>,
    },
    /// A pointer into the context, with its offset if known.
    Context(Option<i32>),
    /// A map.
    Map(MapRef),
    /// A pointer into a value of the map.
    Value(MapRef),
    /// A pointer to constant memory: a frozen map that programs can't write.
    Constant,
    /// A pointer into a ring-buffer record, private to the run until it is submitted.
    Record {
        /// Size of the record in bytes.
        size: Option<u32>,
        /// Offset into it.
        off: Option<i32>,
    },
    /// Memory private to the run that only helpers and kfuncs fill, such as an iterator.
    Private,
    /// A pointer to the program's own memory, of one of the kinds above or another (a dynptr
    /// slice).
    Own,
    /// A pointer into an arena.
    Arena,
    /// A pointer to kernel memory.
    Kernel,
    /// The address of a function.
    Function(Pc),
    /// A pointer to any memory, or a value stored in memory that is not tracked.
    Unknown,
}

/// The owner of a stack frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::instrument) enum Owner {
    /// The current function.
    Own,
    /// The function's caller.
    Caller,
    /// A function further up the call chain.
    Outer,
}

/// A map, or an inner map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::instrument) struct MapRef {
    /// The map in the program.
    pub(in crate::instrument) id: MapId,
    /// Whether it is an inner map of it.
    pub(in crate::instrument) inner: bool,
}

impl MapRef {
    /// The map's definition.
    pub(in crate::instrument) fn definition(self, program: &Program) -> Option<&MapDef> {
        let map = program.map(self.id)?;
        if self.inner {
            map.inner.as_deref()
        } else {
            Some(map)
        }
    }
}

/// Whether neither programs nor user space can change a map's contents.
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

    /// An unknown number.
    pub(super) const NUMBER: Self = Self::Scalar(None);

    /// The kind that holds for both.
    pub(super) fn join(self, other: Self) -> Self {
        use Kind::{
            Arena, Constant, Context, Frame, Function, Kernel, Map, Nothing, Own, Private, Record,
            Scalar, Unknown, Value,
        };
        match (self, other) {
            (a, b) if a == b => a,
            (Nothing, kind) | (kind, Nothing) => kind,
            (Scalar(_), Scalar(_)) => Self::NUMBER,
            // A pointer on one path: only that path dereferences it.
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

    /// The pointer after an addition of a known or unknown number.
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

    /// A caller's pointer as seen by the called function.
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

    /// A function's pointer as seen by its caller.
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

    /// Whether the number itself is the same in a replay: false for addresses of the program's
    /// own memory.
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
