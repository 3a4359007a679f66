//! Reads the entries of a log, by the sites of the program that wrote it.

use super::error::{Damage, Damaged};
use super::site::{Field, FieldLocation, Length, Site};
use crate::util::Reader;

/// The entries of a log, in order. The iterator ends after a damaged entry.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    sites: &'a [Site],
    log: Reader<'a>,
    damaged: bool,
}

/// An entry of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The site that wrote it.
    pub site: &'a Site,
    /// Its offset in the log in bytes.
    pub offset: usize,
    /// The bytes after the site's number.
    pub payload: &'a [u8],
}

impl<'a> Entries<'a> {
    pub(super) const fn new(sites: &'a [Site], log: &'a [u8]) -> Self {
        Self {
            sites,
            log: Reader::new(log),
            damaged: false,
        }
    }

    /// The unread rest of the log.
    pub(super) fn rest(&self) -> &'a [u8] {
        let mut log = self.log.clone();
        log.bytes(log.left()).unwrap_or_default()
    }

    fn read(&mut self) -> Result<Entry<'a>, Damaged> {
        let offset = self.log.offset();
        let number = take(&mut self.log, 2)?;
        let number = u16::from_le_bytes(number.try_into().unwrap_or_default());
        let site = self.sites.get(usize::from(number)).ok_or(Damaged {
            offset,
            damage: Damage::Site(number),
        })?;
        let payload = match &site.fields[..] {
            // The most common case.
            [only] if !matches!(only.length, Length::Counted { .. }) => {
                read_field(&mut self.log, only)?
            }
            fields => {
                let mut start = self.log.clone();
                for field in fields {
                    read_field(&mut self.log, field)?;
                }
                let len = self.log.offset() - start.offset();
                take(&mut start, len)?
            }
        };
        Ok(Entry {
            site,
            offset,
            payload,
        })
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.damaged || self.log.is_empty() {
            return None;
        }
        let entry = self.read();
        self.damaged = entry.is_err();
        Some(entry)
    }
}

impl<'a> Entry<'a> {
    /// The fields and their bytes, without the length prefixes.
    pub fn fields(&self) -> impl Iterator<Item = (&'a Field, &'a [u8])> + use<'a> {
        let mut payload = Reader::new(self.payload);
        self.site
            .fields
            .iter()
            .map_while(move |field| Some((field, read_field(&mut payload, field).ok()?)))
    }
}

#[inline]
fn read_field<'a>(log: &mut Reader<'a>, field: &Field) -> Result<&'a [u8], Damaged> {
    let offset = log.offset();
    let damaged = |damage| Damaged { offset, damage };
    let len = match field.length {
        Length::Fixed(len) => len,
        Length::Counted { most, .. } => {
            let len = u16::from_le_bytes(take(log, 2)?.try_into().unwrap_or_default());
            if len > most {
                return Err(damaged(Damage::Length {
                    len: len.into(),
                    most: most.into(),
                }));
            }
            len.into()
        }
    };
    let bytes = take(log, usize::try_from(len).unwrap_or(usize::MAX))?;
    match (field.location, bytes) {
        (FieldLocation::NonNull(_), &[byte]) if byte > 1 => Err(damaged(Damage::Presence(byte))),
        _ => Ok(bytes),
    }
}

#[inline]
fn take<'a>(log: &mut Reader<'a>, len: usize) -> Result<&'a [u8], Damaged> {
    log.bytes(len).map_err(|error| Damaged {
        offset: error.offset,
        damage: Damage::Short {
            needed: error.wanted,
            left: error.left,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::site::{AccessedState, Flow, Moment, What};
    use super::*;
    use crate::isa::{Reg, RegSet};
    use crate::util::Pc;

    fn site(number: u16, fields: &[(FieldLocation, Length)]) -> Site {
        let field = |&(location, length): &(FieldLocation, Length)| Field {
            flow: Flow::Input,
            what: What::Result,
            location,
            length,
        };
        Site {
            number,
            pc: Pc(number.into()),
            moment: Moment::After,
            accesses: AccessedState::World,
            fields: fields.iter().map(field).collect(),
            free: RegSet::EMPTY,
            spillable: RegSet::EMPTY,
        }
    }

    fn sites() -> [Site; 3] {
        let r0 = FieldLocation::Register(Reg::R0);
        let counted = Length::Counted {
            count: Reg::R2,
            most: 4,
        };
        [
            site(0, &[(r0, Length::Fixed(2)), (r0, counted)]),
            site(1, &[]),
            site(2, &[(FieldLocation::NonNull(Reg::R0), Length::Fixed(1))]),
        ]
    }

    const LOG: &[u8] = &[
        0, 0, 7, 8, 3, 0, 1, 2, 3, // site 0: two bytes, three bytes
        1, 0, // site 1: nothing
        2, 0, 1, // site 2: a pointer
    ];

    #[test]
    fn entries_follow_one_another() {
        let sites = sites();
        let entries: Result<Vec<_>, _> = Entries::new(&sites, LOG).collect();
        let entries = entries.unwrap();
        let positions: Vec<_> = entries.iter().map(|e| (e.site.number, e.offset)).collect();
        assert_eq!(positions, [(0, 0), (1, 9), (2, 11)]);
        let fields: Vec<&[u8]> = entries[0].fields().map(|(_, bytes)| bytes).collect();
        assert_eq!(fields, [&[7, 8][..], &[1, 2, 3]]);
        assert_eq!(entries[1].fields().count(), 0);
    }

    #[test]
    fn a_log_that_is_cut_anywhere_but_between_entries_is_damaged() {
        let sites = sites();
        for len in 0..=LOG.len() {
            let whole = Entries::new(&sites, &LOG[..len]).all(|entry| entry.is_ok());
            assert_eq!(whole, [0, 9, 11, 14].contains(&len), "{len}");
        }
    }

    #[test]
    fn what_no_program_writes_is_named() {
        let sites = sites();
        let error = |log: &[u8]| {
            let mut entries = Entries::new(&sites, log);
            let error = entries.find_map(Result::err).unwrap();
            assert_eq!(entries.next(), None, "nothing after the damage");
            error.to_string()
        };
        assert_eq!(error(&[1, 0, 3, 0]), "byte 2: unknown site 3");
        assert_eq!(error(&[2, 0, 9]), "byte 2: 9 instead of 0 or 1");
        assert_eq!(
            error(&[0, 0, 7, 8, 5, 0]),
            "byte 4: field of 5 bytes, more than 4"
        );
    }
}
