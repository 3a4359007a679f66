//! `bpf_setsockopt` and `bpf_getsockopt` (`net/core/filter.c`): the supported options, and a
//! table of values for each socket.

use super::socket;
use crate::util::Errno;
use crate::vm::machine::sockets::SocketRef;
use crate::vm::machine::{Call, HelperProblem, Returned};
use crate::vm::memory::AccessKind;
use crate::vm::world::{AF_INET, AF_INET6, Socket, TCP};

/// Option levels (`SOL_*`).
const SOCKET: i32 = 1;
const IP: i32 = 0;
const IPV6: i32 = 41;
const SOL_TCP: i32 = 6;

/// Options with special handling.
const SO_PRIORITY: i32 = 12;
const SO_REUSEPORT: i32 = 15;
const SO_BINDTODEVICE: i32 = 25;
const SO_MARK: i32 = 36;
const SO_BINDTOIFINDEX: i32 = 62;
const TCP_CONGESTION: i32 = 13;
const TCP_SAVED_SYN: i32 = 28;
const TCP_BPF_IW: i32 = 1001;
const TCP_BPF_SNDCWND_CLAMP: i32 = 1002;
const TCP_BPF_DELACK_MAX: i32 = 1003;
const TCP_BPF_RTO_MIN: i32 = 1004;
const TCP_BPF_SYN: i32 = 1005;
const TCP_BPF_SYN_MAC: i32 = 1007;
const TCP_BPF_SOCK_OPS_CB_FLAGS: i32 = 1008;

/// Callback flags of a connection (`BPF_SOCK_OPS_ALL_CB_FLAGS`).
pub const ALL_CALLBACKS: u32 = 0x7f;

/// The numeric options of each level.
const NUMBERS: &[(i32, &[i32])] = &[
    // REUSEADDR, SNDBUF, RCVBUF, KEEPALIVE, PRIORITY, REUSEPORT, RCVLOWAT, MARK,
    // MAX_PACING_RATE, BINDTOIFINDEX, TXREHASH
    (
        SOCKET,
        &[
            2,
            7,
            8,
            9,
            SO_PRIORITY,
            SO_REUSEPORT,
            18,
            SO_MARK,
            47,
            SO_BINDTOIFINDEX,
            74,
        ],
    ),
    // TOS
    (IP, &[1]),
    // TCLASS, AUTOFLOWLABEL
    (IPV6, &[67, 70]),
    // NODELAY, MAXSEG, KEEPIDLE, KEEPINTVL, KEEPCNT, SYNCNT, WINDOW_CLAMP,
    // THIN_LINEAR_TIMEOUTS, USER_TIMEOUT, NOTSENT_LOWAT, SAVE_SYN
    (SOL_TCP, &[1, 2, 4, 5, 6, 7, 10, 16, 18, 25, 27]),
];

/// The default congestion control.
const CUBIC: &[u8] = b"cubic";

/// The socket of a call: the context's, or the socket in argument 1.
fn socket_of(call: &Call<'_>) -> Result<SocketRef, HelperProblem> {
    let current = call.machine.current();
    if current.is_some_and(|current| current.placed.r1() == call.arg(1)) {
        let found = call.machine.event_socket();
        return found.ok_or_else(|| call.wrong(1, "the context of a socket"));
    }
    socket::at(call, 1)
}

/// Whether a socket supports a level.
fn has_level(socket: &Socket, level: i32) -> bool {
    match level {
        SOCKET => true,
        IP => matches!(socket.family, AF_INET | AF_INET6),
        IPV6 => socket.family == AF_INET6,
        SOL_TCP => socket.protocol == TCP,
        _ => false,
    }
}

fn is_number(level: i32, name: i32) -> bool {
    let level = NUMBERS.iter().find(|(number, _)| *number == level);
    level.is_some_and(|(_, names)| names.contains(&name))
}

/// `bpf_setsockopt(context or socket, level, name, value, its length)`.
pub fn set(call: &mut Call<'_>) -> Returned {
    let (level, name, len) = (call.arg_i32(2), call.arg_i32(3), call.size(5));
    let value = call.read(4, len)?.to_vec();
    let socket = socket_of(call)?;
    let done = match call.machine.socket(socket) {
        Some(socket) => change(socket, level, name, value),
        None => Err(Errno::EINVAL),
    };
    if let (Ok(()), SocketRef::World(id)) = (&done, socket) {
        // Update the socket's structures that programs read.
        call.machine.socket_address(id)?;
    }
    Ok(done.map_or_else(Errno::to_ret, |()| 0))
}

fn change(socket: &mut Socket, level: i32, name: i32, value: Vec<u8>) -> Result<(), Errno> {
    if !socket.is_full() || !has_level(socket, level) {
        return Err(Errno::EINVAL);
    }
    let number = <[u8; 4]>::try_from(value.as_slice()).map(i32::from_ne_bytes);
    let number = number.map_err(|_| Errno::EINVAL);
    match (level, name) {
        (SOL_TCP, TCP_CONGESTION) if value.len() < 2 => return Err(Errno::EINVAL),
        (SOL_TCP, TCP_CONGESTION) => {
            let text: Vec<u8> = value.into_iter().take_while(|byte| *byte != 0).collect();
            if text == b"cdg" {
                return Err(Errno::ENOTSUPP);
            }
            socket.options.insert((level, name), text);
            return Ok(());
        }
        (SOCKET, SO_BINDTODEVICE) => {}
        (SOL_TCP, TCP_BPF_IW..=TCP_BPF_SOCK_OPS_CB_FLAGS) => {
            return change_connection(socket, name, number?);
        }
        _ if !is_number(level, name) => return Err(Errno::EINVAL),
        _ => {
            let number = number?.cast_unsigned();
            match (level, name) {
                (SOCKET, SO_PRIORITY) => socket.priority = number,
                (SOCKET, SO_MARK) => socket.mark = number,
                (SOCKET, SO_BINDTOIFINDEX) => socket.device = number,
                (SOCKET, SO_REUSEPORT) => socket.reuses_port = number != 0,
                _ => {}
            }
        }
    }
    socket.options.insert((level, name), value);
    Ok(())
}

/// Options available only to BPF programs (`bpf_sol_tcp_setsockopt`).
fn change_connection(socket: &mut Socket, name: i32, number: i32) -> Result<(), Errno> {
    let positive = u64::try_from(number).ok().filter(|number| *number > 0);
    let positive = positive.ok_or(Errno::EINVAL);
    let mut put = |field: &str, value: u64| {
        // A field of the structure.
        socket
            .tcp_field(field, value)
            .map(drop)
            .map_err(|_| Errno::EINVAL)
    };
    match name {
        TCP_BPF_IW => put("snd_cwnd", positive?),
        TCP_BPF_SNDCWND_CLAMP => put("snd_ssthresh", positive?),
        // At most 200 ms.
        TCP_BPF_DELACK_MAX | TCP_BPF_RTO_MIN => {
            let microseconds = positive?;
            if microseconds > 200_000 || microseconds.div_ceil(TICK) < SHORTEST {
                return Err(Errno::EINVAL);
            }
            Ok(())
        }
        TCP_BPF_SOCK_OPS_CB_FLAGS if number.cast_unsigned() & !ALL_CALLBACKS == 0 => {
            socket.callback_flags = number.cast_unsigned();
            Ok(())
        }
        _ => Err(Errno::EINVAL),
    }?;
    let value = number.to_ne_bytes().to_vec();
    socket.options.insert((SOL_TCP, name), value);
    Ok(())
}

/// Microseconds per tick at 250 Hz.
const TICK: u64 = 4_000;
/// `TCP_TIMEOUT_MIN`, in ticks.
const SHORTEST: u64 = 2;

/// `bpf_getsockopt(context or socket, level, name, buffer, its length)`: zeroes the buffer on
/// an error.
pub fn get(call: &mut Call<'_>) -> Returned {
    let (level, name, len) = (call.arg_i32(2), call.arg_i32(3), call.size(5));
    call.check(4, len, AccessKind::Write)?;
    let socket = socket_of(call)?;
    if level == SOL_TCP && (TCP_BPF_SYN..=TCP_BPF_SYN_MAC).contains(&name) {
        return get_syn(call, name, len);
    }
    let found = match call.machine.socket(socket) {
        Some(socket) => read(socket, level, name, len),
        None => Err(Errno::EINVAL),
    };
    let (mut bytes, returned) = match found {
        Ok(bytes) => (bytes, 0),
        Err(errno) => (Vec::new(), errno.to_ret()),
    };
    bytes.resize(len, 0);
    call.write(4, &bytes)?;
    Ok(returned)
}

fn read(socket: &Socket, level: i32, name: i32, len: usize) -> Result<Vec<u8>, Errno> {
    if !socket.is_full() || !has_level(socket, level) {
        return Err(Errno::EINVAL);
    }
    let set = socket.option_value(level, name);
    let number = match (level, name) {
        (SOL_TCP, TCP_CONGESTION) if len < 2 => return Err(Errno::EINVAL),
        (SOL_TCP, TCP_CONGESTION) => {
            let text = set.unwrap_or(CUBIC);
            return Ok(text.iter().copied().take(len - 1).collect());
        }
        (SOL_TCP, TCP_SAVED_SYN) => {
            let saved = set.filter(|saved| (1..=saved.len()).contains(&len));
            let saved = saved.ok_or(Errno::EINVAL)?;
            return Ok(saved.iter().copied().take(len).collect());
        }
        (SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS) => socket.callback_flags,
        _ if !is_number(level, name) => return Err(Errno::EINVAL),
        (SOCKET, SO_PRIORITY) => socket.priority,
        (SOCKET, SO_MARK) => socket.mark,
        (SOCKET, SO_BINDTOIFINDEX) => socket.device,
        (SOCKET, SO_REUSEPORT) => socket.reuses_port.into(),
        _ => {
            let number = set.and_then(|set| set.first_chunk());
            number.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
        }
    };
    match len {
        4 => Ok(number.to_ne_bytes().to_vec()),
        _ => Err(Errno::EINVAL),
    }
}

/// The headers of the SYN that opened the connection (`bpf_sock_ops_get_syn`): TCP, or IP and
/// TCP; the link header is not stored.
fn get_syn(call: &mut Call<'_>, name: i32, len: usize) -> Returned {
    let syn = call
        .machine
        .current()
        .map(|current| current.placed.kern.syn.clone());
    let syn = syn.unwrap_or_default();
    let headers = match name {
        TCP_BPF_SYN => tcp_header(&syn).to_vec(),
        TCP_BPF_SYN_MAC => Vec::new(),
        _ => syn,
    };
    let returned = match headers.len() {
        0 => Errno::ENOENT.to_ret(),
        needed if needed > len => Errno::ENOSPC.to_ret(),
        needed => needed as u64,
    };
    let mut bytes = headers;
    bytes.resize(len, 0);
    call.write(4, &bytes)?;
    Ok(returned)
}

/// The TCP header after an IP header.
pub fn tcp_header(packet: &[u8]) -> &[u8] {
    let ip = match packet.first().map(|byte| (byte >> 4, byte & 0xf)) {
        Some((4, words)) => usize::from(words) * 4,
        Some((6, _)) => 40,
        _ => return &[],
    };
    packet.get(ip..).unwrap_or_default()
}
