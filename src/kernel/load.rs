//! Loading a program: the kernel's verdict, and the program if it is accepted.

use std::ffi::CString;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::availability::Privilege;
use super::error::{Command, KernelError, NoVerdict, NoVerdictKind};
use super::loaded_program::LoadedProgram;
use super::loader::Loader;
use super::log::{text, verdict};
use super::machine::Uname;
use super::maps::{LoadedMaps, name_field};
use super::multi::is_lacking;
use super::probe::{Probe, probe};
use super::sys::{BtfFd, ProgFd, ProgRequest};
use super::target::{Absent, translate};
use crate::btf::Record;
use crate::isa::RawInsn;
use crate::program::{AttachProgram, Program, TargetProgram};
use crate::spec::{AttachType, ProgFlags};
use crate::util::{Errno, with};
use crate::verifier::{LogLevel, Verdict};

/// Initial and largest size of the log buffer in bytes (`bpf_verifier_log_attr_valid`,
/// `kernel/bpf/log.c`).
const LOG_FIRST: usize = 1 << 16;
const LOG_MOST: usize = (u32::MAX >> 2) as usize;

/// What a 64-bit immediate is (`BPF_PSEUDO_MAP_FD` …, `include/uapi/linux/bpf.h`).
const MAP_DESCRIPTOR: u8 = 1;
const MAP_DESCRIPTOR_VALUE: u8 = 2;
const MAP_INDEX: u8 = 5;
const MAP_INDEX_VALUE: u8 = 6;

/// Options for loading a program.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LoadOptions {
    /// The log level. Errors and statistics are always logged.
    pub log: LogLevel,
    /// Load a program for many probes (`kprobe.multi`, `uprobe.multi`) for single ones where the
    /// kernel lacks links of many: it is another program to the verifier, since some helpers
    /// differ, and what [`attach`](super::attach::attach) then attaches function by function.
    pub single_probes: bool,
    /// Who loads. The refusal of a loader that lacks a capability is a verdict.
    pub loader: Loader,
}

impl LoadOptions {
    with! {
        with_log(log: LogLevel);
        with_single_probes(single_probes: bool);
        with_loader(loader: impl Into<Loader>);
    }
}

impl Default for LoadOptions {
    /// Only the error line and the statistics: the fastest level with a verdict.
    fn default() -> Self {
        Self {
            log: LogLevel::STATISTICS,
            single_probes: false,
            loader: Loader::default(),
        }
    }
}

/// The verdict on a program, and the program if it was accepted.
#[derive(Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// The verifier's verdict.
    pub verdict: Verdict,
    /// The program, if it was accepted; it is unloaded when this is dropped.
    pub program: Option<LoadedProgram>,
}

/// Loads a program with `maps`, which were created from `program.maps`.
///
/// A program relocated for another kernel (`kernel_btf`) has that kernel's ids of functions and
/// types; they are looked up by name in the running kernel's BTF.
///
/// A program that attaches to another one ([`AttachProgram::Known`](crate::program::AttachProgram))
/// is loaded after that one, which is loaded for it.
///
/// # Errors
/// The kernel gave no verdict: permissions, memory or a feature are missing, or it did not accept
/// the program to attach to.
pub fn load(
    program: &Program,
    maps: &LoadedMaps,
    options: &LoadOptions,
) -> Result<Loaded, NoVerdict> {
    let license = CString::new(program.license.as_str()).unwrap_or_default();
    let failed = |errno| {
        let object = format!("program {}", program.name);
        KernelError::new(Command::ProgLoad, object, errno)
    };
    let translated = translate(program).map_err(|Absent(what)| NoVerdict {
        kind: NoVerdictKind::Feature,
        error: KernelError {
            log: format!("the running kernel has no {what}"),
            ..failed(Errno::ENOENT)
        },
    })?;
    let target = program.attach_prog.known().map(load_target).transpose()?;
    let insns: Vec<u8> = translated
        .insns
        .iter()
        .flat_map(|insn| insn.to_bytes())
        .collect();
    let module = |name: &&str| {
        BtfFd::of_module(name).map_err(|errno| {
            let error = KernelError {
                log: format!("the BTF of module {name} can't be opened"),
                ..failed(errno)
            };
            NoVerdict::of(error, NoVerdictKind::Feature)
        })
    };
    let modules: Vec<BtfFd> = translated
        .modules
        .iter()
        .map(module)
        .collect::<Result<_, _>>()?;
    let attach_module = translated.attach_module.as_ref().map(module).transpose()?;
    let mut descriptors = maps.descriptors();
    if !modules.is_empty() {
        // Descriptor 0 means the kernel's own BTF.
        descriptors.push(None);
        descriptors.extend(modules.iter().map(|module| Some(module.as_fd())));
    }
    // func_info and line_info refer to types and strings in the BTF.
    let typed = maps.btf().is_some();
    let func_info = if typed {
        records(&program.func_info)
    } else {
        Vec::new()
    };
    let line_info = if typed {
        records(&program.lines)
    } else {
        Vec::new()
    };
    let attach_type = program.expected_attach_type;
    let is_single = |it: &AttachType| options.single_probes && is_lacking(*it);
    let attach_type = attach_type.filter(|it| !is_single(it));
    let mut request = ProgRequest {
        prog_type: program.prog_type.number(),
        expected_attach_type: translated
            .member
            .unwrap_or(attach_type.map_or(0, AttachType::number)),
        insns: &insns,
        license: &license,
        name: name_field(&program.name),
        flags: program.flags.bits(),
        attach_btf_id: translated.attach_btf_id.map_or(0, |id| id.0),
        attach_prog_fd: match (&target, &program.attach_prog) {
            (Some(target), _) => target.as_fd().as_raw_fd().cast_unsigned(),
            // The BTF of a module has the same place (`attach_btf_obj_fd`).
            (None, AttachProgram::None) => attach_module
                .as_ref()
                .map_or(0, |module| module.as_fd().as_raw_fd().cast_unsigned()),
            // Which one is not known: -1 is no descriptor.
            (None, _) => u32::MAX,
        },
        btf: maps.btf(),
        func_info: &func_info,
        line_info: &line_info,
        maps: &descriptors,
        log_level: (options.log | LogLevel::STATISTICS).bits(),
        token: options.loader.token(),
    };
    let loader = &options.loader;
    let load_logged =
        |request: &ProgRequest<'_>| loader.call(Command::ProgLoad, || load_logged(request));
    let (mut result, mut log) = load_logged(&request)?;
    // Before Linux 5.14 there is no array of descriptors: they are in the instructions.
    let direct: Vec<u8>;
    if matches!(result, Err(Errno::E2BIG)) && log.is_empty() && !descriptors.is_empty() {
        direct = with_descriptors(&translated.insns, &descriptors);
        request.insns = &direct;
        request.maps = &[];
        (result, log) = load_logged(&request)?;
    }
    // The flag makes the verifier check its own scalars. Kernels before 6.8 do not know it, and
    // refuse; without it their verdict is the same.
    let checks_itself = ProgFlags::TEST_REG_INVARIANTS.bits();
    let unknown = matches!(result, Err(Errno::EINVAL)) && log.is_empty();
    if unknown && request.flags & checks_itself != 0 && Uname::here().is_before((6, 8)) {
        request.flags &= !checks_itself;
        (result, log) = load_logged(&request)?;
    }
    let verdict = verdict(result.as_ref().err().copied(), log);
    if let Some(kind) = no_verdict(program, &verdict, loader) {
        let mut error = failed(verdict.errno.unwrap_or(Errno::EINVAL));
        if kind == NoVerdictKind::Feature && error.errno == Errno::EPERM {
            error.log = format!(
                "the kernel refuses programs of type {} to root, too, before the verifier runs: \
                 it was built without them, or a policy forbids them",
                kind_of(program)
            );
        }
        if kind == NoVerdictKind::Feature && error.errno == Errno::E2BIG {
            "the program has no instructions or more than a million, or needs an attribute of \
             the call that this kernel does not know"
                .clone_into(&mut error.log);
        }
        return Err(NoVerdict { kind, error });
    }
    let program = result
        .ok()
        .map(|fd| LoadedProgram::new(fd, program, attach_type, maps.usdt_specs()));
    Ok(Loaded { verdict, program })
}

/// Loads the program that another one attaches to, unless it is loaded already.
fn load_target(target: &TargetProgram) -> Result<ProgFd, NoVerdict> {
    let program = &target.program;
    if let Some(id) = target.kernel_id {
        return ProgFd::by_id(id).map_err(|errno| NoVerdict {
            kind: NoVerdictKind::Target,
            error: KernelError::new(Command::ObjGetInfo, format!("program {id}"), errno),
        });
    }
    let maps = LoadedMaps::create(&program.maps, program.btf.as_ref())?;
    let loaded = load(program, &maps, &LoadOptions::default())?;
    loaded.program.map(LoadedProgram::into_fd).ok_or_else(|| {
        let object = format!("the target program {}", program.name);
        let errno = loaded.verdict.errno.unwrap_or(Errno::EINVAL);
        let mut error = KernelError::new(Command::ProgLoad, object, errno);
        error.log = loaded.verdict.message;
        let kind = NoVerdictKind::Target;
        NoVerdict { kind, error }
    })
}

/// The instructions with descriptors of maps in place of their indices; an index without a map
/// becomes -1, which is no descriptor.
fn with_descriptors(insns: &[RawInsn], maps: &[Option<BorrowedFd<'_>>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(insns.len() * RawInsn::SIZE);
    let mut is_second = false;
    for insn in insns {
        let is_wide = insn.is_wide() && !is_second;
        let direct = match insn.src() {
            MAP_INDEX if is_wide => Some(MAP_DESCRIPTOR),
            MAP_INDEX_VALUE if is_wide => Some(MAP_DESCRIPTOR_VALUE),
            _ => None,
        };
        let insn = direct.map_or(*insn, |source| {
            let map = usize::try_from(insn.imm).ok();
            let map = map.and_then(|index| maps.get(index).copied().flatten());
            let descriptor = map.map_or(-1, |map| map.as_raw_fd());
            insn.with_src(source).with_imm(descriptor)
        });
        bytes.extend(insn.to_bytes());
        is_second = is_wide;
    }
    bytes
}

/// Loads with a log buffer large enough for the whole log.
fn load_logged(request: &ProgRequest<'_>) -> (Result<ProgFd, Errno>, String) {
    let mut size = LOG_FIRST;
    loop {
        let mut log = vec![0; size];
        let (result, needed) = ProgFd::load(request, &mut log);
        match result {
            // The verdict is known, but the log is truncated. Kernels before 6.4 don't report
            // the size needed.
            Err(Errno::ENOSPC) if size < LOG_MOST => {
                size = needed.max(size.saturating_mul(4)).min(LOG_MOST);
            }
            result => return (result, text(&log)),
        }
    }
}

/// Why a failed load is no verdict, if it is none. The verifier ends every log with its
/// statistics. Without them the system call refused before verification: for missing
/// permissions or memory, for an unknown feature, but also for requests that no kernel accepts.
fn no_verdict(program: &Program, verdict: &Verdict, loader: &Loader) -> Option<NoVerdictKind> {
    let errno = verdict.errno?;
    match (errno, &verdict.statistics) {
        (Errno::ENOMEM, _) => Some(NoVerdictKind::Memory),
        (_, Some(_)) => None,
        (Errno::EPERM, None) if !loader.is_complete() => None,
        (Errno::EPERM, None) => Some(match Privilege::of_this_process().is_complete() {
            true => NoVerdictKind::Feature,
            false => NoVerdictKind::Permission,
        }),
        // An attribute is not known (`bpf_check_uarg_tail_zero`, `kernel/bpf/syscall.c`). Newer
        // kernels have this error for programs without instructions.
        (Errno::E2BIG, None) if Uname::here().is_before((5, 14)) => Some(NoVerdictKind::Feature),
        (_, None) => {
            matches!(probe(program.prog_type), Probe::Refused(_)).then_some(NoVerdictKind::Feature)
        }
    }
}

/// The program type, with its attach type.
fn kind_of(program: &Program) -> String {
    match program.expected_attach_type {
        Some(attach_type) => format!("{} for {attach_type}", program.prog_type),
        None => program.prog_type.to_string(),
    }
}

/// Records in the kernel's format.
fn records<R: Record>(records: &[R]) -> Vec<u8> {
    records
        .iter()
        .flat_map(Record::words)
        .flat_map(u32::to_le_bytes)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::FuncInfo;
    use crate::spec::ProgType;
    use crate::util::TypeId;

    fn said(errno: Errno, log: &str) -> Verdict {
        verdict(Some(errno), log.to_owned())
    }

    #[test]
    fn what_the_verifier_saw_is_a_verdict() {
        let program = Program::new("p", ProgType::Xdp, Vec::new());
        let kind = |errno, log| no_verdict(&program, &said(errno, log), &Loader::default());
        let statistics = "processed 1 insns (limit 1000000) ";
        let refused = match Privilege::of_this_process().is_complete() {
            true => NoVerdictKind::Feature,
            false => NoVerdictKind::Permission,
        };
        assert_eq!(kind(Errno::EPERM, ""), Some(refused));
        assert_eq!(kind(Errno::EPERM, statistics), None);
        assert_eq!(kind(Errno::ENOMEM, statistics), Some(NoVerdictKind::Memory));
        assert_eq!(kind(Errno::EACCES, statistics), None);
    }

    /// Only the first slot of a wide instruction is one: the second may look like it.
    #[test]
    fn kernels_without_an_array_get_the_descriptors_themselves() {
        use std::os::fd::AsFd;

        let null = std::fs::File::open("/dev/null").unwrap();
        let wide = |src, imm, second| {
            [
                RawInsn::new(0x18, 1, src, 0, imm),
                RawInsn::new(second, 0, 0, 0, 40),
            ]
        };
        let insns = [wide(5, 1, 0), wide(6, 0, 0), wide(0, 7, 0x18)].concat();
        let bytes = with_descriptors(&insns, &[None, Some(null.as_fd())]);
        let (direct, _) = RawInsn::slots(&bytes);
        let expected = [
            wide(1, null.as_raw_fd(), 0),
            wide(2, -1, 0),
            wide(0, 7, 0x18),
        ]
        .concat();
        assert_eq!(direct, expected);
    }

    #[test]
    fn records_are_words() {
        let info = FuncInfo {
            insn_off: 3,
            ty: TypeId(0x102),
        };
        assert_eq!(records(&[info]), [3, 0, 0, 0, 2, 1, 0, 0]);
    }
}
