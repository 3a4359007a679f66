//! Undefined numbers that a format prints.

use super::Tracker;
use super::found::Draft;
use crate::engine::watch::Step;
use crate::spec::helpers::id;
use crate::util::HelperId;
use crate::vm::LeakTarget;

/// The undefined numbers that `bpf_trace_printk`, `bpf_trace_vprintk` or `bpf_seq_printf` prints.
pub(super) fn drafts(
    tracker: &Tracker<'_>,
    step: &Step<'_>,
    helper: HelperId,
    name: &'static str,
    args: &[u64; 5],
) -> Option<Draft> {
    let [first, second, third, fourth, _] = *args;
    let (format, size, to) = match helper {
        id::seq_printf => (second, third, LeakTarget::Iterator),
        _ => (first, second, LeakTarget::Printk),
    };
    let format = step.read(format, usize::try_from(size).ok()?).ok()?;
    let widths = widths(&format);
    let mut mask = Vec::new();
    for (at, width) in widths.iter().enumerate() {
        let undefined = match helper {
            // The numbers are in r3 to r5.
            id::trace_printk => tracker.regs.get(3 + at).copied().unwrap_or_default(),
            _ => {
                let data = if helper == id::seq_printf {
                    fourth
                } else {
                    third
                };
                tracker.shadow.load(data.wrapping_add(at as u64 * 8), 8)
            }
        };
        mask.extend((undefined & width).to_le_bytes());
    }
    let is_any = mask.iter().any(|bits| *bits != 0);
    is_any.then(|| Draft::new(step, to, mask).by(name))
}

/// The bits that each conversion of a format prints: none of what a pointer points to.
fn widths(format: &[u8]) -> Vec<u64> {
    let mut widths = Vec::new();
    let mut bytes = format
        .iter()
        .copied()
        .take_while(|byte| *byte != 0)
        .peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            continue;
        }
        let mut longs = 0;
        for byte in bytes.by_ref() {
            match byte {
                b'l' => longs += 1,
                b'%' => break,
                b'd' | b'i' | b'u' | b'x' | b'X' | b'o' | b'c' => {
                    widths.push(if longs > 0 {
                        u64::MAX
                    } else {
                        u64::from(u32::MAX)
                    });
                    break;
                }
                b's' | b'p' => {
                    widths.push(0);
                    break;
                }
                _ => {}
            }
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_have_widths() {
        let (long, int) = (u64::MAX, u64::from(u32::MAX));
        assert_eq!(
            widths(b"a %d 100%% %-08llx %s %pI4 %c\0%d"),
            [int, long, 0, 0, int]
        );
        assert!(widths(b"%").is_empty());
    }
}
