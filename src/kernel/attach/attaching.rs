//! How a program gets to each kind of place.

use std::ffi::CString;
use std::path::Path;

use super::attachment::Attachment;
use super::available::{Needs, functions, refused, tracepoint_id};
use super::error::AttachError;
use super::point::{AttachPoint, Place};
use super::probe::{self, Target};
use super::usdt;
use crate::kernel::cpus;
use crate::kernel::error::Command;
use crate::kernel::loaded_program::LoadedProgram;
use crate::kernel::perf::{EventSource, Sampling, threads_of};
use crate::kernel::sys::{
    BtfLink, EventFlags, EventRequest, KernelProbes, LinkFd, PerfFd, UserProbes,
};
use crate::spec::AttachType;
use crate::util::{Errno, glob};

/// Attaches a program, until the attachment is dropped.
///
/// # Errors
/// [`AttachError::Unavailable`] for what this kernel or machine does not have, with the
/// reason; [`AttachError::NoSuchPlace`] where a tracepoint, function, file or marker is not
/// there; [`AttachError::Kernel`] for what the kernel refused.
pub fn attach(program: &LoadedProgram, point: &AttachPoint) -> Result<Attachment, AttachError> {
    let is_for_one = matches!(
        point.place,
        Place::User { .. } | Place::UserMulti { .. } | Place::Usdt { .. } | Place::PerfEvent { .. }
    );
    if point.pid == Some(0) {
        return Err(AttachError::Option {
            place: point.to_string(),
            why: "no process has the number 0, which the kernel takes for all, or for this one",
        });
    }
    if point.pid.is_some() && !is_for_one {
        return Err(AttachError::Option {
            place: point.to_string(),
            why: "programs here run for every process; let the program compare \
                  bpf_get_current_pid_tgid",
        });
    }
    point.available()?;
    let mut made = Attachment::new(program, point)?;
    match &point.place {
        Place::Tracepoint { group, name } => tracepoint(&mut made, point, group, name)?,
        Place::RawTracepoint(name) => raw_tracepoint(&mut made, point, name)?,
        Place::Btf { attach_type, .. } => by_btf(&mut made, point, *attach_type)?,
        Place::Kernel {
            function,
            offset,
            returns,
        } => {
            let target = Target {
                text: text(point, function)?,
                offset: *offset,
                returns: *returns,
                semaphore: 0,
            };
            let pmu = probe::pmu(point, "kprobe")?;
            made.give(probe::open(point, &pmu, &target)?, point.cookie)?;
        }
        Place::User {
            path,
            spot,
            returns,
        } => {
            let (binary, file) = probe::file(point, path)?;
            let target = Target {
                text: file,
                offset: probe::offset(point, path, &binary, spot)?,
                returns: *returns,
                semaphore: 0,
            };
            let pmu = probe::pmu(point, "uprobe")?;
            made.give(probe::open(point, &pmu, &target)?, point.cookie)?;
        }
        Place::Usdt {
            path,
            provider,
            name,
        } => marker(&mut made, program, point, path, provider, name)?,
        Place::KernelMulti {
            pattern,
            returns,
            attach_type,
        } => kernel_functions(&mut made, point, pattern, *returns, *attach_type)?,
        Place::UserMulti {
            path,
            pattern,
            returns,
            attach_type,
        } => user_functions(&mut made, point, path, pattern, *returns, *attach_type)?,
        Place::PerfEvent { source, sampling } => sampler(&mut made, point, *source, *sampling)?,
    }
    Ok(made)
}

/// A name as the kernel takes it.
fn text(point: &AttachPoint, name: &str) -> Result<CString, AttachError> {
    CString::new(name).map_err(|_| AttachError::no_such_place(point, "a name with a zero"))
}

/// The event of a tracepoint's number. It counts what happens on one CPU; the program runs
/// on all, since it hangs on the tracepoint itself.
fn tracepoint(
    made: &mut Attachment,
    point: &AttachPoint,
    group: &str,
    name: &str,
) -> Result<(), AttachError> {
    let id = tracepoint_id(point, group, name)?;
    let event = PerfFd::open(&EventRequest {
        event_type: 2,
        config: u64::from(id),
        cpu: Some(cpus::first_online()),
        ..EventRequest::default()
    });
    let event = event.map_err(refused(point, Command::PerfEventOpen))?;
    made.give(event, point.cookie)
}

fn raw_tracepoint(
    made: &mut Attachment,
    point: &AttachPoint,
    name: &str,
) -> Result<(), AttachError> {
    let name = text(point, name)?;
    let link = LinkFd::raw_tracepoint(made.program(), Some(&name), point.cookie);
    made.keep_link(link.map_err(|errno| match errno {
        Errno::ENOENT => AttachError::no_such_place(point, "there is no such tracepoint"),
        errno => Needs::RawCookie.refused(point, Command::RawTracepointOpen)(errno),
    })?);
    Ok(())
}

/// The program itself knows where, from the type that it was loaded for.
fn by_btf(
    made: &mut Attachment,
    point: &AttachPoint,
    attach_type: AttachType,
) -> Result<(), AttachError> {
    let (link, command) = if point.is_link() {
        let link = BtfLink {
            attach_type,
            cookie: point.cookie,
        };
        (LinkFd::tracing(made.program(), link), Command::LinkCreate)
    } else {
        let link = LinkFd::raw_tracepoint(made.program(), None, 0);
        (link, Command::RawTracepointOpen)
    };
    made.keep_link(link.map_err(Needs::TracingCookie.refused(point, command))?);
    Ok(())
}

/// A probe at each place where the marker stands; the cookie tells the program which
/// element of its map has the arguments there.
fn marker(
    made: &mut Attachment,
    program: &LoadedProgram,
    point: &AttachPoint,
    path: &Path,
    provider: &str,
    name: &str,
) -> Result<(), AttachError> {
    let (binary, file) = probe::file(point, path)?;
    let found = usdt::markers(&binary, provider, name);
    let found = found.map_err(|error| probe::broken(path, &error))?;
    if found.is_empty() {
        let why = format!("{} has no marker {provider}:{name}", path.display());
        return Err(AttachError::no_such_place(point, why));
    }
    // Places whose arguments are alike share an element.
    let mut told: Vec<(&str, u64)> = Vec::new();
    let mut cookies = Vec::with_capacity(found.len());
    for place in &found {
        let known = told
            .iter()
            .find(|(arguments, _)| *arguments == place.arguments);
        let cookie = match (known, program.usdt_specs()) {
            (Some((_, cookie)), _) => *cookie,
            // It asks for no arguments.
            (None, None) => point.cookie,
            (None, Some(specs)) => {
                let value = usdt::value(&place.arguments, point.cookie, specs.size());
                let value = value.map_err(|why| AttachError::no_such_place(point, why))?;
                let spec = specs.put(&value);
                let spec = spec.map_err(refused(point, Command::MapUpdateElem))?;
                let id = u64::from(spec.id);
                made.keep_spec(spec);
                told.push((&place.arguments, id));
                id
            }
        };
        cookies.push(cookie);
    }
    // Where the kernel has it, libbpf loads programs for markers to be attached to all
    // places at once.
    if let Some(attach_type @ AttachType::TraceUprobeMulti) = program.attach_type() {
        let offsets: Vec<u64> = found.iter().map(|place| place.offset).collect();
        let semaphores: Vec<u64> = found.iter().map(|place| place.semaphore).collect();
        let probes = UserProbes {
            attach_type,
            path: &file,
            offsets: &offsets,
            semaphores: &semaphores,
            cookies: &cookies,
            returns: false,
            pid: point.pid,
        };
        return user_probes(made, point, &probes);
    }
    let pmu = probe::pmu(point, "uprobe")?;
    for (place, cookie) in found.iter().zip(cookies) {
        let target = Target {
            text: file.clone(),
            offset: place.offset,
            returns: false,
            semaphore: place.semaphore,
        };
        made.give(probe::open(point, &pmu, &target)?, cookie)?;
    }
    Ok(())
}

fn kernel_functions(
    made: &mut Attachment,
    point: &AttachPoint,
    pattern: &str,
    returns: bool,
    attach_type: AttachType,
) -> Result<(), AttachError> {
    let names: Vec<CString> = match pattern.contains(['*', '?']) {
        false => vec![text(point, pattern)?],
        true => {
            let found = functions(point, |name| glob(pattern, name))?;
            let names: Result<_, _> = found.iter().map(|name| text(point, name)).collect();
            names?
        }
    };
    if names.is_empty() {
        return Err(AttachError::no_such_place(
            point,
            "no function has such a name",
        ));
    }
    let symbols: Vec<_> = names.iter().map(CString::as_c_str).collect();
    let cookies = vec![point.cookie; symbols.len()];
    let link = LinkFd::kernel_probes(
        made.program(),
        &KernelProbes {
            attach_type,
            symbols: &symbols,
            cookies: &cookies,
            returns,
        },
    );
    made.keep_link(link.map_err(Needs::KprobeMulti.refused(point, Command::LinkCreate))?);
    Ok(())
}

fn user_functions(
    made: &mut Attachment,
    point: &AttachPoint,
    path: &Path,
    pattern: &str,
    returns: bool,
    attach_type: AttachType,
) -> Result<(), AttachError> {
    let (binary, file) = probe::file(point, path)?;
    let found = binary.functions(|name| glob(pattern, name));
    let found = found.map_err(|error| probe::broken(path, &error))?;
    let mut offsets: Vec<u64> = found.into_iter().map(|(_, offset)| offset).collect();
    offsets.sort_unstable();
    offsets.dedup();
    if offsets.is_empty() {
        let why = format!("{} has no function '{pattern}'", path.display());
        return Err(AttachError::no_such_place(point, why));
    }
    let cookies = vec![point.cookie; offsets.len()];
    let probes = UserProbes {
        attach_type,
        path: &file,
        offsets: &offsets,
        semaphores: &[],
        cookies: &cookies,
        returns,
        pid: point.pid,
    };
    user_probes(made, point, &probes)
}

fn user_probes(
    made: &mut Attachment,
    point: &AttachPoint,
    probes: &UserProbes<'_>,
) -> Result<(), AttachError> {
    let link = LinkFd::user_probes(made.program(), probes);
    let refused = Needs::UprobeMulti.refused(point, Command::LinkCreate);
    made.keep_link(link.map_err(refused)?);
    Ok(())
}

/// An event on each CPU, or on each thread of the process and those that they make.
fn sampler(
    made: &mut Attachment,
    point: &AttachPoint,
    source: EventSource,
    sampling: Sampling,
) -> Result<(), AttachError> {
    let (event_type, config) = source.numbers();
    let mut flags = EventFlags::DISABLED;
    let sample = match sampling {
        Sampling::Period(period) => period,
        Sampling::Frequency(frequency) => {
            flags |= EventFlags::FREQ;
            frequency
        }
    };
    if sample == 0 {
        return Err(AttachError::Option {
            place: point.to_string(),
            why: "a period or frequency of 0 takes no samples",
        });
    }
    let places: Vec<(Option<u32>, Option<u32>)> = match point.pid {
        Some(pid) => {
            flags |= EventFlags::INHERIT;
            let threads = threads_of(pid)?;
            threads.into_iter().map(|task| (Some(task), None)).collect()
        }
        None => {
            let cpus = cpus::online();
            cpus.into_iter().map(|cpu| (None, Some(cpu))).collect()
        }
    };
    let mut gone = None;
    for (task, cpu) in places {
        let event = PerfFd::open(&EventRequest {
            event_type,
            config,
            sample,
            flags,
            task,
            cpu,
            ..EventRequest::default()
        });
        match event {
            Ok(event) => made.give(event, point.cookie)?,
            // A thread that has ended, a CPU that has left.
            Err(errno @ (Errno::ESRCH | Errno::ENODEV)) => gone = Some(errno),
            Err(Errno::ENOENT) => {
                let why = format!("this machine does not count {source}");
                return Err(AttachError::unavailable(point, why));
            }
            Err(Errno::EINVAL) if matches!(sampling, Sampling::Frequency(_)) => {
                return Err(AttachError::Option {
                    place: point.to_string(),
                    why: "no event takes more samples a second than \
                          /proc/sys/kernel/perf_event_max_sample_rate says",
                });
            }
            Err(errno) => return Err(refused(point, Command::PerfEventOpen)(errno)),
        }
    }
    match gone {
        Some(errno) if !made.has_events() => Err(refused(point, Command::PerfEventOpen)(errno)),
        _ => Ok(()),
    }
}
