//! Alignment (`check_ptr_alignment`). The stack always requires it, because its slots are
//! tracked separately. Other memory requires it only for atomics, or if the CPU or the
//! program does.

use super::MemoryAccess;
use crate::spec::ProgFlags;
use crate::verifier::env::Verifier;
use crate::verifier::reg::{Kind, RegState};
use crate::verifier::reject::{VerifyResult, reject};
use crate::verifier::tnum::Tnum;

/// The start of the packet: with it, the IP header after fourteen bytes of Ethernet is
/// aligned (`NET_IP_ALIGN`).
const PACKET_START: i32 = 2;

impl Verifier<'_> {
    /// Checks that the address is a multiple of the size, where this is required.
    pub(in crate::verifier) fn check_alignment(
        &self,
        reg: &RegState,
        a: &MemoryAccess,
    ) -> VerifyResult {
        let plain = reg.flags.is_empty();
        let stack = plain && matches!(reg.kind, Kind::Stack { .. });
        let flags = self.program.flags;
        let wanted = stack
            || a.strict
            || self.options.strict_alignment
            || flags.contains(ProgFlags::STRICT_ALIGNMENT)
                && !flags.contains(ProgFlags::ANY_ALIGNMENT);
        if !wanted || a.size == 1 || reg.kind == Kind::Arena {
            return Ok(());
        }
        let packet = plain && reg.is_packet();
        let start = if packet { PACKET_START } else { 0 };
        let fixed = i64::from(start) + i64::from(reg.off) + i64::from(a.off);
        let place = reg.var.bits.add(Tnum::constant(fixed.cast_unsigned()));
        if place.is_aligned(a.size.into()) {
            return Ok(());
        }
        let (bits, off, at, size) = (reg.var.bits, reg.off, a.off, a.size);
        if packet {
            reject!(
                EACCES,
                "misaligned packet access off {start}+{bits}+{off}+{at} size {size}"
            );
        }
        let what = match reg.kind {
            _ if !plain => "",
            Kind::FlowKeys => "flow keys ",
            Kind::MapKey { .. } => "key ",
            Kind::MapValue { .. } => "value ",
            Kind::Ctx => "context ",
            Kind::Stack { .. } => "stack ",
            Kind::Socket => "sock ",
            Kind::SockCommon => "sock_common ",
            Kind::TcpSock => "tcp_sock ",
            Kind::XdpSock => "xdp_sock ",
            _ => "",
        };
        reject!(
            EACCES,
            "misaligned {what}access off {bits}+{off}+{at} size {size}"
        );
    }
}
