//! The kernel's struct for a program's context (`bpf_cast_to_kern_ctx`,
//! `kernel/bpf/helpers.c`).
//!
//! In the kernel it has the same address as the context, and the verifier rewrites accesses
//! to the context. Here the context is in memory; the kernel's struct is created on demand
//! and filled from the context.

use crate::spec::{ContextKind, ProgType};
use crate::vm::machine::{Call, HelperProblem, Machine};
use crate::vm::world::kernel::{KernelError, KernelObject};

type Result = std::result::Result<u64, HelperProblem>;

/// A field of the kernel's struct, with its offset and size in the context.
type Copied = (&'static str, u64, usize);

/// `struct sk_buff` from `struct __sk_buff` (`bpf_convert_ctx_access`,
/// `net/core/filter.c`).
const SK_BUFF: &[Copied] = &[
    ("len", 0, 4),
    ("pkt_type", 4, 4),
    ("mark", 8, 4),
    ("queue_mapping", 12, 4),
    ("protocol", 16, 4),
    ("vlan_tci", 24, 4),
    ("vlan_proto", 28, 4),
    ("priority", 32, 4),
    ("skb_iif", 36, 4),
    ("dev.ifindex", 40, 4),
    ("tc_index", 44, 4),
    ("hash", 68, 4),
    ("data", 76, 4),
    ("napi_id", 84, 4),
    ("tstamp", 152, 8),
    ("sk", 168, 8),
];

/// `struct xdp_buff` from `struct xdp_md` (`xdp_convert_ctx_access`).
const XDP_BUFF: &[Copied] = &[
    ("data", 0, 4),
    ("data_end", 4, 4),
    ("data_meta", 8, 4),
    ("rxq.dev.ifindex", 12, 4),
    ("rxq.queue_index", 16, 4),
];

pub(super) fn cast_to_kern_ctx(call: &mut Call<'_>) -> Result {
    kernel_context(call.machine, call.arg(1))
}

/// The address of the kernel's struct for the context at an address: the context's, where it is
/// that struct, or where none is made here.
pub(crate) fn kernel_context(machine: &Machine, context: u64) -> Result {
    let prog_type = machine.current().map(|current| current.prog_type);
    let kind = prog_type.map(|prog_type: ProgType| prog_type.info().context);
    let (name, fields) = match kind {
        Some(ContextKind::SkBuff) => ("sk_buff", SK_BUFF),
        Some(ContextKind::XdpMd) => ("xdp_buff", XDP_BUFF),
        // Other contexts are the kernel's struct already, or have no supported one.
        _ => return Ok(context),
    };
    let made = make(machine, context, name, fields);
    let made = made.map_err(|error| HelperProblem::Other(error.to_string()))?;
    Ok(made.address())
}

fn make(
    machine: &Machine,
    context: u64,
    name: &str,
    fields: &[Copied],
) -> std::result::Result<KernelObject, KernelError> {
    let mut object = machine.world.kernel(&format!("struct {name}"))?;
    for (path, offset, size) in fields {
        // A program's context or an object's struct may lack the field.
        let Ok(value) = machine.space.load(context.wrapping_add(*offset), *size) else {
            continue;
        };
        match object.clone().set(path, value) {
            Ok(set) => object = set,
            Err(KernelError::Path { .. } | KernelError::Value { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(object)
}
