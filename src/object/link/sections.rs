//! Sections of one name, one behind the other.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::super::error::{ObjectError, Problem};
use super::super::image::{Section, SectionKind};
use super::input::{Input, Result};

/// Sections that every file has a copy of: the copies must be equal, and one stays.
const COMMON: [&str; 2] = ["license", "version"];

/// The largest page of any machine: what is aligned to more would be mostly padding.
const MAX_ALIGN: u64 = 64 << 10;

/// The joined sections.
pub(super) struct Joined {
    pub all: Vec<Section<'static>>,
    /// Where each section of each file went.
    places: Vec<Vec<Option<Placed>>>,
}

/// Where a section of a file went.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    /// Number of the joined section.
    pub section: usize,
    /// Its first byte there.
    pub offset: u64,
}

impl Joined {
    /// Where a section of a file went; nowhere if it means nothing.
    pub fn place(&self, input: usize, section: usize) -> Option<Placed> {
        *self.places.get(input)?.get(section)?
    }

    /// Where a file's section of this name went, and its size there.
    pub fn named(&self, input: &Input<'_>, number: usize, name: &str) -> Option<Placed> {
        let (index, _) = input.image.find(name)?;
        self.place(number, index)
    }
}

/// The section without anything in it.
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
/// Sections of one name and different natures, licenses that differ, more bytes than
/// can be counted.
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
                return Err(fault("aligned to more bytes than any page has"));
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
                return Err(fault("of another kind than in the files before"));
            }
            if COMMON.contains(&&*section.name) {
                if target.data != section.data {
                    return Err(fault("differs from that of the files before"));
                }
                continue;
            }
            target.align = target.align.max(section.align);
            let offset = target
                .size
                .checked_next_multiple_of(target.align)
                .ok_or_else(|| fault("larger than can be linked"))?;
            target.size = offset
                .checked_add(section.size)
                .ok_or_else(|| fault("larger than can be linked"))?;
            if section.kind == SectionKind::Bits {
                let data = target.data.to_mut();
                // As long as the bytes of the files, and what aligns them.
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

/// Whether a section is linked: not tables, debug information, or types, which are
/// merged on their own.
fn is_linked(section: &Section<'_>) -> bool {
    matches!(section.kind, SectionKind::Bits | SectionKind::Zeroed)
        && !section.name.starts_with(".debug_")
        && !matches!(&*section.name, ".BTF" | ".BTF.ext")
}
