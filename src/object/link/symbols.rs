//! Symbols of several files: each name seen from outside is one thing.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::super::error::{ObjectError, Place, Problem};
use super::super::image::{Binding, Home, Symbol, SymbolKind};
use super::super::maps_btf;
use super::compare;
use super::input::{Input, Result};
use super::sections::Joined;
use crate::btf::{Btf, Linkage};
use crate::util::TypeId;

/// The resolved symbols.
pub(super) struct Resolved {
    pub all: Vec<Symbol<'static>>,
    /// The new number of each symbol of each file.
    numbers: Vec<Vec<Option<usize>>>,
    /// The symbols that every file sees, by name.
    pub globals: FxHashMap<String, Global>,
    /// The type of each global variable and function, by file.
    pub types: Vec<FxHashMap<String, TypeId>>,
}

/// A symbol that every file sees.
#[derive(Debug, Clone, Copy)]
pub(super) struct Global {
    /// Its new number.
    number: usize,
    /// The file whose definition counts, or whose declaration came first.
    pub input: usize,
    defined: bool,
    weak: bool,
}

impl Resolved {
    /// The new number of a symbol of a file.
    pub fn of(&self, input: usize, symbol: usize) -> Option<usize> {
        *self.numbers.get(input)?.get(symbol)?
    }
}

/// Resolves the symbols of all files.
///
/// # Errors
/// Two strong definitions of a name, or two declarations of it that differ.
pub(super) fn resolve(inputs: &[Input<'_>], sections: &Joined) -> Result<Resolved> {
    let mut resolved = Resolved {
        // Number 0 is the symbol without anything.
        all: vec![Symbol {
            name: Cow::Borrowed(""),
            home: Home::Undefined,
            value: 0,
            size: 0,
            kind: SymbolKind::Untyped,
            binding: Binding::Local,
            hidden: false,
        }],
        numbers: Vec::with_capacity(inputs.len()),
        globals: FxHashMap::default(),
        types: inputs.iter().map(types).collect(),
    };
    let mut section_symbols: FxHashMap<usize, usize> = FxHashMap::default();
    for (input_number, input) in inputs.iter().enumerate() {
        let mut numbers = vec![None; input.image.symbols.len()];
        for (symbol, number) in input.image.symbols.iter().zip(&mut numbers).skip(1) {
            let Some(moved) = moved(symbol, input_number, sections) else {
                continue;
            };
            *number = match (symbol.binding, moved.home) {
                (Binding::Local, Home::Section(section)) if symbol.kind == SymbolKind::Section => {
                    let next = resolved.all.len();
                    let known = *section_symbols.entry(section).or_insert(next);
                    if known == next {
                        resolved.all.push(Symbol { value: 0, ..moved });
                    }
                    Some(known)
                }
                (Binding::Local, Home::Section(_)) => {
                    resolved.all.push(moved);
                    Some(resolved.all.len() - 1)
                }
                (Binding::Local, _) => None,
                _ => Some(resolved.global(inputs, input_number, moved)?),
            };
        }
        resolved.numbers.push(numbers);
    }
    Ok(resolved)
}

/// A symbol at its new place; none if its section isn't linked.
fn moved(symbol: &Symbol<'_>, input: usize, sections: &Joined) -> Option<Symbol<'static>> {
    let (home, offset) = match symbol.home {
        Home::Section(section) => {
            let place = sections.place(input, section)?;
            (Home::Section(place.section), place.offset)
        }
        other => (other, 0),
    };
    Some(Symbol {
        name: Cow::Owned(symbol.name.clone().into_owned()),
        home,
        value: symbol.value.checked_add(offset)?,
        ..*symbol
    })
}

/// The variables and functions of a file that other files see, by name.
fn types(input: &Input<'_>) -> FxHashMap<String, TypeId> {
    let types = input.btf.iter().flat_map(Btf::own_types);
    types
        .filter(|ty| {
            ty.linkage()
                .is_some_and(|linkage| linkage != Linkage::Static)
        })
        .map(|ty| (ty.name().to_owned(), ty.id()))
        .collect()
}

impl Resolved {
    /// Adds a symbol that every file sees, or finds the one that it is; returns its
    /// number.
    fn global(
        &mut self,
        inputs: &[Input<'_>],
        input: usize,
        symbol: Symbol<'static>,
    ) -> Result<usize> {
        let defined = symbol.home != Home::Undefined;
        let weak = symbol.binding == Binding::Weak;
        let Some(known) = self.globals.get(&*symbol.name).copied() else {
            let number = self.all.len();
            let global = Global {
                number,
                input,
                defined,
                weak,
            };
            self.globals
                .insert(symbol.name.clone().into_owned(), global);
            self.all.push(symbol);
            return Ok(number);
        };
        let fault = |text: String| match inputs.get(input) {
            Some(input) => input.fault(text),
            None => ObjectError::new(Place::Object, Problem::Link(text)),
        };
        let other = inputs.get(known.input).map_or("?", |input| input.name);
        if defined && known.defined && !weak && !known.weak {
            return Err(fault(format!(
                "'{}' is defined here and in {other}; one of them must be __weak or static",
                symbol.name
            )));
        }
        self.compare(inputs, &symbol.name, known.input, input)
            .map_err(|text| {
                fault(format!(
                    "'{}' differs from its declaration in {other}: {text}",
                    symbol.name
                ))
            })?;
        let Some(first) = self.all.get_mut(known.number) else {
            return Ok(known.number);
        };
        // The stricter declaration counts for both.
        first.hidden |= symbol.hidden;
        let weak = known.weak && weak;
        first.binding = if weak { Binding::Weak } else { Binding::Global };
        let takes_over =
            defined && (!known.defined || (known.weak && symbol.binding == Binding::Global));
        if takes_over {
            *first = Symbol {
                hidden: first.hidden,
                binding: first.binding,
                ..symbol.clone()
            };
        }
        let global = Global {
            number: known.number,
            input: if takes_over { input } else { known.input },
            defined: defined || known.defined,
            // A strong extern doesn't make a weak definition strong.
            weak: if takes_over || !defined && !known.defined {
                weak
            } else {
                known.weak
            },
        };
        self.globals.insert(symbol.name.into_owned(), global);
        Ok(known.number)
    }

    /// Whether two files mean the same by a name.
    fn compare(
        &self,
        inputs: &[Input<'_>],
        name: &str,
        one: usize,
        other: usize,
    ) -> std::result::Result<(), String> {
        let side = |input: usize| {
            let btf = inputs.get(input)?.btf.as_ref()?;
            let id = *self.types.get(input)?.get(name)?;
            Some((btf, id))
        };
        let (Some((a, one)), Some((b, other))) = (side(one), side(other)) else {
            // Without types there is nothing to compare.
            return Ok(());
        };
        match (maps_btf::definition(a, one), maps_btf::definition(b, other)) {
            (Some(Ok(a)), Some(Ok(b))) => compare::maps(&a, &b),
            _ => compare::types(a, one, b, other),
        }
    }
}
