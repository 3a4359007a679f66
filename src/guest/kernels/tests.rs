//! Finding kernels.

use std::fs;

use super::*;
use crate::guest::packages::{
    Packing, X86_64, arm64_image, bzimage, bzimage_of, deb, kernel_with_note, module,
};

/// A folder, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bpflab-{}-find-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file, and returns its path.
    fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// A kernel as name and machine, with the names of its modules.
    fn find(&self, image: &str, wanted: &[&str]) -> Result<(String, Vec<String>), String> {
        let image = find(image, &self.0.join("cache"), wanted).map_err(|e| e.to_string())?;
        assert_eq!(Arch::of_image(&image.kernel), Some(image.arch));
        let modules = image.modules.into_iter().map(|module| module.name);
        Ok((
            format!("{}/{}", image.arch.name(), image.name),
            modules.collect(),
        ))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A package with an image and modules.
fn package(release: &str) -> Vec<u8> {
    let path = |name: &str| format!("lib/modules/{release}/kernel/{name}.ko");
    let files = [
        (&*format!("boot/vmlinuz-{release}"), bzimage(release, 0)),
        (&path("null_blk"), module("null_blk", "configfs", X86_64)),
        (&path("veth"), module("veth", "", X86_64)),
        (&path("configfs"), module("configfs", "", X86_64)),
        (&path("e1000"), module("e1000", "", X86_64)),
    ];
    deb("", &files, Packing::Zstd)
}

#[test]
fn a_file_is_an_image_or_a_package() {
    let folder = Folder::new("file");
    let find = |path: &Path, wanted| folder.find(path.to_str().unwrap(), wanted).unwrap();
    let debian = folder.put("a.deb", &package("6.12.9-test"));
    let (name, modules) = find(&debian, &["null_blk", "e1000", "virtio_console"]);
    assert_eq!(name, "x86_64/6.12.9-test");
    assert_eq!(modules, ["e1000", "configfs", "null_blk"]);
    let image = folder.put("vmlinuz", &bzimage("6.12.9-none", 0));
    assert_eq!(
        find(&image, &["veth"]),
        ("x86_64/6.12.9-none".to_owned(), vec![])
    );
    let mut silent = arm64_image("");
    silent.truncate(64);
    let image = folder.put("Image", &silent);
    assert_eq!(find(&image, &[]).0, "arm64/Image");
    assert!(!folder.0.join("cache").exists());

    let modules: crate::guest::packages::Files =
        &[("lib/modules/6.1/veth.ko", module("veth", "", X86_64))];
    let modules = folder.put("modules.deb", &deb("", modules, Packing::Plain));
    let error = folder
        .find(modules.to_str().unwrap(), &["veth"])
        .unwrap_err();
    assert!(
        error.contains("modules.deb: modules of 6.1, but no kernel image"),
        "{error}"
    );
}

#[test]
fn a_version_selects_the_newest_of_the_cache() {
    let folder = Folder::new("version");
    let mut files = Vec::new();
    for release in ["6.12.9-a", "6.12.117-a", "6.1.200-a", "6.12.117-b"] {
        files.push(folder.put(&format!("{release}.deb"), &package(release)));
    }
    files.push(folder.put("arm", &arm64_image("6.12.50-a")));
    let cache = folder.0.join("cache");
    assert_eq!(add(&cache, &files).unwrap().len(), 5);
    let name = |version| folder.find(version, &[]).map(|(name, _)| name);
    for (version, found) in [
        ("6.1", "x86_64/6.1.200-a"),
        ("6.12.9", "x86_64/6.12.9-a"),
        ("6.12.117-a", "x86_64/6.12.117-a"),
        ("x86_64/6", "x86_64/6.12.117-b"),
        ("arm64/6.12", "arm64/6.12.50-a"),
    ] {
        assert_eq!(name(version).as_deref(), Ok(found), "{version}");
    }
    let own = if Arch::Arm64.is_native() {
        "arm64/6.12.50-a"
    } else {
        "x86_64/6.12.117-b"
    };
    assert_eq!(name("6.12").as_deref(), Ok(own));
    // A package has more modules than the cache keeps.
    let (_, modules) = folder.find("6.12.9", &["null_blk", "e1000"]).unwrap();
    assert_eq!(modules, ["configfs", "null_blk"]);
    for version in ["6.13", "6.12.1", "arm64/6.1", "sparc/6.12", "", "/"] {
        let error = name(version).unwrap_err();
        let start = format!("{version}: no such file, and no such kernel in the cache, which has");
        assert!(error.starts_with(&start), "{error}");
    }
}

#[test]
fn a_damaged_cache_is_told_so() {
    let folder = Folder::new("damaged");
    let cache = folder.0.join("cache");
    add(&cache, &[folder.put("a.deb", &package("6.1"))]).unwrap();
    let kernel = cache.join("x86_64/6.1");
    fs::write(kernel.join("modules/veth.ko"), "no module").unwrap();
    let error = folder.find("6.1", &[]).unwrap_err();
    assert!(
        error.ends_with(
            "veth.ko: not an ELF object; remove the kernel from the cache and add it again"
        ),
        "{error}"
    );
    fs::remove_file(kernel.join("vmlinuz")).unwrap();
    let error = folder.find("6.1", &[]).unwrap_err();
    assert!(
        error.contains("6.1: can't be read: No such file"),
        "{error}"
    );
}

#[test]
fn a_guest_starts_the_unpacked_kernel() {
    let folder = Folder::new("unpacked");
    let cache = folder.0.join("cache");
    let kernel = kernel_with_note(18);
    let image = bzimage_of(&Packing::Gzip.pack(&kernel));
    let file = folder.put("vmlinuz", &image);
    let added = add(&cache, std::slice::from_ref(&file)).unwrap();
    assert_eq!(added[0].bytes, (image.len() + kernel.len()) as u64);
    assert_eq!(find("6.1", &cache, MODULES).unwrap().kernel, kernel);
    // What is joined with a kernel of the cache leaves the image.
    add(&cache, &[file]).unwrap();
    fs::remove_file(cache.join("x86_64/6.1.0/vmlinux")).unwrap();
    assert_eq!(find("6.1", &cache, MODULES).unwrap().kernel, image);
}
