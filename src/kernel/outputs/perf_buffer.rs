//! Perf buffers: the output of `bpf_perf_event_output` to a map of type
//! `BPF_MAP_TYPE_PERF_EVENT_ARRAY`, which has an event for each CPU.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::kernel::error::{Command, KernelError};
use crate::kernel::kernel_map::KernelMap;
use crate::kernel::perf::{EventSource, Sampled, Sampling, Software, Streams};
use crate::kernel::sys::{MapFd, SampleType};
use crate::spec::UpdateFlags;
use crate::util::Errno;

/// The reader of a perf buffer. Dropping it empties the map's slots.
#[derive(Debug)]
pub struct PerfBuffer {
    streams: Streams,
    map: MapFd,
}

impl PerfBuffer {
    /// Puts an event for each CPU into the map, each with `pages` data pages, a power of two.
    /// Earlier output of the programs is lost.
    ///
    /// # Errors
    /// The kernel's error: `EPERM` or `EACCES` without `CAP_PERFMON`, `EINVAL` for a map of
    /// another type. CPUs for which the map has no slot are skipped.
    pub fn open(map: &KernelMap<'_>, pages: usize) -> Result<Self, KernelError> {
        let streams = Streams::open(&Sampled {
            source: EventSource::Software(Software::BpfOutput),
            sampling: Sampling::Period(1),
            holds: SampleType::RAW,
            threads: &[],
            inherit: false,
            on_exec: false,
            filter: None,
            pages,
            eager: true,
        })?;
        let again = map.fd().try_clone();
        let buffer = Self {
            streams,
            map: again.map_err(|errno| failed(Command::MapUpdateElem, "the map", errno))?,
        };
        for (cpu, event) in buffer.streams.by_cpu() {
            match map.put_fd(&cpu.to_ne_bytes(), event.as_fd(), UpdateFlags::empty()) {
                Ok(()) | Err(Errno::E2BIG) => {}
                Err(errno) => {
                    let object = format!("slot {cpu}");
                    return Err(failed(Command::MapUpdateElem, &object, errno));
                }
            }
        }
        Ok(buffer)
    }

    /// Passes each unread record to `each` with the CPU it was sent from: CPU by CPU, the
    /// oldest of each CPU first. Returns their number.
    ///
    /// The kernel pads a record until its length plus 4 is a multiple of 8.
    pub fn drain(&mut self, mut each: impl FnMut(u32, &[u8])) -> usize {
        self.streams.drain(|cpu, sample| each(cpu, sample.raw))
    }

    /// Waits for records, at most for `timeout` (forever without one). Returns whether there
    /// are any. A signal ends the wait.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, KernelError> {
        self.streams.wait(timeout)
    }

    /// The number of records lost so far because a buffer was full.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.streams.lost()
    }

    /// File descriptors that become readable when there is a record.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.streams.fds()
    }
}

impl Drop for PerfBuffer {
    /// The map references the events, too, so that they would stay open.
    fn drop(&mut self) {
        for (cpu, _) in self.streams.by_cpu() {
            // The slot may be empty already.
            let _ = self.map.delete(&cpu.to_ne_bytes());
        }
    }
}

fn failed(command: Command, what: &str, errno: Errno) -> KernelError {
    KernelError::new(command, format!("{what} of a perf buffer"), errno)
}
