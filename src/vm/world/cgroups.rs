//! `struct cgroup` objects in kernel memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::kernel::{KernelError, KernelMemory, KernelObject};

/// The created cgroups of the default hierarchy, by id. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Cgroups(Arc<Mutex<BTreeMap<u64, KernelObject>>>);

impl Cgroups {
    /// The cgroup with this id.
    pub fn find(&self, id: u64) -> Option<KernelObject> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&id).filter(|cgroup| cgroup.is_live()).cloned()
    }

    /// The last cgroup of a path of ids, parents first; missing cgroups are created.
    pub fn at(&self, memory: &KernelMemory, path: &[u64]) -> Result<KernelObject, KernelError> {
        let mut ancestors: Vec<KernelObject> = Vec::new();
        for &id in path {
            let cgroup = match self.find(id) {
                Some(cgroup) => cgroup,
                None => {
                    let made = make(memory, id, &ancestors)?;
                    let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                    known.insert(id, made.clone());
                    made
                }
            };
            ancestors.push(cgroup);
        }
        match ancestors.pop() {
            Some(cgroup) => Ok(cgroup),
            None => make(memory, 0, &[]),
        }
    }
}

/// Creates a cgroup below `ancestors` (root first). Fields that the struct lacks are skipped.
fn make(
    memory: &KernelMemory,
    id: u64,
    ancestors: &[KernelObject],
) -> Result<KernelObject, KernelError> {
    let level = ancestors.len();
    // The array of ancestors is at the end of the struct; its last element is the cgroup itself.
    let cgroup = memory.make_with_room("struct cgroup", 8 * (level + 1))?;
    cgroup.set_if_there("kn.id", id)?;
    cgroup.set_if_there("level", level)?;
    cgroup.set_if_there("self.cgroup", &cgroup)?;
    // Each cgroup has a file `cgroup.procs`, each but the root `cgroup.events`
    // (`cgroup_base_files`, `kernel/cgroup/cgroup.c`).
    let files = ["procs_file.kn", "events_file.kn"];
    for file in files.iter().take(1 + usize::from(level > 0)) {
        set_parent(&cgroup, file, &cgroup)?;
    }
    for (level, ancestor) in ancestors.iter().chain([&cgroup]).enumerate() {
        cgroup.set_if_there(&format!("ancestors[{level}]"), ancestor)?;
    }
    if let Some(parent) = ancestors.last() {
        // `self` is the first member of a cgroup, so pointers to both are equal.
        cgroup.set_if_there("self.parent", parent)?;
        set_parent(&cgroup, "kn", parent)?;
    }
    Ok(cgroup)
}

/// Sets the parent of a node of a cgroup to the node of `parent`. The member has a new name since
/// Linux 6.15.
fn set_parent(cgroup: &KernelObject, node: &str, parent: &KernelObject) -> Result<(), KernelError> {
    if let Ok(above) = parent.get("kn") {
        cgroup.set_if_there(&format!("{node}.__parent"), above)?;
        cgroup.set_if_there(&format!("{node}.parent"), above)?;
    }
    Ok(())
}
