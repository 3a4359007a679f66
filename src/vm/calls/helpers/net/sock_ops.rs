//! Helpers of `sock_ops` programs: callback flags and TCP header options
//! (`net/core/filter.c`).

use super::super::packet;
use super::socket::of_event;
use super::sockopt::{ALL_CALLBACKS, tcp_header};
use crate::util::Errno;
use crate::vm::events::PacketRange;
use crate::vm::machine::{Call, HelperProblem, Output, Returned};

/// `BPF_SOCK_OPS_HDR_OPT_LEN_CB`.
const LEN_CB: u64 = 14;
/// `BPF_SOCK_OPS_WRITE_HDR_OPT_CB`.
const WRITE_CB: u64 = 15;
/// Bytes of a TCP header without options.
const HEADER: usize = 20;
/// Option kinds.
const END: u8 = 0;
const NOTHING: u8 = 1;
/// Experimental option kinds, identified by the following bytes.
const EXPERIMENTS: [u8; 2] = [253, 254];

/// `bpf_sock_ops_cb_flags_set(context, flags)`: sets the connection's callbacks and returns
/// the unknown flags.
pub fn cb_flags_set(call: &mut Call<'_>) -> Returned {
    let wanted = call.arg_u32(2);
    let done = of_event(call, |socket| {
        let is_full = socket.is_full();
        if is_full {
            socket.callback_flags = wanted & ALL_CALLBACKS;
        }
        is_full
    });
    if done != Some(true) {
        return Ok(Errno::EINVAL.to_ret());
    }
    if let Some((block, at)) = packet::field(call, "bpf_sock_ops_cb_flags") {
        // The field is in the context's layout.
        let _ = block.store(at, 4, (wanted & ALL_CALLBACKS).into());
    }
    let unknown = (wanted & !ALL_CALLBACKS).cast_signed();
    Ok(i64::from(unknown).cast_unsigned())
}

/// The operation that the program runs for.
fn operation(call: &Call<'_>) -> u64 {
    let field = packet::field(call, "op");
    field.and_then(|(block, at)| block.load(at, 4)).unwrap_or(0)
}

/// The event's packet: a TCP header and data.
fn bytes(call: &Call<'_>) -> Option<Vec<u8>> {
    let current = call.machine.current()?;
    current.placed.packet_bytes(&call.machine.space)
}

/// Offset of an option (`bpf_search_tcp_opt`). The error says whether an end-of-options
/// option was found.
fn search(options: &[u8], kind: u8, magic: &[u8]) -> Result<usize, (Errno, bool)> {
    let mut at = 0;
    while let Some(&this) = options.get(at) {
        match this {
            END => return Err((Errno::ENOMSG, true)),
            NOTHING => {
                at += 1;
                continue;
            }
            _ => {}
        }
        let len = options.get(at + 1).map_or(0, |len| usize::from(*len));
        let Some(option) = options.get(at..at + len).filter(|_| len >= 2) else {
            return Err((Errno::EFAULT, false));
        };
        if this == kind {
            let behind = option.get(2..).unwrap_or_default();
            if magic.len() > behind.len() {
                return Err((Errno::ENOMSG, false));
            }
            if behind.starts_with(magic) {
                return Ok(at);
            }
        }
        at += len;
    }
    Err((Errno::ENOMSG, false))
}

/// `bpf_sock_ops_load_hdr_opt(context, search key and result, its size, flags)`: finds an
/// option.
pub fn load_hdr_opt(call: &mut Call<'_>) -> Returned {
    const FROM_SYN: u64 = 1;
    let (size, flags) = (call.size(3), call.arg(4));
    let wanted = call.read(2, size)?;
    let (Some(&kind), Some(&len)) = (wanted.first(), wanted.get(1)) else {
        return Ok(Errno::EINVAL.to_ret());
    };
    let experiment = EXPERIMENTS.contains(&kind);
    let well = match (experiment, len) {
        (true, 4 | 6) => usize::from(len) <= size,
        (false, 0) => true,
        _ => false,
    };
    if flags & !FROM_SYN != 0 || matches!(kind, END | NOTHING) || !well {
        return Ok(Errno::EINVAL.to_ret());
    }
    let magic = wanted.get(2..len.into()).unwrap_or_default();
    let header = if flags & FROM_SYN != 0 {
        let syn = call
            .machine
            .current()
            .map(|current| current.placed.kern.syn.clone());
        let syn = syn.unwrap_or_default();
        match tcp_header(&syn) {
            [] => return Ok(Errno::ENOENT.to_ret()),
            header => header.to_vec(),
        }
    } else {
        match bytes(call) {
            Some(bytes) if operation(call) != LEN_CB => bytes,
            _ => return Ok(Errno::EPERM.to_ret()),
        }
    };
    // A received header has its length; a header being written has none yet.
    let end = header
        .get(12)
        .map_or(HEADER, |byte| usize::from(byte >> 4) * 4);
    let end = if operation(call) == WRITE_CB {
        header.len()
    } else {
        end.min(header.len())
    };
    let options = header.get(HEADER..end).unwrap_or_default();
    let at = match search(options, kind, magic) {
        Ok(at) => at,
        Err((errno, _)) => return Ok(errno.to_ret()),
    };
    let found = options.get(at..).unwrap_or_default();
    let len = found.get(1).map_or(0, |len| usize::from(*len));
    let copied: Vec<u8> = found.iter().copied().take(len.min(size)).collect();
    call.write(2, &copied)?;
    Ok(match len > size {
        true => Errno::ENOSPC.to_ret(),
        false => len as u64,
    })
}

/// `bpf_sock_ops_store_hdr_opt(context, option, its size, flags)`: appends an option.
pub fn store_hdr_opt(call: &mut Call<'_>) -> Returned {
    let (size, flags) = (call.size(3), call.arg(4));
    let option = call.read(2, size)?;
    if operation(call) != WRITE_CB {
        return Ok(Errno::EPERM.to_ret());
    }
    let (Some(&kind), Some(&len)) = (option.first(), option.get(1)) else {
        return Ok(Errno::EINVAL.to_ret());
    };
    let len = usize::from(len);
    if flags != 0 || len > size || matches!(kind, END | NOTHING) {
        return Ok(Errno::EINVAL.to_ret());
    }
    if len > room(call)? {
        return Ok(Errno::ENOSPC.to_ret());
    }
    let magic = match EXPERIMENTS.contains(&kind) {
        true if len < 4 => return Ok(Errno::EINVAL.to_ret()),
        true => option.get(2..4).unwrap_or_default(),
        false => &[],
    };
    let header = bytes(call).unwrap_or_default();
    let options = header.get(HEADER..).unwrap_or_default();
    match search(options, kind, magic) {
        Ok(_) => return Ok(Errno::EEXIST.to_ret()),
        Err((Errno::ENOMSG, false)) => {}
        Err((Errno::ENOMSG, true)) => return Ok(Errno::ENOSPC.to_ret()),
        Err((errno, _)) => return Ok(errno.to_ret()),
    }
    let written = option.get(..len).unwrap_or_default();
    let range = packet::of(call)?.range;
    let longer = PacketRange {
        end: range.end + len,
        ..range
    };
    if !packet::set_range(call, longer) {
        return Ok(Errno::ENOSPC.to_ret());
    }
    // In bounds, as the new end is.
    let _ = packet::of(call)?.write_block(range.end, written);
    take_room(call, len)?;
    Ok(0)
}

/// `bpf_sock_ops_reserve_hdr_opt(context, size, flags)`: reserves room for options.
pub fn reserve_hdr_opt(call: &mut Call<'_>) -> Returned {
    let (size, flags) = (call.size(2), call.arg(3));
    if operation(call) != LEN_CB {
        return Ok(Errno::EPERM.to_ret());
    }
    if flags != 0 || size < 2 {
        return Ok(Errno::EINVAL.to_ret());
    }
    if size > room(call)? {
        return Ok(Errno::ENOSPC.to_ret());
    }
    take_room(call, size)?;
    Ok(0)
}

/// Bytes left for options.
fn room(call: &Call<'_>) -> Result<usize, HelperProblem> {
    let current = call.machine.current();
    let room = current.map(|current| current.placed.kern.option_room as usize);
    room.ok_or_else(|| call.wrong(1, "the context of a socket operation"))
}

fn take_room(call: &mut Call<'_>, len: usize) -> Result<(), HelperProblem> {
    let left = u32::try_from(room(call)?.saturating_sub(len)).unwrap_or(0);
    if let Some((current, _)) = call.machine.current_mut() {
        current.placed.kern.option_room = left;
    }
    Ok(())
}

/// `bpf_tcp_send_ack(TCP socket, sequence number)`: records an ACK that a congestion control
/// sends.
pub fn tcp_send_ack(call: &mut Call<'_>) -> Returned {
    let number = call.arg_u32(2);
    call.machine.output(Output::TcpAck(number));
    Ok(0)
}
