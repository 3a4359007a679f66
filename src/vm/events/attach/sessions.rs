//! Sessions: state of session programs between a function's entry and return.

use std::sync::Arc;

use smallvec::SmallVec;

use super::site::Session;
use crate::vm::maps::ProgramHandle;
use crate::vm::memory::{Address, Region, SharedBytes, Space, SpaceFull};

/// The open sessions of a CPU.
#[derive(Debug, Default)]
pub struct Sessions {
    open: SmallVec<[Open; 1]>,
}

/// A function call that has not returned.
#[derive(Debug)]
struct Open {
    program: ProgramHandle,
    function: Box<str>,
    cookie: Address,
    /// The program returned nonzero at the entry, so it does not run at the return.
    skips: bool,
}

impl Sessions {
    /// Opens a session with a zeroed cookie at a function's entry.
    ///
    /// # Errors
    /// [`SpaceFull`] if the address space is full.
    pub fn enter(
        &mut self,
        space: &mut Space,
        program: ProgramHandle,
        function: &str,
    ) -> Result<Session, SpaceFull> {
        let bytes = Arc::new(SharedBytes::zeroed(8));
        let cookie = space.insert(Region::bytes("session cookie", bytes))?;
        self.open.push(Open {
            program,
            function: function.into(),
            cookie,
            skips: false,
        });
        Ok(Session {
            is_return: false,
            cookie: cookie.register(),
        })
    }

    /// Records the program's return value at the entry.
    pub fn decide(&mut self, program: ProgramHandle, returned: u32) {
        let mut open = self.open.iter_mut().rev();
        if let Some(session) = open.find(|open| open.program == program) {
            session.skips = returned != 0;
        }
    }

    /// The session at a function's return: the one that its entry opened last; `None` if the
    /// program must be skipped; a new one if the entry was not seen. Close it with
    /// [`leave`](Self::leave).
    ///
    /// # Errors
    /// [`SpaceFull`] if the address space is full.
    pub fn resume(
        &mut self,
        space: &mut Space,
        program: ProgramHandle,
        function: &str,
    ) -> Result<Option<Session>, SpaceFull> {
        let mut open = self.open.iter().rev();
        let found = open.find(|open| open.program == program && *open.function == *function);
        let (cookie, skips) = match found {
            Some(open) => (open.cookie.register(), open.skips),
            None => (self.enter(space, program, function)?.cookie, false),
        };
        Ok((!skips).then_some(Session {
            is_return: true,
            cookie,
        }))
    }

    /// Closes the session after the function's return.
    pub fn leave(&mut self, space: &mut Space, program: ProgramHandle, function: &str) {
        let at = self
            .open
            .iter()
            .rposition(|open| open.program == program && *open.function == *function);
        if let Some(at) = at {
            space.remove(self.open.remove(at).cookie);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_lives_from_entry_to_return() {
        let (mut sessions, mut space) = (Sessions::default(), Space::new());
        let program = ProgramHandle(3);
        let entry = sessions.enter(&mut space, program, "f").unwrap();
        space.store(entry.cookie, 8, 77).unwrap();
        sessions.decide(program, 0);
        let back = sessions.resume(&mut space, program, "f").unwrap().unwrap();
        assert!(back.is_return && !entry.is_return);
        assert_eq!(space.load(back.cookie, 8), Ok(77));
        sessions.leave(&mut space, program, "f");
        assert!(space.load(back.cookie, 8).is_err());

        sessions.enter(&mut space, program, "f").unwrap();
        sessions.decide(program, 1);
        assert_eq!(sessions.resume(&mut space, program, "f"), Ok(None));
        sessions.leave(&mut space, program, "f");
        let alone = sessions.resume(&mut space, program, "f").unwrap().unwrap();
        assert_eq!(space.load(alone.cookie, 8), Ok(0));
    }
}
