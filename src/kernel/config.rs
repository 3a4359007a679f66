//! The running kernel's build options, lockdown and backports, as far as programs notice them:
//! which of the helpers that depend on them it allows, whether it knows the addresses of variables,
//! and what it says of arguments. The probe programs are loaded, never attached.

use super::error::{NoVerdict, NoVerdictKind};
use super::load::{LoadOptions, load};
use super::maps::LoadedMaps;
use super::target::running_btf;
use crate::btf::Kind;
use crate::isa::{PseudoKind, RawInsn};
use crate::program::Program;
use crate::spec::helpers::{Caller, Helper, helpers};
use crate::spec::{Backports, BuildOptions, KernelConfig, Lockdown, ProgFlags, ProgType, Traits};
use crate::util::{Errno, HelperId};

/// The running kernel's configuration.
///
/// # Errors
/// The kernel gives no verdicts: permissions or memory are missing.
pub fn running_config() -> Result<KernelConfig, NoVerdict> {
    let mut build = BuildOptions::empty();
    for option in BuildOptions::all().iter() {
        let on = match option {
            BuildOptions::KALLSYMS_ALL => knows_variables()?,
            of_helpers => all_there(|helper| BuildOptions::of_helper(helper) == of_helpers)?,
        };
        build.set(option, on);
    }
    let mut lockdown = Lockdown::None;
    for level in [Lockdown::Integrity, Lockdown::Confidentiality] {
        if !all_there(|helper| Lockdown::forbids(helper) == Some(level))? {
            lockdown = level;
        }
    }
    Ok(KernelConfig {
        build,
        lockdown,
        backports: backports()?,
    })
}

/// The changes of later kernels that the kernel has.
fn backports() -> Result<Backports, NoVerdict> {
    let mut found = Backports::empty();
    // Every program type has this kfunc, which older kernels ask for an iterator.
    let btf = running_btf();
    let function = btf.and_then(|btf| btf.find("bpf_iter_num_destroy", Kind::Func));
    let Some(function) = function else {
        return Ok(found);
    };
    let id = function.id().0.cast_signed();
    let insns = [
        RawInsn::new(0xb7, 1, 0, 0, 0),
        RawInsn::new(0x85, 0, 2, 0, id),
        RawInsn::new(0xb7, 0, 0, 0, 0),
        RawInsn::new(0x95, 0, 0, 0, 0),
    ];
    let mut program = Program::new("null", ProgType::Tracepoint, insns.to_vec());
    "GPL".clone_into(&mut program.license);
    let maps = LoadedMaps::create(&[], None)?;
    let said = match load(&program, &maps, &LoadOptions::default()) {
        Ok(loaded) => loaded.verdict.message,
        // The kernel does not support this program type.
        Err(why) if why.kind == NoVerdictKind::Feature => return Ok(found),
        Err(why) => return Err(why),
    };
    let trusted = said == "Possibly NULL pointer passed to trusted arg0";
    found.set(Backports::KFUNC_ARGUMENTS_TRUSTED, trusted);
    Ok(found)
}

/// Whether the kernel has all the helpers for which `wanted` is true.
fn all_there(wanted: impl Fn(HelperId) -> bool) -> Result<bool, NoVerdict> {
    for helper in helpers().iter().filter(|helper| wanted(helper.id)) {
        if !is_there(helper)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the kernel knows the addresses of its variables. Without a variable in its BTF no
/// program can ask.
fn knows_variables() -> Result<bool, NoVerdict> {
    let variable = running_btf().and_then(|btf| btf.types().find(|ty| ty.kind() == Kind::Var));
    let Some(variable) = variable else {
        return Ok(true);
    };
    let id = variable.id().0.cast_signed();
    let insns = [
        RawInsn::new(0x18, 1, PseudoKind::BtfId.src(), 0, id),
        RawInsn::default(),
        RawInsn::new(0xb7, 0, 0, 0, 0),
        RawInsn::new(0x95, 0, 0, 0, 0),
    ];
    let program = Program::new("variable", ProgType::SocketFilter, insns.to_vec());
    let maps = LoadedMaps::create(&[], None)?;
    let loaded = load(&program, &maps, &LoadOptions::default())?;
    Ok(loaded.verdict.errno != Some(Errno::ENOENT))
}

/// Whether the kernel lets a program of the first type that may call the helper call it.
fn is_there(helper: &Helper) -> Result<bool, NoVerdict> {
    let callers = ProgType::ALL.iter().filter(|prog_type| {
        let by_type = prog_type.info().traits.contains(Traits::ATTACH_BTF);
        !by_type && prog_type.attach_type(None).is_some()
    });
    for prog_type in callers {
        if helper.prototype(&Caller::of(*prog_type)).is_none() {
            continue;
        }
        let insns = [
            RawInsn::new(0x85, 0, 0, 0, helper.id.0.cast_signed()),
            RawInsn::new(0xb7, 0, 0, 0, 1),
            RawInsn::new(0x95, 0, 0, 0, 0),
        ];
        let mut program = Program::new("helper", *prog_type, insns.to_vec());
        "GPL".clone_into(&mut program.license);
        if *prog_type == ProgType::Syscall {
            program.flags = ProgFlags::SLEEPABLE;
        }
        let maps = LoadedMaps::create(&[], None)?;
        let said = match load(&program, &maps, &LoadOptions::default()) {
            Ok(loaded) => loaded.verdict.message,
            // The kernel does not support this program type.
            Err(why) if why.kind == NoVerdictKind::Feature => return Ok(false),
            Err(why) => return Err(why),
        };
        let refused = ["cannot use helper", "unknown func", "invalid func"];
        return Ok(!refused.iter().any(|words| said.contains(words)));
    }
    Ok(false)
}
