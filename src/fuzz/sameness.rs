//! The *sameness* oracle: a program is changed in a way that must not change the verdict.

use std::sync::Arc;

use super::listing::{LOAD_64, Listing};
use super::mutate::{is_branch, opposite, rename};
use super::oracle::Oracle;
use super::problem::Problem;
use super::random::Random;
use super::verdicts::template;
use crate::isa::RawInsn;
use crate::program::Program;
use crate::spec::ProgFlags;
use crate::util::Errno;
use crate::verifier::{Decision, Options, Reject, Verdict, trace, verify};

/// A change that must not change the verdict.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// Callee-saved registers have other names.
    Renamed,
    /// Jumps to the next instruction are inserted, which are new places to prune at.
    Jumps,
    /// Branches are inverted, so that the other way is explored first.
    Order,
    /// Instructions are inserted that no path reaches.
    Dead,
    /// Every place that may have a checkpoint has one, or only those that Linux chooses.
    Checkpoints,
}

/// How kinds of problems begin where the two verdicts are the same with `Options::order_free`.
pub(super) const ORDER: &str = "order of exploration: ";

/// `goto +0`.
const GOTO: u8 = 0x05;
/// `r0 = 0`.
const SET: u8 = 0xb7;
/// `if r0 == 0 goto +0`.
const IF_EQUAL: u8 = 0x15;
/// `r0 = *(u64 *)(r0 + 0)`.
const LOAD: u8 = 0x79;

/// Changes a program in a random way; the problem if the verdict is another one.
pub(super) fn check(
    program: &Arc<Program>,
    verdict: &Verdict,
    options: &Options,
    random: &mut Random,
) -> Option<Problem> {
    let change = random.pick(&[
        Change::Renamed,
        Change::Jumps,
        Change::Order,
        Change::Dead,
        Change::Checkpoints,
    ]);
    let mut flags = program.flags;
    let mut listing = Listing::of(program);
    let what = match change {
        Change::Renamed => {
            renamed(&mut listing, random);
            "registers renamed"
        }
        Change::Jumps => {
            add_jumps(&mut listing, random);
            "jumps to the next instruction added"
        }
        Change::Order => {
            reorder(&mut listing);
            "branches explored in the other order"
        }
        Change::Dead => {
            add_dead_code(&mut listing, random);
            "dead code added"
        }
        Change::Checkpoints => {
            flags.toggle(ProgFlags::TEST_STATE_FREQ);
            "other checkpoints"
        }
    };
    let mut changed = listing.program(program)?;
    changed.flags = flags;
    let changed = Arc::new(changed);
    let other = verify(&changed, options).verdict;
    if is_limit(verdict) || is_limit(&other) || other.decision == Decision::Unjudged {
        return None;
    }
    let same = verdict.decision == other.decision;
    // Of several errors another one may be met first.
    let has_same_error = !matches!(change, Change::Renamed)
        || verdict.errno == other.errno
            && without_registers(&verdict.message) == without_registers(&other.message);
    if same && has_same_error {
        return None;
    }
    let text = |verdict: &Verdict| {
        let word = verdict.decision.word();
        format!("{word} {}", verdict.message).trim_end().to_owned()
    };
    let depends = !same && agree(program, &changed, options);
    let order = if depends { ORDER } else { "" };
    let error = &verdict.message;
    let kind = match (verdict.decision, other.decision) {
        (Decision::Accept, _) => format!("{}, with {what} only", other.message),
        (_, Decision::Accept) => format!("{error}, not with {what}"),
        _ => format!("{error}, with {what}: {}", other.message),
    };
    Some(Problem::new(
        Oracle::SAMENESS,
        &format!("{order}{kind}"),
        text(verdict),
        format!("with {what}: {}", text(&other)),
    ))
}

/// The problem with an accepted program that is rejected if no path is pruned by less than its
/// whole state.
pub(super) fn without_pruning(
    program: &Arc<Program>,
    reject: &Reject,
    options: &Options,
    states: u64,
) -> Problem {
    let options = order_free(options);
    let verdict = verify(program, &options).verdict;
    let agree = match trace(program, &options, states) {
        Ok(trace) => verdict.is_accepted() || !trace.is_complete(),
        Err(_) => !verdict.is_accepted(),
    };
    let order = if agree { ORDER } else { "" };
    Problem::new(
        Oracle::SAMENESS,
        &format!("{order}{}, without pruning only", reject.message()),
        "accepted",
        format!("without pruning: {}", reject.message()),
    )
}

fn order_free(options: &Options) -> Options {
    Options {
        order_free: true,
        ..*options
    }
}

/// Whether two programs have the same verdict where it does not depend on the order of exploration,
/// or too many instructions for one.
fn agree(program: &Arc<Program>, changed: &Arc<Program>, options: &Options) -> bool {
    let options = order_free(options);
    let [verdict, other] = [program, changed].map(|program| verify(program, &options).verdict);
    verdict.decision == other.decision || is_limit(&verdict) || is_limit(&other)
}

/// Whether a verdict is about a limit, which a changed program may meet earlier.
fn is_limit(verdict: &Verdict) -> bool {
    matches!(verdict.errno, Some(Errno::E2BIG | Errno::ENOMEM))
}

/// A message without numbers: registers and instructions have others. The states of an endless
/// loop list registers in another order.
fn without_registers(message: &str) -> String {
    match message.starts_with("old state:") {
        true => "old state".to_owned(),
        false => template(message),
    }
}

fn renamed(listing: &mut Listing, random: &mut Random) {
    // Packet bytes are loaded through r6.
    let first = if listing.loads_packet_bytes() { 7 } else { 6 };
    let saved = usize::from(10 - first);
    let by = 1 + random.byte(saved as u64 - 1);
    rename(&mut listing.items, |reg| match reg {
        reg if (first..10).contains(&reg) => first + (reg - first + by) % (10 - first),
        reg => reg,
    });
}

fn add_jumps(listing: &mut Listing, random: &mut Random) {
    for _ in 0..1 + random.below(3) {
        let at = random.index(listing.items.len());
        let Some(next) = listing.items.get(at).map(|item| item.label) else {
            return;
        };
        // Whoever jumps to the instruction, or calls it, now comes to the new one.
        listing.insert(at, RawInsn::new(GOTO, 0, 0, 0, 0), Some(next), true);
    }
}

/// `r = 1` becomes `r = 0; if r == 0 goto N; r = *(u64 *)(r + 0); N: r = 1`: the load would fault.
fn add_dead_code(listing: &mut Listing, random: &mut Random) {
    let sets = |insn: RawInsn| insn.opcode == SET || insn.opcode == LOAD_64;
    let places = listing.items.iter().enumerate();
    let places = places.filter(|(_, item)| sets(item.insn) && item.insn.dst() < 10);
    let places: Vec<usize> = places.map(|(at, _)| at).collect();
    if places.is_empty() {
        return;
    }
    let at = random.pick(&places);
    let Some(item) = listing.items.get(at).copied() else {
        return;
    };
    let reg = item.insn.dst();
    listing.insert(at, RawInsn::new(SET, reg, 0, 0, 0), None, true);
    let branch = RawInsn::new(IF_EQUAL, reg, 0, 0, 0);
    listing.insert(at + 1, branch, Some(item.label), false);
    listing.insert(at + 2, RawInsn::new(LOAD, reg, reg, 0, 0), None, false);
}

/// `if c goto T; F` becomes `if !c goto F; goto T; F`.
fn reorder(listing: &mut Listing) {
    for at in (0..listing.items.len().saturating_sub(1)).rev() {
        let Some(item) = listing.items.get(at).copied() else {
            continue;
        };
        let next = listing.items.get(at + 1).map(|item| item.label);
        let (Some(next), Some(target), Some(op), true) =
            (next, item.to, opposite(item.insn.opcode), is_branch(&item))
        else {
            continue;
        };
        // Loops keep their order: whether they end is found out on the way back.
        let target_at = listing.items.iter().position(|item| item.label == target);
        if target_at.is_none_or(|target| target <= at) {
            continue;
        }
        listing.insert(at + 1, RawInsn::new(GOTO, 0, 0, 0, 0), Some(target), false);
        // The new jump stands where the other way began: jumps there still lead behind it.
        if let Some(item) = listing.items.get_mut(at) {
            item.insn.opcode = op;
            item.to = Some(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::{assemble, disassemble};
    use crate::spec::ProgType;

    /// The jump to the changed instruction leads to the new ones, whose branch skips the load.
    #[test]
    fn dead_code_is_skipped() {
        let text = "if r1 == 0 goto +1\nr6 = r1\nr0 = 1\nexit\n";
        let program = Program::new("whole", ProgType::Xdp, assemble(text).unwrap());
        let mut listing = Listing::of(&program);
        add_dead_code(&mut listing, &mut Random(1));
        let changed = listing.program(&program).unwrap();
        let expected = "if r1 == 0x0 goto +1\nr6 = r1\nr0 = 0\nif r0 == 0x0 goto +1\n\
                        r0 = *(u64 *)(r0 +0)\nr0 = 1\nexit\n";
        let expected = assemble(expected).unwrap();
        assert_eq!(
            changed.insns,
            expected,
            "{}",
            disassemble(&changed.insns, &changed)
        );
    }
}
