//! Programs whose section names no program type, and types for them. libbpf refuses to
//! load such a program (`bpf_object_load_prog`); its own loader sets the type
//! (`bpf_program__set_type`).

use super::error::{Known, ObjectError, Place, Problem};
use super::model::{Entry, Object};
use crate::spec::{AttachType, ProgType};
use crate::util::{glob, nearest_first};

impl Object {
    /// The programs that would be loaded but have no type: their section names none and
    /// none was set. [`Object::programs`] gives an error for each. A tool that can do
    /// without them leaves them out ([`Entry::set_autoload`]).
    ///
    /// ```
    /// use bpflab::Object;
    /// use bpflab::spec::ProgType;
    ///
    /// let mut object = Object::open("tests/objects/unknown_section.bpf.o")?;
    /// assert_eq!(object.untyped().count(), 1);
    /// object.set_types("bpflab/*", ProgType::Xdp, None)?;
    /// assert_eq!(object.untyped().count(), 0);
    /// # Ok::<(), bpflab::ObjectError>(())
    /// ```
    pub fn untyped(&self) -> impl Iterator<Item = &Entry> {
        self.entries
            .iter()
            .filter(|entry| entry.autoload && entry.prog_type.is_none())
    }

    /// Makes every program that has no type ([`untyped`](Self::untyped)) one of this type;
    /// returns how many there were.
    pub fn set_untyped(&mut self, prog_type: ProgType, attach_type: Option<AttachType>) -> usize {
        let names: Vec<_> = self.untyped().map(|entry| entry.function).collect();
        self.retype(&names, prog_type, attach_type)
    }

    /// Sets type and attach type of the program of this name or, if there is none, of all
    /// programs whose name or section fits the pattern (`*` stands for anything, `?` for
    /// one character); returns how many there were.
    ///
    /// # Errors
    /// No name and no section fits; the error names those that there are, the nearest
    /// first.
    pub fn set_types(
        &mut self,
        pattern: &str,
        prog_type: ProgType,
        attach_type: Option<AttachType>,
    ) -> Result<usize, ObjectError> {
        let fitting = |fits: &dyn Fn(&Entry) -> bool| -> Vec<usize> {
            let entries = self.entries.iter().filter(|entry| fits(entry));
            entries.map(|entry| entry.function).collect()
        };
        let mut found = fitting(&|entry| entry.name == pattern);
        if found.is_empty() {
            found = fitting(&|entry| glob(pattern, &entry.name) || glob(pattern, &entry.section));
        }
        if found.is_empty() {
            return Err(self.nothing_fits(pattern));
        }
        Ok(self.retype(&found, prog_type, attach_type))
    }

    /// Sets the types of the programs of these functions.
    fn retype(
        &mut self,
        functions: &[usize],
        prog_type: ProgType,
        attach_type: Option<AttachType>,
    ) -> usize {
        for entry in &mut self.entries {
            if functions.contains(&entry.function) {
                entry.set_prog_type(prog_type);
                entry.set_expected_attach_type(attach_type);
            }
        }
        functions.len()
    }

    fn nothing_fits(&self, pattern: &str) -> ObjectError {
        let names = self.entries.iter().map(|entry| entry.name.clone());
        let sections = self.entries.iter().map(|entry| entry.section.clone());
        let mut known: Vec<String> = names.chain(sections).collect();
        known.sort_unstable();
        known.dedup();
        let problem = Problem::Unknown {
            what: "no program or section has this name",
            known: Known(nearest_first(pattern, known)),
        };
        let name = pattern.to_owned();
        ObjectError::new(Place::Entry { name }, problem).of(&self.file)
    }
}

/// Why a program of this name and section is not loaded.
pub(super) fn no_type(object: &Object, entry: &Entry) -> ObjectError {
    let place = Place::Section {
        name: entry.section.clone(),
        offset: 0,
    };
    let text = format!(
        "the section's name doesn't say what type of program '{}' is: rename it, set the type, \
         or don't load the program",
        entry.name
    );
    ObjectError::new(place, Problem::Unresolved(text)).of(&object.file)
}
