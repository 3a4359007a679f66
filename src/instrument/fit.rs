//! Fits the sites of a schema to a program: checks that each entry can be written and read at its
//! instruction, and finds the registers that its code may use.
//!
//! The schema decides which inputs and outputs are logged, and for loads, whether the value comes
//! from the program's own state. Both forms are made by this version, so a schema must have what
//! this version takes from the log:
//!
//! - the inputs from the world;
//! - the results of calls, by which a replay knows whether they changed a map;
//! - an entry of each instruction that has outputs.

use std::collections::BTreeMap;

use super::calls::{self, Callee, Extent, Role, Signature};
use super::error::{Reason, SchemaError, Unrecordable};
use super::find::{At, Finder, MOST_FIXED, accesses, result};
use super::handover::MOST_SITES;
use super::maps::scratch;
use super::schema::{LoggedField, LoggedLocation, LoggedSite, SchemaSite};
use super::site::{AccessedState, Field, Flow, Length, Moment, Site, What};
use crate::isa::{Code, Insn, Reg};
use crate::util::Pc;

/// Visits the instructions one after another, as [`Finder`] does.
pub(super) struct Fitter<'s> {
    /// The sites that were not visited yet, by instruction, with their numbers.
    open: BTreeMap<Pc, Vec<(u16, &'s LoggedSite)>>,
    fitted: BTreeMap<u16, Site>,
    /// The first instruction for which the schema lacks something.
    lacks: Option<Pc>,
}

/// Why a site does not fit.
enum Problem {
    /// It contradicts the program.
    Misfit(&'static str),
    /// This version can't replay it.
    Unknown(&'static str),
    /// The instruction can't be recorded.
    Reason(Reason),
}

use Problem::{Misfit, Unknown};

impl From<Reason> for Problem {
    fn from(reason: Reason) -> Self {
        Self::Reason(reason)
    }
}

/// An instruction that may have sites.
struct Place<'a> {
    finder: &'a Finder<'a>,
    at: &'a At<'a>,
    /// What it calls, if it is a call.
    signature: Option<Signature>,
    /// The state that it accesses; none if both are possible.
    accesses: Option<AccessedState>,
}

impl<'s> Fitter<'s> {
    /// The sites of a schema, none of them visited.
    ///
    /// # Errors
    /// There are too many, or this version does not know one.
    pub(super) fn new(schema: &'s [SchemaSite]) -> Result<Self, SchemaError> {
        let mut open = BTreeMap::<_, Vec<_>>::new();
        for (index, site) in schema.iter().enumerate() {
            let number = u16::try_from(index).ok();
            let number = number.filter(|_| index < MOST_SITES);
            let unknown = |why| SchemaError::Unknown {
                site: number.unwrap_or(u16::MAX),
                why,
            };
            let Some(number) = number else {
                return Err(unknown(Reason::Sites(schema.len()).to_string()));
            };
            let site = site.known().map_err(unknown)?;
            open.entry(Pc(site.pc)).or_default().push((number, site));
        }
        Ok(Self {
            open,
            fitted: BTreeMap::new(),
            lacks: None,
        })
    }

    /// Visits the next instruction, at which this version has the sites `own`.
    ///
    /// # Errors
    /// A site does not fit.
    pub(super) fn see(
        &mut self,
        finder: &Finder<'_>,
        at: &At<'_>,
        own: &[Site],
    ) -> Result<(), SchemaError> {
        let here = self.open.remove(&at.pc).unwrap_or_default();
        if here.is_empty() && own.is_empty() {
            return Ok(());
        }
        if lacks(&here, at, own) {
            self.lacks.get_or_insert(at.pc);
        }
        let place = Place::new(finder, at, own);
        let mut inputs = 0;
        for (number, logged) in here {
            let fields = place.fields(logged, inputs == 0);
            let fields = fields.map_err(|problem| match problem {
                Misfit(problem) => SchemaError::Misfit {
                    site: number,
                    pc: at.pc,
                    problem,
                },
                Unknown(why) => SchemaError::Unknown {
                    site: number,
                    why: format!("instruction {}: {why}", at.pc),
                },
                Problem::Reason(reason) => SchemaError::Unrecordable(Unrecordable {
                    program: finder.program.name.clone(),
                    pc: Some(at.pc),
                    reason,
                }),
            })?;
            inputs += usize::from(logged.moment == Moment::After);
            let site = finder.site(at, number, logged.moment, logged.accesses, fields);
            self.fitted.insert(number, site);
        }
        Ok(())
    }

    /// The sites, by number.
    ///
    /// # Errors
    /// An instruction was not visited, or the schema lacks a site or field.
    pub(super) fn finish(self, code: &Code) -> Result<Vec<Site>, SchemaError> {
        let open = self.open.first_key_value();
        if let Some((&pc, &(site, _))) = open.and_then(|(pc, sites)| Some((pc, sites.first()?))) {
            return Err(match code.insn(pc) {
                Some(_) => SchemaError::Unknown {
                    site,
                    why: format!("instruction {pc} is never reached"),
                },
                None => SchemaError::Misfit {
                    site,
                    pc,
                    problem: "the program has no such instruction",
                },
            });
        }
        match self.lacks {
            Some(pc) => Err(SchemaError::Lacks(pc)),
            None => Ok(self.fitted.into_values().collect()),
        }
    }
}

/// Whether the sites of an instruction lack what a replay takes from them.
fn lacks(here: &[(u16, &LoggedSite)], at: &At<'_>, own: &[Site]) -> bool {
    let is_logged = |what: What| {
        let mut fields = here.iter().flat_map(|(_, site)| &site.fields);
        fields.any(|field| field.what == what)
    };
    let is_needed = |site: &Site, field: &Field| {
        let is_world = site.accesses == AccessedState::World;
        field.flow == Flow::Input && (is_world || field.what == What::Result)
    };
    let mut own_fields = own
        .iter()
        .flat_map(|site| site.fields.iter().filter(|field| is_needed(site, field)));
    let has_outputs = own.iter().any(|site| site.moment == Moment::Before);
    let mut accessed = here.iter().map(|(_, site)| site.accesses);
    // A replay does not execute such a load.
    let is_replaced = accessed.any(|accessed| accessed == AccessedState::World)
        && Field::of(at.insn, What::Loaded).is_some();
    (has_outputs && here.is_empty())
        || (is_replaced && !is_logged(What::Loaded))
        || own_fields.any(|field| !is_logged(field.what))
}

impl<'a> Place<'a> {
    fn new(finder: &'a Finder<'a>, at: &'a At<'a>, own: &[Site]) -> Self {
        let signature = match at.insn {
            Insn::Call(target) => match calls::callee(finder.program, target) {
                Ok(Callee::Outside(signature)) => Some(signature),
                _ => None,
            },
            _ => None,
        };
        let own = own.first().map_or(AccessedState::Own, |site| site.accesses);
        let accesses = match &signature {
            Some(signature) => Some(accesses(signature)),
            None if Field::of(at.insn, What::Loaded).is_some() => None,
            None => Some(own),
        };
        Self {
            finder,
            at,
            signature,
            accesses,
        }
    }

    /// The fields of a site; `first` if no earlier one is after the instruction.
    fn fields(&self, site: &LoggedSite, first: bool) -> Result<Vec<Field>, Problem> {
        if self.signature.is_none() && self.at.insn.memory().is_none() {
            return Err(Misfit(
                "the instruction neither accesses memory nor calls a helper or kfunc",
            ));
        }
        if self.accesses.is_some_and(|state| state != site.accesses) {
            return Err(Unknown(
                "this version of bpflab replays the instruction in another way",
            ));
        }
        let mut fields = Vec::new();
        let mut size = 0u32;
        for (nth, logged) in site.fields.iter().enumerate() {
            let is_counted = matches!(logged.length, Length::Counted { .. });
            if is_counted && nth + 1 < site.fields.len() {
                return Err(Unknown("a field of variable length is not the last one"));
            }
            // Filling its memory clobbers the registers that earlier entries load.
            let is_copied = is_counted && logged.flow == Flow::Input;
            if is_copied && site.accesses == AccessedState::World && !first {
                return Err(Unknown(
                    "a field of variable length is not in the first entry",
                ));
            }
            size = size.saturating_add(logged.length.most());
            if size > scratch::LOG {
                return Err(Misfit("the entry is longer than a log"));
            }
            if logged.flow != logged.what.flow() || site.moment != logged.flow.moment() {
                return Err(Misfit("a field has another direction than its meaning"));
            }
            let field = match logged.what {
                What::Given(_) | What::Filled(_) => self.memory(logged),
                _ => self.register(logged),
            };
            fields.push(field?);
        }
        Ok(fields)
    }

    /// A field in a register.
    fn register(&self, logged: &LoggedField) -> Result<Field, Problem> {
        let what = logged.what;
        let field = Field::of(self.at.insn, what);
        let field = field.filter(|field| LoggedField::from(field) == *logged);
        let field = field.ok_or(Misfit("the instruction has no such field"))?;
        if field.flow == Flow::Output && self.at.output(what).is_none() {
            return Err(Unknown("the register may hold a pointer, or nothing"));
        }
        let result = self.signature.as_ref().and_then(result);
        if matches!(what, What::Result | What::Found) && result != Some(what) {
            return Err(Unknown(
                "this version of bpflab replays another kind of result",
            ));
        }
        Ok(field)
    }

    /// A field in memory.
    fn memory(&self, logged: &LoggedField) -> Result<Field, Problem> {
        let (Some(signature), LoggedLocation::Memory(pointer)) = (&self.signature, logged.location)
        else {
            return Err(Misfit(
                "the field is not in the memory of a call's argument",
            ));
        };
        let field = self.finder.memory(self.at, signature, logged.what)?;
        let field = field.ok_or(Unknown(
            "this version of bpflab knows no memory of that argument",
        ))?;
        if LoggedField::from(&field).location != logged.location {
            return Err(Misfit("the pointer is not in the register of the argument"));
        }
        let next = Reg::from_number(pointer.number() + 1);
        let is_sized = has_size(signature, pointer);
        match (logged.length, field.length) {
            (one, other) if one == other => {}
            // Another version may know more or less about the size.
            (Length::Counted { count, .. }, _) if is_sized && next == Some(count) => {}
            (Length::Fixed(bytes), Length::Counted { .. }) if bytes <= MOST_FIXED => {}
            _ => return Err(Misfit("the length is not that of the argument's memory")),
        }
        Ok(Field {
            length: logged.length,
            ..field
        })
    }
}

/// Whether the argument after this one has the size of its memory.
fn has_size(signature: &Signature, pointer: Reg) -> bool {
    let mut roles = Reg::ARGUMENTS.into_iter().zip(&signature.roles);
    roles.any(|(reg, role)| {
        let is_sized = matches!(role, Role::Given(Extent::Next) | Role::Filled(Extent::Next));
        reg == pointer && is_sized
    })
}
