//! Whether machine code counts instructions.

/// Whether machine code counts instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Counting {
    /// It does, and stops at the budget.
    #[default]
    Exact,
    /// It does not: the number of instructions is unknown, and there is no budget.
    Off,
}
