//! The kernel's clocks. Time stands still until a test moves it.

use std::time::Duration;

/// The kernel's clocks, all derived from one time: nanoseconds since boot.
#[derive(Debug, Clone)]
pub struct Clock {
    boot_ns: u64,
    suspended_ns: u64,
    wall_at_boot_ns: u64,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            // One hour after boot, so that subtracting from "now" does not underflow.
            boot_ns: 3_600_000_000_000,
            suspended_ns: 0,
            // 2026-01-01 00:00:00 UTC.
            wall_at_boot_ns: 1_767_225_600_000_000_000,
        }
    }
}

/// `CONFIG_HZ` of the usual distribution kernels.
const HZ: u64 = 250;
/// Jiffies start five minutes before they wrap in 32 bits (`INITIAL_JIFFIES`).
const INITIAL_JIFFIES: u64 = (300u64 * HZ).wrapping_neg() & 0xffff_ffff;
/// Difference between TAI and UTC since 2017.
const TAI_OFFSET_NS: u64 = 37_000_000_000;

impl Clock {
    /// `CLOCK_MONOTONIC`: nanoseconds since boot, excluding suspension
    /// (`bpf_ktime_get_ns`).
    #[must_use]
    pub const fn monotonic_ns(&self) -> u64 {
        self.boot_ns
    }

    /// `CLOCK_BOOTTIME`: including suspension (`bpf_ktime_get_boot_ns`).
    #[must_use]
    pub const fn boot_ns(&self) -> u64 {
        self.boot_ns.saturating_add(self.suspended_ns)
    }

    /// `CLOCK_REALTIME`: nanoseconds since 1970 (`CLOCK_REALTIME` of `bpf_timer_init`).
    #[must_use]
    pub const fn realtime_ns(&self) -> u64 {
        self.boot_ns().saturating_add(self.wall_at_boot_ns)
    }

    /// `CLOCK_TAI` (`bpf_ktime_get_tai_ns`).
    #[must_use]
    pub const fn tai_ns(&self) -> u64 {
        self.realtime_ns().saturating_add(TAI_OFFSET_NS)
    }

    /// `CLOCK_MONOTONIC_COARSE`: as of the last tick (`bpf_ktime_get_coarse_ns`).
    #[must_use]
    pub const fn coarse_ns(&self) -> u64 {
        let tick = 1_000_000_000 / HZ;
        self.boot_ns / tick * tick
    }

    /// The tick counter at 250 Hz (`bpf_jiffies64`).
    #[must_use]
    pub const fn jiffies(&self) -> u64 {
        INITIAL_JIFFIES.wrapping_add(self.boot_ns / (1_000_000_000 / HZ))
    }

    /// Sets the monotonic clock, in nanoseconds since boot.
    pub fn set_ns(&mut self, ns: u64) -> &mut Self {
        self.boot_ns = ns;
        self
    }

    /// Advances the clocks.
    pub fn advance(&mut self, by: Duration) -> &mut Self {
        let ns = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.boot_ns = self.boot_ns.saturating_add(ns);
        self
    }

    /// Suspends the machine: boot time advances, monotonic time does not.
    pub fn suspend(&mut self, by: Duration) -> &mut Self {
        let ns = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.suspended_ns = self.suspended_ns.saturating_add(ns);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_move_together_when_told_to() {
        let mut clock = Clock::default();
        let (before, jiffies) = (clock.monotonic_ns(), clock.jiffies());
        assert_eq!(clock.monotonic_ns(), before);
        clock.advance(Duration::from_millis(10));
        assert_eq!(clock.monotonic_ns() - before, 10_000_000);
        assert_eq!(clock.coarse_ns() - before, 8_000_000);
        assert_eq!(clock.jiffies() - jiffies, 2);
        clock.suspend(Duration::from_secs(1));
        assert_eq!(clock.boot_ns() - clock.monotonic_ns(), 1_000_000_000);
        assert_eq!(clock.monotonic_ns() - before, 10_000_000);
    }
}
