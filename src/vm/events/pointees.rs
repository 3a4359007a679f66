//! Memory that a context points to (system-call registers, a kernel stack, `bpf_iter_meta`),
//! and the attach-point data that helpers return.

use std::sync::Arc;

use smallvec::SmallVec;

use super::attach::Site;
use super::error::EventError;
use super::event::{Event, EventKind};
use crate::vm::memory::{Address, Body, Region, Rights, SharedBytes, Space};

/// Placed regions, each with its name in messages.
pub(super) type Regions = Vec<(&'static str, Address)>;

/// The attach-point data that helpers return (`bpf_get_func_ip` and the like).
pub(super) fn site(event: &Event) -> Site {
    let mut site = Site {
        arguments: arguments(event),
        ..Site::default()
    };
    if let Some(extras) = &event.extras {
        site.ip = extras.ip;
        site.counter = extras.counter;
        site.branches.clone_from(&extras.branches);
    }
    site
}

/// Number of argument slots in the context of a function; 0 for other contexts.
fn arguments(event: &Event) -> u32 {
    match (event.kind(), event.layout()) {
        (EventKind::Function | EventKind::StructOps, Some(layout)) => {
            layout.offset("ret").unwrap_or(layout.size) / 8
        }
        _ => 0,
    }
}

/// The objects of which the program gets a reference.
pub(super) fn references(event: &Event, context: Address, space: &Space) -> SmallVec<[u64; 1]> {
    let offsets = event.layout().map(|layout| layout.references.iter());
    let offsets = offsets.into_iter().flatten();
    let objects = offsets.filter_map(|at| bytes_of(space, context)?.load(*at as usize, 8));
    objects.filter(|object| *object != 0).collect()
}

/// Places the memory that the context of an event points to.
pub(super) fn place(
    event: &Event,
    context: Address,
    space: &mut Space,
    regions: &mut Regions,
) -> Result<(), EventError> {
    let Some(extras) = &event.extras else {
        return Ok(());
    };
    if let Some(inner) = &extras.inner {
        let bytes = inner.values.context(&inner.layout);
        let name = "registers of the system call";
        regions.push((name, put(space, context, inner.at, name, &bytes)?));
    }
    let sp = event.layout().and_then(|layout| layout.offset("sp"));
    if let Some(sp) = sp.filter(|sp| !extras.stack.is_empty() && is_null(space, context, *sp)) {
        let name = "kernel stack";
        regions.push((name, put(space, context, sp, name, &extras.stack)?));
    }
    if let Some(iteration) = &extras.iteration {
        let name = "bpf_iter_meta";
        regions.push((name, put(space, context, 0, name, &iteration.bytes())?));
    }
    Ok(())
}

/// The bytes of a context.
fn bytes_of(space: &Space, context: Address) -> Option<&SharedBytes> {
    match &space.region(context)?.body {
        Body::Bytes { bytes, .. } => Some(bytes),
        _ => None,
    }
}

fn is_null(space: &Space, context: Address, at: u32) -> bool {
    bytes_of(space, context).is_some_and(|bytes| bytes.load(at as usize, 8) == Some(0))
}

/// Puts bytes into memory and stores their address in the context as a plain number.
fn put(
    space: &mut Space,
    context: Address,
    at: u32,
    name: &'static str,
    bytes: &[u8],
) -> Result<Address, EventError> {
    let region = Region::bytes(name, Arc::new(SharedBytes::from_bytes(bytes)));
    let address = space.insert(region.judged().with_rights(Rights::Read))?;
    if let Some(context) = bytes_of(space, context) {
        // An offset from a layout of this context: the store is in bounds.
        let _ = context.store(at as usize, 8, address.register());
    }
    Ok(address)
}
