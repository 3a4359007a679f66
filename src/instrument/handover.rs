//! Firings that continue in another program by a tail call: their log entries, and the code
//! that writes them in both forms.
//!
//! A tail call ends the program, or the subprogram that makes the call, and another program
//! runs in its place, with its own stack. So a program that is the target of tail calls has a
//! second pair of forms, the *following* ones, which are put into prog arrays: they start no
//! firing, but append to the current log.
//!
//! | entry | meaning |
//! |---|---|
//! | `fe ff`, `u16` way, `u32` program | the program with this number continues: the way is 0 if the calling program has ended, 1 if only a subprogram of it has |
//! | `fd ff` | the program has ended, and the calling one continues after the call of that subprogram |
//!
//! The caller stores the way in a word of the buffer right before the tail call; the target
//! copies it to its frame. A following form whose main function makes a tail call passes on the
//! way by which it was entered itself. A tail call that fails leaves no entry: the next entry
//! is one of the caller's.

use super::emit::{Log, Slots};
use super::maps::scratch;
use super::patch::Block;
use super::site::NUMBER_BYTES;
use crate::isa::{Reg, Size};

/// In place of a site's number: a tail call's target continues.
pub(super) const TAKEN_OVER: u16 = 0xfffe;
/// In place of a site's number: back to the calling program.
pub(super) const GONE_BACK: u16 = 0xfffd;
/// Sites are numbered below this.
pub(super) const MOST_SITES: usize = GONE_BACK as usize;

/// What continues when a tail call's target ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Nothing: the firing ends.
    Instead = 0,
    /// The caller of the subprogram that made the tail call.
    Within = 1,
}

/// Where the way comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum WaySource {
    /// It is constant.
    Always(Way),
    /// A frame slot, with the way by which the program was entered.
    Slot(i16),
}

/// Offset of the way in the buffer.
#[expect(clippy::cast_possible_truncation, reason = "it is 8")]
const HANDOVER: i16 = scratch::HANDOVER as i16;

impl Log {
    /// Emits the code before a tail call; it only clobbers registers that the call does not
    /// use.
    pub(super) fn hand_over(&self, block: &mut Block, slots: &mut Slots<'_>, way: WaySource) {
        let (buffer, came) = (Reg::R4, Reg::R5);
        self.buffer(block, slots, buffer);
        match way {
            WaySource::Always(way) => block.store(Size::Dw, buffer, HANDOVER, way as i32),
            WaySource::Slot(slot) => {
                block.load(Size::Dw, came, Reg::FP, slot);
                block.store(Size::Dw, buffer, HANDOVER, came);
            }
        }
    }

    /// Emits the entry of a tail call's target, and saves the way in a slot. The buffer's
    /// address is in `r0`; clobbers `r0`, `r2` and `r3`.
    pub(super) fn take_over(&self, block: &mut Block, program: u32, slot: i16) {
        let (at, other, way) = (Reg::R0, Reg::R2, Reg::R3);
        block.load(Size::Dw, way, at, HANDOVER);
        block.store(Size::Dw, Reg::FP, slot, way);
        self.advance(block, at, other, TAKEN_OVER_BYTES, None);
        block.store(Size::H, at, self.at(0), i32::from(TAKEN_OVER));
        block.store(Size::H, at, self.at(WAY_AT), way);
        block.store(Size::W, at, self.at(PROGRAM_AT), program.cast_signed());
    }

    /// Emits the entry of a return to the calling program. Preserves only `r0`.
    pub(super) fn go_back(&self, block: &mut Block, slots: &mut Slots<'_>) {
        let (at, other) = (Reg::R1, Reg::R2);
        self.buffer(block, slots, at);
        self.advance(block, at, other, NUMBER_BYTES, None);
        block.store(Size::H, at, self.at(0), i32::from(GONE_BACK));
    }
}

/// Offsets of the way and of the program's number in the entry, and its length.
const WAY_AT: u32 = NUMBER_BYTES;
const PROGRAM_AT: u32 = 4;
const TAKEN_OVER_BYTES: u32 = 8;

/// An entry without a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TailCallEntry {
    /// A tail call's target continues.
    TakenOver { way: Way, program: u32 },
    /// The calling program continues.
    GoneBack,
}

impl TailCallEntry {
    /// Parses such an entry at the start of these bytes; returns it with its length.
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
        let mark = TailCallEntry::TakenOver {
            way: Way::Within,
            program: 7,
        };
        assert_eq!(TailCallEntry::parse(&over), Some((mark, 8)));
        assert_eq!(
            TailCallEntry::parse(&[0xfd, 0xff, 3]),
            Some((TailCallEntry::GoneBack, 2))
        );
        for len in 0..8 {
            assert_eq!(TailCallEntry::parse(&over[..len]), None, "{len}");
        }
        assert_eq!(TailCallEntry::parse(&[0xfe, 0xff, 2, 0, 7, 0, 0, 0]), None);
        assert_eq!(TailCallEntry::parse(&[1, 0, 0, 0]), None);
    }
}
