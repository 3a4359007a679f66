//! Programs whose section name determines no program type, and setting their types. libbpf
//! refuses to load such a program (`bpf_object_load_prog`) until its loader sets the type
//! (`bpf_program__set_type`).

use super::error::{ErrorLocation, Known, ObjectError, Problem};
use super::model::{Entry, Object};
use crate::spec::{AttachType, ProgType, nearest_section};
use crate::util::{glob, nearest_first};

impl Object {
    /// The programs that would be loaded but have no type: neither their section name nor a
    /// setter determines it. [`Object::programs`] returns an error for each;
    /// [`Entry::set_autoload`] skips them.
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

    /// Sets this type for every program without one ([`untyped`](Self::untyped)); returns
    /// how many there were.
    pub fn set_untyped(&mut self, prog_type: ProgType, attach_type: Option<AttachType>) -> usize {
        let names: Vec<_> = self.untyped().map(|entry| entry.function).collect();
        self.retype(&names, prog_type, attach_type)
    }

    /// Sets type and attach type of the program of this name; if there is none, of all
    /// programs whose name or section matches the pattern (`*` stands for any text, `?` for
    /// one character). Returns how many there were.
    ///
    /// # Errors
    /// No name or section matches; the error lists the existing ones, the nearest first.
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
        ObjectError::new(ErrorLocation::Entry { name }, problem).of(&self.file)
    }
}

/// The error for a program without a type.
pub(super) fn no_type(object: &Object, entry: &Entry) -> ObjectError {
    let place = ErrorLocation::Section {
        name: entry.section.clone(),
        offset: 0,
    };
    let rename = match nearest_section(&entry.section) {
        Some(nearest) => format!("rename it (`{nearest}`?)"),
        None => "rename it".to_owned(),
    };
    let text = format!(
        "the section's name doesn't say what type of program '{}' is: {rename}, set the type, \
         or don't load the program",
        entry.name
    );
    ObjectError::new(place, Problem::Unresolved(text)).of(&object.file)
}
