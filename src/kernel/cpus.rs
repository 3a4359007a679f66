//! The CPUs of this machine, for per-CPU maps and perf events.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use super::sys::cpu_count::possible_cpus;

/// The number of possible CPUs (`/sys/devices/system/cpu/possible`; without that file, as in
/// some containers, from a per-CPU map). User space reads and writes that many values of a
/// per-CPU map at once. 0 if unknown.
pub(super) fn possible() -> u32 {
    static CPUS: OnceLock<u32> = OnceLock::new();
    *CPUS.get_or_init(|| {
        let list = std::fs::read_to_string("/sys/devices/system/cpu/possible");
        let listed = list.ok().and_then(|list| count(&list));
        listed.unwrap_or_else(|| possible_cpus().unwrap_or(0))
    })
}

/// The numbers of the online CPUs (`/sys/devices/system/cpu/online`, or `/proc/stat`); only 0
/// if the kernel lists none.
pub(super) fn online() -> Vec<u32> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online");
    let ranges = list.ok().and_then(|list| ranges(&list));
    ranges.map_or_else(
        || {
            let statistics = std::fs::read_to_string("/proc/stat").unwrap_or_default();
            match in_statistics(&statistics) {
                cpus if cpus.is_empty() => vec![0],
                cpus => cpus,
            }
        },
        |ranges| ranges.into_iter().flatten().collect(),
    )
}

/// The CPUs of `/proc/stat`, which has a line for each online CPU: `cpu0 3357 0 4313 …`.
fn in_statistics(statistics: &str) -> Vec<u32> {
    let lines = statistics.lines();
    let names = lines.filter_map(|line| line.split_whitespace().next()?.strip_prefix("cpu"));
    names.filter_map(|number| number.parse().ok()).collect()
}

/// An online CPU, for an event that needs a CPU but covers all. CPU 0 may be offline, on arm64
/// and on resumed machines.
pub(super) fn first_online() -> u32 {
    online().first().copied().unwrap_or(0)
}

/// The number of CPUs in a list of ranges, as the kernel's `num_possible_cpus` counts.
fn count(list: &str) -> Option<u32> {
    ranges(list)?.iter().try_fold(0u32, |sum, range| {
        let len = range.end().checked_sub(*range.start())?.checked_add(1)?;
        sum.checked_add(len)
    })
}

/// The ranges of a list such as `0-3,8`.
fn ranges(list: &str) -> Option<Vec<RangeInclusive<u32>>> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    list.trim().split(',').map(range).collect()
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
        assert_eq!(ranges("0-1,4"), Some(vec![0..=1, 4..=4]));
        assert!(online().contains(&first_online()));
    }

    #[test]
    fn statistics_have_a_line_for_each_that_runs() {
        let text = "cpu  33 0 43\ncpu0 17 0 21\ncpu3 16 0 22\nintr 1 2\n";
        assert_eq!(in_statistics(text), [0, 3]);
        let here = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        // A CPU may come or go between the two reads.
        assert!(here.is_empty() || in_statistics(&here).len().abs_diff(online().len()) <= 1);
    }
}
