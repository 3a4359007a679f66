//! A cache of tracepoint layouts. A kernel's BTF has more than a hundred thousand types,
//! and a tracepoint that shares its record with others of its class needs a search of all
//! of them: too slow for each event of a test.

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::error::Result;
use crate::vm::events::{Event, Layout};

/// Empty events of tracepoints, by name. Valid until the types that the layouts come from
/// change.
#[derive(Debug, Default)]
pub(super) struct Layouts(Mutex<FxHashMap<String, Event>>);

impl Layouts {
    /// An empty event of the tracepoint of this name; `find` computes its layout the first
    /// time.
    ///
    /// # Errors
    /// Those of `find`, which is called again the next time.
    pub fn get(&self, name: &str, find: impl FnOnce() -> Result<Layout>) -> Result<Event> {
        if let Some(known) = self.known().get(name) {
            return Ok(known.clone());
        }
        let found = Event::tracepoint(find()?);
        self.known().insert(name.to_owned(), found.clone());
        Ok(found)
    }

    /// Empties the cache when the types change.
    pub fn clear(&self) {
        self.known().clear();
    }

    /// A panic while the lock is held leaves no partial entry.
    fn known(&self) -> std::sync::MutexGuard<'_, FxHashMap<String, Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::events::EventError;

    #[test]
    fn a_layout_is_looked_for_until_it_is_found() {
        let layouts = Layouts::default();
        let missing = || {
            Err(EventError::Declaration {
                event: "a/b".to_owned(),
                problem: "no".to_owned(),
            }
            .into())
        };
        assert!(layouts.get("a/b", missing).is_err());
        let first = layouts.get("a/b", || Ok(Layout::of_arguments("a/b", 1)));
        let again = layouts.get("a/b", || unreachable!("it is known"));
        assert_eq!(first.unwrap(), again.unwrap());
        layouts.clear();
        assert!(layouts.get("a/b", missing).is_err());
    }
}
