//! Resolves the symbols of several files: each global name becomes one symbol.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::super::error::{ErrorLocation, ObjectError, Problem};
use super::super::image::{Binding, DefinedIn, Symbol, SymbolKind};
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
    /// The global symbols by name.
    pub globals: FxHashMap<String, Global>,
    /// The type of each global variable and function, by file.
    pub types: Vec<FxHashMap<String, TypeId>>,
}

/// A global symbol.
#[derive(Debug, Clone, Copy)]
pub(super) struct Global {
    /// Its new number.
    number: usize,
    /// The file of its definition, or of its first declaration.
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
/// Two strong definitions of a name, or two different declarations of it.
pub(super) fn resolve(inputs: &[Input<'_>], sections: &Joined) -> Result<Resolved> {
    let mut resolved = Resolved {
        // Number 0 is the empty symbol.
        all: vec![Symbol {
            name: Cow::Borrowed(""),
            defined_in: DefinedIn::Undefined,
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
            *number = match (symbol.binding, moved.defined_in) {
                (Binding::Local, DefinedIn::Section(section))
                    if symbol.kind == SymbolKind::Section =>
                {
                    let next = resolved.all.len();
                    let known = *section_symbols.entry(section).or_insert(next);
                    if known == next {
                        resolved.all.push(Symbol { value: 0, ..moved });
                    }
                    Some(known)
                }
                (Binding::Local, DefinedIn::Section(_)) => {
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

/// A symbol at its new offset; `None` if its section isn't linked.
fn moved(symbol: &Symbol<'_>, input: usize, sections: &Joined) -> Option<Symbol<'static>> {
    let (defined_in, offset) = match symbol.defined_in {
        DefinedIn::Section(section) => {
            let place = sections.place(input, section)?;
            (DefinedIn::Section(place.section), place.offset)
        }
        other => (other, 0),
    };
    Some(Symbol {
        name: Cow::Owned(symbol.name.clone().into_owned()),
        defined_in,
        value: symbol.value.checked_add(offset)?,
        ..*symbol
    })
}

/// The global variables and functions of a file, by name.
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
    /// Adds a global symbol or finds the existing one; returns its number.
    fn global(
        &mut self,
        inputs: &[Input<'_>],
        input: usize,
        symbol: Symbol<'static>,
    ) -> Result<usize> {
        let defined = symbol.defined_in != DefinedIn::Undefined;
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
            None => ObjectError::new(ErrorLocation::Object, Problem::Link(text)),
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
        // The stricter visibility applies to both.
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

    /// Checks that two files declare a name alike.
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
