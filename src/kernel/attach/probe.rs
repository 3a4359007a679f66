//! kprobes and uprobes that are perf events.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::binary::Binary;
use super::error::{AttachError, BinaryError};
use super::path;
use super::point::{AttachPoint, Spot};
use crate::kernel::cpus;
use crate::kernel::error::{Command, KernelError};
use crate::kernel::perf::Pmu;
use crate::kernel::sys::{EventRequest, PerfFd};
use crate::util::Errno;

/// The location of a probe.
#[derive(Debug)]
pub(super) struct Target {
    /// The function, or the file.
    pub text: CString,
    /// Bytes from the function's or the file's start.
    pub offset: u64,
    pub returns: bool,
    /// The file offset of the USDT semaphore; 0 for none.
    pub semaphore: u64,
}

/// The kernel's PMU of this name.
pub(super) fn pmu(point: &AttachPoint, name: &str) -> Result<Pmu, AttachError> {
    Pmu::find(name).ok_or_else(|| {
        let option = name.to_uppercase();
        let why = format!(
            "this kernel has no {name}s (CONFIG_{option}_EVENTS): \
             /sys/bus/event_source/devices/{name} is not there"
        );
        AttachError::unavailable(point, why)
    })
}

/// Opens a probe's event, without a program.
pub(super) fn open(point: &AttachPoint, pmu: &Pmu, target: &Target) -> Result<PerfFd, AttachError> {
    let field = |name: &'static str, value: u64| match value {
        0 => Ok(0),
        _ => pmu.in_config(name, value).ok_or_else(|| {
            let why = format!("{name} {value:#x} is out of range for the kernel's PMU");
            AttachError::unavailable(point, why)
        }),
    };
    let config =
        field("retprobe", u64::from(target.returns))? | field("ref_ctr_offset", target.semaphore)?;
    let opened = PerfFd::open(&EventRequest {
        event_type: pmu.number,
        config,
        text: Some(&target.text),
        config2: target.offset,
        task: point.pid(),
        // For all tasks the event needs a CPU; the probe fires on every CPU all the same.
        cpu: point.pid().is_none().then(cpus::first_online),
        ..EventRequest::default()
    });
    opened.map_err(|errno| match errno {
        Errno::ENOENT => AttachError::no_such_place(point, "there is no such function"),
        _ => KernelError::new(Command::PerfEventOpen, point.to_string(), errno).into(),
    })
}

/// Opens the file of an attach point.
pub(super) fn file(point: &AttachPoint, name: &Path) -> Result<(Binary, CString), AttachError> {
    let shown = name.display().to_string();
    let Some(path) = path::find(&shown) else {
        return Err(AttachError::no_such_place(
            point,
            format!("there is no file '{shown}'"),
        ));
    };
    let binary = Binary::open(&path).map_err(|error| broken(&path, &error))?;
    let text = CString::new(path.as_os_str().as_bytes());
    let text =
        text.map_err(|_| AttachError::no_such_place(point, "the path contains a NUL byte"))?;
    Ok((binary, text))
}

pub(super) fn broken(path: &Path, error: &BinaryError) -> AttachError {
    AttachError::Binary {
        path: path.display().to_string(),
        why: error.to_string(),
    }
}

/// The file offset of a location.
pub(super) fn offset(
    point: &AttachPoint,
    name: &Path,
    binary: &Binary,
    spot: &Spot,
) -> Result<u64, AttachError> {
    let (function, behind) = match spot {
        Spot::Offset(offset) => return Ok(*offset),
        Spot::Function { name, offset } => (name, *offset),
    };
    let found = binary.functions(|it| it == function);
    let found = found.map_err(|error| broken(name, &error))?;
    let Some((_, start)) = found.first() else {
        let why = format!(
            "{} has no function '{function}' in its tables of symbols; where it was stripped \
             of them, an offset in the file can be named: {}:0x…",
            name.display(),
            name.display()
        );
        return Err(AttachError::no_such_place(point, why));
    };
    start
        .checked_add(behind)
        .ok_or_else(|| AttachError::no_such_place(point, "past the end of the file"))
}
