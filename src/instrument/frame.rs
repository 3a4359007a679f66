//! Room on the stack for inserted code: slots of eight bytes below those of the function.

use super::error::Reason;
use crate::spec::limits::STACK_SIZE;

/// The slots added to a function's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    /// Bytes that the function itself uses, a multiple of 8.
    used: u16,
    /// The number of slots added so far.
    added: u16,
}

impl Frame {
    /// The frame of a function that uses `used` bytes.
    pub(super) const fn new(used: u16) -> Self {
        Self {
            used: match used.checked_next_multiple_of(8) {
                Some(used) => used,
                None => u16::MAX,
            },
            added: 0,
        }
    }

    /// The offset of a slot from the frame pointer. Slots are numbered from 0 and added on
    /// first use.
    pub(super) fn slot(&mut self, number: u16) -> i16 {
        self.added = self.added.max(number.saturating_add(1));
        let below = number.saturating_add(1).saturating_mul(8);
        let off = self.used.saturating_add(below);
        i16::try_from(off).map_or(i16::MIN, |off| -off)
    }

    /// Size of the frame in bytes.
    pub(super) const fn size(&self) -> u16 {
        self.used.saturating_add(self.added.saturating_mul(8))
    }

    /// Checks that the frame fits on the stack.
    ///
    /// # Errors
    /// [`Reason::Stack`] if it does not.
    pub(super) fn check(&self, function: &str) -> Result<(), Reason> {
        if usize::from(self.size()) <= STACK_SIZE {
            return Ok(());
        }
        Err(Reason::Stack {
            function: function.to_owned(),
            used: self.used.into(),
            needed: u32::from(self.added) * 8,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_lie_below_what_is_used() {
        let mut frame = Frame::new(20);
        assert_eq!((frame.slot(0), frame.slot(2)), (-32, -48));
        assert_eq!(frame.size(), 48);
        assert_eq!(frame.check("f"), Ok(()));
    }

    #[test]
    fn a_full_frame_has_no_room() {
        let mut frame = Frame::new(512);
        assert_eq!(frame.check("f"), Ok(()));
        frame.slot(1);
        let error = frame.check("f").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("function f uses 512 bytes of stack"),
            "{error}"
        );
        assert_eq!(Frame::new(u16::MAX).slot(u16::MAX), i16::MIN);
    }
}
