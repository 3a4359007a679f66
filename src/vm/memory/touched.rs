//! Which pages of a block of memory were ever used. Linux tells, so that looking through a
//! large map costs what is used of it.

use std::ops::Range;

/// The parts of a range of host addresses, in order, that may hold something else than zeros:
/// all but the pages that the system knows to be unused. The memory must be the process's own,
/// zeroed by the system when it was allocated.
pub(super) fn touched(range: Range<u64>) -> Vec<Range<u64>> {
    let whole = || vec![range.clone()];
    #[cfg(target_os = "linux")]
    {
        pages::touched(&range).unwrap_or_else(whole)
    }
    #[cfg(not(target_os = "linux"))]
    whole()
}

#[cfg(target_os = "linux")]
mod pages {
    use std::fs::File;
    use std::ops::Range;
    use std::os::unix::fs::FileExt;
    use std::sync::LazyLock;

    /// Smaller blocks are not worth a system call.
    const LEAST: u64 = 1 << 20;
    /// Pages looked up at a time.
    const AT_ONCE: u64 = 8192;
    /// The page is in memory, or in swap (`PM_PRESENT` and `PM_SWAP`, `fs/proc/task_mmu.c`).
    /// Without both it was never used.
    const USED: u64 = 3 << 62;

    /// `AT_PAGESZ` in the process's auxiliary vector (`include/uapi/linux/auxvec.h`).
    const AT_PAGESZ: u64 = 6;

    static PAGE_SIZE: LazyLock<Option<u64>> = LazyLock::new(|| {
        let vector = std::fs::read("/proc/self/auxv").ok()?;
        let (words, _) = vector.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_ne_bytes(*word));
        while let (Some(kind), Some(value)) = (words.next(), words.next()) {
            if kind == AT_PAGESZ {
                return Some(value).filter(|size| size.is_power_of_two());
            }
        }
        None
    });

    /// Whether the pages with these numbers were used.
    fn used(pagemap: &File, pages: Range<u64>) -> Option<Vec<bool>> {
        let count = usize::try_from(pages.end.checked_sub(pages.start)?).ok()?;
        let mut entries = vec![0; count * 8];
        pagemap
            .read_exact_at(&mut entries, pages.start.checked_mul(8)?)
            .ok()?;
        let (entries, _) = entries.as_chunks::<8>();
        let is_used = |entry: &[u8; 8]| u64::from_ne_bytes(*entry) & USED != 0;
        Some(entries.iter().map(is_used).collect())
    }

    /// The used parts; none if the system does not tell.
    pub(super) fn touched(range: &Range<u64>) -> Option<Vec<Range<u64>>> {
        if range.end.checked_sub(range.start)? < LEAST {
            return None;
        }
        let size = (*PAGE_SIZE)?;
        let pagemap = File::open("/proc/self/pagemap").ok()?;
        // An emulator may show another process's pages: this one, on the stack, is used.
        let here = std::ptr::from_ref(&size).addr() as u64 / size;
        if used(&pagemap, here..here + 1)? != [true] {
            return None;
        }
        let mut found: Vec<Range<u64>> = Vec::new();
        let end = range.end.div_ceil(size);
        let mut page = range.start / size;
        while page < end {
            let next = end.min(page + AT_ONCE);
            for (number, is_used) in (page..next).zip(used(&pagemap, page..next)?) {
                if !is_used {
                    continue;
                }
                let start = (number * size).max(range.start);
                let stop = ((number + 1) * size).min(range.end);
                match found.last_mut() {
                    Some(last) if last.end == start => last.end = stop,
                    _ => found.push(start..stop),
                }
            }
            page = next;
        }
        Some(found)
    }
}
