//! Files by path: `struct path`, `dentry`, `file` and `inode` objects.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::kernel::{KernelError, KernelMemory, KernelObject};

type Result<T> = std::result::Result<T, KernelError>;

/// The created directory entries, by path; the root's is `/`. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Files(Arc<Mutex<FxHashMap<String, KernelObject>>>);

/// The member of a dentry that stores short names: until 6.13, and since.
const SHORT_NAMES: [&str; 2] = ["d_iname", "d_shortname.string"];

/// Inode number of the root; other inodes follow.
const ROOT_INODE: u64 = 2;

impl Files {
    /// The `struct dentry` at a path; creates missing ones with their parents and inodes.
    fn dentry(&self, memory: &KernelMemory, path: &str) -> Result<KernelObject> {
        let known = |path: &str| {
            let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let found = known.get(path).filter(|dentry| dentry.is_live());
            (found.cloned(), known.len() as u64)
        };
        let names = path.split('/').filter(|name| !name.is_empty());
        let mut whole = String::from("/");
        let mut parent: Option<KernelObject> = None;
        for name in std::iter::once("/").chain(names) {
            if parent.is_some() {
                let slash = if whole.ends_with('/') { "" } else { "/" };
                whole.push_str(&format!("{slash}{name}"));
            }
            let dentry = match known(&whole) {
                (Some(dentry), _) => dentry,
                (None, count) => {
                    let dentry = memory.make("struct dentry")?;
                    dentry.set_if_there("d_name.name", name)?;
                    dentry.set_if_there("d_name.len", name.len())?;
                    for short in SHORT_NAMES {
                        dentry.set_if_there(short, name)?;
                    }
                    dentry.set_if_there("d_parent", parent.as_ref().unwrap_or(&dentry))?;
                    dentry.set_if_there("d_inode.i_ino", ROOT_INODE + count)?;
                    let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                    known.insert(whole.clone(), dentry.clone());
                    dentry
                }
            };
            parent = Some(dentry);
        }
        match parent {
            Some(dentry) => Ok(dentry),
            None => memory.make("struct dentry"),
        }
    }

    /// Creates a `struct path` for a path.
    pub fn path(&self, memory: &KernelMemory, path: &str) -> Result<KernelObject> {
        let dentry = self.dentry(memory, path)?;
        memory.make("struct path")?.set("dentry", &dentry)
    }

    /// Creates a `struct file` that is open at a path.
    pub fn file(&self, memory: &KernelMemory, path: &str) -> Result<KernelObject> {
        let dentry = self.dentry(memory, path)?;
        let file = memory.make("struct file")?;
        file.set_if_there("f_path.dentry", &dentry)?;
        if let Ok(inode) = dentry.get("d_inode") {
            file.set_if_there("f_inode", inode)?;
        }
        Ok(file)
    }
}

/// The path of a `struct path` object, from the names of its dentry and all parents. `None` if
/// the dentry is null or the chain of parents does not end.
pub(in crate::vm) fn path_of(path: &KernelObject) -> Result<Option<String>> {
    /// More directories than a path of 4096 bytes can have.
    const MOST: usize = 2048;
    let mut names = Vec::new();
    if path.get("dentry")? == 0 {
        return Ok(None);
    }
    let mut dentry = path.at("dentry")?;
    for _ in 0..MOST {
        let name = match dentry.get("d_name.name")? {
            0 => String::new(),
            _ => dentry.text("d_name.name")?,
        };
        if name != "/" {
            names.push(name);
        }
        // A test may leave parents out.
        let parent = dentry.get("d_parent").unwrap_or(0);
        if parent == 0 || parent == dentry.address() {
            names.reverse();
            return Ok(Some(format!("/{}", names.join("/"))));
        }
        dentry = dentry.at("d_parent")?;
    }
    Ok(None)
}
