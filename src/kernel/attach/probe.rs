//! Probes that are perf events: of kernel functions and of places in user space.

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

/// A place that a probe is put to.
#[derive(Debug)]
pub(super) struct Target {
    /// The function, or the file.
    pub text: CString,
    /// Bytes from the function's or the file's start on.
    pub offset: u64,
    pub returns: bool,
    /// Where in the file a counter of listeners lies; 0 for none.
    pub semaphore: u64,
}

/// The kernel's source of probes of this name.
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

/// Puts a probe there: an event that no program has yet.
pub(super) fn open(point: &AttachPoint, pmu: &Pmu, target: &Target) -> Result<PerfFd, AttachError> {
    let field = |name: &'static str, value: u64| match value {
        0 => Ok(0),
        _ => pmu.in_config(name, value).ok_or_else(|| {
            let why = format!("the kernel's probes have no {name} of {value:#x}");
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
        // Of all tasks, the event is on one CPU; the probe itself is hit on all.
        cpu: point.pid().is_none().then(cpus::first_online),
        ..EventRequest::default()
    });
    opened.map_err(|errno| match errno {
        Errno::ENOENT => AttachError::no_such_place(point, "there is no such function"),
        _ => KernelError::new(Command::PerfEventOpen, point.to_string(), errno).into(),
    })
}

/// A file that was named.
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
    let text = text.map_err(|_| AttachError::no_such_place(point, "a path with a zero"))?;
    Ok((binary, text))
}

pub(super) fn broken(path: &Path, error: &BinaryError) -> AttachError {
    AttachError::Binary {
        path: path.display().to_string(),
        why: error.to_string(),
    }
}

/// Where in its file a spot lies.
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
