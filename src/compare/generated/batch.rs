//! Puts generated programs together as one object: all maps in one list, one BTF, unique names.
//!
//! Work that is done once for an object (creating the maps that recording adds, reading them,
//! loading types) is then done once for all programs.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::r#gen::{Choices, Made, Options, make_all};
use crate::isa::{Insn, Pseudo, RawInsn, decode_program, encode};
use crate::program::{Initial, MapDef, Program};
use crate::spec::ProgType;

/// What a program is generated from. The same recipe always gives the same program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Recipe {
    /// The seed of the bytes that determine it.
    pub seed: u64,
    /// Number of these bytes. Fewer give a shorter version of the same program.
    pub size: usize,
}

impl Recipe {
    /// The default size.
    pub const SIZE: usize = 700;
}

/// The tracepoint of the programs: its record is seven numbers.
pub(super) const TRACEPOINT: &str = "raw_syscalls/sys_enter";

/// Programs that share an object.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    /// The programs that are attached, by seed.
    pub members: Vec<Member>,
    /// The maps of all.
    pub maps: Arc<[MapDef]>,
}

/// A program of a batch.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub recipe: Recipe,
    pub program: Arc<Program>,
    /// Programs that it may jump to.
    pub others: Vec<Arc<Program>>,
}

impl Batch {
    /// The programs of these recipes.
    pub(super) fn of(recipes: &[Recipe], options: Options) -> Self {
        let mut rows: Vec<Choices> = recipes
            .iter()
            .map(|recipe| Choices::seeded(recipe.seed, recipe.size))
            .collect();
        let mut maps = Vec::new();
        let mut members = Vec::with_capacity(recipes.len());
        for (recipe, made) in recipes.iter().zip(make_all(&mut rows, options)) {
            members.push(Member::add(*recipe, made, &mut maps));
        }
        let mut batch = Self {
            members,
            maps: maps.into(),
        };
        for program in batch.members.iter_mut().flat_map(Member::programs_mut) {
            program.maps = batch.maps.clone();
        }
        batch
    }
}

impl Member {
    /// Adds a program, and the maps that it uses to `maps`.
    fn add(recipe: Recipe, made: Made, maps: &mut Vec<MapDef>) -> Self {
        let seed = recipe.seed;
        let mut member = Self {
            recipe,
            program: made.program,
            others: made.others,
        };
        let own = member.program.maps.clone();
        let mut moved = Moved {
            own: &own,
            taken: BTreeMap::new(),
            first: maps.len(),
        };
        for program in member.programs_mut() {
            if program.prog_type == ProgType::Tracepoint {
                program.section = format!("tp/{TRACEPOINT}");
                program.attach_target = Some(TRACEPOINT.to_owned());
            }
            program.name = named(&program.name, seed);
            program.insns = moved.insns(&program.insns);
        }
        maps.extend(moved.definitions(seed));
        member
    }

    /// All its programs, itself first.
    fn programs_mut(&mut self) -> impl Iterator<Item = &mut Program> {
        let all = [&mut self.program].into_iter().chain(&mut self.others);
        all.map(Arc::make_mut)
    }
}

/// A name that is unique in the batch.
fn named(name: &str, seed: u64) -> String {
    format!("{name}_{seed:x}")
}

/// Whether a program or map with this name belongs to a recipe.
pub(super) fn belongs_to(name: &str, recipe: Recipe) -> bool {
    name.rsplit_once('_')
        .is_some_and(|(_, seed)| u64::from_str_radix(seed, 16) == Ok(recipe.seed))
}

/// Renumbers the maps that a program uses to those of the batch.
struct Moved<'a> {
    own: &'a [MapDef],
    /// New numbers by the numbers in the program.
    taken: BTreeMap<u32, u32>,
    /// How many maps the batch has already.
    first: usize,
}

impl Moved<'_> {
    /// The number of a map in the batch.
    fn number(&mut self, map: u32) -> u32 {
        if let Some(number) = self.taken.get(&map) {
            return *number;
        }
        let number = u32::try_from(self.first + self.taken.len()).unwrap_or(u32::MAX);
        self.taken.insert(map, number);
        let inner = self.own.get(map as usize).map(|def| &*def.initial);
        for entry in inner.unwrap_or_default() {
            if let Initial::Map { map, .. } = entry {
                self.number(map.0);
            }
        }
        number
    }

    /// The instructions with the new numbers.
    fn insns(&mut self, slots: &[RawInsn]) -> Vec<RawInsn> {
        // Generated programs can be decoded; the verifiers reject any other.
        let Ok(mut insns) = decode_program(slots) else {
            return slots.to_vec();
        };
        for insn in &mut insns {
            if let Insn::LoadPseudo { source, .. } = insn
                && let Pseudo::MapIdx { index } | Pseudo::MapIdxValue { index, .. } = source
            {
                *index = self.number(*index);
            }
        }
        encode(&insns)
    }

    /// The definitions in the order of their new numbers, with the new numbers and names of the
    /// maps and programs that they hold.
    fn definitions(self, seed: u64) -> Vec<MapDef> {
        let mut order: Vec<(u32, u32)> = self.taken.iter().map(|(old, new)| (*new, *old)).collect();
        order.sort_unstable();
        let defs = order.into_iter().filter_map(|(_, old)| {
            let mut def = self.own.get(old as usize)?.clone();
            def.name = named(&def.name, seed);
            for entry in &mut def.initial {
                match entry {
                    Initial::Map { map, .. } => {
                        map.0 = self.taken.get(&map.0).copied().unwrap_or(map.0);
                    }
                    Initial::Program { name, .. } => *name = named(name, seed),
                    Initial::Bytes { .. } => {}
                }
            }
            Some(def)
        });
        defs.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::MapType;
    use crate::verifier::{self, verify};

    fn recipes(seeds: std::ops::Range<u64>) -> Vec<Recipe> {
        let size = Recipe::SIZE;
        seeds.map(|seed| Recipe { seed, size }).collect()
    }

    #[test]
    fn a_batch_is_accepted_like_its_programs() {
        let options = Options::recorded(ProgType::Tracepoint);
        let verdict =
            |program: &Arc<Program>| verify(program, &verifier::Options::default()).verdict;
        let batch = Batch::of(&recipes(0..12), options);
        let mut used = 0;
        for (seed, member) in (0..).zip(&batch.members) {
            let alone = Batch::of(&recipes(seed..seed + 1), options);
            let [only] = &alone.members[..] else {
                panic!("one program");
            };
            let (one, two) = (verdict(&only.program), verdict(&member.program));
            assert_eq!(
                one.is_accepted(),
                two.is_accepted(),
                "seed {seed}: {}",
                two.message
            );
            assert_eq!(only.program.insns.len(), member.program.insns.len());
            used += alone.maps.len();
        }
        assert_eq!(batch.maps.len(), used);
        assert!(used < 12 * 12, "maps that nobody uses are left out");
    }

    #[test]
    fn maps_keep_what_they_hold() {
        let batch = Batch::of(&recipes(0..40), Options::recorded(ProgType::Tracepoint));
        let outer = batch
            .maps
            .iter()
            .filter(|def| def.map_type == MapType::ArrayOfMaps);
        let mut count = 0;
        for def in outer {
            let [Initial::Map { map, .. }] = def.initial[..] else {
                panic!("one map in {}", def.name);
            };
            let seed = def.name.split_once('_').unwrap().1;
            assert_eq!(batch.maps[map.index()].name, format!("inner_{seed}"));
            count += 1;
        }
        assert!(count > 2);
    }
}
