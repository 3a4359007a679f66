//! Comparisons of packet pointers with the packet's end (`find_good_pkt_pointers`,
//! `kernel/bpf/verifier.c`) that do not allow an access.

use super::advice::Flaw;
use super::origin::Path;
use super::template::fit;
use crate::isa::{JumpOp, Reg};
use crate::util::Pc;
use crate::verifier::Reject;

/// The kernel ignores comparisons of pointers that may be further into the packet.
const MAX_PACKET_OFF: i64 = 0xffff;

/// A comparison with the packet's end that does not allow the access at fault.
pub(super) struct Insufficient {
    /// The conditional jump.
    pub pc: Pc,
    /// The instruction to change: the jump, or the one that adds an offset without a bound.
    pub blamed: Pc,
    pub flaw: Flaw,
    /// The bytes that it covers from the pointer on, and the end of the access.
    covered: (i64, i64),
}

impl Insufficient {
    /// `2 of 4`.
    pub fn covered(&self) -> String {
        format!("{} of {}", self.covered.0.max(0), self.covered.1)
    }
}

/// The comparison that is to blame for an access outside of the packet. There is none if the
/// access begins behind all that was compared: then one is missing.
pub(super) fn insufficient(reject: &Reject, path: &Path<'_>, pointer: Reg) -> Option<Insufficient> {
    const LINE: &str =
        "invalid access to packet, off={off} size={size}, R{reg}(id={id},off={same},r={range})";
    let line = reject.text().lines().find_map(|line| fit(LINE, line))?;
    let number = |name: &str| line.get(name)?.parse::<i64>().ok();
    let state = reject.trail()?.register(pointer)?;
    // The constant part of the offset, in the register and in the compared pointer.
    let fixed = field(state, "off").unwrap_or(0);
    let first = number("off")?.wrapping_sub(fixed);
    let end = first.wrapping_add(number("size")?);
    let is_variable = number("id")? != 0;
    let compared = path.compared(pointer)?;
    let constant = fixed.wrapping_add(compared.ahead);
    let highest = field(state, "umax").unwrap_or(0);
    let covered = match compared.op {
        JumpOp::Lt => compared.ahead.wrapping_add(1),
        _ => compared.ahead,
    };
    let flaw = match compared.op {
        JumpOp::Gt | JumpOp::Ge => Flaw::Backwards,
        JumpOp::Lt if constant == 0 => Flaw::StartOnly,
        JumpOp::Lt | JumpOp::Le if highest.wrapping_add(constant) > MAX_PACKET_OFF => Flaw::TooFar,
        JumpOp::Lt | JumpOp::Le if covered < end => {
            // A constant offset that begins where the comparison ends: the next header, whose
            // comparison is missing.
            let begins = covered == first && (is_variable || constant == 0);
            if covered <= first && !begins {
                return None;
            }
            Flaw::Short
        }
        _ => return None,
    };
    Some(Insufficient {
        pc: compared.pc,
        blamed: match flaw {
            Flaw::TooFar => compared.base,
            _ => compared.pc,
        },
        flaw,
        covered: (covered, end),
    })
}

/// A number of a register's state in the log's notation, also one with several names:
/// `smax=umax=0x3c`.
fn field(state: &str, wanted: &str) -> Option<i64> {
    let mut fields = state.split(['(', ',', ')']);
    let field = fields.find(|field| field.split('=').any(|name| name == wanted))?;
    let value = field.rsplit('=').next()?;
    match value.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_the_state() {
        let state = "pkt(id=3,off=26,r=0,smin=umin=20,smax=umax=smax32=umax32=0x1003b,\
                     var_off=(0x0; 0x1ffff))";
        assert_eq!(field(state, "umax"), Some(0x1003b));
        assert_eq!(field(state, "off"), Some(26));
        assert_eq!(field("pkt(id=1,r=0,umax=60)", "umax"), Some(60));
        assert_eq!(field("pkt(r=0)", "off"), None);
    }
}
