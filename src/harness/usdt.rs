//! USDT probes: libbpf describes their arguments to programs through maps that its header
//! `usdt.bpf.h` adds to each object (`src/usdt.c`).

use super::error::{Error, Result};
use crate::engine::Image;
use crate::spec::UpdateFlags;
use crate::vm::events::Event;
use crate::vm::maps::Map;
use crate::vm::{Machine, ProgramHandle};

/// The number of specifications unless an object changes it (`BPF_USDT_MAX_SPEC_CNT`).
const SPECS: u32 = 256;
/// Bytes of `struct __bpf_usdt_arg_spec`: a `u64` with the value of a constant argument,
/// and how to find other arguments.
const ARGUMENT: usize = 16;
/// Offset of the cookie in `struct __bpf_usdt_spec`, after 12 arguments.
const COOKIE: usize = 12 * ARGUMENT;
/// Offset of the number of arguments, a `short`.
const COUNT: usize = COOKIE + 8;

/// The number of the specification that a program's runs use; it is the cookie in the
/// kernel.
pub(super) const fn spec_id(program: ProgramHandle) -> u32 {
    program.0 % SPECS
}

/// Writes a USDT probe's arguments to a program's maps, each as a constant.
pub(super) fn fill(
    machine: &Machine,
    image: &Image,
    program: ProgramHandle,
    event: &Event,
    cookie: u64,
) -> Result<()> {
    let id = spec_id(program).to_le_bytes();
    if let Some(map) = map_of(machine, image, "__bpf_usdt_specs") {
        let mut spec = vec![0; map.def().value_size as usize];
        let mut put = |at: usize, bytes: &[u8]| {
            if let Some(place) = spec.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        };
        for (index, value) in event.usdt_args().iter().enumerate() {
            put(index * ARGUMENT, &value.to_le_bytes());
        }
        let count = u16::try_from(event.usdt_args().len()).unwrap_or(u16::MAX);
        put(COOKIE, &cookie.to_le_bytes());
        put(COUNT, &count.to_le_bytes());
        write(map, &id, &spec)?;
    }
    // Used on kernels without cookies.
    if let Some(map) = map_of(machine, image, "__bpf_usdt_ip_to_spec_id") {
        write(map, &event.ip().to_le_bytes(), &id)?;
    }
    Ok(())
}

/// The map of this name in a program's object.
fn map_of<'m>(machine: &'m Machine, image: &Image, name: &str) -> Option<&'m dyn Map> {
    let at = image
        .program()
        .maps
        .iter()
        .position(|def| def.name == name)?;
    Some(&**machine.map(*image.maps().get(at)?)?)
}

fn write(map: &dyn Map, key: &[u8], value: &[u8]) -> Result<()> {
    let written = map.write(key, value, UpdateFlags::empty());
    written.map_err(|errno| Error::MapOperation {
        map: map.def().name.clone(),
        what: "telling a program the arguments of a marker",
        errno,
    })
}
