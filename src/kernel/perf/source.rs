//! Events that perf counts (`enum perf_type_id`, `include/uapi/linux/perf_event.h`).

use std::fmt;

/// An event that perf counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventSource {
    /// A tracepoint, by its id in tracefs.
    Tracepoint(u32),
    /// A software event, counted by the kernel.
    Software(Software),
    /// A hardware event, if the CPU has counters.
    Hardware(Hardware),
}

/// Defines an enum of events with their numbers and names.
macro_rules! events {
    ($(#[$enum_doc:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $number:literal, $text:literal;)* }) => {
        $(#[$enum_doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant = $number,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// What `perf list` calls it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

events! {
    /// A software event (`enum perf_sw_ids`).
    Software {
        /// Nanoseconds on a CPU, by a timer.
        CpuClock = 0, "cpu-clock";
        /// Nanoseconds that a task runs.
        TaskClock = 1, "task-clock";
        /// Page faults.
        PageFaults = 2, "page-faults";
        /// Context switches.
        ContextSwitches = 3, "context-switches";
        /// Migrations of tasks to another CPU.
        CpuMigrations = 4, "cpu-migrations";
        /// Page faults without I/O.
        MinorFaults = 5, "minor-faults";
        /// Page faults with I/O.
        MajorFaults = 6, "major-faults";
        /// Counts nothing; a placeholder.
        Dummy = 9, "dummy";
        /// The output of `bpf_perf_event_output`.
        BpfOutput = 10, "bpf-output";
    }
}

events! {
    /// A hardware event (`enum perf_hw_id`).
    Hardware {
        /// Cycles.
        CpuCycles = 0, "cpu-cycles";
        /// Instructions.
        Instructions = 1, "instructions";
        /// Accesses to the last-level cache.
        CacheReferences = 2, "cache-references";
        /// Misses of the last-level cache.
        CacheMisses = 3, "cache-misses";
        /// Branches.
        BranchInstructions = 4, "branch-instructions";
        /// Mispredicted branches.
        BranchMisses = 5, "branch-misses";
    }
}

impl EventSource {
    /// The software or hardware event of this name, as in `perf list`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let software = Software::ALL.iter().find(|event| event.name() == name);
        let hardware = Hardware::ALL.iter().find(|event| event.name() == name);
        let software = software.map(|event| Self::Software(*event));
        software.or(hardware.map(|event| Self::Hardware(*event)))
    }

    /// The fields `type` and `config` of `struct perf_event_attr`.
    pub(in crate::kernel) const fn numbers(self) -> (u32, u64) {
        match self {
            Self::Hardware(event) => (0, event as u64),
            Self::Software(event) => (1, event as u64),
            Self::Tracepoint(id) => (2, id as u64),
        }
    }
}

impl fmt::Display for EventSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tracepoint(id) => write!(f, "tracepoint {id}"),
            Self::Software(event) => f.write_str(event.name()),
            Self::Hardware(event) => f.write_str(event.name()),
        }
    }
}

/// The sampling rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// A sample every so many events, or nanoseconds for clocks.
    Period(u64),
    /// About so many samples a second.
    Frequency(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_events() {
        let clock = EventSource::from_name("task-clock").unwrap();
        assert_eq!(clock.numbers(), (1, 1));
        let cycles = EventSource::from_name("cpu-cycles").unwrap();
        assert_eq!(cycles.numbers(), (0, 0));
        assert_eq!(cycles.to_string(), "cpu-cycles");
        assert_eq!(EventSource::from_name("cpu"), None);
        let output = EventSource::Software(Software::BpfOutput);
        assert_eq!(output.numbers(), (1, 10));
        assert_eq!(EventSource::Tracepoint(77).numbers(), (2, 77));
    }
}
