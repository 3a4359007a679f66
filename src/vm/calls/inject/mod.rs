//! Applying injections to calls of helpers and kfuncs.

use smallvec::SmallVec;

use crate::spec::call::CallSpec;
use crate::spec::helpers::{self, Caller};
use crate::spec::kfuncs::KfuncId;
use crate::spec::limits;
use crate::util::{Errno, HelperId};
use crate::vm::machine::inject::{
    Fails, Injected, InjectionHandle, Target, usual_errno, writes_records,
};
use crate::vm::machine::{Call, HelperProblem, Output};
use crate::vm::maps::MapHandle;
use crate::vm::memory::AccessKind;

/// A call, as far as injections look at it.
struct Site<'a> {
    /// The function's name.
    function: &'a str,
    /// The map that the call is about.
    map: Option<MapHandle>,
    /// How the function reports failure.
    fails: Fails,
    /// The memory that the function writes: the pointer's argument number, and the size.
    fills: SmallVec<[(usize, usize); 2]>,
}

impl Site<'_> {
    /// The function's name without `bpf_`.
    fn name(&self) -> &str {
        self.function.strip_prefix("bpf_").unwrap_or(self.function)
    }
}

/// Decides whether a helper call fails; if so, returns r0.
///
/// # Errors
/// [`HelperProblem`] if an argument does not point to the memory that the helper writes.
#[cold]
pub(in crate::vm) fn fail_helper(
    helper: HelperId,
    call: &mut Call<'_>,
) -> Result<Option<u64>, HelperProblem> {
    let Some(row) = helpers::helper(helper) else {
        return Ok(None);
    };
    let running = call.machine.current().map(|current| current.prog_type);
    let prototype = running
        .and_then(|prog_type| row.prototype(&Caller::of(prog_type)))
        .or(row.prototypes.first());
    let Some(prototype) = prototype else {
        return Ok(None);
    };
    fail_call(&row.call(prototype), call)
}

/// Decides whether a kfunc call fails; if so, returns r0.
///
/// # Errors
/// [`HelperProblem`] if an argument does not point to the memory that the kfunc writes.
#[cold]
pub(in crate::vm) fn fail_kfunc(
    kfunc: KfuncId,
    call: &mut Call<'_>,
) -> Result<Option<u64>, HelperProblem> {
    fail_call(&kfunc.row().call(), call)
}

fn fail_call(spec: &CallSpec, call: &mut Call<'_>) -> Result<Option<u64>, HelperProblem> {
    let map = spec.map_argument();
    let map = map.and_then(|at| call.map_handle(at + 1).ok());
    let site = Site {
        function: spec.name,
        map,
        fails: Fails::of(spec),
        fills: filled(spec, map, call),
    };
    fail(&site, call)
}

/// Decides whether a call fails; if so, returns r0. Memory that the function would have written
/// is zeroed, as the kernel's functions do on failure.
///
/// # Errors
/// [`HelperProblem`] if an argument does not point to the memory that the function writes.
fn fail(site: &Site<'_>, call: &mut Call<'_>) -> Result<Option<u64>, HelperProblem> {
    if site.fails == Fails::Never {
        return Ok(None);
    }
    let Some((number, errno)) = chosen(site, call) else {
        return Ok(None);
    };
    for (n, len) in &site.fills {
        if *len > 0 && call.arg(*n) != 0 {
            // Check first, so that an invalid size allocates nothing.
            call.check(*n, *len, AccessKind::Write)?;
            call.write(*n, &vec![0; *len])?;
        }
    }
    let map = site.map.map(|map| call.machine.map_name(map));
    if writes_records(site.name())
        && let Some(map) = map.clone()
    {
        call.machine.output(Output::Lost { map, error: errno });
    }
    call.machine.injections.note(Injected {
        function: site.function.to_owned(),
        map: map.map(|map| map.to_string()),
        call: number,
        errno: (site.fails == Fails::Errno).then_some(errno),
    });
    Ok(Some(match site.fails {
        Fails::Errno => errno.to_ret(),
        Fails::Null | Fails::Never => 0,
    }))
}

/// The number and error of the call, if an injection makes it fail. All matching injections
/// count the call; the first whose schedule selects it applies.
fn chosen(site: &Site<'_>, call: &Call<'_>) -> Option<(u64, Errno)> {
    let map = site.map.and_then(|map| call.machine.map(map));
    let def = map.map(|map| map.def());
    let about = |handle: &InjectionHandle| {
        let injection = handle.injection();
        if let Some(name) = &injection.map
            && def.is_none_or(|def| def.name != *name)
        {
            return None;
        }
        match &injection.target {
            Target::Function(name) => (name == site.name()).then(|| usual_errno(name)),
            Target::Cause(cause) => {
                let kind = def.map(|def| (def.map_type, def.flags));
                cause.errno_of(site.name(), kind, &call.args)
            }
        }
    };
    let mut first = None;
    for handle in call.machine.injections.iter() {
        let Some(usual) = about(handle) else { continue };
        let (number, hits) = handle.count_call();
        if hits && first.is_none() {
            handle.count_failure();
            first = Some((number, handle.injection().errno.unwrap_or(usual)));
        }
    }
    first
}

/// The memory that a function writes: arguments that need not be initialised before the call.
fn filled(
    spec: &CallSpec,
    map: Option<MapHandle>,
    call: &Call<'_>,
) -> SmallVec<[(usize, usize); 2]> {
    let def = map.and_then(|map| Some(call.machine.map(map)?.def()));
    let sizes = def.map(|def| (def.key_size, def.value_size));
    let filled = spec
        .arguments
        .iter()
        .enumerate()
        .filter_map(|(at, argument)| {
            if argument.makes_dynptr() {
                return Some((at + 1, limits::DYNPTR_SIZE as usize));
            }
            let region = argument.region().filter(|region| region.uninit)?;
            let len = CallSpec::extent(region, at, &call.args, sizes)?;
            Some((at + 1, len))
        });
    filled.collect()
}

#[cfg(test)]
mod tests;
