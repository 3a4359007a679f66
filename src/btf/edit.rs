//! Applies a loader's changes to an object's BTF before the kernel loads it: sizes and
//! offsets in sections, linkage, the type of a variable. Types and strings are only added
//! at the end, so that ids and string offsets elsewhere (`.BTF.ext`) stay valid.

use super::blob::{Btf, HEADER_LEN};
use super::check::join_info;
use super::error::BtfError;
use super::kind::{HEADER_WORDS, Kind};
use super::types::{Array, Linkage, Variable};
use crate::util::TypeId;

/// An editable copy of a table. An edit that doesn't fit the type's kind, or of a missing
/// type, has no effect.
#[derive(Debug)]
pub struct Editor {
    btf: Btf,
    words: Vec<u32>,
    /// Start of each own type's record in `words`.
    starts: Vec<u32>,
    strings: String,
}

impl Editor {
    /// A copy of `btf`'s own types.
    #[must_use]
    pub fn new(btf: &Btf) -> Self {
        Self {
            btf: btf.clone(),
            words: btf.words().to_vec(),
            starts: btf.index().to_vec(),
            strings: btf.own_strings().to_owned(),
        }
    }

    /// A word of a type's record, if the type has this kind.
    fn word(&mut self, id: TypeId, kind: Kind, at: usize) -> Option<&mut u32> {
        let ty = self.btf.get(id).filter(|ty| ty.kind() == kind)?;
        if at >= kind.shape().words(ty.vlen()) {
            return None;
        }
        let own = id.index().checked_sub(self.btf.first_id().index())?;
        self.words.get_mut(*self.starts.get(own)? as usize + at)
    }

    fn set(&mut self, id: TypeId, kind: Kind, at: usize, value: u32) {
        if let Some(word) = self.word(id, kind, at) {
            *word = value;
        }
    }

    /// Sets the size of a section.
    pub fn set_section_size(&mut self, id: TypeId, size: u32) {
        self.set(id, Kind::Datasec, 2, size);
    }

    /// Replaces the variables of a section; surplus variables are ignored.
    pub fn set_variables(&mut self, id: TypeId, variables: &[Variable]) {
        for (index, place) in variables.iter().enumerate() {
            let at = HEADER_WORDS + index * 3;
            for (word, value) in [place.ty.0, place.offset, place.size].iter().enumerate() {
                self.set(id, Kind::Datasec, at + word, *value);
            }
        }
    }

    /// Sets the linkage of a function or a variable.
    pub fn set_linkage(&mut self, id: TypeId, linkage: Linkage) {
        let info = join_info(Kind::Func, linkage as u16, false);
        self.set(id, Kind::Func, 1, info);
        self.set(id, Kind::Var, HEADER_WORDS, linkage as u32);
    }

    /// Sets the type of a variable.
    pub fn set_variable_type(&mut self, id: TypeId, ty: TypeId) {
        self.set(id, Kind::Var, 2, ty.0);
    }

    /// Names a parameter of a prototype; `name` is a string offset in the table.
    pub fn set_param_name(&mut self, id: TypeId, param: usize, name: u32) {
        self.set(id, Kind::FuncProto, HEADER_WORDS + param * 2, name);
    }

    /// Adds a string at the end; returns its offset.
    pub fn add_string(&mut self, string: &str) -> u32 {
        let end = self.btf.string_end() as usize - self.btf.own_strings().len();
        let offset = end + self.strings.len();
        self.strings.push_str(string);
        self.strings.push('\0');
        u32::try_from(offset).unwrap_or(u32::MAX)
    }

    /// Adds a variable at the end; `name` is a string offset in the table.
    pub fn add_variable(&mut self, name: u32, ty: TypeId, linkage: Linkage) -> TypeId {
        let info = join_info(Kind::Var, 0, false);
        self.add(&[name, info, ty.0, linkage as u32])
    }

    /// Adds an array at the end.
    pub fn add_array(&mut self, array: Array) -> TypeId {
        let info = join_info(Kind::Array, 0, false);
        self.add(&[0, info, 0, array.element.0, array.index.0, array.len])
    }

    fn add(&mut self, record: &[u32]) -> TypeId {
        let id = self.btf.first_id().index() + self.starts.len();
        // A table that is too long is refused at the end.
        let start = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
        self.starts.push(start);
        self.words.extend(record);
        TypeId::from_index(id)
    }

    /// Returns the changed table.
    ///
    /// # Errors
    /// [`BtfError`] if a change violates a check of [`Btf::parse`].
    pub fn finish(self) -> Result<Btf, BtfError> {
        Btf::checked(
            self.words.into(),
            self.strings.into(),
            self.btf.base().cloned(),
            HEADER_LEN as usize,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Builder, Encoding};

    #[test]
    fn edits_reach_their_word_and_nothing_else() {
        let mut builder = Builder::new();
        let int = builder.int("int", 4, Encoding::Signed);
        let long = builder.int("long", 8, Encoding::Signed);
        let proto = builder.prototype(int, &[]);
        let function = builder.function("f", proto, Linkage::Global);
        let variable = builder.variable("v", int, Linkage::Extern);
        let place = |offset| Variable {
            ty: variable,
            offset,
            size: 4,
        };
        let section = builder.section(".data", 0, &[place(0)]);
        let before = builder.build().unwrap();

        let mut editor = Editor::new(&before);
        editor.set_section_size(section, 16);
        editor.set_variables(section, &[place(8), place(12)]);
        editor.set_linkage(function, Linkage::Static);
        editor.set_linkage(variable, Linkage::Global);
        editor.set_variable_type(variable, long);
        editor.set_section_size(int, 1);
        editor.set_section_size(TypeId(99), 1);
        let name = editor.add_string("new");
        let added = editor.add_variable(name, long, Linkage::Global);
        let after = editor.finish().unwrap();

        assert_eq!(after.ty(section).size(), Some(16));
        assert_eq!(
            after.ty(section).variables().collect::<Vec<_>>(),
            [place(8)]
        );
        assert_eq!(after.ty(function).linkage(), Some(Linkage::Static));
        assert_eq!(after.ty(variable).linkage(), Some(Linkage::Global));
        assert_eq!(after.ty(variable).target_id(), Some(long));
        assert_eq!(after.ty(int).size(), Some(4), "another kind stays");
        assert_eq!(after.count(), before.count() + 1);
        assert_eq!(after.ty(added).name(), "new");
        assert_eq!(after.ty(added).target_id(), Some(long));
        let same = Editor::new(&before).finish().unwrap();
        assert_eq!(same.to_bytes(), before.to_bytes());
    }
}
