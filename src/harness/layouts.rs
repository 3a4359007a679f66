//! Layouts that were found once. A kernel's BTF has more than a hundred thousand types,
//! and where a tracepoint shares its record with others of its class it has to be
//! searched as a whole: too slow for each of a test's events.

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::error::Result;
use crate::vm::events::{Event, Layout};

/// Firings of tracepoints with nothing set yet, by name, as long as the types that their
/// layouts come from don't change.
#[derive(Debug, Default)]
pub(super) struct Layouts(Mutex<FxHashMap<String, Event>>);

impl Layouts {
    /// A firing of the tracepoint of this name, whose layout is found by `find` the first
    /// time.
    ///
    /// # Errors
    /// Those of `find`, which is asked again the next time.
    pub fn get(&self, name: &str, find: impl FnOnce() -> Result<Layout>) -> Result<Event> {
        if let Some(known) = self.known().get(name) {
            return Ok(known.clone());
        }
        let found = Event::tracepoint(find()?);
        self.known().insert(name.to_owned(), found.clone());
        Ok(found)
    }

    /// Forgets all of them: there are other types now.
    pub fn clear(&self) {
        self.known().clear();
    }

    /// A panic elsewhere leaves nothing here half done.
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
