//! A kernel with modules: one table for all of them.

use super::blob::Btf;
use super::builder::Builder;
use super::error::BtfError;

impl Btf {
    /// The same kernel with a module: a table whose last types are the module's. `module` is the
    /// module's split BTF (`/sys/kernel/btf/MODULE`), on the kernel's own. The ids of a second
    /// module's types differ from those of its file, where they follow the kernel's.
    ///
    /// # Errors
    /// [`BtfError`] if the bytes are no BTF on this kernel's.
    pub fn with_module(&self, module: &[u8]) -> Result<Self, BtfError> {
        let module = Self::parse_split(module, self.kernel())?;
        if self.base().is_none() {
            return Ok(module);
        }
        let mut joined = Builder::split(self);
        joined.append(&module);
        joined.build()
    }

    /// The table without modules.
    pub(crate) fn kernel(&self) -> &Self {
        let tables = std::iter::successors(Some(self), |table| table.base());
        tables.last().unwrap_or(self)
    }
}

#[cfg(test)]
mod tests {
    use crate::btf::{Btf, Builder, Encoding, Kind, Linkage, Member};
    use crate::util::TypeId;

    fn kernel() -> Btf {
        let mut builder = Builder::new();
        let int = builder.int("int", 4, Encoding::Signed);
        let member = Member {
            name: "a",
            ty: int,
            bit_offset: 0,
            bitfield: None,
        };
        builder.structure("shared", 4, &[member]);
        builder.build().unwrap()
    }

    /// A module with a function of the kernel's `int` and of an own type.
    fn module(kernel: &Btf, own: &str, function: &str) -> Vec<u8> {
        let mut builder = Builder::split(kernel);
        let int = kernel.find("int", Kind::Int).unwrap().id();
        let own = builder.typedef(own, int);
        let prototype = builder.prototype(own, &[]);
        builder.function(function, prototype, Linkage::Static);
        builder.build().unwrap().to_bytes()
    }

    #[test]
    fn modules_follow_one_another() {
        let kernel = kernel();
        let one = kernel.with_module(&module(&kernel, "own", "f")).unwrap();
        let both = one.with_module(&module(&kernel, "other", "g")).unwrap();
        assert_eq!(both.count(), kernel.count() + 6);
        assert!(both.kernel().same(&kernel));
        for (function, result) in [("f", "own"), ("g", "other")] {
            let found = both.find(function, Kind::Func).unwrap();
            let returned = found.target().unwrap().target().unwrap();
            assert_eq!(returned.name(), result);
            assert_eq!(returned.target().unwrap().name(), "int");
        }
        assert_eq!(both.get(TypeId(2)).unwrap().name(), "shared");
    }

    #[test]
    fn a_module_needs_its_kernel() {
        let kernel = kernel();
        let bytes = module(&kernel, "own", "f");
        let other = Builder::new().build().unwrap();
        assert!(other.with_module(&bytes).is_err());
        assert!(kernel.with_module(b"BTF").is_err());
    }
}
