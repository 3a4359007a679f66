//! The files that a program needs to start: its loader, its libraries.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::elf;
use super::kernels::Arch;

/// A file of the host, and its path in the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Needed {
    pub from: PathBuf,
    pub to: PathBuf,
}

impl Needed {
    fn at_its_path(path: PathBuf) -> Self {
        Self {
            from: path.clone(),
            to: path,
        }
    }
}

/// The files that a program needs beside itself.
///
/// # Errors
/// A program for another machine than the guest's, a loader that can't be run, a library that
/// is missing.
pub(super) fn needs(path: &Path, guest: Arch) -> io::Result<Vec<Needed>> {
    let file = fs::read(path)?;
    let Some(starter) = elf::starter(&file) else {
        of_machine(&file, guest)?;
        return Ok(Vec::new());
    };
    if file.starts_with(b"#!") {
        let mut needed = needs(&starter, guest)?;
        needed.insert(0, Needed::at_its_path(starter));
        return Ok(needed);
    }
    of_machine(&file, guest)?;
    if guest.is_native() {
        listed(path, starter)
    } else {
        searched(&file, &starter, guest)
    }
}

/// Checks that a program can run in the guest.
fn of_machine(file: &[u8], guest: Arch) -> io::Result<()> {
    match Arch::of_elf(file) {
        Some(arch) if arch != guest => Err(io::Error::other(format!(
            "a program for {}, and the kernel is for {}",
            arch.name(),
            guest.name()
        ))),
        _ => Ok(()),
    }
}

/// What the C library's own loader says that it would load, as ldd(1) asks it to.
fn listed(path: &Path, loader: PathBuf) -> io::Result<Vec<Needed>> {
    let listed = Command::new(&loader).arg("--list").arg(path).output()?;
    if !listed.status.success() {
        let why = String::from_utf8_lossy(&listed.stderr);
        return Err(io::Error::other(why.trim().to_owned()));
    }
    let mut needed = vec![Needed::at_its_path(loader)];
    for line in String::from_utf8_lossy(&listed.stdout).lines() {
        needed.extend(library(line)?.map(Needed::at_its_path));
    }
    Ok(needed)
}

/// The file in a line of the loader's list: `libc.so.6 => /lib/libc.so.6 (0x7f…)`. The kernel's
/// own library (`linux-vdso.so.1`) is no file.
fn library(line: &str) -> io::Result<Option<PathBuf>> {
    let file = line.split_once("=>").map_or(line, |(_, file)| file).trim();
    if file == "not found" {
        return Err(io::Error::other(line.trim().to_owned()));
    }
    let path = file.split_once(" (").map_or(file, |(path, _)| path);
    Ok(path.starts_with('/').then(|| PathBuf::from(path)))
}

/// What a program for another machine needs. Its loader can't be run here, so its libraries are
/// searched where Debian and Fedora have those of other machines. A path of its own
/// (`DT_RUNPATH`) is not read: `--guest-file` adds what is elsewhere.
fn searched(file: &[u8], loader: &Path, guest: Arch) -> io::Result<Vec<Needed>> {
    let mut needed = vec![find(&[loader.to_owned()], guest, loader)?];
    let names =
        |file: &[u8]| -> Vec<String> { elf::needed(file).into_iter().map(str::to_owned).collect() };
    let mut open: VecDeque<String> = names(file).into();
    let mut known = Vec::new();
    while let Some(name) = open.pop_front() {
        if known.contains(&name) {
            continue;
        }
        let places: Vec<_> = FOLDERS
            .iter()
            .map(|folder| Path::new(folder).join(&name))
            .chain([multiarch("/lib", guest), multiarch("/usr/lib", guest)].map(|f| f.join(&name)))
            .collect();
        let found = find(&places, guest, Path::new(&name))?;
        open.extend(names(&fs::read(&found.from)?));
        needed.push(found);
        known.push(name);
    }
    Ok(needed)
}

/// Where a loader searches without being told.
const FOLDERS: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// Debian's folder for a machine's libraries.
fn multiarch(folder: &str, guest: Arch) -> PathBuf {
    Path::new(folder).join(triple(guest))
}

const fn triple(guest: Arch) -> &'static str {
    match guest {
        Arch::X86_64 => "x86_64-linux-gnu",
        Arch::Arm64 => "aarch64-linux-gnu",
    }
}

/// The first of these files of the guest's machine: among the host's own, in the folder of
/// Debian's cross compilers, in that of Fedora's.
fn find(places: &[PathBuf], guest: Arch, what: &Path) -> io::Result<Needed> {
    let cross = Path::new("/usr").join(triple(guest));
    let roots = [PathBuf::from("/"), cross.clone(), cross.join("sys-root")];
    for root in &roots {
        for to in places {
            let from = root.join(to.strip_prefix("/").unwrap_or(to));
            let fits = |file: Vec<u8>| Arch::of_elf(&file) == Some(guest);
            if fs::read(&from).is_ok_and(fits) {
                let to = to.clone();
                return Ok(Needed { from, to });
            }
        }
    }
    Err(io::Error::other(format!(
        "needs {}, and no such file for {} is here; Debian and Ubuntu have the C library in \
         libc6:{} (after dpkg --add-architecture), and a static program needs none",
        what.display(),
        guest.name(),
        match guest {
            Arch::X86_64 => "amd64",
            Arch::Arm64 => "arm64",
        }
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "/bin/true";

    /// The program's machine, and another. It is not the tests' own in an emulator.
    fn machines() -> [Arch; 2] {
        let of = Arch::of_elf(&fs::read(PROGRAM).unwrap()).unwrap();
        let other = Arch::ALL.into_iter().find(|arch| *arch != of).unwrap();
        [of, other]
    }

    #[test]
    fn a_program_needs_its_loader_and_its_libraries() {
        let [own, _] = machines();
        let needed = needs(Path::new(PROGRAM), own).unwrap();
        assert!(
            needed
                .iter()
                .any(|one| one.to.to_string_lossy().contains("libc")),
            "{needed:?}"
        );
        assert!(needed.iter().all(|one| one.from.is_file()), "{needed:?}");
        assert!(needs(Path::new("/etc/passwd"), own).unwrap().is_empty());
        needs(Path::new("/no/such/program"), own).unwrap_err();
    }

    /// Both ways find the same files.
    #[test]
    fn libraries_are_found_without_the_loader() {
        let (path, [own, _]) = (Path::new(PROGRAM), machines());
        let file = fs::read(path).unwrap();
        let found = searched(&file, &elf::starter(&file).unwrap(), own).unwrap();
        let files = |all: Vec<Needed>| -> std::collections::BTreeSet<_> {
            let real = |one: Needed| fs::canonicalize(one.from).unwrap();
            all.into_iter().map(real).collect()
        };
        assert_eq!(files(found), files(needs(path, own).unwrap()));
        let error = searched(&file, Path::new("/no/such/loader"), own).unwrap_err();
        assert!(error.to_string().contains("/no/such/loader"), "{error}");
    }

    #[test]
    fn a_program_of_another_machine_is_refused() {
        let [own, other] = machines();
        let text = needs(Path::new(PROGRAM), other).unwrap_err().to_string();
        assert!(text.contains(own.name()) && text.contains(other.name()));
    }

    #[test]
    fn lines_of_the_loader_are_read() {
        let path = |line| {
            library(line)
                .unwrap()
                .map(|path| path.display().to_string())
        };
        assert_eq!(
            path("\tlibc.so.6 => /lib/libc.so.6 (0x00007f)"),
            Some("/lib/libc.so.6".into())
        );
        assert_eq!(
            path("\t/lib64/ld.so.2 (0x00007f)"),
            Some("/lib64/ld.so.2".into())
        );
        assert_eq!(path("\tlinux-vdso.so.1 (0x00007f)"), None);
        assert_eq!(path("\tstatically linked"), None);
        assert!(library("\tlibx.so.1 => not found").is_err());
    }
}
