//! Packages in every form, made here, and damaged ones.

use std::path::{Path, PathBuf};

use super::*;
use crate::guest::packages::{
    ARM64, Files, Packing, RpmFormat, X86_64, arm64_image, bzimage, deb, module, rpm, zboot,
};

const RELEASE: &str = "6.12.7-test";

/// A file that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("bpflab-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Reads a package that has these bytes; an error without the file's name.
fn read_bytes(name: &str, bytes: &[u8], wanted: &[&str]) -> Result<Found, String> {
    let file = Scratch::new(name, bytes);
    read(&file.0, wanted).map_err(|error| {
        let text = error.to_string();
        let file = format!("{}: ", file.0.display());
        text.strip_prefix(&file)
            .expect("the file's name")
            .to_owned()
    })
}

/// An image and modules in these folders. `veth` stands before what it needs, `alpha` behind
/// it.
fn files(image: &str, modules: &str, packing: Packing) -> Vec<(String, Vec<u8>)> {
    let file = |folder: &str, name: &str, depends: &str| {
        let path = format!(
            "{modules}/{RELEASE}/kernel/{folder}/{name}.ko{}",
            packing.ending()
        );
        let module = module(&name.replace('-', "_"), depends, X86_64);
        (path, packing.pack(&module))
    };
    vec![
        (image.to_owned(), bzimage(RELEASE, 0)),
        (format!("{modules}/{RELEASE}/modules.order"), Vec::new()),
        file("a", "alpha", ""),
        file("b", "virtio-console", "virtio,alpha"),
        file("c", "other", "virtio"),
        file("d", "virtio", ""),
    ]
}

fn borrowed(files: &[(String, Vec<u8>)]) -> Vec<(&str, Vec<u8>)> {
    files
        .iter()
        .map(|(path, it)| (path.as_str(), it.clone()))
        .collect()
}

/// The wanted module is found with those that it needs, before and behind it.
fn is_whole(found: &Found) {
    assert_eq!(found.release.as_deref(), Some(RELEASE));
    assert_eq!(found.arch, Arch::X86_64);
    assert_eq!(found.kernel, Some(bzimage(RELEASE, 0)));
    let modules = with_needs(found.modules.clone(), &["virtio_console", "builtin"]);
    let names: Vec<&str> = modules.iter().map(|module| module.name.as_str()).collect();
    assert_eq!(names, ["alpha", "virtio", "virtio_console"]);
    assert_eq!(modules[2].after, ["virtio", "alpha"]);
    assert_eq!(modules[1].bytes, module("virtio", "", X86_64));
}

#[test]
fn debian_packages_are_read_in_every_form() {
    for packing in Packing::ALL {
        for inner in Packing::ALL {
            for (image, modules) in [
                (format!("boot/vmlinuz-{RELEASE}"), "lib/modules"),
                (
                    format!("usr/lib/modules/{RELEASE}/vmlinuz"),
                    "usr/lib/modules",
                ),
            ] {
                let files = files(&image, modules, inner);
                let package = deb("Package: linux-image\n", &borrowed(&files), packing);
                let found = read_bytes("forms.deb", &package, &["virtio_console", "builtin"]);
                is_whole(&found.unwrap_or_else(|error| panic!("{packing:?} {inner:?}: {error}")));
            }
        }
    }
}

#[test]
fn rpm_packages_are_read_in_every_form() {
    for packing in Packing::ALL {
        for format in [RpmFormat::Four, RpmFormat::Six] {
            let image = format!("lib/modules/{RELEASE}/vmlinuz");
            let files = files(&image, "lib/modules", Packing::Zstd);
            let package = rpm(&borrowed(&files), packing, format);
            let found = read_bytes("forms.rpm", &package, &["virtio_console", "builtin"]);
            is_whole(&found.unwrap_or_else(|error| panic!("{packing:?} {format:?}: {error}")));
        }
    }
}

#[test]
fn the_modules_of_a_bare_image_are_the_installed_ones() {
    let root = Scratch::new("root", &[]).0.with_extension("folder");
    let folder = root.join("lib/modules").join(RELEASE);
    std::fs::create_dir_all(folder.join("kernel/net")).unwrap();
    std::fs::create_dir_all(root.join("lib/modules/6.1")).unwrap();
    let veth = Packing::Xz.pack(&module("veth", "", X86_64));
    std::fs::write(folder.join("kernel/net/veth.ko.xz"), &veth).unwrap();
    std::fs::write(root.join("lib/modules/6.1/ifb.ko"), &veth).unwrap();
    std::os::unix::fs::symlink("/", folder.join("build")).unwrap();
    let mut collector = Collector::new(&["veth", "ifb"]);
    let image = bzimage(RELEASE, 0);
    let release = collector.image(image.as_slice()).unwrap();
    folder::read(&root, &release.unwrap(), &mut collector).unwrap();
    let found = collector.finish().unwrap();
    std::fs::remove_dir_all(&root).unwrap();
    assert_eq!(found.modules.keys().collect::<Vec<_>>(), ["veth"]);
}

#[test]
fn images_tell_machine_and_release() {
    let arm = arm64_image(RELEASE);
    let mut images = vec![
        (Arch::X86_64, bzimage(RELEASE, 0)),
        (Arch::Arm64, arm.clone()),
    ];
    images.push((Arch::Arm64, Packing::Gzip.pack(&arm)));
    for packing in [Packing::Gzip, Packing::Zstd] {
        images.push((Arch::Arm64, zboot(&arm, packing)));
    }
    for (arch, image) in images {
        let found = read_bytes("image", &image, &[]).unwrap();
        assert_eq!(
            (found.arch, found.release.as_deref()),
            (arch, Some(RELEASE))
        );
        assert_eq!(found.kernel, Some(image));
    }
    // Packed in a way that is not unpacked here: the file's name is all there is.
    let mut odd = zboot(b"odd", Packing::Plain);
    odd.extend(arm64_image("6.1"));
    assert_eq!(read_bytes("image", &odd, &[]).unwrap().release, None);
}

#[test]
fn an_error_says_what_to_use_instead() {
    let image = |path: &str, bytes: Vec<u8>| (path.to_owned(), bytes);
    let read = |control: &str, files: &[(String, Vec<u8>)]| {
        let package = deb(control, &borrowed(files), Packing::Plain);
        read_bytes("error.deb", &package, &["veth", "ifb"]).unwrap_err()
    };
    let meta = "Package: x\nDepends: linux-image-6.12-cloud-amd64 (= 6.12-1), kmod | kmodule\n";
    assert_eq!(
        read(meta, &[]),
        "no kernel image and no modules in this package; use what it depends on: \
         linux-image-6.12-cloud-amd64"
    );
    assert!(read("Package: x\n", &[]).ends_with("kernel-core (Fedora)"));
    let debug = image("usr/lib/debug/boot/vmlinux-6.1", b"\x7fELF".to_vec());
    assert!(read("", &[debug]).starts_with("debug symbols, no kernel; use"));
    let arm = image("boot/vmlinuz-6.1-armmp", vec![0; 100]);
    assert_eq!(
        read("", &[arm]),
        "`boot/vmlinuz-6.1-armmp` is not for x86-64 or arm64"
    );
    let odd = image("boot/vmlinuz-6.1\n", bzimage("6.1", 0));
    assert_eq!(
        read("", &[odd]),
        "not a valid package: `6.1\\n` is not a release"
    );
    let folder = "lib/modules/6.1";
    let veth = |machine| image(&format!("{folder}/veth.ko"), module("veth", "", machine));
    let ifb = |machine| image(&format!("{folder}2/ifb.ko"), module("ifb", "", machine));
    assert_eq!(
        read("", &[veth(X86_64), ifb(X86_64)]),
        "not a valid package: files of two kernels, 6.1 and 6.12"
    );
    let vmlinuz = image("boot/vmlinuz-6.1", bzimage("6.1", 0));
    assert_eq!(
        read("", &[vmlinuz, veth(ARM64)]),
        "not a valid package: files for x86-64 and for arm64"
    );
    assert!(read("", &[veth(3)]).ends_with("veth.ko` is not for x86-64 or arm64"));
}

#[test]
fn no_release_and_no_module_leads_out_of_the_cache() {
    for release in ["6.1.0-9-amd64", "6.14.0-rc1+", "5.10_x~1", "6"] {
        assert!(is_release(release), "{release}");
    }
    let long = "6".repeat(65);
    for release in [
        "", ".", "..", "../6.1", "6/1", ".6", "6 1", "v6", "6.1\n", &long,
    ] {
        assert!(!is_release(release), "{release}");
    }
    let name = |path| module::name_of(path);
    assert_eq!(
        name("kernel/virtio-rng.ko.zst").as_deref(),
        Some("virtio_rng")
    );
    for path in [
        "",
        ".ko",
        "a/..ko",
        "a b.ko",
        "veth.ko.bz2",
        "veth.ko/x",
        "veth.mod",
    ] {
        assert_eq!(name(path), None, "{path}");
    }
}

#[test]
fn what_is_no_package_is_told_so() {
    let error = |bytes: &[u8]| read_bytes("odd", bytes, &[]).unwrap_err();
    assert!(error(b"").starts_with("not a kernel: neither an image"));
    assert!(error(b"#!/bin/sh\n").starts_with("not a kernel: neither an image"));
    assert!(error(b"!<arch>\n").starts_with("truncated"));
    let odd = [b"!<arch>\n".as_slice(), &[b' '; 60]].concat();
    assert!(error(&odd).starts_with("not a valid package: no header of an archive"));
    assert!(error(&[rpm::MAGIC, &[0; 200]].concat()).contains("no header where one"));
    let bzip = crate::guest::packages::ar(&[("data.tar.bz2", Vec::new())]);
    assert!(error(&bzip).starts_with("data.tar.bz2: only xz, zstd and gzip"));
    let missing = read(Path::new("/nonexistent/x.deb"), &[]).unwrap_err();
    assert!(
        missing
            .to_string()
            .starts_with("/nonexistent/x.deb: can't be read: No such")
    );
}

/// Small packages, whose bytes are mostly structure.
fn samples() -> Vec<Vec<u8>> {
    let files = files("boot/vmlinuz-6.12.7-test", "lib/modules", Packing::Xz);
    let files: Files = &borrowed(&files);
    let mut samples = Vec::new();
    for packing in Packing::ALL {
        samples.push(deb("Depends: linux-image-1\n", files, packing));
        samples.push(rpm(files, packing, RpmFormat::Four));
        samples.push(rpm(files, packing, RpmFormat::Six));
    }
    samples.push(zboot(&arm64_image(RELEASE), Packing::Gzip));
    samples
}

#[test]
fn a_package_cut_off_anywhere_is_an_error() {
    for package in samples() {
        for step in 0..200 {
            let cut = package.get(..package.len() * step / 200).unwrap();
            if let Ok(found) = read_bytes("cut", cut, &["virtio_console"]) {
                // Nothing but the end of the archive is missing.
                is_whole(&found);
            }
        }
    }
}

#[test]
fn damaged_packages_are_no_panic() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % below as u64).unwrap()
    };
    let (mut refused, mut read) = (0, 0);
    for package in samples() {
        for _ in 0..300 {
            let mut damaged = package.clone();
            for _ in 0..=random(4) {
                let at = random(damaged.len());
                damaged[at] = [0, 0xff, b'9', b'f', damaged[at] ^ 1 << random(8)][random(5)];
            }
            match read_bytes("damaged", &damaged, &["virtio_console"]) {
                Ok(_) => read += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 500 && read > 50, "{refused} refused, {read} read");
}

#[test]
fn sizes_that_a_package_declares_are_not_allocated() {
    // A file of 8 TB in an archive, in GNU's binary form; then one that is sparse.
    for kind in [b'0', b'S'] {
        let mut header = tar::Header::new_gnu();
        header.set_path("boot/vmlinuz-6.1").unwrap();
        header.set_entry_type(tar::EntryType::new(kind));
        header.set_size(1 << 43);
        if let (b'S', Some(gnu)) = (kind, header.as_gnu_mut()) {
            gnu.realsize[..12].copy_from_slice(b"777777777777");
        }
        header.set_cksum();
        let archive = [header.as_bytes().as_slice(), &[0; 2048]].concat();
        let package = crate::guest::packages::ar(&[("data.tar", archive)]);
        assert!(read_bytes("large.deb", &package, &[]).is_err());
    }
    // A member of 4 GB, a path of 4 GB, a header of 4 GB.
    let files = [("boot/vmlinuz-6.1", bzimage("6.1", 0))];
    let package = rpm(&files, Packing::Plain, RpmFormat::Four);
    let archive = package.windows(6).position(|it| it == b"070701").unwrap();
    for at in [archive + 6 + 6 * 8, archive + 6 + 11 * 8] {
        let mut large = package.clone();
        large[at..at + 8].copy_from_slice(b"ffffffff");
        assert!(read_bytes("large.rpm", &large, &[]).is_err());
    }
    let mut large = package;
    large[96 + 8..96 + 16].copy_from_slice(&[0xff; 8]);
    let error = read_bytes("large.rpm", &large, &[]).unwrap_err();
    assert!(
        error.starts_with("not a valid package: a header of"),
        "{error}"
    );
}
