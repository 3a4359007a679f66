//! Programs for the packets of a device: `lo`, and one end of a pair of `veth` devices, whose
//! driver runs XDP itself. Each test has a network namespace of its own: what its programs decide
//! about packets concerns nobody else.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;

use bpflab::Object;

use crate::forms::{compare, object};
use crate::run::events;
use crate::shared::{Need, skip};
use crate::{ANY_ORDER, work};

#[test]
fn packets_in_the_stack_before_its_rules() {
    compare_on_lo("xdp", object("xdp"), "drop_some", events() / 3);
}

#[test]
fn packets_at_the_entry_of_tc() {
    compare_on_lo("tc", object("tc"), "mark_some", events() / 3);
}

#[test]
fn packets_in_the_driver() {
    compare_on_veth("xdp", "drop_some");
}

#[test]
fn packets_of_a_pair_of_devices_in_tc() {
    compare_on_veth("tc", "mark_some");
}

/// Compares a program for packets at the device `lo`.
#[track_caller]
pub fn compare_on_lo(name: &str, object: Object, program: &str, least: u64) {
    in_own_network(|| {
        let datagrams = work::command("datagrams 9", events());
        compare_at("lo", name, object, program, datagrams, least);
    });
}

/// Compares a program at one end of a pair, while frames come in from the other.
#[track_caller]
fn compare_on_veth(name: &str, program: &str) {
    in_own_network(|| {
        const ENDS: [&str; 2] = ["pair0", "pair1"];
        if let Err(error) = make_pair(ENDS).and_then(|()| ENDS.into_iter().try_for_each(set_up)) {
            skip(
                Need::Feature,
                format_args!("a pair of veth devices: {error}"),
            );
            return;
        }
        let frames = work::command(&format!("frames {}", ENDS[1]), events());
        compare_at(ENDS[0], name, object(name), program, frames, events() / 3);
    });
}

#[track_caller]
fn compare_at(
    device: &str,
    name: &str,
    mut object: Object,
    program: &str,
    mut command: Command,
    least: u64,
) {
    let entry = object.entry_mut(program).unwrap();
    entry.set_attach_target(device);
    let need = Need::Feature;
    compare(name, &object, need, &mut command, least, ANY_ORDER);
}

/// Runs a test in a thread with a new network namespace, whose device `lo` is up.
fn in_own_network(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| match own_network() {
            Ok(()) => test(),
            Err(error) => skip(Need::Kernel, format_args!("a network namespace: {error}")),
        });
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

fn done(result: i32) -> io::Result<i32> {
    match result {
        0.. => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}

#[expect(unsafe_code, reason = "no crate of the tests does this")]
fn own_network() -> io::Result<()> {
    // SAFETY: the call takes a number.
    done(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
    set_up("lo")
}

#[expect(unsafe_code, reason = "no crate of the tests does this")]
fn socket(family: i32, kind: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers; the descriptor that it returns is nobody else's.
    unsafe { Ok(OwnedFd::from_raw_fd(done(libc::socket(family, kind, 0))?)) }
}

/// Sets a device up.
#[expect(unsafe_code, reason = "no crate of the tests does this")]
fn set_up(device: &str) -> io::Result<()> {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM)?;
    // SAFETY: a structure of plain bytes.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    request.ifr_ifru.ifru_flags = 1; // IFF_UP
    // SAFETY: the kernel reads the structure, which lives through the call.
    done(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) })?;
    Ok(())
}

/// Makes a pair of devices by a message of rtnetlink(7).
#[expect(unsafe_code, reason = "no crate of the tests does this")]
fn make_pair([one, other]: [&str; 2]) -> io::Result<()> {
    /// Types of attributes (`linux/if_link.h`, `linux/veth.h`).
    const NAME: u16 = 3;
    const LINK_INFO: u16 = 18;
    const INFO_KIND: u16 = 1;
    const INFO_DATA: u16 = 2;
    const PEER: u16 = 1;
    /// `RTM_NEWLINK`; `NLM_F_REQUEST`, `NLM_F_ACK`, `NLM_F_EXCL` and `NLM_F_CREATE`.
    const NEW_LINK: u16 = 16;
    const FLAGS: u16 = 0x1 | 0x4 | 0x200 | 0x400;
    /// `struct ifinfomsg` that says nothing.
    const LINK: [u8; 16] = [0; 16];
    let attribute = |kind: u16, value: &[u8]| {
        let len = u16::try_from(value.len() + 4).unwrap();
        let mut bytes = [len.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let name = |name: &str| attribute(NAME, format!("{name}\0").as_bytes());
    let peer = attribute(PEER, &[LINK.as_slice(), &name(other)].concat());
    let info = [attribute(INFO_KIND, b"veth"), attribute(INFO_DATA, &peer)].concat();
    let body = [LINK.as_slice(), &name(one), &attribute(LINK_INFO, &info)].concat();
    let mut message = u32::try_from(body.len() + 16)
        .unwrap()
        .to_ne_bytes()
        .to_vec();
    message.extend([NEW_LINK, FLAGS].map(u16::to_ne_bytes).as_flattened());
    message.extend([0; 8]);
    message.extend(body);

    let socket = socket(libc::AF_NETLINK, libc::SOCK_RAW)?;
    let mut answer = [0_u8; 4096];
    // SAFETY: the kernel reads the message and writes into the answer, whose sizes are given.
    let len = unsafe {
        let fd = socket.as_raw_fd();
        let sent = libc::send(fd, message.as_ptr().cast(), message.len(), 0);
        done(i32::try_from(sent).unwrap())?;
        libc::recv(fd, answer.as_mut_ptr().cast(), answer.len(), 0)
    };
    assert!(done(i32::try_from(len).unwrap())? >= 20, "a short answer");
    // The answer to a message is `struct nlmsgerr`: 0, or an error.
    match i32::from_ne_bytes(answer[16..20].try_into().unwrap()) {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}
