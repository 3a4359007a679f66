//! What the calls so far have shown about each function.

use super::signature::Signature;

/// The cached signature of a function.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Known {
    /// Not yet computed.
    #[default]
    NotComputed,
    /// This signature.
    Is(Signature),
    /// A call did not match it, or the BTF is unreliable.
    Unreliable,
}

/// The signatures of a program's functions, computed on first use, and which functions are
/// called.
#[derive(Debug)]
pub(crate) struct Functions {
    signatures: Vec<Known>,
    called: Vec<bool>,
}

impl Functions {
    /// For a program with `count` functions.
    pub(crate) fn new(count: usize) -> Self {
        Self {
            signatures: vec![Known::NotComputed; count],
            called: vec![false; count],
        }
    }

    pub(super) fn signature(&self, function: u32) -> Known {
        let known = self.signatures.get(function as usize);
        known.copied().unwrap_or_default()
    }

    pub(super) fn set_signature(&mut self, function: u32, known: Known) {
        if let Some(entry) = self.signatures.get_mut(function as usize) {
            *entry = known;
        }
    }

    /// Records a call of a global function, which has to be verified on its own then.
    pub(super) fn call(&mut self, function: usize) {
        if let Some(called) = self.called.get_mut(function) {
            *called = true;
        }
    }

    /// Whether the function has to be verified on its own.
    pub(super) fn is_called(&self, function: u32) -> bool {
        self.called.get(function as usize) == Some(&true)
    }
}
