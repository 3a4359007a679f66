//! Helpers of cgroup hooks: return values, sysctls, binding a socket (`kernel/bpf/cgroup.c`).

use std::net::SocketAddr;

use super::super::packet;
use super::socket::of_event;
use crate::spec::limits::PAGE_SIZE;
use crate::util::Errno;
use crate::vm::events::{Kern, Sysctl};
use crate::vm::machine::{Call, HelperProblem, Returned};
use crate::vm::memory::AccessKind;
use crate::vm::world::{AF_INET, AF_INET6};

/// `bpf_get_retval()`: the return value of the hook; for socket options a field of the
/// context.
pub fn get_retval(call: &mut Call<'_>) -> Returned {
    let field = packet::field(call, "retval").and_then(|(block, at)| block.load(at, 4));
    let field = field.and_then(|value| u32::try_from(value).ok());
    let kept = call.machine.site().map(|site| site.retval);
    let retval = field.map(u32::cast_signed).or(kept).unwrap_or(0);
    Ok(i64::from(retval).cast_unsigned())
}

/// `bpf_set_retval(number)`: sets the return value of the hook.
pub fn set_retval(call: &mut Call<'_>) -> Returned {
    let retval = call.arg_i32(1);
    if let Some((block, at)) = packet::field(call, "retval") {
        // The field is in the context's layout.
        let _ = block.store(at, 4, retval.cast_unsigned().into());
    }
    if let Some((current, _)) = call.machine.current_mut() {
        current.placed.kern.retval = retval;
        current.placed.site.retval = retval;
    }
    Ok(0)
}

/// The kernel data of the current context, which argument 1 must point to.
fn kern<'a>(call: &'a mut Call<'_>) -> Result<&'a mut Kern, HelperProblem> {
    let wrong = call.wrong(1, "the context");
    let context = call.arg(1);
    let current = call.machine.current_mut();
    let current = current.filter(|(current, _)| current.placed.r1() == context);
    current
        .map(|(current, _)| &mut *current.placed.kern)
        .ok_or(wrong)
}

/// The sysctl of the event.
fn sysctl(call: &mut Call<'_>) -> Result<Sysctl, HelperProblem> {
    let sysctl = kern(call)?.sysctl.clone();
    sysctl.ok_or_else(|| {
        HelperProblem::Other(
            "the event has no sysctl; set it with \
             event.with(|kern| kern.sysctl = Some(Sysctl::read(\"net/ipv4/tcp_mem\", \"1 2 3\\n\")))"
                .to_owned(),
        )
    })
}

/// Whether the sysctl is being written.
fn is_written(call: &Call<'_>) -> bool {
    let field = packet::field(call, "write").and_then(|(block, at)| block.load(at, 4));
    field.is_some_and(|write| write != 0)
}

/// `bpf_sysctl_get_name(context, buffer, its size, flags)`: copies the name below `/proc/sys`
/// or its last part; truncated, with `E2BIG`, if it does not fit with a NUL.
pub fn sysctl_get_name(call: &mut Call<'_>) -> Returned {
    const BASE_NAME: u64 = 1;
    let (size, flags) = (call.size(3), call.arg(4));
    call.check(2, size, AccessKind::Write)?;
    let name = sysctl(call)?.name;
    let name = match flags & BASE_NAME {
        0 => name.as_str(),
        _ => name.rsplit('/').next().unwrap_or(&name),
    };
    let fits = name.len() < size;
    let mut bytes: Vec<u8> = name.bytes().take(size.saturating_sub(1)).collect();
    bytes.push(0);
    call.write(2, &bytes)?;
    Ok(match fits {
        true => name.len() as u64,
        false => Errno::E2BIG.to_ret(),
    })
}

/// Copies a value to the program and zeroes the rest of the buffer; `E2BIG` if truncated.
fn give(call: &mut Call<'_>, value: Option<Vec<u8>>) -> Returned {
    let size = call.size(3);
    call.check(2, size, AccessKind::Write)?;
    let value = value.filter(|value| !value.is_empty());
    let returned = match &value {
        None => Errno::EINVAL.to_ret(),
        Some(value) if value.len() < size => value.len() as u64,
        Some(_) => Errno::E2BIG.to_ret(),
    };
    let mut bytes = value.unwrap_or_default();
    bytes.truncate(size.saturating_sub(1));
    bytes.resize(size, 0);
    call.write(2, &bytes)?;
    Ok(returned)
}

/// `bpf_sysctl_get_current_value(context, buffer, its size)`: copies the current value.
pub fn sysctl_get_current_value(call: &mut Call<'_>) -> Returned {
    let value = sysctl(call)?.current;
    give(call, Some(value))
}

/// `bpf_sysctl_get_new_value(context, buffer, its size)`: copies the value being written.
pub fn sysctl_get_new_value(call: &mut Call<'_>) -> Returned {
    let Sysctl { new, replaced, .. } = sysctl(call)?;
    let value = replaced.or(new).filter(|_| is_written(call));
    give(call, value)
}

/// `bpf_sysctl_set_new_value(context, value, its size)`: replaces the value being written.
pub fn sysctl_set_new_value(call: &mut Call<'_>) -> Returned {
    let size = call.size(3);
    let value = call.read(2, size)?.to_vec();
    let has_new = sysctl(call)?.new.is_some_and(|new| !new.is_empty());
    if !is_written(call) || !has_new || size == 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    if size >= PAGE_SIZE as usize {
        return Ok(Errno::E2BIG.to_ret());
    }
    if let Some(sysctl) = &mut kern(call)?.sysctl {
        sysctl.replaced = Some(value);
    }
    Ok(0)
}

/// `bpf_bind(context, address, its length)`: binds the socket that is about to connect.
pub fn bind(call: &mut Call<'_>) -> Returned {
    // `sizeof(struct sockaddr_in)`, `SIN6_LEN_RFC2133`.
    const INET: usize = 16;
    const INET6: usize = 24;
    let size = call.size(3);
    let bytes = call.read(2, size)?;
    let Some(&[low, high]) = bytes.get(..2) else {
        return Ok(Errno::EINVAL.to_ret());
    };
    let part = |at: usize, len: usize| bytes.get(at..at + len).unwrap_or_default();
    let port = part(2, 2)
        .first_chunk()
        .map_or(0, |port| u16::from_be_bytes(*port));
    let family = u32::from(u16::from_ne_bytes([low, high]));
    let address: SocketAddr = match family {
        AF_INET if size < INET => return Ok(Errno::EINVAL.to_ret()),
        AF_INET6 if size < INET6 => return Ok(Errno::EINVAL.to_ret()),
        AF_INET => {
            let four = <[u8; 4]>::try_from(part(4, 4)).unwrap_or_default();
            SocketAddr::new(four.into(), port)
        }
        AF_INET6 => {
            let six = <[u8; 16]>::try_from(part(8, 16)).unwrap_or_default();
            SocketAddr::new(six.into(), port)
        }
        _ => return Ok(Errno::EAFNOSUPPORT.to_ret()),
    };
    let own = of_event(call, |socket| (socket.family, socket.local));
    let (own_family, bound) = own.unwrap_or((family, None));
    if own_family != family && own_family == AF_INET {
        return Ok(Errno::EAFNOSUPPORT.to_ret());
    }
    // A socket can be bound to a port once; conflicts with other sockets are not checked.
    if bound.is_some_and(|bound| bound.port() != 0) {
        return Ok(Errno::EINVAL.to_ret());
    }
    of_event(call, |socket| socket.local = Some(address));
    kern(call)?.bound = Some(address);
    Ok(0)
}
