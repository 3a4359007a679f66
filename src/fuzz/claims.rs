//! What the kernel's log of level 2 claims about registers, as a second source for the *state*
//! oracle.
//!
//! The log shows the destination of each explored instruction as it is afterwards. A run must
//! have a value there that some path has. The kernel ignores what does not matter when it prunes,
//! so a pruned path may have other values: nothing is claimed where any path was pruned.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::oracle::Oracle;
use super::problem::Problem;
use super::runs::Prepared;
use crate::engine::{Step, Watch};
use crate::isa::{CallTarget, Code, Insn, Pseudo};
use crate::program::Program;
use crate::util::Pc;

/// The bounds of a number in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bounds {
    smin: i64,
    smax: i64,
    umin: u64,
    umax: u64,
    smin32: i32,
    smax32: i32,
    umin32: u32,
    umax32: u32,
    /// Known bits, and which bits are unknown.
    value: u64,
    mask: u64,
}

impl Bounds {
    const ALL: Self = Self {
        smin: i64::MIN,
        smax: i64::MAX,
        umin: 0,
        umax: u64::MAX,
        smin32: i32::MIN,
        smax32: i32::MAX,
        umin32: 0,
        umax32: u32::MAX,
        value: 0,
        mask: u64::MAX,
    };

    fn holds(&self, number: u64) -> bool {
        let [a, b, c, d, ..] = number.to_le_bytes();
        let (low, signed) = (u32::from_le_bytes([a, b, c, d]), number.cast_signed());
        (self.umin..=self.umax).contains(&number)
            && (self.smin..=self.smax).contains(&signed)
            && (self.umin32..=self.umax32).contains(&low)
            && (self.smin32..=self.smax32).contains(&low.cast_signed())
            && number & !self.mask == self.value
    }

    /// Of the text in the log. `None` if it is no number, or not understood.
    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('P').unwrap_or(text);
        let Some(inner) = text.strip_prefix("scalar(") else {
            let value = number(text)?;
            return Some(Self {
                value,
                mask: 0,
                ..Self::ALL
            });
        };
        let mut bounds = Self::ALL;
        let mut rest = inner.strip_suffix(')')?;
        while !rest.is_empty() {
            let end = match rest.strip_prefix("var_off=(") {
                Some(bits) => rest.len() - bits.len() + bits.find(')')? + 1,
                None => rest.find(',').unwrap_or(rest.len()),
            };
            let (item, behind) = rest.split_at(end);
            rest = behind.strip_prefix(',').unwrap_or(behind);
            bounds.narrow(item)?;
        }
        Some(bounds)
    }

    /// Applies `smax=umax=5`, `var_off=(0x0; 0xff)` and so on.
    fn narrow(&mut self, item: &str) -> Option<()> {
        if let Some(bits) = item.strip_prefix("var_off=(") {
            let (value, mask) = bits.strip_suffix(')')?.split_once("; ")?;
            (self.value, self.mask) = (number(value)?, number(mask)?);
            return Some(());
        }
        let (names, value) = item.rsplit_once('=')?;
        let low = |number: u64| {
            let [a, b, c, d, ..] = number.to_le_bytes();
            u32::from_le_bytes([a, b, c, d])
        };
        for name in names.split('=') {
            match name {
                // It says which registers are linked, and by which distance.
                "id" => return Some(()),
                "smin" => self.smin = number(value)?.cast_signed(),
                "smax" => self.smax = number(value)?.cast_signed(),
                "umin" => self.umin = number(value)?,
                "umax" => self.umax = number(value)?,
                "smin32" => self.smin32 = low(number(value)?).cast_signed(),
                "smax32" => self.smax32 = low(number(value)?).cast_signed(),
                "umin32" => self.umin32 = low(number(value)?),
                "umax32" => self.umax32 = low(number(value)?),
                _ => return None,
            }
        }
        Some(())
    }
}

/// A number of the log: decimal or hexadecimal, perhaps negative.
fn number(text: &str) -> Option<u64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let number = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative {
        number.wrapping_neg()
    } else {
        number
    })
}

/// What a log claims: for each instruction, the bounds of its destination afterwards, one for
/// each path.
#[derive(Debug, Default)]
pub(super) struct Claims {
    after: BTreeMap<u32, (u8, Vec<Bounds>)>,
}

impl Claims {
    /// The claims of a log. `None` where it claims nothing: a path was pruned, or the program has
    /// functions.
    pub(super) fn of(program: &Program, log: &str) -> Option<Self> {
        let code = Code::new(&program.insns);
        let calls = |pc| match code.insn(Pc::from_index(pc)) {
            Some(Insn::Call(CallTarget::Subprogram { .. })) => true,
            Some(Insn::LoadPseudo { source, .. }) => matches!(source, Pseudo::Func { .. }),
            _ => false,
        };
        if log.contains(": safe\n") || (0..program.insns.len()).any(calls) {
            return None;
        }
        let mut claims = Self::default();
        let mut unknown = Vec::new();
        for line in log.lines() {
            let Some((pc, registers)) = split(line) else {
                continue;
            };
            let Some(dst) = code.insn(Pc(pc)).and_then(|insn| destination(&insn)) else {
                continue;
            };
            let states = crate::explain::registers_of(registers);
            let bounds = states.get(&dst).and_then(|text| Bounds::parse(text));
            match bounds {
                Some(bounds) => {
                    let (_, all) = claims.after.entry(pc).or_insert((dst, Vec::new()));
                    all.push(bounds);
                }
                // A pointer, or nothing was printed here.
                None => unknown.push(pc),
            }
        }
        for pc in unknown {
            claims.after.remove(&pc);
        }
        Some(claims)
    }
}

/// The position, and the registers behind the semicolon, of `7: (bf) r1 = r2 ; R1=5 R2=5`. There
/// are none if the kernel printed another line (`SCC enter`, `mark_precise`) before the registers.
fn split(line: &str) -> Option<(u32, &str)> {
    let (pc, rest) = line.split_once(": (")?;
    let registers = rest
        .split_once(" ; ")
        .map_or("", |(_, registers)| registers);
    Some((pc.parse().ok()?, registers))
}

/// The register that an instruction computes or loads.
fn destination(insn: &Insn) -> Option<u8> {
    Some(match insn {
        Insn::Alu { dst, .. }
        | Insn::MovSx { dst, .. }
        | Insn::Neg { dst, .. }
        | Insn::Endian { dst, .. }
        | Insn::LoadImm64 { dst, .. }
        | Insn::Load { dst, .. }
        | Insn::LoadSx { dst, .. } => dst.number(),
        _ => return None,
    })
}

/// Watches a run.
struct Watcher<'a> {
    program: &'a Arc<Program>,
    claims: &'a Claims,
    last: Option<Pc>,
    checked: u64,
    broken: Option<String>,
}

impl Watch for Watcher<'_> {
    fn before(&mut self, step: &Step<'_>) {
        let is_here =
            Arc::ptr_eq(step.image.program(), self.program) && step.frames.len() == step.outer + 1;
        let last = std::mem::replace(&mut self.last, is_here.then_some(step.pc));
        let (Some(last), true, None) = (last, is_here, &self.broken) else {
            return;
        };
        let Some((dst, bounds)) = self.claims.after.get(&last.0) else {
            return;
        };
        let frame = step.frames.last();
        let value = frame.and_then(|frame| frame.regs.get(usize::from(*dst)));
        let value = value.copied().unwrap_or_default();
        self.checked += 1;
        if !bounds.iter().any(|bounds| bounds.holds(value)) {
            self.broken = Some(format!(
                "after instruction {last}: R{dst} is {value:#x}, which none of {} states in the \
                 kernel's log has",
                bounds.len()
            ));
        }
    }
}

/// Runs a program whose log in the kernel is known; the number of steps that were checked, and
/// the problem.
pub(super) fn check(prepared: &Prepared<'_>, log: &str, count: u32) -> (u64, Option<Problem>) {
    let candidate = prepared.candidate;
    let Some(claims) = Claims::of(&candidate.program, log) else {
        return (0, None);
    };
    let Ok((mut vm, handle)) = prepared.machine() else {
        return (0, None);
    };
    let mut inputs = super::inputs::Inputs::new(candidate.seed);
    let mut checked = 0;
    for number in 0..count {
        let event = prepared.event(&mut vm, &mut inputs, number);
        let mut watcher = Watcher {
            program: &candidate.program,
            claims: &claims,
            last: None,
            checked: 0,
            broken: None,
        };
        let result = vm.run_watched(handle, &event, &mut watcher);
        checked += watcher.checked;
        if let Some(broken) = watcher.broken {
            let ours = "the kernel's log claims other values";
            let kind = "kernel's log: a register has a value that it excludes";
            return (
                checked,
                Some(Problem::new(Oracle::STATE, kind, ours, broken)),
            );
        }
        if result.is_err() {
            break;
        }
    }
    (checked, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::assemble;
    use crate::spec::ProgType;

    #[test]
    fn numbers_of_the_log() {
        let bounds = Bounds::parse("scalar(id=3+1,smin=0,smax=umax=255,var_off=(0x0; 0xff))");
        let bounds = bounds.unwrap();
        assert!(bounds.holds(255) && !bounds.holds(256));
        let signed = Bounds::parse("Pscalar(smin=-8,smax=7)").unwrap();
        assert!(signed.holds(u64::MAX) && !signed.holds(8));
        let half = Bounds::parse("scalar(smax32=5)").unwrap();
        assert!(half.holds(0xffff_ffff_0000_0005) && !half.holds(6));
        assert!(Bounds::parse("-1").unwrap().holds(u64::MAX));
        assert_eq!(Bounds::parse("fp-8"), None);
        assert_eq!(Bounds::parse("scalar(new=3)"), None);
    }

    #[test]
    fn pruned_paths_claim_nothing() {
        let insns = assemble("r0 = 7\nexit").unwrap();
        let program = Program::new("two", ProgType::Xdp, insns);
        let log =
            "0: R1=ctx() R10=fp0\n0: (b7) r0 = 7                        ; R0=7\n1: (95) exit\n";
        let claims = Claims::of(&program, log).unwrap();
        assert_eq!(claims.after.len(), 1);
        assert!(Claims::of(&program, &format!("{log}1: safe\n")).is_none());
        // The second path's registers are elsewhere.
        let second = format!("{log}0: (b7) r0 = 7\nSCC enter (1)\n1: R0=7\n1: (95) exit\n");
        assert!(Claims::of(&program, &second).unwrap().after.is_empty());
    }
}
