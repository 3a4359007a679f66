//! Perf events: `perf_event_open(2)` and the calls on its descriptors.
//!
//! The attributes are those of `struct perf_event_attr`, the commands the `PERF_EVENT_IOC_…`
//! (`include/uapi/linux/perf_event.h`).

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use bitflags::bitflags;

use super::bpf::{Result, last_errno, retried, text_address};
use super::mapping::Mapping;
use super::programs::ProgFd;
use crate::util::Errno;

bitflags! {
    /// The flag bits of `struct perf_event_attr`.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct EventFlags: u64 {
        /// The event starts disabled.
        const DISABLED = 1 << 0;
        /// Tasks that the task creates from now on inherit the event.
        const INHERIT = 1 << 1;
        /// `sample_period` is a frequency.
        const FREQ = 1 << 10;
        /// The task's next `execve` enables the event.
        const ENABLE_ON_EXEC = 1 << 12;
        /// `wakeup` counts bytes, not events.
        const WATERMARK = 1 << 14;
        /// Times are those of the clock in `clockid`.
        const USE_CLOCKID = 1 << 25;
    }
}

bitflags! {
    /// Fields of a sample (`PERF_SAMPLE_…`), in the order of their layout.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct SampleType: u64 {
        /// Process and thread id, a `u32` each.
        const TID = 1 << 1;
        /// A `u64`.
        const TIME = 1 << 2;
        /// A `u32`, followed by a zero `u32`.
        const CPU = 1 << 7;
        /// The length as a `u32`, and that many bytes.
        const RAW = 1 << 10;
    }
}

/// `PERF_FORMAT_LOST`: a read returns the number of lost samples after the count.
const FORMAT_LOST: u64 = 1 << 4;
/// `PERF_FLAG_FD_CLOEXEC`.
const FLAG_CLOEXEC: libc::c_ulong = 1 << 3;

/// `_IO('$', number)` and its relatives, as encoded on most machines.
const ENABLE: u32 = 0x2400;
const DISABLE: u32 = 0x2401;
const SET_OUTPUT: u32 = 0x2405;
const SET_FILTER: u32 = 0x4008_2406;
const SET_BPF: u32 = 0x4004_2408;
const QUERY_BPF: u32 = 0xc008_240a;

/// The parameters of an event.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventRequest<'a> {
    /// `PERF_TYPE_…`, or the number of a PMU.
    pub event_type: u32,
    /// Which event of the type.
    pub config: u64,
    /// A second number for a PMU, or `text` if the PMU takes a text.
    pub config1: u64,
    /// The function or file of a probe.
    pub text: Option<&'a CStr>,
    /// The address or offset of a probe.
    pub config2: u64,
    /// The period in events, or, with [`EventFlags::FREQ`], samples a second.
    pub sample: u64,
    /// The fields of a sample.
    pub sample_type: SampleType,
    pub flags: EventFlags,
    /// Samples, or bytes, after which a reader is woken.
    pub wakeup: u32,
    /// The clock of the samples' times.
    pub clock: libc::clockid_t,
    /// The thread to count; `None` for all.
    pub task: Option<u32>,
    /// The CPU to count; `None` for all, which needs a `task`.
    pub cpu: Option<u32>,
}

/// The structure up to the clock (`PERF_ATTR_SIZE_VER3`); the rest is zero.
#[repr(C)]
#[derive(Default)]
struct Attr {
    event_type: u32,
    size: u32,
    config: u64,
    sample: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
}

/// A perf event or a probe. Closing it ends it and detaches its program.
#[derive(Debug)]
pub struct PerfFd(OwnedFd);

impl PerfFd {
    /// `perf_event_open`.
    pub fn open(request: &EventRequest<'_>) -> Result<Self> {
        let opened = Self::open_with(request, FORMAT_LOST);
        match opened {
            // Kernels before 6.0 do not count lost samples.
            Err(Errno::EINVAL) => Self::open_with(request, 0),
            opened => opened,
        }
    }

    fn open_with(request: &EventRequest<'_>, read_format: u64) -> Result<Self> {
        let mut attr = Attr {
            event_type: request.event_type,
            size: u32::try_from(size_of::<Attr>()).unwrap_or(u32::MAX),
            config: request.config,
            sample: request.sample,
            sample_type: request.sample_type.bits(),
            read_format,
            flags: request.flags.bits(),
            wakeup: request.wakeup,
            config1: match request.text {
                Some(_) => text_address(request.text),
                None => request.config1,
            },
            config2: request.config2,
            clockid: request.clock,
            ..Attr::default()
        };
        let id = |number: Option<u32>| number.map_or(Ok(-1), libc::c_int::try_from);
        let (Ok(task), Ok(cpu)) = (id(request.task), id(request.cpu)) else {
            return Err(Errno::EINVAL);
        };
        // A signal can interrupt the call while it waits for a task in `execve`.
        let fd = retried(|| {
            // SAFETY: the attributes are initialised and hold their size; their text is
            // borrowed and NUL-terminated. Without a text, `config1` is a number for all PMUs
            // except those that read a text there, and these copy from the address or fail with
            // EFAULT.
            unsafe {
                libc::syscall(
                    libc::SYS_perf_event_open,
                    std::ptr::from_mut(&mut attr),
                    task,
                    cpu,
                    -1 as libc::c_int,
                    FLAG_CLOEXEC,
                )
            }
        });
        match i32::try_from(fd) {
            // SAFETY: the kernel has just opened this descriptor.
            Ok(fd) if fd >= 0 => Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) })),
            _ => Err(last_errno()),
        }
    }

    /// Calls `ioctl`.
    ///
    /// # Safety
    /// The argument is the one that the command needs: a number, or the address of memory that
    /// it reads and writes.
    unsafe fn ioctl(&self, command: u32, argument: u64) -> Result<()> {
        // The type of the command differs between C libraries.
        let command = command as _;
        // SAFETY: as the caller promises.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), command, argument) };
        if result < 0 {
            return Err(last_errno());
        }
        Ok(())
    }

    /// `PERF_EVENT_IOC_ENABLE`: starts counting and sampling.
    pub fn enable(&self) -> Result<()> {
        // SAFETY: a command without argument.
        unsafe { self.ioctl(ENABLE, 0) }
    }

    /// `PERF_EVENT_IOC_DISABLE`.
    pub fn disable(&self) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.ioctl(DISABLE, 0) }
    }

    /// `PERF_EVENT_IOC_SET_OUTPUT`: sends its samples to the memory of another event of the
    /// same CPU.
    pub fn set_output(&self, other: &Self) -> Result<()> {
        let fd = u64::try_from(other.0.as_raw_fd()).map_err(|_| Errno::EBADF)?;
        // SAFETY: the argument is a descriptor's number.
        unsafe { self.ioctl(SET_OUTPUT, fd) }
    }

    /// `PERF_EVENT_IOC_SET_BPF`: runs a program at each event until the event is closed.
    pub fn set_bpf(&self, program: &ProgFd) -> Result<()> {
        let fd = u64::try_from(program.as_fd().as_raw_fd()).map_err(|_| Errno::EBADF)?;
        // SAFETY: the argument is a descriptor's number.
        unsafe { self.ioctl(SET_BPF, fd) }
    }

    /// `PERF_EVENT_IOC_SET_FILTER`: drops records that do not match the filter.
    pub fn set_filter(&self, filter: &CStr) -> Result<()> {
        // SAFETY: the text is NUL-terminated; the kernel copies it.
        unsafe { self.ioctl(SET_FILTER, text_address(Some(filter))) }
    }

    /// `PERF_EVENT_IOC_QUERY_BPF`: the ids of the programs attached to the tracepoint, at most
    /// `most`, in the order in which they run.
    pub fn query_bpf(&self, most: u32) -> Result<Vec<u32>> {
        // Two words precede the ids: room for ids, and their number.
        let mut answer = vec![0u32; most as usize + 2];
        if let Some(first) = answer.first_mut() {
            *first = most;
        }
        let address = answer.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: the kernel writes at most as many ids as the first word says, after the
        // second.
        unsafe { self.ioctl(QUERY_BPF, address) }?;
        let count = answer.get(1).map_or(0, |count| (*count).min(most)) as usize;
        answer.drain(..2);
        answer.truncate(count);
        Ok(answer)
    }

    /// The number of events, and of lost samples.
    pub fn counts(&self) -> Result<(u64, u64)> {
        let mut words = [0u64; 2];
        // SAFETY: the buffer has as many bytes as the call may write.
        let read = unsafe {
            libc::read(
                self.0.as_raw_fd(),
                words.as_mut_ptr().cast(),
                size_of_val(&words),
            )
        };
        if read < 0 {
            return Err(last_errno());
        }
        Ok((words[0], words[1]))
    }

    /// Maps the memory for samples: a control page, and `pages` data pages, a power of two, of
    /// `page` bytes each.
    pub fn map(&self, pages: usize, page: usize) -> Result<Mapping> {
        let size = pages.checked_add(1).and_then(|all| all.checked_mul(page));
        let both = libc::PROT_READ | libc::PROT_WRITE;
        Mapping::new(&self.0, 0, size.ok_or(Errno::EINVAL)?, both, 0)
    }
}

impl AsFd for PerfFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
