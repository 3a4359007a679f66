//! Decides which programs' firings may continue in which others by tail calls, and whether all
//! of them can be recorded.
//!
//! A prog array is *followed* if every program that makes tail calls through it and every
//! program in it can be recorded: then it holds their following forms. Otherwise it holds the
//! original programs, into which a log can't continue, so programs that make tail calls through
//! it can't be recorded either, which may leave other arrays unfollowed. A slot that names none
//! of the programs is empty: nobody loads its program.

use super::context::Context;
use super::error::{Reason, Unrecordable};
use super::plan::Plan;
use crate::isa::{Insn, Pseudo, decode_all};
use crate::program::{Initial, MapDef, Program};
use crate::spec::MapType;
use crate::util::MapId;

/// A program that is to be recorded together with others that share its maps.
#[derive(Debug, Clone)]
pub struct Candidate<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its plan, or why it can't be recorded.
    pub plan: Result<&'a Plan, String>,
    /// Size in bytes of its event's context, if known:
    /// [`RecordOptions::context_len`](super::RecordOptions::context_len).
    pub context_len: u32,
}

/// What a program needs to know of those that its firings may continue in, or come from. All
/// zeros for a program without tail calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Relay {
    /// Bytes of context in the firings of all of them.
    pub context_len: u32,
    /// Bytes of the context that the targets of its tail calls read.
    pub reads: u32,
    /// Whether it is a target of tail calls.
    pub follows: bool,
}

/// The tail calls among programs that share their maps.
#[derive(Debug, Clone, Default)]
pub struct Relays {
    relays: Vec<Result<Relay, String>>,
    followed: Vec<MapId>,
}

/// A prog array used by tail calls.
struct Array<'a> {
    map: MapId,
    def: &'a MapDef,
    /// The programs that make tail calls through it, and those that it holds, by index.
    users: Vec<usize>,
    targets: Vec<usize>,
}

impl Relays {
    /// Decides which of the candidates can be recorded.
    #[must_use]
    pub fn new(candidates: &[Candidate<'_>]) -> Self {
        let plans = candidates.iter().map(|candidate| candidate.plan.clone());
        let mut all = All {
            arrays: arrays(candidates),
            plans: plans.collect(),
            candidates,
        };
        while let Some((index, why)) = all.find_obstacle() {
            if let Some(plan) = all.plans.get_mut(index) {
                *plan = Err(why);
            }
        }
        all.solved()
    }

    /// The relay of a candidate, by its index.
    ///
    /// # Errors
    /// Why it can't be recorded.
    pub fn get(&self, index: usize) -> Result<Relay, String> {
        let relay = self.relays.get(index).cloned();
        relay.unwrap_or_else(|| Err("no such program".to_owned()))
    }

    /// Whether a prog array is to hold following forms.
    #[must_use]
    pub fn is_followed(&self, map: MapId) -> bool {
        self.followed.contains(&map)
    }

    /// The maps, with entries only in those prog arrays that are followed, or only in the
    /// others.
    #[must_use]
    pub fn filled(&self, maps: &[MapDef], followed: bool) -> Vec<MapDef> {
        let maps = (0..).map(MapId).zip(maps.iter().cloned());
        let kept = maps.map(|(map, mut def)| {
            if def.map_type == MapType::ProgArray && self.is_followed(map) != followed {
                def.initial.clear();
            }
            def
        });
        kept.collect()
    }
}

/// The state of the search for programs that can't be recorded.
struct All<'a> {
    candidates: &'a [Candidate<'a>],
    plans: Vec<Result<&'a Plan, String>>,
    arrays: Vec<Array<'a>>,
}

impl All<'_> {
    /// The next program that can't be recorded although its plan exists, with the reason.
    fn find_obstacle(&self) -> Option<(usize, String)> {
        let mut refused = self.arrays.iter().flat_map(|array| {
            let users = array.users.iter().filter(|user| self.is_recorded(**user));
            users.filter_map(|user| {
                let reason = self.why_not(array)?;
                Some((*user, self.explain(*user, array.map, reason)))
            })
        });
        let unfollowed = refused.next();
        unfollowed.or_else(|| {
            let mut indices = 0..self.candidates.len();
            indices.find_map(|index| {
                let reason = self.reads_beyond(index)?;
                let plan = self.plans.get(index)?.as_ref().ok()?;
                let map = plan.jumps().first()?.map;
                Some((index, self.explain(index, map, reason)))
            })
        })
    }

    fn is_recorded(&self, index: usize) -> bool {
        self.plans.get(index).is_some_and(Result::is_ok)
    }

    /// Why an array can't be followed.
    fn why_not(&self, array: &Array<'_>) -> Option<Reason> {
        let refused = |indices: &[usize]| {
            let mut indices = indices.iter();
            indices.find_map(|index| {
                let why = self.plans.get(*index)?.as_ref().err()?.clone();
                Some((self.candidates.get(*index)?.program.name.clone(), why))
            })
        };
        if let Some((program, why)) = refused(&array.targets) {
            return Some(Reason::LeadsTo { program, why });
        }
        let (program, why) = refused(&array.users)?;
        let map = array.def.name.clone();
        Some(Reason::Shares { map, program, why })
    }

    /// A target that reads more of the context than this program's event has.
    fn reads_beyond(&self, index: usize) -> Option<Reason> {
        let candidate = self.candidates.get(index).filter(|it| it.context_len > 0)?;
        let len = self.own_len(index, 0)?;
        let reached = self.reached(index);
        let mut reached = reached.into_iter().filter(|other| *other != index);
        reached.find_map(|other| {
            let read = self.plans.get(other)?.as_ref().ok()?.context;
            let program = &self.candidates.get(other)?.program.name;
            (read > len.max(candidate.context_len)).then(|| Reason::ReadsBeyond {
                program: program.clone(),
                read,
                len,
            })
        })
    }

    /// Bytes of context in a program's own firings.
    fn own_len(&self, index: usize, reads: u32) -> Option<u32> {
        let candidate = self.candidates.get(index)?;
        let plan = self.plans.get(index)?.as_ref().ok()?;
        let read = plan.context.max(reads);
        Some(Context::new(candidate.program, read, candidate.context_len).len)
    }

    /// All programs that a program's tail calls may reach.
    fn reached(&self, index: usize) -> Vec<usize> {
        let mut known = Vec::new();
        let mut open = vec![index];
        while let Some(index) = open.pop() {
            let arrays = self
                .arrays
                .iter()
                .filter(|array| array.users.contains(&index));
            for target in arrays.flat_map(|array| &array.targets) {
                if !known.contains(target) {
                    known.push(*target);
                    open.push(*target);
                }
            }
        }
        known
    }

    /// The result, once no more programs are refused.
    fn solved(self) -> Relays {
        let followed = self.arrays.iter().filter(|array| {
            let mut all = array.users.iter().chain(&array.targets);
            !array.users.is_empty() && all.all(|index| self.is_recorded(*index))
        });
        let followed: Vec<&Array<'_>> = followed.collect();
        let indices = 0..self.plans.len();
        let reads = |index: usize| {
            let reached = self.reached(index).into_iter();
            let read =
                reached.filter_map(|other| Some(self.plans.get(other)?.as_ref().ok()?.context));
            read.max().unwrap_or(0)
        };
        let mut relays: Vec<Result<Relay, String>> = indices
            .clone()
            .map(|index| match self.plans.get(index) {
                Some(Err(why)) => Err(why.clone()),
                _ => Ok(Relay {
                    context_len: 0,
                    reads: reads(index),
                    follows: followed.iter().any(|it| it.targets.contains(&index)),
                }),
            })
            .collect();
        // Programs connected by arrays share one context length; spread the largest one.
        for _ in &followed {
            for array in &followed {
                let members = || array.users.iter().chain(&array.targets);
                let lens = members().filter_map(|index| {
                    let relay = relays.get(*index)?.as_ref().ok()?;
                    let own = self.own_len(*index, relay.reads)?;
                    Some(own.max(relay.context_len))
                });
                let most = lens.max().unwrap_or(0);
                for index in members() {
                    if let Some(Ok(relay)) = relays.get_mut(*index) {
                        relay.context_len = most;
                    }
                }
            }
        }
        Relays {
            relays,
            followed: followed.iter().map(|array| array.map).collect(),
        }
    }

    /// The reason, with the program and the tail call that it is about.
    fn explain(&self, index: usize, map: MapId, reason: Reason) -> String {
        let plan = self.plans.get(index).and_then(|plan| plan.as_ref().ok());
        let jump = plan.and_then(|plan| plan.jumps().iter().find(|jump| jump.map == map));
        let candidate = self.candidates.get(index);
        let name = candidate.map(|candidate| candidate.program.name.clone());
        let unrecordable = Unrecordable {
            program: name.unwrap_or_default(),
            pc: jump.map(|jump| jump.pc),
            reason,
        };
        unrecordable.to_string()
    }
}

/// The prog arrays of the programs.
fn arrays<'a>(candidates: &[Candidate<'a>]) -> Vec<Array<'a>> {
    let maps = candidates.first().map(|first| &*first.program.maps);
    let defs = (0..).map(MapId).zip(maps.unwrap_or_default());
    let arrays = defs.filter(|(_, def)| def.map_type == MapType::ProgArray);
    let arrays = arrays.map(|(map, def)| {
        let holds = |program: &Program| {
            let mut entries = def.initial.iter();
            entries.any(
                |entry| matches!(entry, Initial::Program { name, .. } if *name == program.name),
            )
        };
        let uses = |candidate: &Candidate<'_>| match candidate.plan {
            Ok(plan) => plan.jumps().iter().any(|jump| jump.map == map),
            Err(_) => names(candidate.program, map),
        };
        let indices = |is: &dyn Fn(&Candidate<'_>) -> bool| {
            let indices = candidates.iter().enumerate();
            indices
                .filter(|(_, it)| is(it))
                .map(|(index, _)| index)
                .collect()
        };
        Array {
            map,
            def,
            users: indices(&uses),
            targets: indices(&|candidate| holds(candidate.program)),
        }
    });
    arrays.collect()
}

/// Whether a program's instructions refer to a map.
fn names(program: &Program, map: MapId) -> bool {
    decode_all(&program.insns).any(|(_, insn)| {
        matches!(insn, Ok(Insn::LoadPseudo { source: Pseudo::MapIdx { index }, .. }) if index == map.0)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::isa::assemble_with;
    use crate::spec::ProgType;

    /// Two prog arrays, the second of which holds `last`, and a hash.
    fn maps(first: &[&str]) -> Arc<[MapDef]> {
        let array = |name: &str, holds: &[&str]| {
            let mut def = MapDef::new(name, MapType::ProgArray, 4, 4, 4);
            let entries = (0..).zip(holds).map(|(index, name)| Initial::Program {
                index,
                name: (*name).to_owned(),
            });
            def.initial = entries.collect();
            def
        };
        let hash = MapDef::new("hash", MapType::Hash, 8, 8, 4);
        [array("one", first), array("two", &["last"]), hash].into()
    }

    /// A tail call through this map after a read of `reads` bytes of the context.
    fn jumps(map: u32, reads: u32) -> String {
        format!(
            "r6 = *(u64 *)(r1 + {})\n r2 = map[idx:{map}]\n r3 = 0\n call bpf_tail_call\n \
             r0 = 0\n exit",
            reads - 8
        )
    }

    const PLAIN: &str = "r0 = 0\n exit";
    /// A program that can't be recorded.
    const ITERATES: &str = "r1 = map[idx:2]\n r2 = f ll\n r3 = 0\n r4 = 0\n \
                         call bpf_for_each_map_elem\n r0 = 0\n exit\n f: r0 = 0\n exit";

    /// The relays of programs with these names and texts.
    fn relays(first: &[&str], programs: &[(&str, &str)], context_len: u32) -> Relays {
        let maps = maps(first);
        let made = programs.iter().map(|(name, text)| {
            let mut program = Program::new(*name, ProgType::Tracepoint, Vec::new());
            program.maps = maps.clone();
            program.insns = assemble_with(text, &program).unwrap().slots;
            program
        });
        let programs: Vec<Program> = made.collect();
        let plans: Vec<_> = programs.iter().map(Plan::new).collect();
        let candidates = programs
            .iter()
            .zip(&plans)
            .map(|(program, plan)| Candidate {
                program,
                plan: plan.as_ref().map_err(ToString::to_string),
                context_len,
            });
        Relays::new(&candidates.collect::<Vec<_>>())
    }

    #[test]
    fn programs_that_jump_have_one_length_of_context() {
        let (jumps_16, jumps_40) = (jumps(0, 16), jumps(1, 40));
        let programs = [
            ("a", &*jumps_16),
            ("b", &jumps_40),
            ("last", PLAIN),
            ("x", PLAIN),
        ];
        let relays = relays(&["b", "missing"], &programs, 0);
        let expected = |context_len, reads, follows| {
            Ok(Relay {
                context_len,
                reads,
                follows,
            })
        };
        assert_eq!(relays.get(0), expected(40, 40, false));
        assert_eq!(relays.get(1), expected(40, 0, true));
        assert_eq!(relays.get(2), expected(40, 0, true));
        assert_eq!(relays.get(3), expected(0, 0, false));
        assert!(relays.is_followed(MapId(0)) && relays.is_followed(MapId(1)));
        let filled = |followed| {
            let maps = relays.filled(&maps(&["b"]), followed);
            maps.iter().map(|def| def.initial.len()).collect::<Vec<_>>()
        };
        assert_eq!(
            (filled(true), filled(false)),
            (vec![1, 1, 0], vec![0, 0, 0])
        );
    }

    /// Programs that may reach an unrecordable program can't be recorded, either.
    #[test]
    fn what_cannot_be_recorded_is_named_by_those_who_lead_to_it() {
        let (one, two) = (jumps(0, 16), jumps(1, 16));
        let programs = [
            ("a", &*one),
            ("b", &two),
            ("last", ITERATES),
            ("plain", PLAIN),
        ];
        let relays = relays(&["b", "plain"], &programs, 64);
        let why = |index| relays.get(index).unwrap_err();
        assert!(why(2).contains("the order of a hash table's entries"));
        assert!(
            why(1).starts_with("b: instruction 4: its tail calls may lead to 'last', which can't"),
            "{}",
            why(1)
        );
        assert!(why(0).contains("its tail calls may lead to 'b', which can't"));
        assert!(why(0).contains("hash table"), "has the cause: {}", why(0));
        assert_eq!(relays.get(3), Ok(Relay::default()));
        assert!(!relays.is_followed(MapId(0)) && !relays.is_followed(MapId(1)));
    }

    #[test]
    fn an_array_that_others_use_is_left_to_them() {
        let one = jumps(0, 16);
        let iterates = format!("r6 = map[idx:0]\n {ITERATES}");
        let programs = [("a", &*one), ("plain", PLAIN), ("iterates", &iterates)];
        let relays = relays(&["plain"], &programs, 64);
        let why = relays.get(0).unwrap_err();
        assert!(
            why.contains("its tail calls use one, as does 'iterates'"),
            "{why}"
        );
        assert_eq!(relays.get(1), Ok(Relay::default()));
    }

    #[test]
    fn an_event_has_to_have_what_is_read_of_it() {
        let (one, two) = (jumps(0, 16), jumps(1, 40));
        let programs = [("a", &*one), ("b", &two), ("last", PLAIN)];
        let read = |len| relays(&["b"], &programs, len).get(0);
        assert_eq!(read(40).unwrap().context_len, 40);
        let why = read(32).unwrap_err();
        assert!(
            why.contains("'b', which reads 40 bytes of the context; the event has 32"),
            "{why}"
        );
    }
}
