//! The contents of an object file independent of ELF: sections, symbols and relocations,
//! with names resolved and bounds checked. It is read from one file (`elf`) or merged from
//! several (`link`); later stages don't distinguish the two.

use std::borrow::Cow;

/// A relocatable BPF object.
#[derive(Debug, Clone, Default)]
pub(super) struct Image<'a> {
    /// By section number; entry 0 is ELF's empty section.
    pub sections: Vec<Section<'a>>,
    /// By symbol number.
    pub symbols: Vec<Symbol<'a>>,
    /// Relocations by the section that they change.
    pub relocations: Vec<Relocations>,
    /// Total bytes of the source files.
    pub file_size: usize,
}

/// A section with its contents.
#[derive(Debug, Clone)]
pub(super) struct Section<'a> {
    /// `xdp`, `.text`, `.maps`.
    pub name: Cow<'a, str>,
    /// Kind of contents.
    pub kind: SectionKind,
    /// `SHF_EXECINSTR`: it holds instructions.
    pub executable: bool,
    /// `SHF_WRITE`; used only by the linker.
    pub writable: bool,
    /// Alignment in bytes, a power of two.
    pub align: u64,
    /// Bytes in memory; differs from `data` only for [`SectionKind::Zeroed`].
    pub size: u64,
    /// The bytes in the file.
    pub data: Cow<'a, [u8]>,
}

/// Kind of a section's contents, as far as BPF distinguishes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SectionKind {
    /// `SHT_PROGBITS`: code or data.
    Bits,
    /// `SHT_NOBITS`: zeros, without bytes in the file.
    Zeroed,
    /// The symbol table, string tables, relocations, `SHT_NULL`: already read.
    Table,
    /// Any other type, by its number.
    Other(u32),
}

/// An entry of the symbol table.
#[derive(Debug, Clone)]
pub(super) struct Symbol<'a> {
    /// Empty for section symbols.
    pub name: Cow<'a, str>,
    /// The section that defines it.
    pub defined_in: DefinedIn,
    /// Offset in its section.
    pub value: u64,
    /// Bytes.
    pub size: u64,
    /// Kind of symbol.
    pub kind: SymbolKind,
    /// Visibility.
    pub binding: Binding,
    /// `STV_HIDDEN` or `STV_INTERNAL`.
    pub hidden: bool,
}

/// The section in which a symbol is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DefinedIn {
    /// Not in this file (`SHN_UNDEF`).
    Undefined,
    /// In the section of this number.
    Section(usize),
    /// `SHN_ABS`, `SHN_COMMON` or another reserved number.
    Special(u32),
}

/// Kind of a symbol (`STT_*`).
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

/// Visibility of a symbol (`STB_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    /// This file only.
    Local,
    /// All files; two definitions are an error.
    Global,
    /// All files; overridden by a global definition.
    Weak,
}

/// The relocations of one section, in ascending order of offset.
#[derive(Debug, Clone)]
pub(super) struct Relocations {
    /// The section that they change.
    pub target: usize,
    /// The entries.
    pub entries: Vec<Relocation>,
}

/// A reference to a symbol's address.
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

    /// A symbol's name in messages: its own, or its section's.
    pub fn symbol_name(&self, symbol: &Symbol<'_>) -> String {
        match symbol.defined_in {
            DefinedIn::Section(index) if symbol.name.is_empty() => {
                self.section_name(index).to_owned()
            }
            _ => symbol.name.clone().into_owned(),
        }
    }
}

impl Symbol<'_> {
    /// Whether another file (or the kernel) must define it.
    pub fn is_extern(&self) -> bool {
        self.defined_in == DefinedIn::Undefined
            && self.binding != Binding::Local
            && self.kind == SymbolKind::Untyped
            && !self.name.is_empty()
    }
}
