//! The running kernel's build options and lockdown, as far as programs notice them: which of
//! the helpers that depend on them it allows. The probe programs are loaded, never attached.

use super::error::{NoVerdict, NoVerdictKind};
use super::load::{LoadOptions, load};
use super::maps::LoadedMaps;
use crate::isa::RawInsn;
use crate::program::Program;
use crate::spec::helpers::{Caller, Helper, helpers};
use crate::spec::{BuildOptions, KernelConfig, Lockdown, ProgFlags, ProgType, Traits};
use crate::util::HelperId;

/// The running kernel's configuration.
///
/// # Errors
/// The kernel gives no verdicts: permissions or memory are missing.
pub fn running_config() -> Result<KernelConfig, NoVerdict> {
    let mut build = BuildOptions::empty();
    for option in BuildOptions::all().iter() {
        if all_there(|helper| BuildOptions::of_helper(helper) == option)? {
            build |= option;
        }
    }
    let mut lockdown = Lockdown::None;
    for level in [Lockdown::Integrity, Lockdown::Confidentiality] {
        if !all_there(|helper| Lockdown::forbids(helper) == Some(level))? {
            lockdown = level;
        }
    }
    Ok(KernelConfig { build, lockdown })
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
