//! Debian packages: an `ar` archive with `control.tar` and `data.tar` (deb(5), ar(5)).

use std::io::{self, BufRead, Read};

use tar::Archive;

use super::collect::{Collector, MAX_UNPACKED};
use super::error::Problem;
use crate::util::compressed::{Bounded, unpack};

/// How a package begins.
pub(super) const MAGIC: &[u8] = b"!<arch>\n";

/// The length of a member's header.
const HEADER: usize = 60;

/// The most that is read of `control`, which lists dependencies.
const MAX_CONTROL: u64 = 1 << 20;

/// Shows the files of a package of `length` bytes, and its dependencies before.
pub(super) fn read(
    mut file: impl BufRead,
    length: u64,
    collector: &mut Collector,
) -> Result<(), Problem> {
    let mut left = length.saturating_sub(MAGIC.len() as u64);
    file.read_exact(&mut [0; MAGIC.len()])?;
    loop {
        let mut header = [0; HEADER];
        if left < HEADER as u64 {
            return Err(Problem::Truncated);
        }
        file.read_exact(&mut header)?;
        let (name, size) = member(&header)?;
        left = left
            .checked_sub(HEADER as u64)
            .and_then(|left| left.checked_sub(size))
            .ok_or(Problem::Truncated)?;
        let mut contents = (&mut file).take(size);
        if let Some(packing) = name.strip_prefix("data.tar") {
            return data(contents, packing, collector);
        }
        if name.starts_with("control.tar") {
            control(&mut contents, collector)?;
        }
        io::copy(&mut contents, &mut io::sink())?;
        // Members begin at even offsets.
        let padding = io::copy(&mut (&mut file).take(size & 1), &mut io::sink())?;
        left = left.saturating_sub(padding);
    }
}

/// Name and size of the member with this header: a name of 16 characters, the size in decimal
/// at 48, and two characters at the end.
fn member(header: &[u8; HEADER]) -> Result<(&str, u64), Problem> {
    let text = std::str::from_utf8(header).ok();
    let text = text.and_then(|text| text.strip_suffix("`\n"));
    let field = |range| text.and_then(|text| text.get(range)).map(str::trim);
    match (field(0..16), field(48..58).map(str::parse)) {
        (Some(name), Some(Ok(size))) => Ok((name.trim_end_matches('/'), size)),
        _ => {
            let text = "no header of an archive member where one must be";
            Err(Problem::Malformed(text.to_owned()))
        }
    }
}

/// Shows the names of packages in `Depends` and `Pre-Depends`.
fn control(packed: impl BufRead, collector: &mut Collector) -> Result<(), Problem> {
    let mut archive = Archive::new(unpack(packed)?.take(MAX_CONTROL));
    for entry in archive.entries()? {
        let mut entry = entry?;
        if !entry.path_bytes().ends_with(b"control") {
            continue;
        }
        let mut text = Vec::new();
        (&mut entry).take(MAX_CONTROL).read_to_end(&mut text)?;
        for line in String::from_utf8_lossy(&text).lines() {
            let Some(("Depends" | "Pre-Depends", packages)) = line.split_once(": ") else {
                continue;
            };
            for package in packages.split([',', '|']) {
                collector.requires(package.split_whitespace().next().unwrap_or_default());
            }
        }
        break;
    }
    Ok(())
}

/// Shows the files of `data.tar`.
fn data(packed: impl BufRead, packing: &str, collector: &mut Collector) -> Result<(), Problem> {
    if !["", ".gz", ".xz", ".zst"].contains(&packing) {
        let text = format!("data.tar{packing}: only xz, zstd and gzip are unpacked here");
        return Err(Problem::Unsupported(text));
    }
    let mut archive = Archive::new(Bounded::new(unpack(packed)?, MAX_UNPACKED));
    for entry in archive.entries()? {
        let mut entry = entry?;
        if entry.header().entry_type().is_file() {
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            collector.file(&path, &mut entry)?;
        }
    }
    Ok(())
}
