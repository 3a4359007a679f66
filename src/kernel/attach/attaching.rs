//! Attaches a program to each kind of target.

use std::ffi::CString;
use std::path::Path;

use super::attachment::Attachment;
use super::available::{
    Needs, function as one_function, functions, no_function, refused, tracepoint_id,
};
use super::error::AttachError;
use super::point::{AttachPoint, AttachTarget};
use super::probe::{self, Target};
use super::usdt;
use crate::kernel::cpus;
use crate::kernel::error::Command;
use crate::kernel::loaded_program::LoadedProgram;
use crate::kernel::perf::{EventSource, Sampling, threads_of};
use crate::kernel::sys::{
    BtfLink, EventFlags, EventRequest, KernelProbes, LinkFd, PerfFd, UserProbes, device_index,
};
use crate::spec::AttachType;
use crate::util::{Errno, glob};

/// Attaches a program until the returned attachment is dropped.
///
/// # Errors
/// [`AttachError::Unavailable`], with the reason, if this kernel or machine lacks a
/// feature; [`AttachError::NoSuchPlace`] if the tracepoint, function, file or USDT probe does
/// not exist; [`AttachError::Kernel`] if the kernel refused.
pub fn attach(program: &LoadedProgram, point: &AttachPoint) -> Result<Attachment, AttachError> {
    let is_for_one = matches!(
        point.target,
        AttachTarget::User { .. }
            | AttachTarget::UserMulti { .. }
            | AttachTarget::Usdt { .. }
            | AttachTarget::PerfEvent { .. }
    );
    if point.pid == Some(0) {
        return Err(AttachError::Option {
            place: point.to_string(),
            why: "process id 0 would mean all processes, or this one",
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
    match &point.target {
        AttachTarget::Tracepoint { group, name } => tracepoint(&mut made, point, group, name)?,
        AttachTarget::RawTracepoint(name) => raw_tracepoint(&mut made, point, name)?,
        AttachTarget::Btf { attach_type, .. } => by_btf(&mut made, point, *attach_type)?,
        AttachTarget::Iterator(_) => iterator(&mut made, point)?,
        AttachTarget::Device { name, attach_type } => {
            let index = device_index(name).map_err(|_| {
                AttachError::no_such_place(point, format!("there is no network device `{name}`"))
            })?;
            let link = LinkFd::to_device(made.program(), index, *attach_type);
            let needs = match attach_type {
                AttachType::Xdp => Needs::XdpLink,
                _ => Needs::TcxLink,
            };
            made.keep_link(link.map_err(|errno| match errno {
                Errno::EBUSY => AttachError::no_such_place(
                    point,
                    "the device has an XDP program already; detach it, or take another device",
                ),
                errno => needs.refused(point, Command::LinkCreate)(errno),
            })?);
        }
        AttachTarget::Cgroup { path, attach_type } => {
            let folder = std::fs::File::open(path).map_err(|error| {
                AttachError::no_such_place(point, format!("can't open the cgroup: {error}"))
            })?;
            let link = LinkFd::to_folder(made.program(), &folder, *attach_type);
            made.keep_link(link.map_err(|errno| match errno {
                Errno::EBADF | Errno::EINVAL => AttachError::no_such_place(
                    point,
                    format!(
                        "not a cgroup of version 2, or one that allows no such program ({errno})"
                    ),
                ),
                errno => refused(point, Command::LinkCreate)(errno),
            })?);
        }
        AttachTarget::Kernel {
            function,
            offset,
            returns,
        } => {
            let name = one_function(point, function)?;
            let target = Target {
                text: text(point, &name)?,
                offset: *offset,
                returns: *returns,
                semaphore: 0,
            };
            let pmu = probe::pmu(point, "kprobe")?;
            let event = probe::open(point, &pmu, &target).map_err(|error| match error {
                AttachError::NoSuchPlace { .. } => no_function(point, &name),
                error => error,
            })?;
            made.give(event, point.cookie)?;
            if name != *function {
                made.note(name);
            }
        }
        AttachTarget::User {
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
        AttachTarget::Usdt {
            path,
            provider,
            name,
        } => usdt_probe(&mut made, program, point, path, provider, name)?,
        AttachTarget::KernelMulti {
            pattern,
            returns,
            attach_type,
        } => {
            let is_multi = program.attach_type().is_some();
            kernel_functions(&mut made, is_multi, point, pattern, *returns, *attach_type)?;
        }
        AttachTarget::UserMulti {
            path,
            pattern,
            returns,
            attach_type,
        } => user_functions(
            &mut made,
            program,
            point,
            path,
            pattern,
            *returns,
            *attach_type,
        )?,
        AttachTarget::PerfEvent { source, sampling } => {
            sampler(&mut made, point, *source, *sampling)?
        }
    }
    Ok(made)
}

/// A name as the kernel expects it.
fn text(point: &AttachPoint, name: &str) -> Result<CString, AttachError> {
    CString::new(name)
        .map_err(|_| AttachError::no_such_place(point, "the name contains a NUL byte"))
}

/// Opens the event of a tracepoint id. The event counts on one CPU only; the program runs on
/// all CPUs, since it is attached to the tracepoint itself.
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

/// Attaches to the BTF target that the program was loaded for.
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

/// Links an iterator. It runs when [`Attachment::iterate`] reads.
fn iterator(made: &mut Attachment, point: &AttachPoint) -> Result<(), AttachError> {
    if point.cookie != 0 {
        return Err(AttachError::Option {
            place: point.to_string(),
            why: "an iterator has no cookie",
        });
    }
    let link = BtfLink {
        attach_type: AttachType::TraceIter,
        cookie: 0,
    };
    let link = LinkFd::tracing(made.program(), link);
    made.keep_link(link.map_err(|errno| match errno {
        Errno::EINVAL | Errno::EBADF => AttachError::unavailable(
            point,
            format!(
                "bpflab names no map, cgroup or task to iterate over, and the kernel wants one \
                 ({errno})"
            ),
        ),
        errno => refused(point, Command::LinkCreate)(errno),
    })?);
    Ok(())
}

/// Attaches a probe at each location of a USDT probe. The cookie is the index of the element
/// with the location's arguments in the program's map.
fn usdt_probe(
    made: &mut Attachment,
    program: &LoadedProgram,
    point: &AttachPoint,
    path: &Path,
    provider: &str,
    name: &str,
) -> Result<(), AttachError> {
    let (binary, file) = probe::file(point, path)?;
    let found = usdt::locations(&binary, provider, name);
    let found = found.map_err(|error| probe::broken(path, &error))?;
    if found.is_empty() {
        let why = format!("{} has no USDT probe {provider}:{name}", path.display());
        return Err(AttachError::no_such_place(point, why));
    }
    // Locations with equal argument specifications share an element.
    let mut shared: Vec<(&str, u64)> = Vec::new();
    let mut cookies = Vec::with_capacity(found.len());
    for location in &found {
        let known = shared
            .iter()
            .find(|(arguments, _)| *arguments == location.arguments);
        let cookie = match (known, program.usdt_specs()) {
            (Some((_, cookie)), _) => *cookie,
            // The program reads no arguments.
            (None, None) => point.cookie,
            (None, Some(specs)) => {
                let value = usdt::value(&location.arguments, point.cookie, specs.size());
                let value = value.map_err(|why| AttachError::no_such_place(point, why))?;
                let spec = specs.put(&value);
                let spec = spec.map_err(refused(point, Command::MapUpdateElem))?;
                let id = u64::from(spec.id);
                made.keep_spec(spec);
                shared.push((&location.arguments, id));
                id
            }
        };
        cookies.push(cookie);
    }
    // For kernels with uprobe.multi, libbpf loads USDT programs so that one link attaches all
    // locations.
    if let Some(attach_type @ AttachType::TraceUprobeMulti) = program.attach_type() {
        let offsets: Vec<u64> = found.iter().map(|location| location.offset).collect();
        let semaphores: Vec<u64> = found.iter().map(|location| location.semaphore).collect();
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
    for (location, cookie) in found.iter().zip(cookies) {
        let target = Target {
            text: file.clone(),
            offset: location.offset,
            returns: false,
            semaphore: location.semaphore,
        };
        made.give(probe::open(point, &pmu, &target)?, cookie)?;
    }
    Ok(())
}

fn kernel_functions(
    made: &mut Attachment,
    is_multi: bool,
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
        return Err(AttachError::no_such_place(point, "no function matches"));
    }
    if !is_multi {
        let pmu = probe::pmu(point, "kprobe")?;
        for text in &names {
            let target = Target {
                text: text.clone(),
                offset: 0,
                returns,
                semaphore: 0,
            };
            made.give(probe::open(point, &pmu, &target)?, point.cookie)?;
        }
        made.note(singles(names.len(), Needs::KprobeMulti));
        return Ok(());
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
    made.keep_link(link.map_err(|errno| match errno {
        Errno::ESRCH => AttachError::no_such_place(
            point,
            "there is no such function, or it can't be probed (available_filter_functions in \
             tracefs lists those that can)",
        ),
        errno => Needs::KprobeMulti.refused(point, Command::LinkCreate)(errno),
    })?);
    Ok(())
}

fn user_functions(
    made: &mut Attachment,
    program: &LoadedProgram,
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
    if program.attach_type().is_none() {
        let pmu = probe::pmu(point, "uprobe")?;
        for offset in &offsets {
            let target = Target {
                text: file.clone(),
                offset: *offset,
                returns,
                semaphore: 0,
            };
            made.give(probe::open(point, &pmu, &target)?, point.cookie)?;
        }
        made.note(singles(offsets.len(), Needs::UprobeMulti));
        return Ok(());
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

/// What is said of single probes in place of a link of many.
fn singles(count: usize, needs: Needs) -> String {
    let (major, minor) = needs.since().1;
    let probes = if count == 1 { "probe" } else { "probes" };
    format!(
        "{count} single {probes}: this kernel lacks multi-function probes, which Linux \
         {major}.{minor} can have"
    )
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

/// Opens an event on each CPU, or on each thread of the process and the threads it creates.
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
            why: "a period or frequency of 0 is invalid",
        });
    }
    let tasks_and_cpus: Vec<(Option<u32>, Option<u32>)> = match point.pid {
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
    for (task, cpu) in tasks_and_cpus {
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
            // The thread has ended, or the CPU went offline.
            Err(errno @ (Errno::ESRCH | Errno::ENODEV)) => gone = Some(errno),
            Err(Errno::ENOENT) => {
                let why = format!("this machine has no event {source}");
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
