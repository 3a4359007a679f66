//! BTF types of kernel objects, by name.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use super::error::KernelError;
use crate::btf::{Btf, Kind, LayoutError, Type};
use crate::util::nearest_first;
use crate::vm::memory::BlockType;

/// Types by name: the kernel's first, then those of the loaded objects, which define the kernel
/// structs that they use. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Types(Arc<RwLock<Known>>);

#[derive(Debug, Default)]
struct Known {
    kernel: Option<Btf>,
    objects: Vec<Btf>,
}

/// How many names an error lists.
const OFFERED: usize = 12;

/// Kinds of types to search for a name, the likeliest first.
const KINDS: [Kind; 7] = [
    Kind::Struct,
    Kind::Union,
    Kind::Typedef,
    Kind::Int,
    Kind::Enum,
    Kind::Enum64,
    Kind::Float,
];

/// Names of C's integer types, as clang and as gcc write them to BTF.
const INTEGERS: [(&str, &str); 8] = [
    ("unsigned long", "long unsigned int"),
    ("long", "long int"),
    ("unsigned long long", "long long unsigned int"),
    ("long long", "long long int"),
    ("unsigned short", "short unsigned int"),
    ("short", "short int"),
    ("unsigned", "unsigned int"),
    ("_Bool", "bool"),
];

impl Types {
    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the kernel's types, replacing earlier ones.
    pub fn set_kernel(&self, btf: Btf) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.kernel = Some(btf);
    }

    /// Whether the kernel's own types are known.
    pub fn has_kernel(&self) -> bool {
        self.known().kernel.is_some()
    }

    /// Adds the types of an object.
    pub fn add(&self, btf: &Btf) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !known.objects.iter().any(|there| there.same(btf)) {
            known.objects.push(btf.clone());
        }
    }

    /// Adds all types of `other` that are missing here.
    pub fn adopt(&self, other: &Self) {
        let (kernel, objects) = {
            let other = other.known();
            (other.kernel.clone(), other.objects.clone())
        };
        for btf in &objects {
            self.add(btf);
        }
        if let Some(kernel) = kernel.filter(|_| !self.has_kernel()) {
            self.set_kernel(kernel);
        }
    }

    /// The kernel's own types, if they are known.
    pub fn kernel(&self) -> Option<Btf> {
        self.known().kernel.clone()
    }

    /// Whether a type of this name and kind is known.
    pub fn has(&self, name: &str, kind: Kind) -> bool {
        let known = self.known();
        let mut tables = known.kernel.iter().chain(&known.objects);
        tables.any(|btf| btf.find(name, kind).is_some())
    }

    /// All BTF tables, in order of precedence.
    pub fn tables(&self) -> Vec<Btf> {
        let known = self.known();
        known.kernel.iter().chain(&known.objects).cloned().collect()
    }

    /// The type with this name, as C writes it: `struct task_struct`, `task_struct`,
    /// `unsigned long`, `pid_t`.
    pub fn find(&self, name: &str) -> Result<BlockType, KernelError> {
        let wanted = name.trim();
        let (kinds, bare): (&[Kind], _) = match wanted.split_once(char::is_whitespace) {
            Some(("struct", rest)) => (&[Kind::Struct], rest.trim()),
            Some(("union", rest)) => (&[Kind::Union], rest.trim()),
            Some(("enum", rest)) => (&[Kind::Enum, Kind::Enum64], rest.trim()),
            _ => (&KINDS, wanted),
        };
        let tables = self.tables();
        let aliases = INTEGERS.iter().filter_map(|&(clang, gcc)| match bare {
            _ if bare == clang => Some(gcc),
            _ if bare == gcc => Some(clang),
            _ => None,
        });
        let names = std::iter::once(bare).chain(aliases);
        let mut found = names.flat_map(|name| {
            tables.iter().filter_map(move |btf| {
                let of = |kind: &Kind| btf.find(name, *kind);
                Some((btf, kinds.iter().find_map(of)?.id()))
            })
        });
        if let Some((btf, id)) = found.next() {
            let btf = btf.clone();
            return Ok(BlockType { btf, id });
        }
        let there = |ty: &Type<'_>| kinds.contains(&ty.kind()) && !ty.name().is_empty();
        let mut known: Vec<_> = tables
            .iter()
            .flat_map(|btf| btf.types().filter(there).map(|ty| ty.name().to_owned()))
            .collect();
        known.sort_unstable();
        known.dedup();
        let mut known = nearest_first(bare, known);
        known.truncate(OFFERED);
        Err(KernelError::NoType {
            name: name.to_owned(),
            known,
        })
    }
}

/// A type's name in C, and its size.
pub(super) fn name_and_size(ty: &BlockType) -> Result<(String, usize), KernelError> {
    let name = ty.btf.type_name(ty.id);
    match ty.btf.size_of(ty.id) {
        Ok(size) => Ok((name, size as usize)),
        Err(problem) => Err(KernelError::Layout { name, problem }),
    }
}

/// Whether a type has a size: not `void`, a function, or a forward declaration.
pub(super) fn is_sized(btf: &Btf, ty: Type<'_>) -> bool {
    !matches!(btf.size_of(ty.id()), Err(LayoutError::NoSize { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Builder, Encoding};

    fn table(long: &str, own: &str) -> Btf {
        let mut b = Builder::new();
        let int = b.int(long, 8, Encoding::Unsigned);
        b.structure(own, 8, &[]);
        b.forward("only_declared", false);
        b.typedef("size_t", int);
        b.build().unwrap()
    }

    #[test]
    fn the_kernels_types_come_first_by_any_of_their_names() {
        let types = Types::default();
        types.add(&table("unsigned long", "own"));
        types.add(&table("unsigned long", "own"));
        let own = types.find("struct own").unwrap();
        assert_eq!(own.btf.type_name(own.id), "struct own");
        types.set_kernel(table("long unsigned int", "task_struct"));
        assert_eq!(types.tables().len(), 3);
        for name in ["task_struct", "struct task_struct", " struct  task_struct "] {
            let found = types.find(name).unwrap();
            assert_eq!(found.btf.type_name(found.id), "struct task_struct");
        }
        let long = types.find("unsigned long").unwrap();
        assert_eq!(long.btf.type_name(long.id), "unsigned long");
        assert!(types.find("size_t").unwrap().btf.same(&types.tables()[0]));
        assert!(types.find("union task_struct").is_err());
    }

    #[test]
    fn errors_offer_the_nearest_names_or_say_what_to_do() {
        let types = Types::default();
        let error = types.find("task_struct").unwrap_err().to_string();
        assert!(error.contains("no types are known"), "{error}");
        types.add(&table("int", "task_struct"));
        let error = types.find("struct task_strukt").unwrap_err().to_string();
        assert_eq!(
            error,
            "no type `struct task_strukt` is known; the nearest are task_struct"
        );
        assert!(types.find("only_declared").is_err());
    }
}
