//! The descendants of a running process, from `/proc`.

use rustc_hash::FxHashSet;

/// A process and its descendants, parents first. Without those whose parent has ended, as they
/// have another parent now.
pub(super) fn with_children(root: u32) -> Vec<u32> {
    closure(root, &processes())
}

fn closure(root: u32, processes: &[(u32, u32)]) -> Vec<u32> {
    let mut tree = vec![root];
    let mut known = FxHashSet::from_iter([root]);
    let mut next = 0;
    while let Some(parent) = tree.get(next).copied() {
        let children = processes.iter().filter(|(_, of)| *of == parent);
        tree.extend(
            children
                .map(|(child, _)| *child)
                .filter(|child| known.insert(*child)),
        );
        next += 1;
    }
    tree
}

/// All processes and their parents.
fn processes() -> Vec<(u32, u32)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |pid: u32| parent(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?);
    pids.filter_map(|pid| Some((pid, parent(pid)?))).collect()
}

/// The parent in the text of `/proc/PID/stat` (proc(5)).
fn parent(stat: &str) -> Option<u32> {
    // The name, in parentheses, may hold anything; state and parent follow.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_of_children_belong_to_a_tree() {
        // 7 and 8 are each other's parents: a listing that changed while it was read.
        let processes = [
            (1, 0),
            (5, 4),
            (2, 1),
            (4, 2),
            (3, 1),
            (6, 3),
            (7, 8),
            (8, 7),
        ];
        assert_eq!(closure(2, &processes), [2, 4, 5]);
        assert_eq!(closure(1, &processes), [1, 2, 3, 4, 6, 5]);
        assert_eq!(closure(7, &processes), [7, 8]);
        assert_eq!(closure(9, &processes), [9]);
    }

    #[test]
    fn names_may_hold_anything() {
        assert_eq!(parent("42 (a) R 7) b) S 17 42 42 0"), Some(17));
        assert_eq!(parent("42 (sh"), None);
        assert_eq!(parent("42 (sh) S"), None);
    }

    #[test]
    fn our_own_child_is_ours() {
        let Ok(mut child) = std::process::Command::new("sleep").arg("10").spawn() else {
            crate::shared::skip(crate::shared::Need::Tools, "there is no sleep");
            return;
        };
        let tree = with_children(std::process::id());
        child.kill().unwrap();
        child.wait().unwrap();
        if std::path::Path::new("/proc/self/stat").exists() {
            assert!(tree.contains(&child.id()), "{tree:?}");
        }
    }
}
