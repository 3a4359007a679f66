//! A table of BTF types, opened and checked.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::check::{self, Limits};
use super::error::{BTF, BtfError, Problem};
use super::kind::Kind;
use super::names::NameIndex;
use crate::util::{Reader, TypeId};

/// The first two bytes, in the byte order of the target machine.
pub(super) const MAGIC: u16 = 0xeb9f;
/// The only supported version.
pub(super) const VERSION: u8 = 1;
/// Length of the header that this library reads.
pub(super) const HEADER_LEN: u32 = 24;
/// Longest name of a type, in bytes. The kernel's limit is 511, but Rust's generic types
/// have longer names. Without a limit, many types with one long name take very long.
pub(super) const MAX_NAME: usize = 4096;

/// A type table with its strings, and the base it extends if it is the split BTF of a
/// module. Clones share the table.
///
/// ```
/// use bpflab::btf::{Btf, Builder, Encoding, Kind};
///
/// let mut builder = Builder::new();
/// let int = builder.int("int", 4, Encoding::Signed);
/// builder.typedef("pid_t", int);
///
/// let btf = Btf::parse(&builder.build()?.to_bytes())?;
/// let pid_t = btf.find("pid_t", Kind::Typedef).unwrap();
/// assert_eq!(pid_t.target().unwrap().name(), "int");
/// # Ok::<(), bpflab::btf::BtfError>(())
/// ```
#[derive(Clone)]
pub struct Btf(Arc<Table>);

/// The shared table.
struct Table {
    /// The base of a split BTF.
    base: Option<Btf>,
    /// The type section; every record is a whole number of words.
    words: Box<[u32]>,
    /// Start of each own type's record in `words`.
    index: Box<[u32]>,
    /// The own string section, NULs included. Bytes that are not UTF-8 are replaced by `?`.
    strings: Box<str>,
    /// Id of the first own type.
    first_id: u32,
    /// String offset of the first own string.
    first_string: u32,
    /// Built on the first look-up.
    names: OnceLock<NameIndex>,
    /// The own declaration tags as pairs of target and tag, sorted. Built on the first
    /// look-up.
    decl_tags: OnceLock<Box<[(TypeId, TypeId)]>>,
}

impl Btf {
    /// Parses standalone BTF: an object's `.BTF`, or the kernel's.
    ///
    /// # Errors
    /// [`BtfError`] with the offset of the first error.
    pub fn parse(bytes: &[u8]) -> Result<Self, BtfError> {
        Self::open(bytes, None)
    }

    /// Parses the split BTF of a kernel module, whose ids and strings continue those of
    /// `base`.
    ///
    /// # Errors
    /// As for [`Btf::parse`].
    pub fn parse_split(bytes: &[u8], base: &Self) -> Result<Self, BtfError> {
        Self::open(bytes, Some(base.clone()))
    }

    fn open(bytes: &[u8], base: Option<Self>) -> Result<Self, BtfError> {
        let parts = Parts::find(bytes, base.is_some())?;
        let words: Box<[u32]> = parts
            .types
            .as_chunks()
            .0
            .iter()
            .map(|word| u32::from_le_bytes(*word))
            .collect();
        Self::checked(words, readable(parts.strings), base, parts.types_start)
    }

    /// Checks words and strings; `start` is the offset of the words in the blob, for errors.
    pub(super) fn checked(
        words: Box<[u32]>,
        strings: Box<str>,
        base: Option<Self>,
        start: usize,
    ) -> Result<Self, BtfError> {
        let first_id = base.as_ref().map_or(1, Self::count);
        let first_string = base.as_ref().map_or(0, Self::string_end);
        let too_big = || BtfError::btf(0, Problem::BaseTooBig);
        let own_strings = u32::try_from(strings.len()).map_err(|_| too_big())?;
        let string_end = first_string.checked_add(own_strings).ok_or_else(too_big)?;
        let long = long_strings(&strings, first_string);
        let limits = Limits {
            long: &long,
            start,
            first_id,
            strings: string_end,
        };
        let index = check::index(&words, limits)?;
        let count = u32::try_from(index.len())
            .ok()
            .and_then(|own| first_id.checked_add(own));
        let count = count.ok_or_else(too_big)?;
        check::references(&words, &index, limits, count)?;

        Ok(Self(Arc::new(Table {
            base,
            words,
            index: index.into_boxed_slice(),
            strings,
            first_id,
            first_string,
            names: OnceLock::new(),
            decl_tags: OnceLock::new(),
        })))
    }

    /// Number of types, including `void` and the base's; every id is below it.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.first_id + TypeId::from_index(self.0.index.len()).0
    }

    /// Id of the first own type: 1, or the base's count.
    #[must_use]
    pub fn first_id(&self) -> TypeId {
        TypeId(self.0.first_id)
    }

    /// The base of this split BTF.
    #[must_use]
    pub fn base(&self) -> Option<&Self> {
        self.0.base.as_ref()
    }

    /// Whether both are the same table (not just equal tables).
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The string at an offset, up to its NUL; `None` outside of the table. An offset
    /// inside a string returns the rest of the string.
    #[must_use]
    pub fn string(&self, offset: u32) -> Option<&str> {
        let Some(own) = offset.checked_sub(self.0.first_string) else {
            return self.base()?.string(offset);
        };
        let rest = self.0.strings.get(own as usize..)?;
        let end = rest.bytes().position(|byte| byte == 0)?;
        rest.get(..end)
    }

    /// The end of all string offsets, the base's included.
    #[must_use]
    pub fn string_end(&self) -> u32 {
        self.0
            .first_string
            .saturating_add(u32::try_from(self.0.strings.len()).unwrap_or(u32::MAX))
    }

    /// The words from an own type's record on; `None` if the type is not in this table.
    pub(super) fn record(&self, id: TypeId) -> Option<&[u32]> {
        let own = id.0.checked_sub(self.0.first_id)?;
        let start = *self.0.index.get(own as usize)? as usize;
        self.0.words.get(start..)
    }

    /// The names of the own types, by index in this table.
    pub(super) fn names(&self) -> &NameIndex {
        self.0.names.get_or_init(|| {
            NameIndex::new(self.0.index.len(), |own| {
                let start = self.0.index.get(own).map_or(0, |start| *start as usize);
                let name = self.0.words.get(start).copied().unwrap_or_default();
                self.string(name).unwrap_or_default()
            })
        })
    }

    /// The own declaration tags as pairs of target and tag, sorted.
    pub(super) fn target_and_tag(&self) -> &[(TypeId, TypeId)] {
        self.0.decl_tags.get_or_init(|| {
            let tags = self.own_types().filter(|ty| ty.kind() == Kind::DeclTag);
            let mut pairs: Box<[_]> = tags
                .filter_map(|tag| Some((tag.target_id()?, tag.id())))
                .collect();
            pairs.sort_unstable();
            pairs
        })
    }

    /// The records of the own types, one after the other.
    pub(super) fn words(&self) -> &[u32] {
        &self.0.words
    }

    /// Start of each own type's record in the words.
    pub(super) fn index(&self) -> &[u32] {
        &self.0.index
    }

    /// The own string section.
    pub(super) fn own_strings(&self) -> &str {
        &self.0.strings
    }

    /// Size of this table in bytes, without the base.
    pub(super) fn len(&self) -> usize {
        HEADER_LEN as usize + self.0.words.len() * 4 + self.0.strings.len()
    }

    /// The bytes of this table, without the base: as parsed, except for gaps and bytes that
    /// are not UTF-8 (see [`Btf::string`]).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        to_bytes(&self.0.words, self.0.strings.as_bytes())
    }
}

impl fmt::Debug for Btf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Btf")
            .field("types", &self.count())
            .finish_non_exhaustive()
    }
}

/// A BTF blob of a type section and a string section.
pub(super) fn to_bytes(words: &[u32], strings: &[u8]) -> Vec<u8> {
    let len = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
    let types_len = len(words.len() * 4);
    let mut out = Vec::with_capacity(HEADER_LEN as usize + words.len() * 4 + strings.len());
    out.extend(MAGIC.to_le_bytes());
    out.extend([VERSION, 0]);
    for word in [HEADER_LEN, 0, types_len, types_len, len(strings.len())] {
        out.extend(word.to_le_bytes());
    }
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    out.extend(strings);
    out
}

/// Checks magic, version and flags, which `.BTF` and `.BTF.ext` share; returns the header
/// length.
pub(super) fn preamble(reader: &mut Reader<'_>, section: &'static str) -> Result<u32, BtfError> {
    let short = |error| BtfError::header(section, error);
    let error = |offset, problem| {
        Err(BtfError {
            section,
            offset,
            problem,
        })
    };
    match reader.u16().map_err(short)? {
        MAGIC => {}
        magic if magic.swap_bytes() == MAGIC => return error(0, Problem::BigEndian),
        magic => return error(0, Problem::Magic(magic)),
    }
    match reader.u8().map_err(short)? {
        VERSION => {}
        version => return error(2, Problem::Version(version)),
    }
    match reader.u8().map_err(short)? {
        0 => {}
        flags => return error(3, Problem::Flags(flags)),
    }
    reader.u32().map_err(short)
}

/// The two parts of a BTF blob.
struct Parts<'a> {
    types: &'a [u8],
    types_start: usize,
    strings: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Reads the header and splits the blob.
    fn find(bytes: &'a [u8], split: bool) -> Result<Self, BtfError> {
        let error = |offset, problem| Err(BtfError::btf(offset, problem));
        if u32::try_from(bytes.len()).is_err() {
            return error(0, Problem::TooBig);
        }
        let mut reader = Reader::new(bytes);
        let header_len = preamble(&mut reader, BTF)?;
        if header_len < HEADER_LEN {
            return error(4, Problem::HeaderLen(header_len));
        }
        let mut word = || reader.u32().map_err(|error| BtfError::header(BTF, error));
        let (type_off, type_len, str_off, str_len) = (word()?, word()?, word()?, word()?);

        let cut = |part, field, off: u32, len: u32| {
            let start = u64::from(header_len) + u64::from(off);
            let range = usize::try_from(start)
                .ok()
                .zip(usize::try_from(start + u64::from(len)).ok());
            let found = range.and_then(|(start, end)| bytes.get(start..end));
            found.ok_or_else(|| {
                let problem = Problem::OutOfSection {
                    part,
                    start,
                    len,
                    size: bytes.len(),
                };
                BtfError::btf(field, problem)
            })
        };
        let types = cut("type table", 8, type_off, type_len)?;
        let strings = cut("string table", 16, str_off, str_len)?;
        if type_off % 4 != 0 || type_len % 4 != 0 {
            return error(8, Problem::Unaligned("type table"));
        }
        let overlap = u64::from(type_off) + u64::from(type_len) > u64::from(str_off);
        if overlap && str_len != 0 && type_len != 0 {
            return error(16, Problem::Overlap);
        }
        let proper = match strings {
            [] => split,
            [first, .., last] => *last == 0 && (split || *first == 0),
            [only] => *only == 0,
        };
        if !proper {
            return error(header_len as usize + str_off as usize, Problem::Strings);
        }
        Ok(Self {
            types,
            types_start: header_len as usize + type_off as usize,
            strings,
        })
    }
}

/// Offsets of strings that are too long to be names: for each, from its first byte to the
/// last offset whose remainder is still too long.
fn long_strings(strings: &str, first: u32) -> Vec<Range<u32>> {
    let bytes = strings.as_bytes();
    let own = |offset: usize| {
        u32::try_from(offset)
            .unwrap_or(u32::MAX)
            .saturating_add(first)
    };
    let mut found = Vec::new();
    let mut start = 0;
    // Advances by the longest name, then goes back to the last NUL before that.
    while let Some(reach) = bytes.get(start..=start + MAX_NAME) {
        if let Some(last) = reach.iter().rposition(|byte| *byte == 0) {
            start += last + 1;
            continue;
        }
        let rest = bytes.get(start..).unwrap_or_default();
        let len = rest
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(rest.len());
        found.push(own(start)..own(start + len - MAX_NAME));
        start += len + 1;
    }
    found
}

/// The strings as UTF-8 text of the same length: a byte that is not UTF-8 (a source line in
/// Latin-1) becomes `?`, so that offsets stay valid.
fn readable(strings: &[u8]) -> Box<str> {
    if let Ok(text) = str::from_utf8(strings) {
        return text.into();
    }
    let mut text = String::with_capacity(strings.len());
    for chunk in strings.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text.into_boxed_str()
}
