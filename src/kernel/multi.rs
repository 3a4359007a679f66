//! Whether the kernel has links of many probes. Older kernels, and those without fprobe, load
//! programs for them, too, and then refuse the link.

use std::sync::OnceLock;

use super::sys::{KernelProbes, LinkFd, ProgFd, ProgRequest, UserProbes};
use crate::isa::RawInsn;
use crate::spec::{AttachType, ProgType};
use crate::util::Errno;
use crate::verifier::LogLevel;

/// Whether the kernel lacks this type of link, in whose place single probes do: the program is
/// loaded for these then, since some helpers differ. No other type of link has such a place.
pub(super) fn is_lacking(attach_type: AttachType) -> bool {
    static KERNEL: OnceLock<bool> = OnceLock::new();
    static USER: OnceLock<bool> = OnceLock::new();
    match attach_type {
        AttachType::TraceKprobeMulti => *KERNEL.get_or_init(|| lacks(attach_type)),
        AttachType::TraceUprobeMulti => *USER.get_or_init(|| lacks(attach_type)),
        _ => false,
    }
}

/// Asks for a link of something that does not exist: the error tells whether the kernel looked
/// for it.
fn lacks(attach_type: AttachType) -> bool {
    // r0 = 0; exit
    let insns = [
        RawInsn::new(0xb7, 0, 0, 0, 0),
        RawInsn::new(0x95, 0, 0, 0, 0),
    ];
    let insns: Vec<u8> = insns.iter().flat_map(|insn| insn.to_bytes()).collect();
    let request = ProgRequest {
        prog_type: ProgType::Kprobe.number(),
        expected_attach_type: attach_type.number(),
        insns: &insns,
        license: c"GPL",
        name: Default::default(),
        flags: 0,
        attach_btf_id: 0,
        attach_prog_fd: 0,
        btf: None,
        func_info: &[],
        line_info: &[],
        maps: &[],
        log_level: LogLevel::STATISTICS.bits(),
        token: None,
    };
    let mut log = vec![0; 1 << 12];
    let program = match ProgFd::load(&request, &mut log).0 {
        Ok(program) => program,
        Err(errno) => return is_unknown(errno),
    };
    let link = match attach_type {
        AttachType::TraceUprobeMulti => LinkFd::user_probes(
            &program,
            &UserProbes {
                attach_type,
                path: c"/",
                offsets: &[0],
                semaphores: &[],
                cookies: &[],
                returns: false,
                pid: None,
            },
        ),
        _ => LinkFd::kernel_probes(
            &program,
            &KernelProbes {
                attach_type,
                symbols: &[c"no_function_of_this_name"],
                cookies: &[],
                returns: false,
            },
        ),
    };
    link.is_err_and(is_unknown)
}

/// Whether an errno means that the kernel does not know the request.
const fn is_unknown(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::EINVAL | Errno::E2BIG | Errno::EOPNOTSUPP | Errno::ENOTSUPP
    )
}
