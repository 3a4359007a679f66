//! Objects of the mocked kernel that a program is lent: found in kernel memory, checked
//! where their types are known, and given back as they were.

use super::super::fault::HelperProblem;
use super::super::helpers::Call;
use super::super::kernel::KernelObject;

type Result = std::result::Result<u64, HelperProblem>;

/// The address in an argument, of an object of this struct as far as that is known.
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

/// A field of the object at an address; 0 where there is no such object or field.
pub(super) fn field(call: &Call<'_>, at: u64, path: &str) -> u64 {
    object(call, at).map_or(0, |object| object.get(path).unwrap_or(0))
}

/// All objects of a struct.
pub(super) fn all(call: &Call<'_>, name: &str) -> Vec<KernelObject> {
    call.machine.world.kernel_memory().objects_of(name)
}

/// One more reference to an object.
pub(super) fn acquire(call: &mut Call<'_>, at: u64) -> Result {
    if at != 0 {
        call.machine.acquire(at);
    }
    Ok(at)
}

/// The reference in argument 1 is given back.
pub(super) fn release(call: &mut Call<'_>) -> Result {
    let at = call.arg(1);
    call.machine.release(1, at).map(|()| 0)
}
