//! Timers, and code shared with work queues (`kernel/bpf/helpers.c`).

use crate::btf::FieldKind;
use crate::util::Errno;
use crate::vm::machine::deferred::{DeferredKind, Slot, TimerClock, When};
use crate::vm::machine::{Call, HelperProblem, Returned};

/// `BPF_F_TIMER_ABS`: the time is absolute.
const ABS: u64 = 1;
/// `BPF_F_TIMER_CPU_PIN`: the callback runs on the CPU that starts the timer, which is always
/// so here.
const CPU_PIN: u64 = 2;

/// The position of the struct in argument `n`, in a value of the map in argument `map`.
pub(in crate::vm) fn slot(
    call: &Call<'_>,
    n: usize,
    map: usize,
    kind: FieldKind,
) -> Result<Slot, HelperProblem> {
    let (handle, address) = (call.map_handle(map)?, call.arg(n));
    let wrong = || call.wrong(n, "the matching field in a value of that map");
    let (element, at) = call.machine.element_at(handle, address).ok_or_else(wrong)?;
    let fields = &call.map_of(map, handle)?.def().special;
    // Without BTF any offset is accepted.
    let fits = fields
        .find(kind)
        .is_none_or(|field| field.off as usize == at);
    if !fits {
        return Err(wrong());
    }
    Ok(Slot {
        map: handle,
        element,
        address,
    })
}

/// The word stored in the struct in argument `n`.
pub(in crate::vm) fn key(call: &Call<'_>, n: usize) -> Returned {
    let loaded = call.machine.space.load(call.arg(n), 8);
    loaded.map_err(|fault| HelperProblem::Access { arg: n, fault })
}

/// Initializes the struct at a position (`__bpf_async_init`): `EBUSY` if it is initialized,
/// `EPERM` if user space has no descriptor of the map.
pub(in crate::vm) fn init(
    call: &Call<'_>,
    kind: DeferredKind,
    slot: Slot,
) -> Result<Told, HelperProblem> {
    if key(call, 1)? != 0 {
        return Ok(Err(Errno::EBUSY));
    }
    let mut table = call.machine.shared.deferred.lock();
    if !table.is_held(slot.map) {
        return Ok(Err(Errno::EPERM));
    }
    let key = table.insert(kind, slot);
    let stored = call.machine.space.store(slot.address, 8, key);
    stored
        .map(Ok)
        .map_err(|fault| HelperProblem::Access { arg: 1, fault })
}

/// The result for the program.
pub(in crate::vm) type Told = Result<(), Errno>;

/// Sets the callback (`__bpf_async_set_callback`): `EINVAL` if the struct is not initialized.
pub(in crate::vm) fn set(call: &Call<'_>, callback: u64) -> Result<Told, HelperProblem> {
    let key = key(call, 1)?;
    let mut table = call.machine.shared.deferred.lock();
    let Some(map) = table.find(key, call.arg(1)).map(|entry| entry.slot.map) else {
        return Ok(Err(Errno::EINVAL));
    };
    if !table.is_held(map) {
        return Ok(Err(Errno::EPERM));
    }
    if let Some(entry) = table.find(key, call.arg(1)) {
        entry.callback = Some(callback);
    }
    Ok(Ok(()))
}

fn returned(told: Told) -> u64 {
    told.err().map_or(0, Errno::to_ret)
}

/// `bpf_timer_init(timer, map, flags)`.
pub(super) fn init_timer(call: &mut Call<'_>) -> Returned {
    let Some(clock) = TimerClock::from_flags(call.arg(3)) else {
        return Ok(Errno::EINVAL.to_ret());
    };
    let slot = slot(call, 1, 2, FieldKind::Timer)?;
    Ok(returned(init(call, DeferredKind::Timer(clock), slot)?))
}

/// `bpf_timer_set_callback(timer, callback)`.
pub(super) fn set_callback(call: &mut Call<'_>) -> Returned {
    Ok(returned(set(call, call.arg(2))?))
}

/// `bpf_timer_start(timer, nanoseconds, flags)`: sets the expiry time, replacing an earlier
/// one.
pub(super) fn start(call: &mut Call<'_>) -> Returned {
    let (ns, flags) = (call.arg(2), call.arg(3));
    if flags & !(ABS | CPU_PIN) != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let (key, cpu) = (key(call, 1)?, call.machine.world.cpu());
    let mut table = call.machine.shared.deferred.lock();
    let entry = table.find(key, call.arg(1));
    let Some((DeferredKind::Timer(clock), Some(_))) =
        entry.map(|entry| (entry.kind, entry.callback))
    else {
        return Ok(Errno::EINVAL.to_ret());
    };
    let from = match flags & ABS {
        0 => clock.now(call.machine.world.time()),
        _ => 0,
    };
    // The kernel's times are signed and saturate at the maximum.
    let at = from.saturating_add_signed(ns.cast_signed());
    let at = at.min(i64::MAX.cast_unsigned());
    table.arm(key, When::At(at), cpu);
    Ok(0)
}

/// `bpf_timer_cancel(timer)`: returns 1 if the timer was armed, else 0. It can't be started
/// again until its callback is set again.
pub(super) fn cancel(call: &mut Call<'_>) -> Returned {
    let key = key(call, 1)?;
    let running = call.machine.cpu.running;
    let mut table = call.machine.shared.deferred.lock();
    let Some(entry) = table.find(key, call.arg(1)) else {
        return Ok(Errno::EINVAL.to_ret());
    };
    if running == Some(key) {
        // It would wait for itself.
        return Ok(Errno::EDEADLK.to_ret());
    }
    entry.callback = None;
    Ok(entry.armed.take().is_some().into())
}
