//! Code memory that programs share: blocks with two mappings, one to write code through, the
//! other to execute it. So placing code changes no mapping, and takes no system call if its
//! addresses are used for the first time.
//!
//! **Reuse.** A processor may have fetched what was at an address before. So where code replaces
//! other code, all of the process's threads execute a serializing instruction before anything
//! calls it (`membarrier(2)`, `…_SYNC_CORE`), also because it was written at another address
//! (Intel's manual, volume 3, "Self-Modifying Code").
//!
//! **Emulators** may not see that code was written through another mapping. So each new block is
//! tried: it executes two functions, one after the other at the same address.
//!
//! **`fork`.** The mappings are shared with the child process. So neither process writes to a
//! block that existed when one of them forked: what is unused in one may be in use in the other.

#![allow(unsafe_code, reason = "memory mappings: see the invariant of `Arena`")]

use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::{mem, slice};

use dynasmrt::cache_control::synchronize_icache;

use super::spans::Spans;
use crate::jit::emitted::CODE_ALIGNMENT as UNIT;

/// The size of an arena, unless a program needs a larger one.
const SIZE: usize = 1 << 20;
/// Larger arenas are a multiple of this, the largest page size.
const PAGE: usize = 1 << 16;

/// All arenas of the process.
static ARENAS: Mutex<Arenas> = Mutex::new(Arenas {
    all: Vec::new(),
    is_refused: false,
});

/// How often the process has forked since the first arena.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// Executable code, whose place is free again when it is dropped.
#[derive(Debug)]
pub(super) struct Piece {
    start: u64,
    /// Bytes of its span.
    len: usize,
}

/// Copies `code` to an arena; none if the system refuses such memory.
pub(super) fn place(code: &[u8]) -> Option<Piece> {
    let Place {
        write,
        exec,
        len,
        is_reused,
    } = arenas().take(code.len())?;
    // Gives the place back if it can't be used.
    let piece = Piece {
        start: exec.expose_provenance() as u64,
        len,
    };
    // SAFETY: the place has room for the code, nothing else uses it, and its arena stays until
    // the piece is dropped.
    unsafe { write_code(code, write, exec) };
    let is_done = !(is_reused || cfg!(target_arch = "aarch64")) || serialize();
    is_done.then_some(piece)
}

impl Piece {
    /// The host address of the first byte.
    pub(super) const fn start(&self) -> u64 {
        self.start
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        arenas().give(self);
    }
}

fn arenas() -> MutexGuard<'static, Arenas> {
    // No panic leaves them half-changed.
    ARENAS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes code and makes the caches coherent, which on x86-64 they are.
///
/// # Safety
/// `write` and `exec` are mappings of the same memory, which has room for the code and which
/// nothing else uses.
unsafe fn write_code(code: &[u8], write: *mut u8, exec: *const u8) {
    // SAFETY: guaranteed by the caller; the mapping can be written.
    unsafe { ptr::copy_nonoverlapping(code.as_ptr(), write, code.len()) };
    // SAFETY: guaranteed by the caller; the mapping can be read.
    synchronize_icache(unsafe { slice::from_raw_parts(exec, code.len()) });
}

/// Makes all threads of the process execute a serializing instruction; whether it did.
fn serialize() -> bool {
    membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE)
}

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the system call has no pointers.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Counts the process's forks from now on; whether the C library agreed.
fn counts_forks() -> bool {
    extern "C" fn count() {
        FORKS.fetch_add(1, Ordering::SeqCst);
    }
    static IS_COUNTED: OnceLock<bool> = OnceLock::new();
    // SAFETY: the function may be called at any time.
    *IS_COUNTED.get_or_init(|| unsafe { libc::pthread_atfork(Some(count), None, None) } == 0)
}

/// The arenas, and whether the system refused one.
struct Arenas {
    all: Vec<Arena>,
    is_refused: bool,
}

/// A block of code memory.
///
/// **Invariant**: both mappings are of the same memory. Only the thread that took a span writes
/// it, and only before anything can call its code.
struct Arena {
    write: Mapping,
    exec: Mapping,
    spans: Spans,
    /// Code was executed below this offset only.
    used: usize,
    /// [`FORKS`] when it was created.
    forks: usize,
}

/// A place for code.
struct Place {
    write: *mut u8,
    exec: *const u8,
    /// Bytes of its span.
    len: usize,
    /// Other code was there before.
    is_reused: bool,
}

impl Arenas {
    /// Takes a place for `len` bytes of code.
    fn take(&mut self, len: usize) -> Option<Place> {
        let forks = FORKS.load(Ordering::SeqCst);
        let mut writable = self.all.iter_mut().filter(|arena| arena.forks == forks);
        if let Some(place) = writable.find_map(|arena| arena.take(len)) {
            return Some(place);
        }
        if self.is_refused {
            return None;
        }
        let arena = Arena::new(len.max(SIZE).checked_next_multiple_of(PAGE)?);
        self.is_refused = arena.is_none();
        self.all.push(arena?);
        self.all.last_mut()?.take(len)
    }

    /// Takes back the place of a piece. One unused arena is kept for the next program.
    fn give(&mut self, piece: &Piece) {
        let mut all = self.all.iter_mut().enumerate();
        let found = all.find_map(|(at, arena)| Some((at, arena.offset(piece)?, arena)));
        let Some((at, span, arena)) = found else {
            return;
        };
        arena.spans.give(span);
        let forks = FORKS.load(Ordering::SeqCst);
        let is_spare = |arena: &Arena| {
            arena.spans.is_unused() && arena.forks == forks && arena.exec.len == SIZE
        };
        let is_unused = arena.spans.is_unused();
        let is_kept = is_spare(arena) && self.all.iter().filter(|it| is_spare(it)).count() == 1;
        if is_unused && !is_kept {
            self.all.swap_remove(at);
        }
    }
}

impl Arena {
    /// An arena that executes what is written to it.
    fn new(len: usize) -> Option<Self> {
        let register = libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE;
        if !counts_forks() || !membarrier(register) {
            return None;
        }
        let forks = FORKS.load(Ordering::SeqCst);
        let write = Mapping::writable(len)?;
        let exec = write.executable()?;
        let arena = Self {
            write,
            exec,
            spans: Spans::new(len),
            used: UNIT,
            forks,
        };
        arena.executes().then_some(arena)
    }

    /// Whether it executes what was written last.
    fn executes(&self) -> bool {
        (1..=2).all(|number| {
            let Some(code) = returning(number) else {
                return false;
            };
            let exec = self.exec.start.as_ptr();
            // SAFETY: an arena is larger than this code, and this one is not in use yet.
            unsafe { write_code(&code, self.write.start.as_ptr(), exec) };
            // SAFETY: this is code of a function of this type.
            let function = unsafe { mem::transmute::<*mut u8, Function>(exec) };
            serialize() && function() == u32::from(number)
        })
    }

    fn take(&mut self, len: usize) -> Option<Place> {
        let span = self.spans.take(len)?;
        let is_reused = span.start < self.used;
        self.used = self.used.max(span.end);
        Some(Place {
            write: self.write.at(span.start),
            exec: self.exec.at(span.start),
            len: span.len(),
            is_reused,
        })
    }

    /// The span of a piece; none if it is in another arena.
    fn offset(&self, piece: &Piece) -> Option<Range<usize>> {
        let start = piece
            .start
            .checked_sub(self.exec.start.addr().get() as u64)?;
        let start = usize::try_from(start)
            .ok()
            .filter(|start| *start < self.exec.len)?;
        Some(start..start + piece.len)
    }
}

/// A function of [`returning`].
type Function = extern "C" fn() -> u32;

/// The code of a function that returns a number; none for other hosts than those with code.
fn returning(number: u8) -> Option<[u8; 8]> {
    if cfg!(target_arch = "x86_64") {
        // mov eax, number; ret
        Some([0xb8, number, 0, 0, 0, 0xc3, 0x90, 0x90])
    } else if cfg!(all(target_arch = "aarch64", target_endian = "little")) {
        // mov w0, number; ret
        let mov = 0x5280_0000 | u64::from(number) << 5;
        Some((mov | 0xd65f_03c0 << 32).to_le_bytes())
    } else {
        None
    }
}

/// A mapping, which ends when it is dropped.
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// New memory that can be written.
    fn writable(len: usize) -> Option<Self> {
        let (access, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
        );
        // SAFETY: this creates a mapping where there is none.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, access, flags, -1, 0) };
        Self::of(start, len)
    }

    /// A second mapping of the same memory, which can be executed and not written.
    fn executable(&self) -> Option<Self> {
        // SAFETY: with an old size of 0 this creates a second mapping of shared memory where
        // there is none, and leaves the first as it is (`mremap(2)`).
        let start = unsafe {
            libc::mremap(
                self.start.as_ptr().cast(),
                0,
                self.len,
                libc::MREMAP_MAYMOVE,
            )
        };
        let mapping = Self::of(start, self.len)?;
        let access = libc::PROT_READ | libc::PROT_EXEC;
        // SAFETY: nothing uses the new mapping yet.
        let failed = unsafe { libc::mprotect(mapping.start.as_ptr().cast(), mapping.len, access) };
        (failed == 0).then_some(mapping)
    }

    fn of(start: *mut libc::c_void, len: usize) -> Option<Self> {
        let start = NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED)?;
        Some(Self { start, len })
    }

    /// The address of the byte at an offset, which is inside.
    fn at(&self, offset: usize) -> *mut u8 {
        self.start.as_ptr().wrapping_add(offset)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's alone; an arena is dropped when all of its spans
        // were given back, so nothing calls or writes code there.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    /// Places a function that returns a number.
    fn function(number: u8) -> Option<(Piece, Function)> {
        let piece = place(&returning(number)?)?;
        let start = ptr::with_exposed_provenance::<u8>(usize::try_from(piece.start()).ok()?);
        // SAFETY: this is code of a function of this type; the caller keeps the piece.
        Some((piece, unsafe {
            mem::transmute::<*const u8, Function>(start)
        }))
    }

    /// The access rights of the mapping that has an address, as `/proc/self/maps` shows them.
    fn rights(address: u64) -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let found = maps.lines().find_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (start, end) = range.split_once('-')?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            let is_it = (number(start)?..number(end)?).contains(&address);
            is_it.then(|| rest.get(..4).unwrap_or_default().to_owned())
        });
        found.unwrap_or_default()
    }

    #[test]
    fn no_mapping_can_be_written_and_executed() {
        let Some((piece, _)) = function(1) else {
            return; // refused here
        };
        assert_eq!(rights(piece.start()), "r-xs");
        let arenas = arenas();
        let of_piece = |arena: &&Arena| arena.offset(&piece).is_some();
        let arena = arenas.all.iter().find(of_piece).unwrap();
        assert_eq!(rights(arena.write.start.addr().get() as u64), "rw-s");
    }

    /// Many threads place, call and drop functions: each function stays what it is.
    #[test]
    fn threads_share_the_arenas() {
        const THREADS: u8 = 4;
        let together = Barrier::new(THREADS.into());
        let work = |thread: u8| {
            together.wait();
            let mut kept = Vec::new();
            for round in 0..500u32 {
                let number = round.to_le_bytes()[0] / THREADS * THREADS + thread;
                let Some((piece, function)) = function(number) else {
                    return;
                };
                kept.push((piece, function, number));
                for (_, function, number) in &kept {
                    assert_eq!(function(), u32::from(*number));
                }
                if round % 3 != 0 {
                    kept.swap_remove(round as usize % kept.len());
                }
                if kept.len() > 20 {
                    kept.clear();
                }
            }
        };
        thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || work(thread));
            }
        });
    }

    #[test]
    fn code_larger_than_an_arena_has_its_own() {
        let code = vec![0x90; SIZE + 1];
        let Some(piece) = place(&code) else { return };
        assert!(piece.len > SIZE && piece.start().is_multiple_of(UNIT as u64));
        let has_large = || arenas().all.iter().any(|arena| arena.exec.len > SIZE);
        assert!(has_large());
        drop(piece);
        assert!(!has_large());
    }

    /// The child of a fork, and its parent, write to arenas of their own.
    #[test]
    fn after_a_fork_arenas_are_not_written() {
        let Some((piece, function)) = function(7) else {
            return;
        };
        let before = FORKS.load(Ordering::SeqCst);
        // SAFETY: the child only exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: this ends the child, without anything of the parent's.
            unsafe { libc::_exit(0) };
        }
        assert!(child > 0);
        // SAFETY: the status is not asked for.
        assert_eq!(unsafe { libc::waitpid(child, ptr::null_mut(), 0) }, child);
        assert!(FORKS.load(Ordering::SeqCst) > before);
        let (other, _) = self::function(8).unwrap();
        let arenas = arenas();
        let of = |piece: &Piece| {
            arenas
                .all
                .iter()
                .position(|arena| arena.offset(piece).is_some())
        };
        assert!(of(&piece).is_some() && of(&other).is_some() && of(&piece) != of(&other));
        assert_eq!(function(), 7);
    }
}
