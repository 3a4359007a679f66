//! Reads the lines of `bpf_trace_printk` without ftrace's pipe, which gives each line to only
//! one reader.
//!
//! The helper fires the tracepoint `bpf_trace:bpf_trace_printk`. A perf event on it misses the
//! lines that a program on another perf tracepoint prints, since that program holds the
//! recursion context that both need (`perf_swevent_get_recursion_context`). A raw tracepoint
//! needs no such context, so bpflab attaches a program there that forwards the lines to a ring
//! buffer.

use std::time::Duration;

use crate::isa::{RawInsn, assemble_with};
use crate::kernel::attach::{AttachError, AttachPoint, Attachment, attach};
use crate::kernel::error::{Command, KernelError};
use crate::kernel::load::{LoadOptions, load};
use crate::kernel::loaded_program::LoadedProgram;
use crate::kernel::maps::LoadedMaps;
use crate::kernel::outputs::ring::KernelRing;
use crate::program::{MapDef, Program};
use crate::spec::{MapType, ProgType};
use crate::util::{Errno, MapId, ReadError, Reader};

/// Size of the ring buffer for unread lines in bytes: room for some thousand lines.
const RING: u32 = 1 << 22;

/// The forwarding program. A line has at most 1024 bytes (`MAX_BPRINTF_BUF`,
/// `include/linux/bpf.h`). Its record: time, pid and tid, CPU, length, comm, text.
const LISTENER: &str = "
    r6 = r1
    r1 = map[idx:0]
    r2 = 1064
    r3 = 0
    call bpf_ringbuf_reserve
    if r0 == 0 goto full
    r7 = r0
    call bpf_ktime_get_ns
    *(u64 *)(r7 + 0) = r0
    call bpf_get_current_pid_tgid
    *(u64 *)(r7 + 8) = r0
    call bpf_get_smp_processor_id
    *(u32 *)(r7 + 16) = r0
    r1 = r7
    r1 += 24
    r2 = 16
    call bpf_get_current_comm
    r3 = *(u64 *)(r6 + 0)
    r1 = r7
    r1 += 40
    r2 = 1024
    call bpf_probe_read_kernel_str
    *(u32 *)(r7 + 20) = r0
    r1 = r7
    r2 = 0
    call bpf_ringbuf_submit
    goto out
full:
    *(u32 *)(r10 - 4) = 0
    r2 = r10
    r2 += -4
    r1 = map[idx:1]
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r1 = 1
    lock *(u64 *)(r0 + 0) += r1
out:
    r0 = 0
    exit";

const RING_MAP: MapId = MapId(0);
const LOST_MAP: MapId = MapId(1);

/// A line that a program printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrintkLine<'a> {
    /// The time, as `bpf_ktime_get_ns` returns it.
    pub time: u64,
    /// The current process's id.
    pub pid: u32,
    /// The thread's id.
    pub tid: u32,
    /// The CPU.
    pub cpu: u32,
    /// The thread's comm.
    pub comm: &'a [u8],
    /// The line, without the newline that the kernel adds.
    pub text: &'a [u8],
}

impl<'a> PrintkLine<'a> {
    fn parse(record: &'a [u8]) -> Result<Self, ReadError> {
        let mut reader = Reader::new(record);
        let time = reader.u64()?;
        let (tid, pid) = (reader.u32()?, reader.u32()?);
        let cpu = reader.u32()?;
        // The length includes the final NUL; it is negative if the line could not be read.
        let len = usize::try_from(reader.i32()?.saturating_sub(1)).unwrap_or(0);
        let comm = reader.bytes(16)?;
        let text = reader.bytes(len)?;
        Ok(Self {
            time,
            pid,
            tid,
            cpu,
            comm: comm.split(|byte| *byte == 0).next().unwrap_or_default(),
            text: text.strip_suffix(b"\n").unwrap_or(text),
        })
    }
}

/// The lines that all programs of the machine print from now on. The kernel does not tell which
/// program printed a line, only in which process it ran.
#[derive(Debug)]
pub struct PrintkLines {
    attachment: Attachment,
    ring: KernelRing,
    maps: LoadedMaps,
}

impl PrintkLines {
    /// Starts reading lines.
    ///
    /// # Errors
    /// Programs can't be loaded, or raw tracepoints are not available.
    pub fn open() -> Result<Self, AttachError> {
        let mut program = Program::new("printk_lines", ProgType::RawTracepoint, Vec::new());
        program.insns = listener(&program)?;
        program.license = "Dual MIT/GPL".to_owned();
        program.maps = [
            MapDef::new("lines", MapType::Ringbuf, 0, 0, RING),
            MapDef::new("lost", MapType::Array, 4, 8, 1),
        ]
        .into();
        let maps = LoadedMaps::create(&program.maps, None)?;
        let loaded = load(&program, &maps, &LoadOptions::default())?;
        let listener: LoadedProgram = loaded.program.ok_or_else(|| {
            AttachError::Kernel(KernelError {
                log: loaded.verdict.log,
                ..failed(Command::ProgLoad, Errno::EINVAL)
            })
        })?;
        let ring = match maps.map(RING_MAP) {
            Some(map) => map.ring(),
            None => Err(Errno::EBADF),
        };
        let ring = ring.map_err(|errno| failed(Command::Mmap, errno))?;
        let attachment = attach(&listener, &AttachPoint::raw_tracepoint("bpf_trace_printk"))?;
        Ok(Self {
            attachment,
            ring,
            maps,
        })
    }

    /// Passes each unread line to `each`, in the order in which they were printed. Returns
    /// their number.
    pub fn drain(&self, mut each: impl FnMut(&PrintkLine<'_>)) -> usize {
        self.ring.drain(|record| {
            if let Ok(line) = PrintkLine::parse(record) {
                each(&line);
            }
        })
    }

    /// Waits for lines, at most for `timeout` (forever without one). Returns whether there are
    /// any. A signal ends the wait.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, KernelError> {
        let waited = self.ring.wait(timeout);
        waited.map_err(|errno| failed(Command::Poll, errno))
    }

    /// The ring buffer of unread lines, for a wait on several sources.
    #[must_use]
    pub const fn ring(&self) -> &KernelRing {
        &self.ring
    }

    /// The number of lines lost because the buffer was full, or because one program printed
    /// while another was printing.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn lost(&self) -> Result<u64, KernelError> {
        let value = self.maps.lookup(LOST_MAP, &0u32.to_ne_bytes())?;
        let bytes = value.and_then(|value| <[u8; 8]>::try_from(value).ok());
        let full = bytes.map_or(0, u64::from_ne_bytes);
        Ok(full + self.attachment.missed()?)
    }
}

fn listener(names: &Program) -> Result<Vec<RawInsn>, AttachError> {
    let assembled = assemble_with(LISTENER, names).map(|assembly| assembly.slots);
    assembled.map_err(|error| {
        AttachError::Kernel(KernelError {
            log: error.to_string(),
            ..failed(Command::ProgLoad, Errno::EINVAL)
        })
    })
}

fn failed(command: Command, errno: Errno) -> KernelError {
    KernelError::new(command, "bpflab's reader of trace_printk", errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        let mut record = Vec::new();
        record.extend(5u64.to_le_bytes());
        record.extend([8, 0, 0, 0, 7, 0, 0, 0]);
        record.extend(1u32.to_le_bytes());
        record.extend(4u32.to_le_bytes());
        record.extend(*b"dd\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        record.extend(*b"hi\n\0garbage");
        let line = PrintkLine::parse(&record).unwrap();
        assert_eq!((line.time, line.pid, line.tid, line.cpu), (5, 7, 8, 1));
        assert_eq!((line.comm, line.text), (&b"dd"[..], &b"hi"[..]));
        assert!(PrintkLine::parse(&record[..42]).is_err());
        let program = Program::new("p", ProgType::RawTracepoint, Vec::new());
        assert!(listener(&program).is_ok());
    }
}
