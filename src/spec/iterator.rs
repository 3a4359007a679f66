//! Targets of iterator programs, and the members of their contexts (`struct bpf_iter_reg`
//! of each target in the kernel).
//!
//! A program for target `task` attaches to the function `bpf_iter_task`, whose
//! parameters are the members of its context `struct bpf_iter__task`: 8 bytes each,
//! the iteration itself (`meta`) first.

use super::call::TypeFlags;

/// Prefix of a target's function name.
pub const PREFIX: &str = "bpf_iter_";

/// What a member of the context points to, if its BTF type is not sufficient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Element {
    /// A kernel object of the member's type.
    Object(TypeFlags),
    /// The program's own memory; the iterated map determines its size.
    Buffer(TypeFlags),
}

/// A target of iteration.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: `task`.
    pub name: &'static str,
    /// Members of the context, by number, that are null at the end of the iteration.
    elements: &'static [(u32, Element)],
}

impl Target {
    /// The special rule for a member of the context, if any.
    #[must_use]
    pub fn element(&self, member: u32) -> Option<Element> {
        let found = self.elements.iter().find(|(number, _)| *number == member);
        found.map(|(_, element)| *element)
    }
}

const NULL: TypeFlags = TypeFlags::PTR_MAYBE_NULL;
const OBJECT: Element = Element::Object(NULL);
const TRUSTED: Element = Element::Object(NULL.union(TypeFlags::PTR_TRUSTED));
const BUFFER: Element = Element::Buffer(NULL);
const READ_ONLY: Element = Element::Buffer(NULL.union(TypeFlags::MEM_RDONLY));

const fn target(name: &'static str, elements: &'static [(u32, Element)]) -> Target {
    Target { name, elements }
}

static TARGETS: &[Target] = &[
    target("bpf_link", &[(1, OBJECT)]),
    target("bpf_map", &[(1, TRUSTED)]),
    target("bpf_map_elem", &[(2, READ_ONLY), (3, BUFFER)]),
    target("bpf_prog", &[(1, OBJECT)]),
    target("bpf_sk_storage_map", &[(2, OBJECT), (3, BUFFER)]),
    target("cgroup", &[(1, TRUSTED)]),
    target("dmabuf", &[(1, OBJECT)]),
    target("ipv6_route", &[(1, OBJECT)]),
    target("kmem_cache", &[(1, TRUSTED)]),
    target("ksym", &[(1, OBJECT)]),
    target("netlink", &[(1, OBJECT)]),
    target("sockmap", &[(2, READ_ONLY), (3, OBJECT)]),
    target("task", &[(1, TRUSTED)]),
    target("task_file", &[(1, OBJECT), (3, OBJECT)]),
    target("task_vma", &[(1, OBJECT), (2, OBJECT)]),
    target("tcp", &[(1, TRUSTED)]),
    target("udp", &[(1, TRUSTED)]),
    target("unix", &[(1, OBJECT)]),
];

/// The target of this function.
#[must_use]
pub fn find(function: &str) -> Option<&'static Target> {
    let name = function.strip_prefix(PREFIX)?;
    TARGETS.iter().find(|target| target.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_known_by_their_functions() {
        let tasks = find("bpf_iter_task").unwrap();
        assert_eq!(tasks.element(0), None);
        assert_eq!(tasks.element(1), Some(TRUSTED));
        assert!(find("task").is_none() && find("bpf_iter_nothing").is_none());
        assert!(TARGETS.is_sorted_by_key(|target| target.name));
    }
}
