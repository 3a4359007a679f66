//! The form of the table's rows.

/// What a fault is about; the names are those of the reports of newer kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// A register doesn't hold what an instruction needs.
    RegisterType,
    /// An access that may lie outside of its object.
    Memory,
    /// A reference that isn't given back, or is used afterwards.
    Resource,
    /// A call that the helper's declaration doesn't allow.
    CallType,
    /// The shape of the program.
    Structure,
    /// What this type of program may not do.
    Policy,
    /// The program is unjudged.
    NotJudged,
    /// None of these.
    Other,
}

impl Category {
    /// Its name.
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

/// What else must be so for a row to count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum When {
    /// Nothing.
    Always,
    /// A call has released the value, or moved the packet that it points into.
    Released,
    /// A call has lost what was in the register.
    LostByCall,
    /// The helper of this name was called, and what ends its section was not.
    Inside(&'static str),
    /// The function at fault was called back by a helper.
    CalledBack,
    /// The place `{id}` of the line is this number: the poison that a loader leaves in
    /// place of what isn't there.
    Poison(std::ops::RangeInclusive<u32>),
}

/// What a line of the kernel's means.
pub(in super::super) struct Advice {
    /// The line, with places.
    pub line: &'static str,
    /// What else must be so.
    pub when: When,
    /// What it is about.
    pub category: Category,
    /// What is wrong, in a few words.
    pub problem: &'static str,
    /// Why that is wrong here.
    pub reason: &'static str,
    /// What stands at the instruction.
    pub here: &'static str,
    /// What the verifier wants to see.
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
