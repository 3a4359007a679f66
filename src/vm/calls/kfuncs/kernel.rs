//! References to objects of the mocked kernel: lookup in kernel memory, type checks, acquire
//! and release.

use crate::vm::machine::{Call, HelperProblem};
use crate::vm::world::kernel::KernelObject;

type Result = std::result::Result<u64, HelperProblem>;

/// The object address in an argument; an error if the object is known to have another type.
pub(super) fn argument(call: &Call<'_>, arg: usize, name: &str, wanted: &'static str) -> Result {
    let at = call.arg(arg);
    match call.machine.world.kernel_memory().is_a(at, name) {
        Some(false) => Err(call.wrong(arg, wanted)),
        _ => Ok(at),
    }
}

/// The object at an address.
pub(super) fn object(call: &Call<'_>, at: u64) -> Option<KernelObject> {
    call.machine.world.kernel_memory().object_at(at)
}

/// A field of the object at an address; 0 if there is no such object or field.
pub(super) fn field(call: &Call<'_>, at: u64, path: &str) -> u64 {
    object(call, at).map_or(0, |object| object.get(path).unwrap_or(0))
}

/// All objects of a struct type.
pub(super) fn all(call: &Call<'_>, name: &str) -> Vec<KernelObject> {
    call.machine.world.kernel_memory().objects_of(name)
}

/// Acquires a reference to an object; null stays null.
pub(super) fn acquire(call: &mut Call<'_>, at: u64) -> Result {
    if at != 0 {
        call.machine.acquire(at);
    }
    Ok(at)
}

/// Releases the reference in argument 1.
pub(super) fn release(call: &mut Call<'_>) -> Result {
    let at = call.arg(1);
    call.machine.release(1, at).map(|()| 0)
}
