//! Ids of registers and references.

/// Assigns the ids of registers and references (`id_gen`). Ids start at 1.
#[derive(Debug, Default)]
pub(crate) struct IdGenerator {
    last: u32,
}

impl IdGenerator {
    /// The last id assigned.
    pub(crate) const fn last(&self) -> u32 {
        self.last
    }

    /// Assigns a new id.
    pub(crate) fn assign(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    /// Offers the next id to `uses`, and assigns it if that returns true.
    pub(crate) fn offer(&mut self, uses: impl FnOnce(u32) -> bool) {
        let next = self.last + 1;
        if uses(next) {
            self.last = next;
        }
    }
}
