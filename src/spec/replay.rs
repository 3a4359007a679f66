//! How recordings treat calls: a column of the tables of helpers and kfuncs.

/// What a replay does with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallReplay {
    /// Skip it: all its results are in the recorded log.
    Skip,
    /// Skip it, too; but it acts on the kernel, so its arguments are logged.
    Effect,
    /// Make it, and override its results with the recorded ones.
    Override,
    /// Make it: its results follow from the program's own state.
    Repeat,
}

/// What a replay does with a call, or why a program with such a call can't be recorded.
pub type CallReplayRule = Result<CallReplay, &'static str>;

/// Why a program can't be recorded whose callback runs after the call.
pub(crate) const CALLS_BACK_LATER: &str = "the callback runs later, outside any firing";

/// The values of the tables' column.
pub(super) mod column {
    use super::{CALLS_BACK_LATER, CallReplay, CallReplayRule};

    pub const SKIP: CallReplayRule = Ok(CallReplay::Skip);
    pub const EFFECT: CallReplayRule = Ok(CallReplay::Effect);
    pub const OVERRIDE: CallReplayRule = Ok(CallReplay::Override);
    pub const REPEAT: CallReplayRule = Ok(CallReplay::Repeat);
    pub const COMMAND: CallReplayRule = Err("it is a system call");
    pub const EXCEPTION: CallReplayRule = Err("an exception ends the program from anywhere");
    pub const KERNEL_POINTER: CallReplayRule =
        Err("a map holds the kernel object, unknown to a replay");
    pub const STORAGE: CallReplayRule =
        Err("the storage belongs to a kernel object, unknown to a replay");
    pub const TIMER: CallReplayRule = Err(CALLS_BACK_LATER);
    pub const USER_RING: CallReplayRule = Err("what user space wrote is not recorded");
    pub const VMA: CallReplayRule = Err("its callback gets a kernel object, unknown to a replay");
}
