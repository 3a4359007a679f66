//! Finds files that are named without a folder as libbpf does (`resolve_full_path`): libraries
//! on the loader's path, programs in `PATH`.

use std::path::{Path, PathBuf};

/// Folders of libraries besides `LD_LIBRARY_PATH`.
const LIBRARIES: &[&str] = &[
    "/usr/lib64",
    "/usr/lib",
    "/lib64",
    "/lib",
    #[cfg(target_arch = "x86_64")]
    "/usr/lib/x86_64-linux-gnu",
    #[cfg(target_arch = "aarch64")]
    "/usr/lib/aarch64-linux-gnu",
];

/// Folders of programs besides `PATH`.
const PROGRAMS: &[&str] = &["/usr/bin", "/usr/sbin"];

/// The file for a name; a name with a `/` is a path. `None` if there is no such file.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        let path = Path::new(name);
        return path.exists().then(|| path.to_owned());
    }
    let is_library = name.contains(".so");
    let (variable, known) = match is_library {
        true => ("LD_LIBRARY_PATH", LIBRARIES),
        false => ("PATH", PROGRAMS),
    };
    let listed = std::env::var_os(variable).unwrap_or_default();
    let listed = std::env::split_paths(&listed).filter(|folder| !folder.as_os_str().is_empty());
    let mut folders = listed.chain(known.iter().map(PathBuf::from));
    folders.find_map(|folder| Some(folder.join(name)).filter(|path| path.is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_libraries_are_found_by_name() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(find(own.to_str().unwrap()), Some(own));
        assert!(find("sh").unwrap().ends_with("sh"));
        assert_eq!(find("/no/such/file"), None);
        assert_eq!(find("no-such-library.so.7"), None);
    }
}
