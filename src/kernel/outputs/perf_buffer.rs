//! Perf buffers: what programs send by `bpf_perf_event_output` to a map of type
//! `BPF_MAP_TYPE_PERF_EVENT_ARRAY`, which has an event for each CPU.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::kernel::error::{Command, KernelError};
use crate::kernel::kernel_map::KernelMap;
use crate::kernel::perf::{EventSource, Sampled, Sampling, Software, Streams};
use crate::kernel::sys::{MapFd, SampleType};
use crate::spec::UpdateFlags;
use crate::util::Errno;

/// The reader of a perf buffer. The map's slots are empty again when it is dropped.
#[derive(Debug)]
pub struct PerfBuffer {
    streams: Streams,
    map: MapFd,
}

impl PerfBuffer {
    /// Puts an event for each CPU into the map, each with so many pages of memory, a power
    /// of two. What programs sent before went nowhere.
    ///
    /// # Errors
    /// What the kernel says: `EPERM` or `EACCES` without `CAP_PERFMON`, `EINVAL` for a map
    /// of another type. CPUs for which the map has no slot are left out.
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

    /// Hands over all records that are there, each with the CPU that it was sent from: CPU
    /// by CPU, of each the oldest first. Says how many.
    ///
    /// The kernel adds bytes to a record until its length and 4 are a multiple of 8.
    pub fn drain(&mut self, mut each: impl FnMut(u32, &[u8])) -> usize {
        self.streams.drain(|cpu, sample| each(cpu, sample.raw))
    }

    /// Waits until there is a record, or for so long (forever without a time): whether
    /// there is. A signal ends the waiting.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, KernelError> {
        self.streams.wait(timeout)
    }

    /// Records that found no room until now.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.streams.lost()
    }

    /// Descriptors that are ready to be read when there is a record.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.streams.fds()
    }
}

impl Drop for PerfBuffer {
    /// The map holds the events as well: they would go on without us.
    fn drop(&mut self) {
        for (cpu, _) in self.streams.by_cpu() {
            // A slot that is empty already is as it should be.
            let _ = self.map.delete(&cpu.to_ne_bytes());
        }
    }
}

fn failed(command: Command, what: &str, errno: Errno) -> KernelError {
    KernelError::new(command, format!("{what} of a perf buffer"), errno)
}
