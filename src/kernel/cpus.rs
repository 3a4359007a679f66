//! How many values a per-CPU map has on this machine.

use std::sync::OnceLock;

/// The CPUs that this machine may ever have (`/sys/devices/system/cpu/possible`):
/// user space reads and writes that many values of a per-CPU map at once. 0 where the
/// kernel doesn't say.
pub(super) fn possible() -> u32 {
    static CPUS: OnceLock<u32> = OnceLock::new();
    *CPUS.get_or_init(|| {
        let list = std::fs::read_to_string("/sys/devices/system/cpu/possible");
        list.ok().and_then(|list| count(&list)).unwrap_or(0)
    })
}

/// The CPUs in a list such as `0-3,8`: those of all ranges together, as the kernel's
/// `num_possible_cpus` counts them.
fn count(list: &str) -> Option<u32> {
    list.trim().split(',').try_fold(0u32, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_added_up() {
        assert_eq!(count("0-3\n"), Some(4));
        assert_eq!(count("0"), Some(1));
        assert_eq!(count("0-1,4-7,9"), Some(7));
        assert_eq!(count("3-1"), None);
        assert_eq!(count(""), None);
    }
}
