//! The rows of the table.

/// The category of a fault; the names are those of the reports of newer kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Category {
    /// A register has the wrong type for an instruction.
    RegisterType,
    /// An access that may be outside of its object.
    Memory,
    /// A reference that isn't released, or is used after its release.
    Resource,
    /// A call with arguments that don't match the helper's prototype.
    CallType,
    /// An error in the structure of the program.
    Structure,
    /// An operation that this program type may not use.
    Policy,
    /// The program is unjudged.
    NotJudged,
    /// None of these.
    Other,
}

impl Category {
    /// The category's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RegisterType => "Register Type Safety",
            Self::Memory => "Memory Safety",
            Self::Resource => "Resource Lifetime Safety",
            Self::CallType => "Call Type Safety",
            Self::Structure => "Program Structure",
            Self::Policy => "Policy",
            Self::NotJudged => "Not Judged",
            Self::Other => "Verifier Error",
        }
    }
}

/// An additional condition for a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum When {
    /// No condition.
    Always,
    /// A call released the value, or moved the packet that it points into.
    Released,
    /// A call clobbered the register.
    LostByCall,
    /// The helper of this name was called, and its section has not ended.
    Inside(&'static str),
    /// The function at fault is a helper's callback.
    CalledBack,
    /// The pointer was compared with the packet's end, in a way that does not allow the access.
    Compared(Flaw),
    /// The value was loaded from less than eight bytes, so it is no address.
    NarrowLoad,
    /// The value was read from a stack slot that the path did not write.
    Unwritten,
    /// The instruction calls a function of the program.
    CallsFunction,
    /// The instruction calls a helper or kfunc.
    AtCall,
    /// The instruction calls the helper or kfunc of this name.
    Calls(&'static str),
    /// The pointer is what the helper of this name returned.
    MadeBy(&'static str),
    /// The captured `{id}` is in this range: the poison number that a loader writes in
    /// place of an unresolved reference.
    Poison(std::ops::RangeInclusive<u32>),
}

/// Why a comparison with the packet's end does not allow an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Flaw {
    /// It shows that the pointer is at or past the end.
    Backwards,
    /// It compares the start of the packet itself with `<`, of which `find_good_pkt_pointers`
    /// takes nothing.
    StartOnly,
    /// The pointer's offset may be above `MAX_PACKET_OFF`, so it is ignored.
    TooFar,
    /// It covers fewer bytes than the access.
    Short,
}

/// The explanation of an error line of the kernel.
pub(in super::super) struct Advice {
    /// The line, with captures in braces.
    pub line: &'static str,
    /// The additional condition.
    pub when: When,
    /// The category.
    pub category: Category,
    /// What is wrong, in a few words.
    pub problem: &'static str,
    /// The reason at this instruction.
    pub reason: &'static str,
    /// The label at the instruction.
    pub here: &'static str,
    /// What the verifier expects.
    pub expected: &'static str,
    /// What to change.
    pub help: &'static str,
}

/// Rows of the table: the line, the condition if there is one, and the texts.
macro_rules! rows {
    ($($line:literal $(, $when:expr)? => $category:ident {
        problem: $problem:literal,
        reason: $reason:literal,
        here: $here:literal,
        expected: $expected:literal,
        help: $help:literal $(,)?
    })*) => {
        &[$(crate::verifier::diagnose::advice::row::Advice {
            line: $line,
            when: crate::verifier::diagnose::advice::row::when!($($when)?),
            category: crate::verifier::diagnose::advice::row::Category::$category,
            problem: $problem,
            reason: $reason,
            here: $here,
            expected: $expected,
            help: $help,
        }),*]
    };
}
pub(super) use rows;

macro_rules! when {
    () => {
        crate::verifier::diagnose::advice::row::When::Always
    };
    ($when:expr) => {
        $when
    };
}
pub(super) use when;
