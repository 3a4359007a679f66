//! Converts ELF bytes to an [`Image`]. Only this file uses goblin, and only its record
//! types: its eager `Elf::parse` indexes every string of a file, and its errors have
//! neither section nor offset.

use std::borrow::Cow;

use goblin::container::{Container, Ctx, Endian};
use goblin::elf::header::{self, Header};
use goblin::elf::reloc::RelocSection;
use goblin::elf::section_header::{self as sh, SectionHeader};
use goblin::elf::sym::{self, Symtab};
use goblin::elf::{Elf, Sym};

use super::error::{ErrorLocation, ObjectError, Problem};
use super::image::{
    Binding, DefinedIn, Image, Relocation, Relocations, Section, SectionKind, Symbol, SymbolKind,
};

/// 64-bit little-endian: the only supported layout.
const CTX: Ctx = Ctx {
    container: Container::Big,
    le: Endian::Little,
};

/// Longest name, in bytes. Mangled Rust names have some hundred; the limit prevents
/// rescanning a hostile string table for each symbol.
const MAX_NAME: usize = 4096;

/// `EM_BPF`; LLVM before 3.9 wrote 0.
const MACHINES: [u16; 2] = [header::EM_BPF, header::EM_NONE];

/// Bytes of an `Elf64_Ehdr`, an `Elf64_Shdr`, an `Elf64_Sym` and an `Elf64_Rel`.
const HEADER_SIZE: usize = 64;
const SECTION_SIZE: u64 = 64;
const SYMBOL_SIZE: u64 = 24;
const REL_SIZE: u64 = 16;

type Result<T> = std::result::Result<T, ObjectError>;

/// Reads an ELF file.
///
/// # Errors
/// Anything that is not a consistent little-endian 64-bit relocatable BPF object, with
/// section and offset.
pub(super) fn read(bytes: &[u8]) -> Result<Image<'_>> {
    let header = read_header(bytes)?;
    check_bpf(&header)?;
    let file = File::new(bytes, &header)?;
    let sections = file.sections()?;
    let symbols = file.symbols(&sections)?;
    let relocations = file.relocations(&sections, symbols.len())?;
    Ok(Image {
        sections,
        symbols,
        relocations,
        file_size: bytes.len(),
    })
}

/// Whether bytes begin as an ELF file.
pub(super) fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(header::ELFMAG)
}

/// The BTF of an ELF file of any machine, such as a kernel.
///
/// # Errors
/// Anything that is not a little-endian 64-bit ELF file with sections.
pub(super) fn btf(bytes: &[u8]) -> Result<Option<&[u8]>> {
    let file = File::new(bytes, &read_header(bytes)?)?;
    for (index, header) in file.headers.iter().enumerate() {
        if file.name(index, header)? == ".BTF" {
            return file.contents(header, ".BTF").map(Some);
        }
    }
    Ok(None)
}

fn at(offset: u64, problem: Problem) -> ObjectError {
    ObjectError::new(ErrorLocation::File { offset }, problem)
}

fn not_bpf(offset: u64, text: impl Into<String>) -> ObjectError {
    at(offset, Problem::NotBpf(text.into()))
}

fn malformed(offset: u64, text: impl Into<String>) -> ObjectError {
    at(offset, Problem::Malformed(text.into()))
}

/// Checks the ELF header.
fn read_header(bytes: &[u8]) -> Result<Header> {
    if !is_elf(bytes) {
        let begins = match bytes {
            [] => "it is empty".to_owned(),
            _ => {
                let hex: Vec<String> = bytes.iter().take(4).map(|b| format!("{b:02x}")).collect();
                format!("it begins with {}", hex.join(" "))
            }
        };
        return Err(not_bpf(
            0,
            format!("not an ELF file ({begins}); compile one with clang -target bpf -g -O2 -c"),
        ));
    }
    if bytes.len() < HEADER_SIZE {
        let text = format!(
            "truncated: an ELF header takes 64 bytes, the file has {}",
            bytes.len()
        );
        return Err(malformed(bytes.len() as u64, text));
    }
    match bytes.get(header::EI_CLASS) {
        Some(&header::ELFCLASS64) => {}
        Some(&header::ELFCLASS32) => {
            return Err(not_bpf(4, "a 32-bit ELF file; BPF objects are 64-bit"));
        }
        class => {
            return Err(malformed(
                4,
                format!("unknown ELF class {}", class.unwrap_or(&0)),
            ));
        }
    }
    match bytes.get(header::EI_DATA) {
        Some(&header::ELFDATA2LSB) => {}
        Some(&header::ELFDATA2MSB) => {
            return Err(not_bpf(
                5,
                "a big-endian object; compile it with -target bpfel",
            ));
        }
        data => {
            let text = format!("unknown byte order {}", data.unwrap_or(&0));
            return Err(malformed(5, text));
        }
    }
    Elf::parse_header(bytes).map_err(|error| malformed(0, error.to_string()))
}

/// Checks that a file is a relocatable BPF object.
fn check_bpf(header: &Header) -> Result<()> {
    if header.e_type != header::ET_REL {
        let kind = header::et_to_str(header.e_type);
        return Err(not_bpf(
            0x10,
            format!("ELF type {kind}, not a relocatable object: already linked"),
        ));
    }
    if !MACHINES.contains(&header.e_machine) {
        let text = format!(
            "an object for machine {} ({}), not for BPF ({}): compile it with -target bpf",
            header.e_machine,
            header::machine_to_str(header.e_machine),
            header::EM_BPF,
        );
        return Err(not_bpf(0x12, text));
    }
    Ok(())
}

/// The file, its section headers, and the table of their names.
struct File<'a> {
    bytes: &'a [u8],
    headers: Vec<SectionHeader>,
    /// Offset of the section headers.
    table: u64,
    names: &'a [u8],
}

impl<'a> File<'a> {
    fn new(bytes: &'a [u8], header: &Header) -> Result<Self> {
        let table = header.e_shoff;
        let room = (bytes.len() as u64).saturating_sub(table);
        if table == 0 || room < SECTION_SIZE {
            let text = format!(
                "truncated: section headers at {table:#x}, the file has {:#x} bytes",
                bytes.len()
            );
            return Err(malformed(0x28, text));
        }
        if u64::from(header.e_shentsize) != SECTION_SIZE {
            let text = format!("section headers of {} bytes, not 64", header.e_shentsize);
            return Err(malformed(0x3a, text));
        }
        let start = usize::try_from(table).unwrap_or(usize::MAX);
        let parse = |count| {
            SectionHeader::parse_from(bytes, start, count, CTX)
                .map_err(|error| malformed(table, error.to_string()))
        };
        // A count that needs more than 16 bits is in the first header.
        let mut count = u64::from(header.e_shnum);
        if count == 0 {
            count = parse(1)?.first().map_or(0, |first| first.sh_size);
        }
        if count > room / SECTION_SIZE {
            let text = format!(
                "truncated: {count} section headers at {table:#x}, room for {}",
                room / SECTION_SIZE
            );
            return Err(malformed(0x3c, text));
        }
        if count == 0 {
            return Err(malformed(0x3c, "no sections"));
        }
        let headers = parse(usize::try_from(count).unwrap_or(usize::MAX))?;

        let mut names_index = u32::from(header.e_shstrndx);
        if names_index == sh::SHN_XINDEX {
            names_index = headers.first().map_or(0, |first| first.sh_link);
        }
        let mut file = Self {
            bytes,
            headers,
            table,
            names: &[],
        };
        let names = file.header(names_index as usize).ok_or_else(|| {
            malformed(
                0x3e,
                format!("section #{names_index} should hold the section names; there is none"),
            )
        })?;
        file.names = file.contents(names, &format!("#{names_index}"))?;
        Ok(file)
    }

    fn header(&self, index: usize) -> Option<&SectionHeader> {
        self.headers.get(index)
    }

    /// The bytes of a section, which must be inside the file.
    fn contents(&self, header: &SectionHeader, name: &str) -> Result<&'a [u8]> {
        if matches!(header.sh_type, sh::SHT_NOBITS | sh::SHT_NULL) {
            return Ok(&[]);
        }
        let range = usize::try_from(header.sh_offset)
            .ok()
            .zip(usize::try_from(header.sh_size).ok());
        range
            .and_then(|(start, size)| self.bytes.get(start..start.checked_add(size)?))
            .ok_or_else(|| {
                let text = format!(
                    "truncated: its {:#x} bytes at file offset {:#x} end past the file's {:#x}",
                    header.sh_size,
                    header.sh_offset,
                    self.bytes.len()
                );
                ObjectError::section(name, 0, Problem::Malformed(text))
            })
    }

    /// Offset of a section's header.
    fn place(&self, index: usize) -> u64 {
        self.table.saturating_add(index as u64 * SECTION_SIZE)
    }

    fn name(&self, index: usize, header: &SectionHeader) -> Result<&'a str> {
        if header.sh_type == sh::SHT_NULL {
            return Ok("");
        }
        string(self.names, header.sh_name as u64).map_err(|why| {
            malformed(
                self.place(index),
                format!("name of section #{index}: {why}"),
            )
        })
    }

    fn sections(&self) -> Result<Vec<Section<'a>>> {
        let mut sections = Vec::with_capacity(self.headers.len());
        for (index, header) in self.headers.iter().enumerate() {
            let name = self.name(index, header)?;
            let ignored = is_debug(name);
            let flags = header.sh_flags;
            if flags & u64::from(sh::SHF_COMPRESSED) != 0 && !ignored {
                return Err(ObjectError::section(
                    name,
                    0,
                    Problem::Malformed("compressed; only debug sections may be".to_owned()),
                ));
            }
            if header.sh_addralign > 1 && !header.sh_addralign.is_power_of_two() {
                let text = format!("alignment {} is not a power of two", header.sh_addralign);
                return Err(ObjectError::section(name, 0, Problem::Malformed(text)));
            }
            sections.push(Section {
                name: Cow::Borrowed(name),
                kind: match header.sh_type {
                    sh::SHT_PROGBITS => SectionKind::Bits,
                    sh::SHT_NOBITS => SectionKind::Zeroed,
                    sh::SHT_NULL | sh::SHT_STRTAB | sh::SHT_SYMTAB | sh::SHT_REL => {
                        SectionKind::Table
                    }
                    other => SectionKind::Other(other),
                },
                executable: flags & u64::from(sh::SHF_EXECINSTR) != 0,
                writable: flags & u64::from(sh::SHF_WRITE) != 0,
                align: header.sh_addralign.max(1),
                size: header.sh_size,
                data: Cow::Borrowed(self.contents(header, name)?),
            });
        }
        Ok(sections)
    }

    fn symbols(&self, sections: &[Section<'a>]) -> Result<Vec<Symbol<'a>>> {
        let mut tables = self
            .headers
            .iter()
            .zip(sections)
            .filter(|(header, _)| header.sh_type == sh::SHT_SYMTAB);
        let Some((header, table)) = tables.next() else {
            return Err(ObjectError::new(
                ErrorLocation::Object,
                Problem::Malformed(
                    "no symbol table; strip it with llvm-strip -g, which keeps the symbols"
                        .to_owned(),
                ),
            ));
        };
        let fault =
            |offset, text| ObjectError::section(&table.name, offset, Problem::Malformed(text));
        if let Some((_, second)) = tables.next() {
            let text = "a second symbol table; an object has one".to_owned();
            return Err(ObjectError::section(
                &second.name,
                0,
                Problem::Malformed(text),
            ));
        }
        if header.sh_entsize != SYMBOL_SIZE || header.sh_size % SYMBOL_SIZE != 0 {
            let text = format!(
                "{} bytes in entries of {}; a symbol takes 24",
                header.sh_size, header.sh_entsize
            );
            return Err(fault(0, text));
        }
        let names = sections
            .get(header.sh_link as usize)
            .zip(self.header(header.sh_link as usize))
            .filter(|(_, names)| names.sh_type == sh::SHT_STRTAB)
            .map(|(names, _)| match names.data {
                Cow::Borrowed(data) => data,
                // What was read from a file is borrowed from it.
                Cow::Owned(_) => &[],
            })
            .ok_or_else(|| {
                fault(
                    0,
                    format!(
                        "section #{} is not a string table of symbol names",
                        header.sh_link
                    ),
                )
            })?;

        let count = records_in(&table.data, SYMBOL_SIZE);
        let records = Symtab::parse(&table.data, 0, count, CTX);
        let mut symbols = Vec::with_capacity(count);
        if count == 0 {
            return Ok(symbols);
        }
        let records = records.map_err(|error| fault(0, error.to_string()))?;
        for (index, record) in records.iter().enumerate() {
            let place = index as u64 * SYMBOL_SIZE;
            let name = string(names, record.st_name as u64)
                .map_err(|why| fault(place, format!("name of symbol #{index}: {why}")))?;
            let defined_in = defined_in(&record);
            if let DefinedIn::Section(number) = defined_in
                && number >= sections.len()
            {
                let text = format!(
                    "symbol #{index} '{name}' is in section #{number}; there are {}",
                    sections.len()
                );
                return Err(fault(place, text));
            }
            symbols.push(Symbol {
                name: Cow::Borrowed(name),
                defined_in,
                value: record.st_value,
                size: record.st_size,
                kind: match record.st_type() {
                    sym::STT_NOTYPE => SymbolKind::Untyped,
                    sym::STT_OBJECT => SymbolKind::Object,
                    sym::STT_FUNC => SymbolKind::Function,
                    sym::STT_SECTION => SymbolKind::Section,
                    _ => SymbolKind::Other,
                },
                binding: match record.st_bind() {
                    sym::STB_GLOBAL => Binding::Global,
                    sym::STB_WEAK => Binding::Weak,
                    _ => Binding::Local,
                },
                hidden: matches!(record.st_visibility(), sym::STV_HIDDEN | sym::STV_INTERNAL),
            });
        }
        Ok(symbols)
    }

    fn relocations(&self, sections: &[Section<'a>], symbols: usize) -> Result<Vec<Relocations>> {
        let mut tables: Vec<Relocations> = Vec::new();
        for (header, section) in self.headers.iter().zip(sections) {
            if !matches!(header.sh_type, sh::SHT_REL | sh::SHT_RELA) {
                continue;
            }
            let fault = |offset, text| {
                ObjectError::section(&section.name, offset, Problem::Malformed(text))
            };
            let target = header.sh_info as usize;
            let Some(changed) = sections.get(target) else {
                let text = format!("relocates section #{target}; there are {}", sections.len());
                return Err(fault(0, text));
            };
            // BTF's own relocations only duplicate symbol information.
            if is_debug(&changed.name) || matches!(&*changed.name, ".BTF" | ".BTF.ext") {
                continue;
            }
            if header.sh_type == sh::SHT_RELA {
                let text = "relocations with addends (RELA); BPF uses REL".to_owned();
                return Err(fault(0, text));
            }
            if header.sh_entsize != REL_SIZE || header.sh_size % REL_SIZE != 0 {
                let text = format!(
                    "{} bytes in entries of {}; a relocation takes 16",
                    header.sh_size, header.sh_entsize
                );
                return Err(fault(0, text));
            }
            let records = RelocSection::parse(&section.data, 0, section.data.len(), false, CTX)
                .map_err(|error| fault(0, error.to_string()))?;
            let mut entries = Vec::with_capacity(records.len());
            for (index, record) in records.iter().enumerate() {
                let place = index as u64 * REL_SIZE;
                if record.r_sym >= symbols {
                    let text = format!(
                        "relocation #{index} names symbol #{}; there are {symbols}",
                        record.r_sym
                    );
                    return Err(fault(place, text));
                }
                if record.r_offset >= changed.size {
                    let text = format!(
                        "relocation #{index} changes offset {:#x} of section '{}', which has \
                         {:#x} bytes",
                        record.r_offset, changed.name, changed.size
                    );
                    return Err(fault(place, text));
                }
                entries.push(Relocation {
                    offset: record.r_offset,
                    symbol: record.r_sym,
                    kind: record.r_type,
                });
            }
            match tables.iter_mut().find(|table| table.target == target) {
                Some(table) => table.entries.append(&mut entries),
                None => tables.push(Relocations { target, entries }),
            }
        }
        for table in &mut tables {
            table.entries.sort_by_key(|entry| entry.offset);
        }
        Ok(tables)
    }
}

/// Number of records of this size.
fn records_in(data: &[u8], size: u64) -> usize {
    // At most the number of bytes.
    usize::try_from(data.len() as u64 / size).unwrap_or(0)
}

/// DWARF and its relocations, which are ignored.
fn is_debug(name: &str) -> bool {
    name.strip_prefix(".rel")
        .unwrap_or(name)
        .starts_with(".debug_")
}

fn defined_in(record: &Sym) -> DefinedIn {
    match u32::try_from(record.st_shndx).unwrap_or(u32::MAX) {
        sh::SHN_UNDEF => DefinedIn::Undefined,
        reserved if reserved >= sh::SHN_LORESERVE => DefinedIn::Special(reserved),
        index => DefinedIn::Section(index as usize),
    }
}

/// The string at an offset of a string table; offset 0 is the empty string even
/// of an empty table.
fn string(table: &[u8], offset: u64) -> std::result::Result<&str, String> {
    if offset == 0 {
        return Ok("");
    }
    let rest = usize::try_from(offset)
        .ok()
        .and_then(|start| table.get(start..))
        .ok_or_else(|| {
            format!(
                "at {offset:#x} of a string table of {:#x} bytes",
                table.len()
            )
        })?;
    let head = rest.get(..MAX_NAME).unwrap_or(rest);
    let end = head.iter().position(|&byte| byte == 0).ok_or_else(|| {
        if head.len() < rest.len() {
            format!("longer than {MAX_NAME} bytes")
        } else {
            "ends with its string table, without a zero".to_owned()
        }
    })?;
    let name = head.get(..end).unwrap_or_default();
    std::str::from_utf8(name)
        .map_err(|_| format!("not UTF-8: {:?}", name.escape_ascii().to_string()))
}
