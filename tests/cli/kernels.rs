//! `bpflab kernels`: adding packages to a cache, listing and removing them.

use std::path::{Path, PathBuf};

use crate::shared::command;
use crate::shared::packages::{
    ARM64, Files, Packing, RpmFormat, X86_64, arm64_image, bzimage, deb, module, rpm,
};

/// A folder with packages and a cache, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bpflab-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    /// Writes a file.
    fn put(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).expect("a file");
    }

    /// Runs `bpflab kernels` in the folder, with its cache. Returns the exit code, the output
    /// and the errors, with `CACHE` for the cache's folder.
    fn kernels(&self, words: &str) -> (Option<i32>, String) {
        let cache = self.0.join("cache");
        let mut command = command::bpflab();
        command.arg("kernels").args(words.split(' '));
        command.current_dir(&self.0).env("BPFLAB_KERNELS", &cache);
        let output = command.output().expect("the command runs");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).expect("text");
        let cache = cache.to_str().expect("a path");
        (output.status.code(), text.replace(cache, "CACHE"))
    }

    /// The same, for what succeeds.
    fn fine(&self, words: &str) -> String {
        let (code, text) = self.kernels(words);
        assert_eq!(code, Some(0), "{words}: {text}");
        text
    }

    /// The same, for what fails.
    fn wrong(&self, words: &str) -> String {
        let (code, text) = self.kernels(words);
        assert_eq!(code, Some(2), "{words}: {text}");
        text
    }

    /// The files in the cache.
    fn cached(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut folders = vec![self.0.join("cache")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(self.0.join("cache")).expect("within");
                    files.push(name.to_str().expect("a path").to_owned());
                }
            }
        }
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const MIB: usize = 1 << 20;

/// Debian's form: the image and its modules in one package.
fn debian(release: &str, mib: usize) -> Vec<u8> {
    let path = |rest: &str| format!("lib/modules/{release}/kernel/{rest}");
    let files: Files = &[
        (
            &format!("boot/vmlinuz-{release}"),
            bzimage(release, mib * MIB),
        ),
        (&path("drivers/net/veth.ko"), module("veth", "", X86_64)),
        (&path("drivers/net/e1000.ko"), module("e1000", "", X86_64)),
        (
            &path("fs/configfs/configfs.ko"),
            module("configfs", "", X86_64),
        ),
        (
            &path("drivers/block/null_blk/null_blk.ko"),
            module("null_blk", "configfs", X86_64),
        ),
    ];
    deb("Package: linux-image\n", files, Packing::Plain)
}

#[test]
fn kernels_are_added_listed_and_removed() {
    let folder = Folder::new("kernels");
    let (code, empty) = folder.kernels("list");
    assert_eq!(code, Some(0));
    assert!(
        empty.starts_with("no kernels in CACHE\nTo add one, download it"),
        "{empty}"
    );
    assert!(
        empty.ends_with("then run `bpflab kernels add FILE…`\n"),
        "{empty}"
    );
    assert_eq!(folder.fine("list --json"), "");

    folder.put("new.deb", &debian("6.12.117-cloud", 3));
    folder.put("old.deb", &debian("6.12.9-cloud", 2));
    assert_eq!(
        folder.fine("add new.deb old.deb"),
        "added to CACHE
  release         machine  MiB  modules  from
  6.12.117-cloud  x86_64   3.1        3  new.deb
  6.12.9-cloud    x86_64   2.1        3  old.deb
"
    );
    // A module that no guest needs is not kept.
    let of = |release: &str| {
        let files = [
            "from",
            "modules/configfs.ko",
            "modules/null_blk.ko",
            "modules/veth.ko",
            "vmlinuz",
        ];
        files.map(|file| format!("x86_64/{release}/{file}"))
    };
    let both = [of("6.12.117-cloud"), of("6.12.9-cloud")].concat();
    assert_eq!(folder.cached(), both);

    folder.put("vmlinuz-arm", &arm64_image("6.12.9-cloud"));
    folder.fine("add vmlinuz-arm");
    assert_eq!(
        folder.fine("list"),
        "kernels in CACHE
  release         machine  MiB  modules  from
  6.12.9-cloud    x86_64   2.1        3  old.deb
  6.12.9-cloud    arm64    0.1        0  vmlinuz-arm
  6.12.117-cloud  x86_64   3.1        3  new.deb
"
    );
    let json = folder.fine("list --json");
    let rows: Vec<serde_json::Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0]["release"], "6.12.9-cloud");
    assert_eq!(rows[0]["arch"], "x86_64");
    assert_eq!(
        rows[0]["modules"],
        serde_json::json!(["configfs", "null_blk", "veth"])
    );
    assert_eq!(rows[0]["from"], serde_json::json!(["old.deb"]));
    assert_eq!(rows[0]["folder"], "CACHE/x86_64/6.12.9-cloud");
    assert!(
        rows[0]["bytes"].as_u64() > Some(2 << 20),
        "{}",
        rows[0]["bytes"]
    );

    assert_eq!(
        folder.wrong("remove 6.12"),
        "error: 6.12: several kernels of the cache match: x86_64/6.12.9-cloud, \
         arm64/6.12.9-cloud, x86_64/6.12.117-cloud; write one of them in full\n"
    );
    folder.fine("remove arm64/6.12");
    assert_eq!(folder.cached(), both);
    let removed = folder.fine("remove 6.12.9");
    assert!(removed.starts_with("removed from CACHE\n"), "{removed}");
    assert_eq!(folder.cached(), of("6.12.117-cloud"));
    let none = folder.wrong("remove 6.13");
    let start = "error: 6.13: no such file, and no such kernel in the cache, which has \
                 x86_64/6.12.117-cloud. To add one, download it with `apt-get download";
    assert!(none.starts_with(start), "{none}");
}

#[test]
fn packages_of_one_release_become_one_kernel() {
    let folder = Folder::new("joined");
    let ubuntu = "6.8.0-31-generic";
    let image = (format!("boot/vmlinuz-{ubuntu}"), bzimage(ubuntu, MIB));
    let image: Files = &[(&image.0, image.1)];
    folder.put("image.deb", &deb("", image, Packing::Zstd));
    let modules = |names: &[&str]| {
        let files = names.iter().map(|name| {
            let path = format!("lib/modules/{ubuntu}/kernel/{name}.ko.zst");
            (path, Packing::Zstd.pack(&module(name, "", X86_64)))
        });
        let files: Vec<_> = files.collect();
        let files: Vec<_> = files
            .iter()
            .map(|(path, it)| (path.as_str(), it.clone()))
            .collect();
        deb("", &files, Packing::Zstd)
    };
    folder.put("modules.deb", &modules(&["veth"]));
    folder.put("extra.deb", &modules(&["null_blk", "ifb"]));
    assert_eq!(
        folder.wrong("add modules.deb"),
        "error: modules.deb: modules of 6.8.0-31-generic, but no kernel image; add it together \
         with its package: linux-image-VERSION or linux-binary-VERSION (Debian), \
         linux-image-unsigned-VERSION (Ubuntu), kernel-core (Fedora)\n"
    );
    assert!(!folder.0.join("cache").exists());

    let table = |modules: u32, from: &str| {
        format!(
            "added to CACHE\n  release           machine  MiB  modules  from\n  \
             6.8.0-31-generic  x86_64   1.1        {modules}  {from}\n"
        )
    };
    let added = folder.fine("add modules.deb image.deb");
    assert_eq!(added, table(1, "image.deb modules.deb"));
    let added = folder.fine("add extra.deb");
    assert_eq!(added, table(3, "extra.deb image.deb modules.deb"));
    let again = folder.fine("add extra.deb image.deb");
    assert_eq!(again, added);
    assert_eq!(folder.cached().len(), 5, "no folder is left behind");

    let fedora = "6.11.4-301.fc41.aarch64";
    let path = |name: &str| format!("lib/modules/{fedora}/{name}");
    let core: Files = &[(&path("vmlinuz"), Packing::Gzip.pack(&arm64_image(fedora)))];
    folder.put("core.rpm", &rpm(core, Packing::Zstd, RpmFormat::Four));
    let veth: Files = &[(
        &path("kernel/veth.ko.xz"),
        Packing::Xz.pack(&module("veth", "", ARM64)),
    )];
    folder.put("modules.rpm", &rpm(veth, Packing::Zstd, RpmFormat::Six));
    let added = folder.fine("add core.rpm modules.rpm");
    let row = "  6.11.4-301.fc41.aarch64  arm64    0.1        1  core.rpm modules.rpm\n";
    assert!(added.ends_with(row), "{added}");
}

#[test]
fn files_that_are_no_kernels_are_told_so_and_nothing_is_added() {
    let folder = Folder::new("odd");
    folder.put("fine.deb", &debian("6.1.0-9", 1));
    folder.put(
        "meta.deb",
        &deb("Depends: linux-image-6.1-amd64\n", &[], Packing::Xz),
    );
    let text = folder.wrong("add fine.deb meta.deb");
    let start = "error: meta.deb: no kernel image and no modules in this package; use what it";
    assert!(text.starts_with(start), "{text}");
    assert!(
        folder
            .wrong("add nothing.deb")
            .contains("nothing.deb: can't be read: No such")
    );
    let whole = debian("6.1.0-9", 1);
    folder.put("cut.deb", &whole[..whole.len() / 2]);
    let text = folder.wrong("add cut.deb");
    assert!(
        text.starts_with("error: cut.deb: truncated: the file ends before"),
        "{text}"
    );
    let mut silent = arm64_image("");
    silent.truncate(64);
    folder.put("Image", &silent);
    let text = folder.wrong("add Image");
    assert!(
        text.contains("Image: the image does not tell its release; name"),
        "{text}"
    );
    assert!(!folder.0.join("cache").exists());

    folder.put("cache", b"not a folder");
    let text = folder.wrong("add fine.deb");
    assert!(
        text.contains("BPFLAB_KERNELS names another folder"),
        "{text}"
    );
    assert!(Path::new(&folder.0.join("cache")).is_file());
}
