//! Arenas: pages that are allocated and freed, pointers that are cast, moved by unknown numbers and
//! stored, accesses of all sizes, inside and outside of pages.

use std::sync::{Arc, LazyLock};

use super::super::random::Random;
use crate::r#gen::KernelTypes;
use crate::isa::RawInsn;
use crate::program::{MapDef, Program};
use crate::spec::{MapFlags, MapType, ProgFlags, ProgType, limits};

/// Pages of the arena.
const PAGES: u32 = 16;
/// The places of numbers, eight bytes each, are at the pointer, and that of another pointer is this
/// far behind it. No number is loaded from where a pointer was stored: the kernel's addresses are
/// others than bpflab's.
const PLACES: u8 = 16;
const POINTERS: i16 = 2048;
/// The bits of an offset within a page by which the pointer is moved.
const MOVED: i32 = 0x78;
/// The bits that choose a page.
const PAGE: i32 = -PAGE_SIZE;
const PAGE_SIZE: i32 = limits::PAGE_SIZE.cast_signed();
/// The most steps of a program.
const STEPS: u8 = 12;
/// After all moves numbers are still in front of pointers, and pointers in the page.
const _: () = {
    let moved = STEPS as i32 * MOVED;
    assert!(moved + PLACES as i32 * 8 <= POINTERS as i32);
    assert!(moved + POINTERS as i32 + 8 <= PAGE_SIZE);
};

const CONTEXT: u8 = 6;
/// A pointer that can be loaded from, and the same for user space.
const HERE: u8 = 7;
const USER: u8 = 8;
/// The sum of what was loaded.
const SUM: u8 = 9;

static MAPS: LazyLock<Arc<[MapDef]>> = LazyLock::new(|| {
    let arena = MapDef::new("arena", MapType::Arena, 0, 0, PAGES);
    Arc::new([arena.with_flags(MapFlags::MMAPABLE)])
});

struct Maker<'r> {
    random: &'r mut Random,
    kernel: &'r KernelTypes,
    insns: Vec<RawInsn>,
}

/// A program on an arena, for a kernel that has the kfuncs.
pub(in crate::fuzz) fn program(random: &mut Random, kernel: &KernelTypes) -> Program {
    let mut maker = Maker {
        random,
        kernel,
        insns: Vec::with_capacity(80),
    };
    maker.emit(0xbf, CONTEXT, 1, 0, 0);
    maker.emit(0xb7, SUM, 0, 0, 0);
    maker.allocate();
    for _ in 0..3 + maker.random.below(u64::from(STEPS) - 2) {
        match maker.random.below(20) {
            0..6 => maker.store(),
            6..12 => maker.load(),
            12 => maker.change(),
            13 => maker.ordered(),
            14 | 15 => maker.move_by(),
            16 => maker.keep(),
            17 => maker.fetch(),
            18 => maker.allocate(),
            _ => maker.free(),
        }
    }
    maker.emit(0xbf, 0, SUM, 0, 0);
    maker.emit(0x95, 0, 0, 0, 0);
    let mut program = Program::new("arena", ProgType::Syscall, maker.insns);
    program.license = "GPL".to_owned();
    program.flags = ProgFlags::SLEEPABLE;
    program.maps = MAPS.clone();
    program.kernel_btf = Some(kernel.btf().clone());
    program
}

impl Maker<'_> {
    fn emit(&mut self, opcode: u8, dst: u8, src: u8, off: i16, imm: i32) {
        self.insns.push(RawInsn::new(opcode, dst, src, off, imm));
    }

    fn kfunc(&mut self, name: &str) {
        match self.kernel.kfunc(name) {
            Some(id) => self.emit(0x85, 0, 2, 0, id.0.cast_signed()),
            None => self.emit(0xb7, 0, 0, 0, 0),
        }
    }

    /// `cast_kern`, `cast_user` (`BPF_ADDR_SPACE_CAST`).
    fn cast(&mut self, dst: u8, src: u8, to_user: bool) {
        let imm = if to_user { 1 << 16 } else { 1 };
        self.emit(0xbf, dst, src, 1, imm);
    }

    fn arena(&mut self) {
        self.emit(0x18, 1, 5, 0, 0);
        self.emit(0, 0, 0, 0, 0);
    }

    /// New pages, of which there may be none left.
    fn allocate(&mut self) {
        let pages = self.random.pick(&[1, 1, 2, 3]);
        self.arena();
        for (reg, imm) in [(2, 0), (3, pages), (4, -1), (5, 0)] {
            self.emit(0xb7, reg, 0, 0, imm);
        }
        self.kfunc("bpf_arena_alloc_pages");
        self.emit(0xbf, USER, 0, 0, 0);
        self.cast(HERE, 0, false);
    }

    fn free(&mut self) {
        self.arena();
        self.emit(0xbf, 2, USER, 0, 0);
        self.emit(0xb7, 3, 0, 0, 1);
        self.kfunc("bpf_arena_free_pages");
    }

    /// A size with its offset among the numbers.
    fn place(&mut self) -> (u8, i16) {
        let size = self.random.pick(&[0x10, 0x08, 0x00, 0x18]);
        (size, i16::from(self.random.byte(PLACES.into())) * 8)
    }

    /// An unknown number in r1.
    fn number(&mut self) {
        let off = i16::from(self.random.byte(8)) * 8;
        self.emit(0x79, 1, CONTEXT, off, 0);
    }

    fn store(&mut self) {
        let (size, off) = self.place();
        if self.random.chance(40) {
            let imm = self.random.imm();
            self.emit(0x62 | size, HERE, 0, off, imm);
        } else {
            self.number();
            self.emit(0x63 | size, HERE, 1, off, 0);
        }
    }

    fn load(&mut self) {
        let (size, off) = self.place();
        self.emit(0x61 | size, 2, HERE, off, 0);
        self.emit(0x0f, SUM, 2, 0, 0);
    }

    /// An atomic operation.
    fn change(&mut self) {
        let (_, off) = self.place();
        self.number();
        let operation = self.random.pick(&[0x00, 0x01, 0x40, 0x51, 0xa1, 0xe1]);
        let size = self.random.pick(&[0x00, 0x18]);
        self.emit(0xc3 | size, HERE, 1, off, operation);
    }

    /// A load-acquire or a store-release.
    fn ordered(&mut self) {
        let (size, off) = self.place();
        self.number();
        if self.random.chance(60) {
            self.emit(0xc3 | size, 1, HERE, off, 0x100);
            self.emit(0x0f, SUM, 1, 0, 0);
        } else {
            self.emit(0xc3 | size, HERE, 1, off, 0x110);
        }
    }

    /// Moves the pointer, mostly inside of its page, or to another page.
    fn move_by(&mut self) {
        self.number();
        let bits = match self.random.below(6) {
            0 => PAGE | MOVED,
            1 => PAGE & 0xffff | MOVED,
            _ => MOVED,
        };
        self.emit(0x57, 1, 0, 0, bits);
        self.emit(0x0f, HERE, 1, 0, 0);
    }

    /// Stores the pointer in the page.
    fn keep(&mut self) {
        if self.random.chance(50) {
            self.cast(1, HERE, true);
            self.emit(0x7b, HERE, 1, POINTERS, 0);
        } else {
            self.emit(0x7b, HERE, USER, POINTERS, 0);
        }
    }

    /// Loads a pointer, if one was stored.
    fn fetch(&mut self) {
        self.emit(0x79, USER, HERE, POINTERS, 0);
        self.cast(HERE, USER, false);
    }
}
