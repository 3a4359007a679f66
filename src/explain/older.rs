//! Error lines of other kernels than the modelled one, in its words.
//!
//! The advice is written for Linux 6.18; where another release (5.10 to 7.3) or a loader says the
//! same in other words, its line is translated. What a line means never changes: a line that has
//! no counterpart stays as it is.

use crate::verifier::diagnose::fit;

/// A line of another kernel, and that of Linux 6.18 for the same rule.
const LINES: &[(&str, &str)] = &[
    // Until Linux 5.17 numbers are `inv`.
    (
        "R{reg} invalid mem access 'inv'",
        "R{reg} invalid mem access 'scalar'",
    ),
    (
        "R{reg} type=inv expected={wanted}",
        "R{reg} type=scalar expected={wanted}",
    ),
    // Until Linux 6.8.
    (
        "unknown func {helper}#{id}",
        "program of this type cannot use helper {helper}#{id}",
    ),
    (
        "invalid indirect access to stack R{reg} off={off} size={size}",
        "invalid read from stack R{reg} off={off} size={size}",
    ),
    (
        "invalid stack off={off} size={size}",
        "invalid write to stack R10 off={off} size={size}",
    ),
    (
        "invalid indirect read from stack R{reg} off {off}+{from} size {size}",
        "invalid read from stack off {off}+{from} size {size}",
    ),
    (
        "invalid indirect read from stack off {off}+{from} size {size}",
        "invalid read from stack off {off}+{from} size {size}",
    ),
    (
        "bpf_spin_unlock is missing",
        "BPF_EXIT instruction in main prog cannot be used inside bpf_spin_lock-ed region",
    ),
    (
        "bpf_rcu_read_unlock is missing",
        "BPF_EXIT instruction in main prog cannot be used inside bpf_rcu_read_lock-ed region",
    ),
    (
        "R{reg} {bound} value is outside of the array range",
        "R{reg} {bound} value is outside of the allowed memory range",
    ),
    // Linux 7 counts arguments as registers.
    (
        "Possibly NULL pointer passed to trusted R{number}",
        "Possibly NULL pointer passed to trusted arg{number}",
    ),
    (
        "Expected an initialized dynptr as R{number}",
        "Expected an initialized dynptr as arg #{number}",
    ),
    (
        "kernel function {name} R{number} expected pointer to {wanted} but R{reg} has a pointer to {got}",
        "kernel function {name} args#{number} expected pointer to {wanted} but R{reg} has a pointer to {got}",
    ),
    // What libbpf puts in place of the kernel's line about a call that it poisoned.
    (
        "failed to resolve CO-RE relocation {access}",
        "invalid func unknown#195896080",
    ),
    (
        "kfunc '{name}' is referenced but wasn't resolved",
        "invalid func unknown#2002000000",
    ),
    (
        "BPF map '{name}' is referenced but wasn't created",
        "invalid func unknown#2001000000",
    ),
];

/// Lines about returned values until Linux 6.8: `At program exit the register R0 has value (0x5;
/// 0x0) should have been in (0x0; 0x1)`, as known bits.
const RETURNED: &str =
    "At {end} the register R{reg} has {value} should have been in ({low}; {high})";

/// A line in the words of Linux 6.18.
pub(super) fn modern(line: &str) -> String {
    let line = line.trim_end();
    for (older, newer) in LINES {
        let Some(captures) = fit(older, line) else {
            continue;
        };
        let number = captures.get("number").and_then(|n| n.parse::<u32>().ok());
        return match number.and_then(|number| number.checked_sub(1)) {
            Some(argument) => newer
                .split("{number}")
                .map(|part| captures.fill(part))
                .collect::<Vec<_>>()
                .join(&argument.to_string()),
            None => captures.fill(newer),
        };
    }
    match fit(RETURNED, line) {
        Some(captures) => returned(&captures.fill("{low}"), &captures.fill("{high}")).map_or_else(
            || line.to_owned(),
            |(low, high)| {
                let value =
                    captures.fill("At {end} the register R{reg} has {value} should have been in ");
                format!("{value}[{low}, {high}]")
            },
        ),
        None => line.to_owned(),
    }
}

/// The range of the values with these known and unknown bits.
fn returned(value: &str, mask: &str) -> Option<(u64, u64)> {
    let number = |text: &str| u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok();
    let (value, mask) = (number(value)?, number(mask)?);
    Some((value, value | mask))
}

/// The error's lines in the words of Linux 6.18.
pub(super) fn modern_lines(lines: &[String]) -> Vec<String> {
    let mut translated: Vec<_> = lines.iter().map(|line| modern(line)).collect();
    // Since Linux 7 the rule about packets ends with the line about any memory.
    let packet = lines
        .iter()
        .any(|line| line.starts_with("invalid access to packet, "));
    if let Some(last) = translated.last_mut().filter(|_| packet)
        && let Some(captures) = fit(
            "R{reg} {bound} value is outside of the allowed memory range",
            last,
        )
    {
        *last = captures.fill("R{reg} offset is outside of the packet");
    }
    translated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_words_become_those_of_the_model() {
        for (older, newer) in [
            (
                "R7 invalid mem access 'inv' ",
                "R7 invalid mem access 'scalar'",
            ),
            (
                "At program exit the register R0 has value (0x5; 0x0) should have been in (0x0; 0x1)",
                "At program exit the register R0 has value (0x5; 0x0) should have been in [0, 1]",
            ),
            (
                "Possibly NULL pointer passed to trusted R1",
                "Possibly NULL pointer passed to trusted arg0",
            ),
            ("a line that nobody knows", "a line that nobody knows"),
        ] {
            assert_eq!(modern(older), newer);
        }
    }

    #[test]
    fn a_packet_is_no_other_memory() {
        let lines = [
            "invalid access to packet, off=12 size=1, R1(id=0,off=12,r=0)".to_owned(),
            "R1 min value is outside of the allowed memory range".to_owned(),
        ];
        assert_eq!(
            modern_lines(&lines)[1],
            "R1 offset is outside of the packet"
        );
        assert_eq!(modern_lines(&lines[1..])[0], lines[1]);
    }
}
