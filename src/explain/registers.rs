//! Reads the states of registers in a log.

use std::collections::BTreeMap;

use crate::isa::Reg;

/// The registers that are known, in the log's notation.
pub(super) type Registers = BTreeMap<u8, String>;

/// Whether a line is a list of registers: `R0=0 R10=fp0`, `frame1: R1_w=1`.
pub(super) fn is_list(line: &str) -> bool {
    let line = without_frame(line);
    line.split_whitespace().next().and_then(register).is_some()
}

/// The registers of a list. Its other words (stack slots, references) are skipped.
pub(crate) fn read(list: &str) -> Registers {
    let mut registers = Registers::new();
    for word in words(without_frame(list)) {
        if let Some((reg, state)) = register(word) {
            registers.insert(reg.number(), state.to_owned());
        }
    }
    registers
}

fn without_frame(line: &str) -> &str {
    let line = line.trim_start();
    match line.split_once(": ") {
        Some((frame, rest)) if frame.starts_with("frame") => rest,
        _ => line,
    }
}

/// `R0_w=scalar(…)`: the register without the marks of its liveness, and its state.
fn register(word: &str) -> Option<(Reg, &str)> {
    let (name, state) = word.strip_prefix('R')?.split_once('=')?;
    let digits = name
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(name.len());
    let (number, marks) = name.split_at(digits);
    if !(marks.is_empty() || marks.starts_with('_')) {
        return None;
    }
    Some((Reg::from_number(number.parse().ok()?)?, state))
}

/// Splits at blanks outside of parentheses.
pub(crate) fn words(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    list.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && c.is_whitespace()
    })
    .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_may_contain_blanks() {
        let list =
            "R0_w=inv(id=0,umax_value=255,var_off=(0x0; 0xff)) R6=ctx(id=0) R10=fp0 fp-8=mmmm";
        let registers = read(list);
        assert_eq!(
            registers[&0],
            "inv(id=0,umax_value=255,var_off=(0x0; 0xff))"
        );
        assert_eq!(registers[&6], "ctx(id=0)");
        assert_eq!(registers.len(), 3);
        assert!(is_list("frame1: R1=ctx() R10=fp0"));
        assert!(!is_list("R1 type=ctx expected=fp"));
        assert!(!is_list("R1 !read_ok"));
    }
}
