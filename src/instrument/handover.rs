//! Firings that go on in another program: the entries by which the log tells of it, and the
//! code that both forms insert for it.
//!
//! A tail call ends the program, or the function of it that makes the call, and another
//! program goes on in its place, with a stack of its own. So a program that tail calls may
//! lead to has a second pair of forms, the *following* ones, which stand in prog arrays: they
//! open no firing, but append to the log that is open.
//!
//! | entry | what |
//! |---|---|
//! | `fe ff`, `u16` way, `u32` program | the program with this number goes on: the way is 0 where the one before is over, 1 where only a function of it is |
//! | `fd ff` | the program is over, and the one before goes on behind the call of that function |
//!
//! Which way it is, the caller says in a word of the buffer, right before the call; the
//! program keeps it in its frame. When a program ends that came the way 0, so has the one
//! before ended, and the way that *that* one came counts: it handed it on. A tail call that
//! fails leaves no entry: what follows is one of the caller's own.

use super::emit::{Log, Slots};
use super::maps::scratch;
use super::patch::Block;
use super::site::NUMBER_BYTES;
use crate::isa::{Reg, Size};

/// In the place of a site's number: a program takes over.
pub(super) const TAKEN_OVER: u16 = 0xfffe;
/// In the place of a site's number: back to the program before.
pub(super) const GONE_BACK: u16 = 0xfffd;
/// Numbers from this one on are no site's.
pub(super) const MOST_SITES: usize = GONE_BACK as usize;

/// What goes on when the program that was taken over ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Nothing: that is the firing's end.
    Instead = 0,
    /// The caller of the function that made the tail call.
    Within = 1,
}

/// Who says which way it is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Says {
    /// It is known.
    Always(Way),
    /// A slot of the frame: as the program came itself.
    Slot(i16),
}

/// Where the buffer has the way.
#[expect(clippy::cast_possible_truncation, reason = "it is 8")]
const HANDOVER: i16 = scratch::HANDOVER as i16;

impl Log {
    /// Goes before a tail call, and uses registers only that it neither reads nor keeps.
    pub(super) fn hand_over(&self, block: &mut Block, slots: &mut Slots<'_>, way: Says) {
        let (buffer, came) = (Reg::R4, Reg::R5);
        self.buffer(block, slots, buffer);
        match way {
            Says::Always(way) => block.store(Size::Dw, buffer, HANDOVER, way as i32),
            Says::Slot(slot) => {
                block.load(Size::Dw, came, Reg::FP, slot);
                block.store(Size::Dw, buffer, HANDOVER, came);
            }
        }
    }

    /// The entry of a program that takes over; the buffer's address is in `r0`, which is gone
    /// then, as are `r2` and `r3`. The way is kept in a slot.
    pub(super) fn take_over(&self, block: &mut Block, program: u32, slot: i16) {
        let (at, other, way) = (Reg::R0, Reg::R2, Reg::R3);
        block.load(Size::Dw, way, at, HANDOVER);
        block.store(Size::Dw, Reg::FP, slot, way);
        self.advance(block, at, other, TAKEN_OVER_BYTES, None);
        block.store(Size::H, at, self.at(0), i32::from(TAKEN_OVER));
        block.store(Size::H, at, self.at(WAY_AT), way);
        block.store(Size::W, at, self.at(PROGRAM_AT), program.cast_signed());
    }

    /// The entry of a program that goes back. Only `r0` outlives it.
    pub(super) fn go_back(&self, block: &mut Block, slots: &mut Slots<'_>) {
        let (at, other) = (Reg::R1, Reg::R2);
        self.buffer(block, slots, at);
        self.advance(block, at, other, NUMBER_BYTES, None);
        block.store(Size::H, at, self.at(0), i32::from(GONE_BACK));
    }
}

/// Where in the entry the way is, and the program's number, and how long it is.
const WAY_AT: u32 = NUMBER_BYTES;
const PROGRAM_AT: u32 = 4;
const TAKEN_OVER_BYTES: u32 = 8;

/// An entry that is no site's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// A program takes over.
    TakenOver { way: Way, program: u32 },
    /// The one before goes on.
    GoneBack,
}

impl Mark {
    /// The entry at the start of these bytes, if it is one, and how many it takes.
    pub(super) fn parse(log: &[u8]) -> Option<(Self, usize)> {
        let (number, rest) = log.split_first_chunk()?;
        match u16::from_le_bytes(*number) {
            GONE_BACK => Some((Self::GoneBack, number.len())),
            TAKEN_OVER => {
                let (way, rest) = rest.split_first_chunk()?;
                let program = u32::from_le_bytes(*rest.first_chunk()?);
                let way = match u16::from_le_bytes(*way) {
                    0 => Way::Instead,
                    1 => Way::Within,
                    _ => return None,
                };
                let mark = Self::TakenOver { way, program };
                Some((mark, TAKEN_OVER_BYTES as usize))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_no_site_are_known_by_their_number() {
        let over = [0xfe, 0xff, 1, 0, 7, 0, 0, 0, 9];
        let mark = Mark::TakenOver {
            way: Way::Within,
            program: 7,
        };
        assert_eq!(Mark::parse(&over), Some((mark, 8)));
        assert_eq!(Mark::parse(&[0xfd, 0xff, 3]), Some((Mark::GoneBack, 2)));
        for len in 0..8 {
            assert_eq!(Mark::parse(&over[..len]), None, "{len}");
        }
        assert_eq!(Mark::parse(&[0xfe, 0xff, 2, 0, 7, 0, 0, 0]), None);
        assert_eq!(Mark::parse(&[1, 0, 0, 0]), None);
    }
}
