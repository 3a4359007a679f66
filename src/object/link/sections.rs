//! Concatenation of sections with the same name.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::super::error::{ObjectError, Problem};
use super::super::image::{Section, SectionKind};
use super::input::{Input, Result};

/// Sections that each file has a copy of: the copies must be equal, and one is kept.
const COMMON: [&str; 2] = ["license", "version"];

/// The largest page size of any machine: more alignment would be mostly padding.
const MAX_ALIGN: u64 = 64 << 10;

/// The joined sections.
pub(super) struct Joined {
    pub all: Vec<Section<'static>>,
    /// Output location of each section of each file.
    places: Vec<Vec<Option<Placed>>>,
}

/// Output location of a section of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    /// Number of the joined section.
    pub section: usize,
    /// Its first byte there.
    pub offset: u64,
}

impl Joined {
    /// The output location of a section of a file; `None` if it isn't linked.
    pub fn place(&self, input: usize, section: usize) -> Option<Placed> {
        *self.places.get(input)?.get(section)?
    }

    /// The output location of a file's section of this name, and its size.
    pub fn named(&self, input: &Input<'_>, number: usize, name: &str) -> Option<Placed> {
        let (index, _) = input.image.find(name)?;
        self.place(number, index)
    }
}

/// An empty section.
pub(super) fn empty() -> Section<'static> {
    Section {
        name: Cow::Borrowed(""),
        kind: SectionKind::Bits,
        executable: false,
        writable: false,
        align: 1,
        size: 0,
        data: Cow::Borrowed(&[]),
    }
}

/// Joins the sections of all files.
///
/// # Errors
/// Sections of one name but different types, licenses that differ, more bytes than can be
/// counted.
pub(super) fn join(inputs: &[Input<'_>]) -> Result<Joined> {
    let mut joined = Joined {
        all: vec![Section {
            kind: SectionKind::Table,
            ..empty()
        }],
        places: Vec::with_capacity(inputs.len()),
    };
    let mut by_name: FxHashMap<String, usize> = FxHashMap::default();
    for input in inputs {
        let mut places = vec![None; input.image.sections.len()];
        for (section, place) in input.image.sections.iter().zip(&mut places) {
            if !is_linked(section) {
                continue;
            }
            let fault = |text: &str| {
                let problem = Problem::Link(text.to_owned());
                ObjectError::section(&section.name, 0, problem).of(input.name)
            };
            if section.align > MAX_ALIGN {
                return Err(fault("aligned to more than 64 KiB"));
            }
            let known = by_name.get(&*section.name).copied();
            let Some(into) = known else {
                let index = joined.all.len();
                by_name.insert(section.name.clone().into_owned(), index);
                joined.all.push(Section {
                    name: Cow::Owned(section.name.clone().into_owned()),
                    data: Cow::Owned(section.data.to_vec()),
                    ..*section
                });
                *place = Some(Placed {
                    section: index,
                    offset: 0,
                });
                continue;
            };
            let Some(target) = joined.all.get_mut(into) else {
                continue;
            };
            let nature = |s: &Section<'_>| (s.kind, s.executable, s.writable);
            if nature(target) != nature(section) {
                return Err(fault(
                    "its type or flags differ from those in earlier files",
                ));
            }
            if COMMON.contains(&&*section.name) {
                if target.data != section.data {
                    return Err(fault("its contents differ from those in earlier files"));
                }
                continue;
            }
            target.align = target.align.max(section.align);
            let offset = target
                .size
                .checked_next_multiple_of(target.align)
                .ok_or_else(|| fault("too large to link"))?;
            target.size = offset
                .checked_add(section.size)
                .ok_or_else(|| fault("too large to link"))?;
            if section.kind == SectionKind::Bits {
                let data = target.data.to_mut();
                // Bounded by the bytes of the files and their alignment.
                let start = usize::try_from(offset).unwrap_or(data.len());
                data.resize(start, 0);
                data.extend_from_slice(&section.data);
            }
            *place = Some(Placed {
                section: into,
                offset,
            });
        }
        joined.places.push(places);
    }
    Ok(joined)
}

/// Whether a section is linked: not tables, debug information, or types, which are merged
/// separately.
fn is_linked(section: &Section<'_>) -> bool {
    matches!(section.kind, SectionKind::Bits | SectionKind::Zeroed)
        && !section.name.starts_with(".debug_")
        && !matches!(&*section.name, ".BTF" | ".BTF.ext")
}
