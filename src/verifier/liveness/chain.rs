//! The call chain of a frame.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::spec::limits::MAX_CALL_FRAMES;
use crate::util::Pc;
use crate::verifier::state::State;
use crate::verifier::structure::Structure;

/// The calls that lead to a function. Two chains are equal if they have the same call
/// instructions and the same innermost function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallChain {
    /// The call instruction of each outer frame, then the first instruction of the
    /// innermost function.
    callsites: [Pc; MAX_CALL_FRAMES],
    /// The first instruction of each frame's function.
    starts: [Pc; MAX_CALL_FRAMES],
    /// The number of outer frames.
    depth: usize,
}

impl CallChain {
    /// The chain of these frames, outermost first: the start of each frame's function and
    /// its call of the next frame (ignored for the last one). Frames beyond
    /// [`MAX_CALL_FRAMES`] are ignored.
    pub(crate) fn new(frames: impl Iterator<Item = (Pc, Option<Pc>)>) -> Self {
        let mut chain = Self {
            callsites: [Pc(0); MAX_CALL_FRAMES],
            starts: [Pc(0); MAX_CALL_FRAMES],
            depth: 0,
        };
        let slots = chain.callsites.iter_mut().zip(&mut chain.starts);
        for (depth, ((callsite, start), (begin, call))) in slots.zip(frames).enumerate() {
            *start = begin;
            *callsite = call.unwrap_or_default();
            chain.depth = depth;
        }
        chain.close()
    }

    /// The chain to frame number `frame` of a state.
    pub(crate) fn of<R, S>(state: &State<R, S>, structure: &Structure, frame: usize) -> Self {
        Self::new((0..=frame).filter_map(|number| {
            let this = state.frames.get(number)?;
            let start = structure.subprograms.get(this.subprogram as usize)?.start;
            let callsite = state.frames.get(number + 1).and_then(|next| next.callsite);
            Some((start, callsite))
        }))
    }

    /// The number of the innermost frame.
    pub(super) fn frame(&self) -> usize {
        self.depth
    }

    /// The first instruction of the innermost function.
    pub(super) fn start(&self) -> Pc {
        self.starts.get(self.depth).copied().unwrap_or_default()
    }

    /// The call instruction of this outer frame.
    pub(super) fn callsite(&self, frame: usize) -> Pc {
        self.callsites.get(frame).copied().unwrap_or_default()
    }

    /// The caller's chain and its call instruction; `None` for the outermost frame.
    pub(super) fn outer(&self) -> Option<(Self, Pc)> {
        let depth = self.depth.checked_sub(1)?;
        let call = self.callsite(depth);
        Some((Self { depth, ..*self }.close(), call))
    }

    /// Replaces the last entry by the start of the function.
    fn close(mut self) -> Self {
        let start = self.start();
        if let Some(last) = self.callsites.get_mut(self.depth) {
            *last = start;
        }
        self
    }

    /// The part that identifies a chain.
    fn key(&self) -> &[Pc] {
        self.callsites.get(..=self.depth).unwrap_or_default()
    }
}

impl PartialEq for CallChain {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for CallChain {}

impl Hash for CallChain {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for site in self.key() {
            state.write_u32(site.0);
        }
    }
}

/// Formats as in the kernel's log: `(4,12)`.
impl fmt::Display for CallChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, site) in self.key().iter().enumerate() {
            write!(f, "{}{site}", if at == 0 { "(" } else { "," })?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_its_calls_and_its_function() {
        let frames = [
            (Pc(0), Some(Pc(3))),
            (Pc(9), Some(Pc(11))),
            (Pc(20), Some(Pc(99))),
        ];
        let chain = CallChain::new(frames.into_iter());
        assert_eq!(chain.to_string(), "(3,11,20)");
        assert_eq!((chain.frame(), chain.start()), (2, Pc(20)));
        let (outer, call) = chain.outer().unwrap();
        assert_eq!((outer.to_string().as_str(), call), ("(3,9)", Pc(11)));
        assert_eq!(outer, CallChain::new(frames.into_iter().take(2)));
        assert_ne!(outer, chain);
        let (main, call) = outer.outer().unwrap();
        assert_eq!((main.to_string().as_str(), call), ("(0)", Pc(3)));
        assert_eq!(main.outer(), None);
    }

    #[test]
    fn frames_beyond_the_last_are_not_looked_at() {
        let chain = CallChain::new((0..20).map(|at| (Pc(at * 10), Some(Pc(at * 10 + 1)))));
        assert_eq!(
            (chain.frame(), chain.start()),
            (MAX_CALL_FRAMES - 1, Pc(70))
        );
    }
}
