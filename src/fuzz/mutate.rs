//! A table of small changes to a program: some preserve its meaning, some make a nearly
//! correct program, and some break it.

use crate::isa::RawInsn;
use crate::program::{AttachProgram, Program};
use crate::spec::{MapFlags, ProgFlags, ProgType};

use super::listing::{Item, Listing};
use super::random::Random;

/// A program that is being changed.
#[derive(Debug)]
pub struct Mutant<'a> {
    /// The original.
    pub program: Program,
    /// Its instructions, which the changes are made to.
    pub listing: Listing,
    /// Other programs, from which parts are copied.
    pub others: &'a [Listing],
}

type Change = fn(&mut Mutant<'_>, &mut Random) -> Option<()>;

/// The changes, with their weights.
const CHANGES: &[(&str, u64, Change)] = &[
    ("saved registers permuted", 6, permute_saved),
    ("registers swapped in a stretch", 3, swap_in_stretch),
    ("move added", 8, add_move),
    ("branch to the next added", 8, add_branch),
    ("register spilled and filled", 6, spill_and_fill),
    ("immediate", 12, change_immediate),
    ("offset", 10, change_offset),
    ("operation", 12, change_operation),
    ("register", 8, change_register),
    ("branch inverted", 5, invert_branch),
    ("branch redirected", 4, redirect),
    ("instruction removed", 8, remove),
    ("instruction doubled", 4, double),
    ("neighbours exchanged", 4, exchange),
    ("part of another program", 4, splice),
    ("arithmetic added", 6, add_arithmetic),
    ("two ways added", 5, add_two_ways),
    ("loop added", 5, add_loop),
    ("another helper", 1, change_helper),
    ("another kfunc", 3, change_kfunc),
    ("another map", 1, change_map),
    ("program type", 1, change_type),
    ("flags", 2, change_flags),
    ("any field", 6, change_any_field),
    ("atomic operation", 3, change_atomic),
    ("size of an access", 4, change_size),
];

/// Changes a program up to `most` times; returns the changes made.
pub fn mutate(mutant: &mut Mutant<'_>, random: &mut Random, most: u64) -> Vec<&'static str> {
    let mut made = Vec::new();
    for _ in 0..1 + random.below(most) {
        if let Some((name, _, change)) = random.weighted(CHANGES, |(_, weight, _)| *weight) {
            made.extend(change(mutant, random).map(|()| *name));
        }
    }
    made
}

fn index(random: &mut Random, len: usize) -> Option<usize> {
    let len = u64::try_from(len).ok().filter(|len| *len > 0)?;
    usize::try_from(random.below(len)).ok()
}

/// A random item for which `wanted` holds.
fn find(mutant: &Mutant<'_>, random: &mut Random, wanted: impl Fn(&Item) -> bool) -> Option<usize> {
    let items = mutant.listing.items.iter().enumerate();
    let found: Vec<_> = items
        .filter(|(_, item)| wanted(item))
        .map(|(at, _)| at)
        .collect();
    Some(found[index(random, found.len())?])
}

/// Whether the dst and src fields are registers.
fn names_registers(insn: RawInsn) -> (bool, bool) {
    let by_register = insn.opcode & 8 != 0;
    match insn.opcode & 7 {
        0 => (insn.opcode == 0x18, insn.opcode & 0xe0 == 0x40),
        1 | 3 => (true, true),
        2 => (true, false),
        4 | 7 => (true, by_register && insn.opcode & 0xf0 != 0xd0),
        _ if matches!(insn.opcode & 0xf0, 0 | 0x80 | 0x90 | 0xe0) => (false, false),
        _ => (true, by_register),
    }
}

pub(super) fn is_branch(item: &Item) -> bool {
    matches!(item.insn.opcode & 7, 5 | 6)
        && !matches!(item.insn.opcode & 0xf0, 0 | 0x80 | 0x90 | 0xe0)
}

fn is_alu(item: &Item) -> bool {
    matches!(item.insn.opcode & 7, 4 | 7)
}

fn is_access(item: &Item) -> bool {
    matches!(item.insn.opcode & 7, 1..=3)
}

fn is_call_of_helper(item: &Item) -> bool {
    item.insn.opcode == 0x85 && item.insn.src() == 0
}

/// Renames the registers of some items.
pub(super) fn rename(items: &mut [Item], name: impl Fn(u8) -> u8) {
    for item in items {
        let (dst, src) = names_registers(item.insn);
        let new = |named: bool, reg: u8| if named { name(reg) } else { reg };
        let insn = item.insn;
        let (dst, src) = (new(dst, insn.dst()), new(src, insn.src()));
        item.insn = RawInsn::new(insn.opcode, dst, src, insn.off, insn.imm);
    }
}

fn permute_saved(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    // Packet bytes are loaded through r6.
    let first = if mutant.listing.loads_packet_bytes() {
        7
    } else {
        6
    };
    let mut names: Vec<u8> = (0..16).collect();
    for at in (first..10).rev() {
        let with = first + index(random, at - first + 1)?;
        names.swap(at, with);
    }
    rename(&mut mutant.listing.items, |reg| names[usize::from(reg)]);
    Some(())
}

fn swap_in_stretch(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let items = &mut mutant.listing.items;
    let from = index(random, items.len())?;
    let len = 1 + index(random, 8)?;
    let (a, b) = (register(random), register(random));
    let end = items.len().min(from + len);
    rename(&mut items[from..end], |reg| match reg {
        reg if reg == a => b,
        reg if reg == b => a,
        reg => reg,
    });
    Some(())
}

/// r0 to r9.
fn register(random: &mut Random) -> u8 {
    random.byte(10)
}

/// A register that is likely to be initialised at an item: one that the items just before
/// it use.
fn held(mutant: &Mutant<'_>, random: &mut Random, at: usize) -> u8 {
    let before = &mutant.listing.items[at.saturating_sub(12)..at];
    let mut named: Vec<u8> = Vec::new();
    for item in before {
        if item.insn.opcode == 0x85 {
            named.retain(|reg| *reg > 5);
            named.push(0);
        }
        if let (true, _) = names_registers(item.insn) {
            named.push(item.insn.dst());
        }
    }
    named.retain(|reg| *reg < 10);
    match index(random, named.len()) {
        Some(index) if random.chance(90) => named[index],
        _ => register(random),
    }
}

/// A register that is likely to be dead at an item: the next item that uses it writes it.
fn dead(mutant: &Mutant<'_>, random: &mut Random, at: usize) -> u8 {
    let reg = register(random);
    let behind = mutant.listing.items[at..].iter().map(|item| item.insn);
    for insn in behind {
        let (dst, src) = names_registers(insn);
        let writes = matches!(insn.opcode & 7, 0 | 1) || insn.opcode & 0xf0 == 0xb0;
        let reads = src && insn.src() == reg || dst && insn.dst() == reg && !writes;
        let reads = reads || insn.opcode == 0x85 && matches!(reg, 1..=5);
        if reads {
            return register(random);
        }
        if dst && insn.dst() == reg {
            break;
        }
    }
    reg
}

fn width(random: &mut Random) -> u8 {
    random.pick(&[4, 7, 7])
}

fn insert(
    mutant: &mut Mutant<'_>,
    random: &mut Random,
    at: usize,
    insns: &[(RawInsn, Option<u32>)],
) {
    // Jumps to `at` lead to the first of them, or skip them.
    let shared = random.chance(50);
    for (insn, to) in insns.iter().rev() {
        mutant.listing.insert(at, *insn, *to, shared);
    }
}

fn add_move(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let at = index(random, mutant.listing.items.len())?;
    let (dst, src) = (dead(mutant, random, at), held(mutant, random, at));
    let insn = match random.below(4) {
        0 => RawInsn::new(0xb0 | width(random), dst, 0, 0, random.imm()),
        1 => RawInsn::new(0xbf, src, src, 0, 0),
        2 => RawInsn::new(0xbf, dst, 10, 0, 0),
        _ => RawInsn::new(0xb8 | width(random), dst, src, 0, 0),
    };
    insert(mutant, random, at, &[(insn, None)]);
    Some(())
}

/// The operation bits of conditional jumps.
const JUMPS: [u8; 11] = [
    0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0xa0, 0xb0, 0xc0, 0xd0,
];

fn add_branch(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let at = index(random, mutant.listing.items.len())?;
    let next = mutant.listing.items[at].label;
    let (dst, src) = (held(mutant, random, at), held(mutant, random, at));
    let op = random.pick(&JUMPS) | random.pick(&[5, 5, 6]);
    let insn = match random.below(8) {
        0 => RawInsn::new(0x05, 0, 0, 0, 0),
        1 => RawInsn::new(0xe5, 0, 0, 0, 0),
        2 | 3 => RawInsn::new(op | 8, dst, src, 0, 0),
        _ => RawInsn::new(op, dst, 0, 0, random.imm()),
    };
    insert(mutant, random, at, &[(insn, Some(next))]);
    Some(())
}

fn spill_and_fill(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let at = index(random, mutant.listing.items.len())?;
    let reg = held(mutant, random, at);
    let size = random.pick(&[0x18, 0x18, 0x18, 0x00, 0x08, 0x10]);
    let slot = random.slot(32);
    let store = RawInsn::new(0x63 & !0x18 | size, 10, reg, slot, 0);
    let load = RawInsn::new(0x61 & !0x18 | size, reg, 10, slot, 0);
    let later = random.chance(30);
    if later {
        let behind = mutant.listing.items.len() - at;
        let load_at = at + index(random, behind.min(10))?;
        insert(mutant, random, load_at, &[(load, None)]);
        insert(mutant, random, at, &[(store, None)]);
    } else {
        insert(mutant, random, at, &[(store, None), (load, None)]);
    }
    Some(())
}

fn near(random: &mut Random, value: i32) -> i32 {
    let by = random.pick(&[-8, -4, -2, -1, 1, 1, 2, 4, 8]);
    value.wrapping_add(by)
}

fn change_immediate(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let has_immediate = |item: &Item| match item.insn.opcode & 7 {
        0 => item.insn.opcode != 0x18 || matches!(item.insn.src(), 0 | 2 | 6),
        2 => true,
        1 | 3 => false,
        _ if matches!(item.insn.opcode, 0x85 | 0x95 | 0x05 | 0x06) => false,
        _ => item.insn.opcode & 8 == 0,
    };
    let at = find(mutant, random, has_immediate)?;
    let item = &mut mutant.listing.items[at];
    let named = item.insn.opcode == 0x18 && item.insn.src() != 0;
    let wide = item.second.as_mut().filter(|_| named || random.chance(50));
    let imm = match wide {
        Some(second) => &mut second.imm,
        None => &mut item.insn.imm,
    };
    *imm = if random.chance(60) {
        near(random, *imm)
    } else {
        random.imm()
    };
    Some(())
}

fn change_offset(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let at = find(mutant, random, is_access)?;
    let off = &mut mutant.listing.items[at].insn.off;
    *off = match random.below(10) {
        0 => random.pick(&[i16::MIN, i16::MAX, -512, -513, -520, -8, 0, 512]),
        1..3 => random.slot(64) + 8,
        _ => i16::try_from(near(random, i32::from(*off))).unwrap_or(0),
    };
    Some(())
}

fn change_operation(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let wanted = |item: &Item| is_alu(item) || is_branch(item) || is_access(item);
    let at = find(mutant, random, wanted)?;
    let item = mutant.listing.items[at];
    let insn = &mut mutant.listing.items[at].insn;
    if is_access(&item) {
        match insn.opcode & 0xe0 {
            // Atomics: another operation, or another width.
            0xc0 if random.chance(60) => {
                insn.imm = random.pick(&[
                    0, 1, 0x40, 0x41, 0x50, 0x51, 0xa0, 0xa1, 0xe1, 0xf1, 0x100, 0x110,
                ]);
            }
            0x60 if insn.opcode & 7 == 1 && random.chance(15) => insn.opcode ^= 0x60 ^ 0x80,
            0x60 if insn.opcode & 7 == 3 && random.chance(10) => insn.opcode ^= 0x60 ^ 0xc0,
            0x60 if insn.opcode & 7 != 1 && random.chance(20) => {
                insn.opcode ^= 1;
                insn.imm = random.imm();
            }
            _ => insn.opcode = insn.opcode & !0x18 | random.pick(&[0, 8, 0x10, 0x18]),
        }
        return Some(());
    }
    match random.below(4) {
        0 => insn.opcode ^= 3,
        // Switches between an immediate and a register.
        1 if insn.opcode & 0xf0 != 0xd0 || is_branch(&item) => {
            insn.opcode ^= 8;
            *insn = if insn.opcode & 8 == 0 {
                insn.with_src(0).with_imm(random.imm())
            } else {
                insn.with_src(register(random)).with_imm(0)
            };
        }
        _ if is_branch(&item) => insn.opcode = insn.opcode & 0xf | random.pick(&JUMPS),
        2 if is_alu(&item) && insn.opcode & 0xf8 == 0xb8 => {
            insn.off = random.pick(&[0, 8, 16, 32, 1]);
        }
        2 if matches!(insn.opcode & 0xf0, 0x30 | 0x90) => insn.off ^= 1,
        _ => {
            let op = 0x10 * random.byte(14);
            insn.opcode = insn.opcode & 0xf | op;
        }
    }
    if insn.opcode & 7 == 3 {
        insn.opcode ^= 3;
    }
    Some(())
}

fn change_register(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let wanted = |item: &Item| names_registers(item.insn) != (false, false);
    let at = find(mutant, random, wanted)?;
    let insn = &mut mutant.listing.items[at].insn;
    let (_, has_src) = names_registers(*insn);
    let reg = random.byte(11);
    let (mut dst, mut src) = (insn.dst(), insn.src());
    if has_src && random.chance(50) {
        src = reg;
    } else {
        dst = reg;
    }
    *insn = RawInsn::new(insn.opcode, dst, src, insn.off, insn.imm);
    Some(())
}

/// The opcode of a conditional jump with the opposite condition, if there is one.
pub(super) fn opposite(opcode: u8) -> Option<u8> {
    const OPPOSITES: [(u8, u8); 5] = [
        (0x10, 0x50),
        (0x20, 0xb0),
        (0x30, 0xa0),
        (0x60, 0xd0),
        (0x70, 0xc0),
    ];
    let (op, rest) = (opcode & 0xf0, opcode & 0xf);
    let found = OPPOSITES.iter().find_map(|(a, b)| match op {
        op if op == *a => Some(*b),
        op if op == *b => Some(*a),
        _ => None,
    });
    found.map(|op| rest | op)
}

fn invert_branch(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let at = find(mutant, random, is_branch)?;
    let opcode = &mut mutant.listing.items[at].insn.opcode;
    *opcode = opposite(*opcode)?;
    Some(())
}

fn redirect(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let at = find(mutant, random, |item| item.to.is_some())?;
    let items = &mut mutant.listing.items;
    // Near the item, or near its old target.
    let to = items[at].to;
    let old = items.iter().position(|item| Some(item.label) == to)?;
    let near = if random.chance(70) { old } else { at };
    let by = index(random, 9)?;
    let new = (near + by).saturating_sub(4).min(items.len() - 1);
    items[at].to = Some(items[new].label);
    Some(())
}

fn remove(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let len = mutant.listing.items.len();
    if len < 2 {
        return None;
    }
    let at = index(random, len)?;
    mutant.listing.remove(at, 1);
    Some(())
}

fn double(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let at = index(random, mutant.listing.items.len())?;
    let chunk = [mutant.listing.items[at]];
    mutant.listing.splice(at, &chunk);
    // Keeps the original target.
    mutant.listing.items[at].to = chunk[0].to;
    Some(())
}

fn exchange(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let items = &mut mutant.listing.items;
    let at = index(random, items.len().checked_sub(1)?)?;
    let (a, b) = (items[at], items[at + 1]);
    items[at] = Item {
        label: a.label,
        ..b
    };
    items[at + 1] = Item {
        label: b.label,
        ..a
    };
    Some(())
}

fn splice(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let other = &mutant.others[index(random, mutant.others.len())?].items;
    let from = index(random, other.len())?;
    let most = random.pick(&[4, 12, 40]);
    let len = 1 + index(random, most)?;
    let mut chunk = other[from..other.len().min(from + len)].to_vec();
    let maps = mutant.program.maps.len();
    // Calls and BTF ids of another program are not valid here.
    chunk.retain(|item| match item.insn.opcode {
        0x18 => maps > 0 && matches!(item.insn.src(), 5 | 6) || item.insn.src() == 0,
        0x85 => item.insn.src() == 0,
        0x95 => false,
        _ => true,
    });
    for item in &mut chunk {
        if item.insn.opcode == 0x18 && item.insn.src() != 0 {
            item.insn.imm = i32::try_from(index(random, maps)?).ok()?;
        }
    }
    let at = index(random, mutant.listing.items.len())?;
    mutant.listing.splice(at, &chunk);
    Some(())
}

fn add_arithmetic(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    const OPERATIONS: [u8; 9] = [0x00, 0x10, 0x20, 0x40, 0x50, 0x60, 0x70, 0xa0, 0xc0];
    let at = index(random, mutant.listing.items.len())?;
    let op = random.pick(&OPERATIONS);
    let opcode = op | width(random);
    let (dst, src) = (held(mutant, random, at), held(mutant, random, at));
    let insn = if random.chance(50) {
        RawInsn::new(opcode | 8, dst, src, 0, 0)
    } else if matches!(op, 0x60 | 0x70 | 0xc0) {
        let by = random.int(32);
        RawInsn::new(opcode, dst, 0, 0, by)
    } else {
        RawInsn::new(opcode, dst, 0, 0, random.imm())
    };
    insert(mutant, random, at, &[(insn, None)]);
    Some(())
}

/// A callee-saved register that is not used, if there is one.
fn spare(mutant: &Mutant<'_>, random: &mut Random) -> u8 {
    let named = mutant.listing.items.iter().flat_map(|item| {
        let (dst, src) = names_registers(item.insn);
        [(dst, item.insn.dst()), (src, item.insn.src())]
    });
    let named: Vec<u8> = named
        .filter(|(named, _)| *named)
        .map(|(_, reg)| reg)
        .collect();
    let spare: Vec<u8> = (6..10).filter(|reg| !named.contains(reg)).collect();
    match index(random, spare.len()) {
        Some(index) => spare[index],
        None => 6 + random.byte(4),
    }
}

/// Two branches on which a register or a slot gets different values.
fn add_two_ways(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let at = index(random, mutant.listing.items.len())?;
    let (reg, asked) = (spare(mutant, random), held(mutant, random, at));
    let slot = random.slot(32);
    let set = |random: &mut Random| match random.below(4) {
        0 => RawInsn::new(0x7a, 10, 0, slot, random.imm()),
        1 => RawInsn::new(0x7b, 10, asked, slot, 0),
        2 => RawInsn::new(0xbf, reg, asked, 0, 0),
        _ => RawInsn::new(0xb7, reg, 0, 0, random.pick(&[0, 1, 2, 8, -1])),
    };
    let (one, other) = (set(random), set(random));
    let op = random.pick(&JUMPS) | random.pick(&[5, 5, 6]);
    let branch = RawInsn::new(op, asked, 0, 0, random.imm());
    let listing = &mut mutant.listing;
    let end = listing.items[at].label;
    let other = listing.insert(at, other, None, false);
    listing.insert(at, RawInsn::new(0x05, 0, 0, 0, 0), Some(end), false);
    listing.insert(at, one, None, false);
    listing.insert(at, branch, Some(other), random.chance(80));
    Some(())
}

/// A loop around some instructions.
fn add_loop(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let len = mutant.listing.items.len();
    let from = index(random, len)?;
    let to = from + index(random, (len - from).min(20))?;
    let reg = spare(mutant, random);
    let count = random.pick(&[1, 2, 3, 4, 7, 10, 50]);
    let op = random.pick(&[0xa5, 0xa5, 0xa6, 0xc5, 0x55, 0xb5, 0x25]);
    let by = random.pick(&[1, 1, 1, 2, -1]);
    let listing = &mut mutant.listing;
    let start = listing.items[from].label;
    if random.chance(20) {
        let budget = RawInsn::new(0xe5, 0, 0, 0, 0);
        let end = listing.items[to].label;
        listing.insert(to, RawInsn::new(0x05, 0, 0, 0, 0), Some(start), false);
        listing.insert(from, budget, Some(end), false);
        return Some(());
    }
    listing.insert(to, RawInsn::new(op, reg, 0, 0, count), Some(start), true);
    listing.insert(to, RawInsn::new(0x07, reg, 0, 0, by), None, true);
    listing.insert(from, RawInsn::new(0xb7, reg, 0, 0, 0), None, false);
    Some(())
}

fn change_helper(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let at = find(mutant, random, is_call_of_helper)?;
    let imm = 1 + random.int(211);
    let insn = &mut mutant.listing.items[at].insn;
    *insn = insn.with_imm(imm);
    Some(())
}

/// Another of the program's kfuncs.
fn change_kfunc(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let is_kfunc = |item: &Item| item.insn.opcode == 0x85 && item.insn.src() == 2;
    let at = find(mutant, random, is_kfunc)?;
    let other = find(mutant, random, is_kfunc)?;
    mutant.listing.items[at].insn = mutant.listing.items[other].insn;
    Some(())
}

fn change_map(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let wanted = |item: &Item| item.insn.opcode == 0x18 && matches!(item.insn.src(), 5 | 6);
    let at = find(mutant, random, wanted)?;
    let imm = i32::try_from(index(random, mutant.program.maps.len())?).ok()?;
    let insn = &mut mutant.listing.items[at].insn;
    *insn = insn.with_imm(imm);
    Some(())
}

fn change_type(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    mutant.program.prog_type = random.pick(&[
        ProgType::SocketFilter,
        ProgType::SchedCls,
        ProgType::Xdp,
        ProgType::CgroupSkb,
        ProgType::Kprobe,
        ProgType::Tracepoint,
        ProgType::RawTracepoint,
        ProgType::PerfEvent,
    ]);
    mutant.program.expected_attach_type = None;
    mutant.program.attach_btf_id = None;
    mutant.program.attach_prog = AttachProgram::None;
    Some(())
}

fn change_flags(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    mutant.program.flags ^= random.pick(&[
        ProgFlags::STRICT_ALIGNMENT,
        ProgFlags::ANY_ALIGNMENT,
        ProgFlags::TEST_STATE_FREQ,
    ]);
    Some(())
}

/// Any field, also one that the instruction doesn't use.
fn change_any_field(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let at = find(mutant, random, |item| {
        item.to.is_none() && item.second.is_none()
    })?;
    let insn = &mut mutant.listing.items[at].insn;
    let nibble = random.byte(16);
    let (mut opcode, mut dst, mut src) = (insn.opcode, insn.dst(), insn.src());
    let (mut off, mut imm) = (insn.off, insn.imm);
    match random.below(5) {
        0 => opcode ^= 1 << random.below(8),
        1 => dst = nibble,
        2 => src = nibble,
        3 => off = random.pick(&[0, 1, -1, 8, 16, 32, i16::MIN, i16::MAX]),
        _ => imm = random.imm(),
    }
    // Jumps and instructions of two slots are changed elsewhere.
    let leads = matches!(opcode & 7, 5 | 6) && !matches!(opcode & 0xf0, 0x80 | 0x90);
    if leads || opcode == 0x18 || opcode == 0x85 && src != 0 {
        return None;
    }
    *insn = RawInsn::new(opcode, dst, src, off, imm);
    Some(())
}

/// Turns an access into an atomic operation of any kind and size.
fn change_atomic(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    const OPERATIONS: [i32; 14] = [
        0, 1, 0x40, 0x41, 0x50, 0x51, 0xa0, 0xa1, 0xe0, 0xe1, 0xf0, 0xf1, 0x100, 0x110,
    ];
    let at = find(mutant, random, |item| matches!(item.insn.opcode & 7, 1 | 3))?;
    let src = held(mutant, random, at);
    let insn = &mut mutant.listing.items[at].insn;
    let base = if insn.opcode & 7 == 1 {
        insn.src()
    } else {
        insn.dst()
    };
    let opcode = 0xc3 | random.pick(&[0x00, 0x18, 0x18, 0x08, 0x10]);
    let imm = random.pick(&OPERATIONS);
    let (dst, src) = if imm == 0x100 {
        (src, base)
    } else {
        (base, src)
    };
    *insn = RawInsn::new(opcode, dst, src, insn.off, imm);
    Some(())
}

/// Another size or sign, and an offset at which the access just fits, or just doesn't.
fn change_size(mutant: &mut Mutant<'_>, random: &mut Random) -> Option<()> {
    let at = find(mutant, random, |item| {
        is_access(item) && item.insn.opcode & 0xe0 != 0xc0
    })?;
    let insn = &mut mutant.listing.items[at].insn;
    insn.opcode = insn.opcode & !0x18 | random.pick(&[0, 8, 0x10, 0x18]);
    if insn.opcode & 7 == 1 && random.chance(30) {
        insn.opcode ^= 0x60 ^ 0x80;
    }
    let by = random.pick(&[0, 0, -7, -4, -3, -1, 1, 2, 4, 7]);
    insn.off = insn.off.checked_add(by)?;
    Some(())
}

/// The program with another attribute of one of its maps: sizes, entries, access flags.
/// `None` without maps, or if the map has contents.
pub fn with_other_map(program: &Program, random: &mut Random) -> Option<Program> {
    let mut maps = program.maps.to_vec();
    let at = index(random, maps.len())?;
    let map = &mut maps[at];
    if !map.initial.is_empty() || map.inner.is_some() {
        return None;
    }
    let other = |random: &mut Random, old: u32| {
        let by = random.pick(&[-8, -4, -1, 1, 4, 8]);
        old.checked_add_signed(by).filter(|new| *new > 0)
    };
    match random.below(4) {
        0 => map.value_size = other(random, map.value_size)?,
        1 => map.key_size = other(random, map.key_size)?,
        2 => map.max_entries = random.pick(&[1, 2, 3, 8]),
        _ => map.flags ^= random.pick(&[MapFlags::RDONLY_PROG, MapFlags::WRONLY_PROG]),
    }
    let mut program = program.clone();
    program.maps = maps.into();
    Some(program)
}
