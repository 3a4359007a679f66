//! Makes a program of a function outside of program sections.

#[cfg(feature = "cli")]
use super::collect::TEXT;
use super::error::{ErrorLocation, ObjectError};
use super::model::{Entry, Object, unknown};
use crate::spec::{ProgFlags, ProgType};

impl Object {
    /// Makes a function an entry point, even one in `.text` that is otherwise only called
    /// as a subprogram. It is loaded with the object.
    ///
    /// # Errors
    /// There is no function of this name; the error lists the existing ones.
    pub fn add_entry(
        &mut self,
        name: &str,
        prog_type: ProgType,
    ) -> Result<&mut Entry, ObjectError> {
        let found = self
            .functions
            .iter()
            .position(|function| function.name == name);
        let found = found.and_then(|index| Some((index, self.functions.get(index)?)));
        let Some((index, function)) = found else {
            let known = self.functions.iter().map(|function| &*function.name);
            let problem = unknown("no such function", known);
            let name = name.to_owned();
            return Err(ObjectError::new(ErrorLocation::Entry { name }, problem).of(&self.file));
        };
        let section = self.code.get(function.code).map(|code| code.name.clone());
        let entry = Entry {
            function: index,
            name: function.name.clone(),
            section: section.unwrap_or_default(),
            slots: function.slots.len(),
            autoload: true,
            prog_type: Some(prog_type),
            expected_attach_type: None,
            attach_target: None,
            flags: ProgFlags::empty(),
            member: None,
            exception_callback: None,
        };
        let at = match self
            .entries
            .iter()
            .position(|known| known.function == index)
        {
            Some(at) => {
                self.entries[at] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        };
        Ok(&mut self.entries[at])
    }
}

#[cfg(feature = "cli")]
impl Object {
    /// The static functions outside of `.text`: each with its section. libbpf takes them for
    /// subprograms, cilium/ebpf for programs.
    pub(crate) fn static_functions(&self) -> impl Iterator<Item = (&str, &str)> {
        let elsewhere = self.functions.iter().filter(|function| function.local);
        let named = elsewhere.filter_map(|function| {
            let section = &self.code.get(function.code)?.name;
            Some((section.as_str(), function.name.as_str()))
        });
        named.filter(|(section, _)| *section != TEXT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Object {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/objects/subprograms.bpf.o"
        );
        Object::open(file).unwrap()
    }

    #[test]
    fn any_function_can_be_a_program() {
        let mut object = object();
        let called = object.program(object.entries()[0].name()).unwrap();
        let name = called.subprograms[1].name.clone();
        object
            .add_entry(&name, ProgType::Syscall)
            .unwrap()
            .set_autoload(false);
        let program = object.program(&name).unwrap();
        assert_eq!(program.prog_type, ProgType::Syscall);
        assert_eq!(program.subprograms[0].name, name);
        let entries = object.entries().len();
        object.add_entry(&name, ProgType::Xdp).unwrap();
        assert_eq!(
            object.entries().len(),
            entries,
            "a second time it is changed"
        );
    }

    #[test]
    fn a_function_that_is_not_there_is_named_with_those_that_are() {
        let error = object().add_entry("nothing", ProgType::Xdp).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("program 'nothing': no such function; there are '")
        );
    }
}
