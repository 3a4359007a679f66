//! Arguments and return values of traced functions (`kernel/trace/bpf_trace.c`), and
//! overriding return values.

use crate::spec::context::Arch;
use crate::spec::{AttachType, ContextKind, context};
use crate::util::Errno;
use crate::vm::events::attach::Site;
use crate::vm::machine::{Call, HelperProblem};
use crate::vm::memory::{AccessKind, Address, Body};

type Result = std::result::Result<u64, HelperProblem>;

/// The attach-point data of the event; default values without an event.
fn site(call: &mut Call<'_>) -> Site {
    call.machine.site().cloned().unwrap_or_default()
}

/// `bpf_get_func_ip(context)`: the address of the traced function or instruction; 0 for a
/// kprobe that is not at a function's entry.
pub(super) fn get_func_ip(call: &mut Call<'_>) -> Result {
    Ok(call.machine.site().map_or(0, |site| site.ip))
}

pub(super) fn get_attach_cookie(call: &mut Call<'_>) -> Result {
    Ok(call.machine.site().map_or(0, |site| site.cookie))
}

/// Copies a slot of the context to the address in argument `to`.
fn give(call: &mut Call<'_>, slot: u32, to: usize) -> Result {
    call.check(to, 8, AccessKind::Write)?;
    let at = call.arg(1).wrapping_add(8 * u64::from(slot));
    let value = call.machine.space.load(at, 8);
    let value = value.map_err(|fault| HelperProblem::Access { arg: 1, fault })?;
    call.write(to, &value.to_le_bytes()).map(|()| 0)
}

pub(super) fn get_func_arg(call: &mut Call<'_>) -> Result {
    let n = call.arg_u32(2);
    if n >= site(call).arguments {
        return Ok(Errno::EINVAL.to_ret());
    }
    give(call, n, 3)
}

/// `bpf_get_func_ret(context, value)`: only for fexit and fmod_ret programs; for others the
/// verifier replaces the call by an error.
pub(super) fn get_func_ret(call: &mut Call<'_>) -> Result {
    let site = site(call);
    match site.attach_type {
        Some(AttachType::TraceFexit | AttachType::ModifyReturn) => give(call, site.arguments, 2),
        _ => Ok(Errno::EOPNOTSUPP.to_ret()),
    }
}

pub(super) fn get_func_arg_cnt(call: &mut Call<'_>) -> Result {
    Ok(site(call).arguments.into())
}

/// The registers that `bpf_override_return` changes: return value and instruction pointer
/// (`override_function_with_return`, `arch/*/lib/error-inject.c`).
const fn overridden(arch: Arch) -> (&'static str, &'static str) {
    match arch {
        Arch::X86_64 => ("ax", "ip"),
        Arch::Arm64 => ("regs[0]", "pc"),
    }
}

/// The address of a function that only returns (`just_return_func`).
const JUST_RETURN: u64 = 0xffff_ffff_81f0_0000;

pub(super) fn override_return(call: &mut Call<'_>) -> Result {
    let value = call.arg(2);
    let Some(site) = call.machine.site() else {
        return Err(call.wrong(1, "the registers of a kprobe"));
    };
    site.overridden = Some(value);
    // Programs can't write registers, but the helper can.
    let region = Address::from_register(call.arg(1)).and_then(|at| call.machine.space.region(at));
    if let Some(region) = region
        && let Body::Bytes { bytes, .. } = &region.body
    {
        let is_of = |arch: &Arch| {
            let layout = context::layout(ContextKind::PtRegs, *arch);
            layout.is_some_and(|layout| layout.size as usize == bytes.len())
        };
        let arch = [Arch::X86_64, Arch::Arm64].into_iter().find(is_of);
        let registers = arch.map(|arch| (overridden(arch), arch));
        if let Some(((result, ip), arch)) = registers
            && let Some(layout) = context::layout(ContextKind::PtRegs, arch)
        {
            for (register, value) in [(result, value), (ip, JUST_RETURN)] {
                if let Some((at, _)) = layout.find(register) {
                    // A register of this layout: the store is in bounds.
                    let _ = bytes.store(at as usize, 8, value);
                }
            }
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::spec::ProgType;
    use crate::spec::helpers::id;
    use crate::vm::events::{Event, Layout};
    use crate::vm::fields::{Field, Shape};

    fn call_of_a_function() -> Event {
        let mut layout = Layout::of_arguments("f", 2);
        layout
            .fields
            .push(Field::inline("ret", 16, Shape::number(8, false)));
        layout.size = 24;
        layout.context_size = Some(24);
        let event = Event::function(layout).arg(1, 10).unwrap();
        event.arg(2, 20).unwrap().set("ret", -5).unwrap().at(0x1234)
    }

    #[test]
    fn arguments_and_result_of_a_traced_function() {
        let mut bench = Bench::on(ProgType::Tracing, &call_of_a_function());
        let (context, at) = (bench.context(), bench.memory(&[0; 8]));
        assert_eq!(bench.call(id::get_func_arg_cnt, [context]), Ok(2));
        assert_eq!(bench.call(id::get_func_ip, [context]), Ok(0x1234));
        assert_eq!(bench.call(id::get_func_arg, [context, 1, at]), Ok(0));
        assert_eq!(bench.bytes(at, 1), [20]);
        let none = bench.errno(id::get_func_arg, [context, 2, at]);
        assert_eq!((none, &bench.bytes(at, 1)[..]), (Errno::EINVAL, &[20][..]));
        let early = bench.errno(id::get_func_ret, [context, at]);
        assert_eq!(early, Errno::EOPNOTSUPP);
        bench.machine.site().unwrap().attach_type = Some(AttachType::TraceFexit);
        assert_eq!(bench.call(id::get_func_ret, [context, at]), Ok(0));
        assert_eq!(bench.bytes(at, 8), (-5i64).to_le_bytes());
    }

    #[test]
    fn an_override_changes_the_registers() {
        let event = Event::kprobe("f", Arch::X86_64, None);
        let mut bench = Bench::on(ProgType::Kprobe, &event);
        let context = bench.context();
        let minus_12 = (-12i64).cast_unsigned();
        let result = bench.call(id::override_return, [context, minus_12]);
        assert_eq!(result, Ok(0));
        assert_eq!(bench.machine.space.load(context + 80, 8), Ok(minus_12));
        let site = bench.machine.site().unwrap();
        assert_eq!(site.overridden, Some(minus_12));
    }

    #[test]
    fn a_return_value_is_kept() {
        let event = Event::packet(vec![0; 64]);
        let mut bench = Bench::on(ProgType::CgroupSkb, &event);
        assert_eq!(bench.call(id::get_retval, []), Ok(0));
        let error = u64::from((-22i32).cast_unsigned());
        assert_eq!(bench.call(id::set_retval, [error]), Ok(0));
        let minus_22 = (-22i64).cast_unsigned();
        assert_eq!(bench.call(id::get_retval, []), Ok(minus_22));
    }
}
