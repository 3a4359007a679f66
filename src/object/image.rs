//! The plain view of an object file that everything after the ELF reader works
//! on: sections, symbols and relocations, with names resolved and bounds
//! checked. One file is read into it (`elf`), several are merged into one
//! (`link`); nothing behind it knows which of the two it was.

use std::borrow::Cow;

/// A relocatable BPF object.
#[derive(Debug, Clone, Default)]
pub(super) struct Image<'a> {
    /// By section number; entry 0 is the empty section that ELF begins with.
    pub sections: Vec<Section<'a>>,
    /// By symbol number.
    pub symbols: Vec<Symbol<'a>>,
    /// Relocations by the section that they change.
    pub relocations: Vec<Relocations>,
    /// Bytes of the files that it came from.
    pub file_size: usize,
}

/// A section with its contents.
#[derive(Debug, Clone)]
pub(super) struct Section<'a> {
    /// `xdp`, `.text`, `.maps`.
    pub name: Cow<'a, str>,
    /// What its bytes are.
    pub kind: SectionKind,
    /// `SHF_EXECINSTR`: it holds instructions.
    pub executable: bool,
    /// `SHF_WRITE`; only the linker asks.
    pub writable: bool,
    /// Alignment in bytes, a power of two.
    pub align: u64,
    /// Bytes in memory; differs from `data` only for [`SectionKind::Zeroed`].
    pub size: u64,
    /// The bytes in the file.
    pub data: Cow<'a, [u8]>,
}

/// What a section's bytes are, as far as BPF needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SectionKind {
    /// `SHT_PROGBITS`: code or data.
    Bits,
    /// `SHT_NOBITS`: zeros that take no room in the file.
    Zeroed,
    /// The symbol table, string tables, relocations, `SHT_NULL`: read already.
    Table,
    /// Any other type, by its number.
    Other(u32),
}

/// An entry of the symbol table.
#[derive(Debug, Clone)]
pub(super) struct Symbol<'a> {
    /// Empty for section symbols.
    pub name: Cow<'a, str>,
    /// Where it is defined.
    pub home: Home,
    /// Offset in its section.
    pub value: u64,
    /// Bytes.
    pub size: u64,
    /// What it names.
    pub kind: SymbolKind,
    /// Who sees it.
    pub binding: Binding,
    /// `STV_HIDDEN` or `STV_INTERNAL`.
    pub hidden: bool,
}

/// Where a symbol is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// Nowhere in this file (`SHN_UNDEF`).
    Undefined,
    /// In the section of this number.
    Section(usize),
    /// `SHN_ABS`, `SHN_COMMON` or another reserved number.
    Special(u32),
}

/// What a symbol names (`STT_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SymbolKind {
    /// `STT_NOTYPE`: an extern, or a label.
    Untyped,
    /// `STT_OBJECT`: a variable.
    Object,
    /// `STT_FUNC`.
    Function,
    /// `STT_SECTION`: the section itself.
    Section,
    /// `STT_FILE` and the rest.
    Other,
}

/// Who sees a symbol (`STB_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    /// This file.
    Local,
    /// Every file; two definitions are an error.
    Global,
    /// Every file; gives way to a global definition.
    Weak,
}

/// The relocations of one section, in rising order of their offsets.
#[derive(Debug, Clone)]
pub(super) struct Relocations {
    /// The section that they change.
    pub target: usize,
    /// The entries.
    pub entries: Vec<Relocation>,
}

/// One place that is filled in once a symbol's address is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Relocation {
    /// Offset in the section that it changes.
    pub offset: u64,
    /// Number of the symbol.
    pub symbol: usize,
    /// `R_BPF_*`.
    pub kind: u32,
}

impl<'a> Image<'a> {
    /// The section of this number.
    pub fn section(&self, index: usize) -> Option<&Section<'a>> {
        self.sections.get(index)
    }

    /// The first section of this name.
    pub fn find(&self, name: &str) -> Option<(usize, &Section<'a>)> {
        self.sections
            .iter()
            .enumerate()
            .find(|(_, section)| section.name == name)
    }

    /// The name of the section of this number, for messages.
    pub fn section_name(&self, index: usize) -> &str {
        self.section(index).map_or("?", |section| &section.name)
    }

    /// What to call a symbol in a message: its name, or its section's.
    pub fn symbol_name(&self, symbol: &Symbol<'_>) -> String {
        match symbol.home {
            Home::Section(index) if symbol.name.is_empty() => self.section_name(index).to_owned(),
            _ => symbol.name.clone().into_owned(),
        }
    }
}

impl Symbol<'_> {
    /// Whether another file (or the kernel) must define it.
    pub fn is_extern(&self) -> bool {
        self.home == Home::Undefined
            && self.binding != Binding::Local
            && self.kind == SymbolKind::Untyped
            && !self.name.is_empty()
    }
}
