//! Clocks of timers.

use crate::vm::world::Clock;

/// A clock of `bpf_timer_init` (`CLOCK_…`, `include/uapi/linux/time.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimerClock {
    /// Wall-clock time.
    Realtime = 0,
    /// Time since boot without suspension.
    Monotonic = 1,
    /// Time since boot.
    Boottime = 7,
}

impl TimerClock {
    /// The clock that the flags of `bpf_timer_init` select.
    #[doc(hidden)]
    #[must_use]
    pub const fn from_flags(flags: u64) -> Option<Self> {
        match flags {
            0 => Some(Self::Realtime),
            1 => Some(Self::Monotonic),
            7 => Some(Self::Boottime),
            _ => None,
        }
    }

    /// The current time in nanoseconds.
    #[doc(hidden)]
    #[must_use]
    pub const fn now(self, clock: &Clock) -> u64 {
        match self {
            Self::Realtime => clock.realtime_ns(),
            Self::Monotonic => clock.monotonic_ns(),
            Self::Boottime => clock.boot_ns(),
        }
    }

    /// Converts a time of this clock to the monotonic clock, assuming that no clock is set in
    /// between. Times before the start of the monotonic clock become 0.
    #[doc(hidden)]
    #[must_use]
    pub const fn to_monotonic(self, clock: &Clock, at: u64) -> u64 {
        let now = self.now(clock);
        let monotonic = clock.monotonic_ns();
        match at.checked_sub(now) {
            Some(left) => monotonic.saturating_add(left),
            None => monotonic.saturating_sub(now - at),
        }
    }
}
