//! The types of extensions and of the functions that they replace.

use super::super::random::Random;
use crate::btf::{Btf, Builder, Encoding, Linkage, Member, Param};
use crate::isa::RawInsn;
use crate::util::TypeId;

/// The most arguments of a function.
const MOST: usize = 5;

/// The arguments and the result of a function: the context, then memory, then numbers.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub context: bool,
    /// A pointer to memory, and whether it is never null.
    pub memory: Option<bool>,
    /// Numbers, and whether they have 64 bits.
    pub numbers: Vec<bool>,
    /// Whether the result has 64 bits.
    pub is_wide: bool,
    /// Whether it changes the packet.
    pub changes: bool,
}

impl Shape {
    /// That of a main function.
    pub fn main() -> Self {
        Self {
            context: true,
            memory: None,
            numbers: Vec::new(),
            is_wide: false,
            changes: false,
        }
    }

    /// That of the function at the end of a made one.
    pub fn own() -> Self {
        Self {
            context: false,
            memory: None,
            numbers: vec![true, true],
            is_wide: true,
            changes: false,
        }
    }

    /// A random one; `can_change` says whether there are helpers that change packets.
    pub fn random(random: &mut Random, can_change: bool) -> Self {
        let context = random.chance(75);
        let memory = random.chance(25).then(|| random.chance(50));
        let others = usize::from(context) + usize::from(memory.is_some());
        let least = usize::from(others == 0);
        let count = match random.below(3) {
            0 => least,
            _ => least + random.index(MOST + 1 - others - least),
        };
        Self {
            context,
            memory,
            numbers: (0..count).map(|_| random.chance(50)).collect(),
            is_wide: random.chance(30),
            changes: context && can_change && random.chance(25),
        }
    }

    /// Instructions that read behind a pair, if there is one that is never null.
    pub fn reads_behind(&self) -> Vec<RawInsn> {
        let arg = 1 + u8::from(self.context);
        let reads = RawInsn::new(0x61, 0, arg, 12, 0);
        self.memory
            .filter(|is_there| *is_there)
            .map(|_| reads)
            .into_iter()
            .collect()
    }

    /// The number of arguments.
    pub fn count(&self) -> usize {
        usize::from(self.context) + usize::from(self.memory.is_some()) + self.numbers.len()
    }
}

/// The types of a program.
pub(super) struct Types {
    builder: Builder,
    int: TypeId,
    long: TypeId,
    context: TypeId,
    pair: TypeId,
    larger: TypeId,
    /// Whether functions return nothing.
    pub returns_nothing: bool,
    /// Whether the memory of arguments is larger.
    pub is_larger: bool,
}

impl Types {
    /// The types of a program with this context.
    pub fn new(context: &str) -> Self {
        let mut b = Builder::new();
        let int = b.int("int", 4, Encoding::Signed);
        let long = b.int("unsigned long", 8, Encoding::Unsigned);
        let member = |name, at: u32| Member {
            name,
            ty: int,
            bit_offset: at * 32,
            bitfield: None,
        };
        let context = b.structure(context, 4, &[member("first", 0)]);
        let pair = b.structure("pair", 8, &[member("a", 0), member("b", 1)]);
        let members = [member("b", 2), member("a", 3)];
        let larger = b.structure("pair", 16, &members);
        Self {
            int,
            long,
            context: b.ptr(context),
            pair: b.ptr(pair),
            larger: b.ptr(larger),
            builder: b,
            returns_nothing: false,
            is_larger: false,
        }
    }

    /// A function of this shape.
    pub fn function(&mut self, name: &str, shape: &Shape, linkage: Linkage) -> TypeId {
        const NAMES: [&str; MOST] = ["a", "b", "c", "d", "e"];
        let number = |wide| if wide { self.long } else { self.int };
        let memory = if self.is_larger {
            self.larger
        } else {
            self.pair
        };
        let context = shape.context.then_some(self.context);
        let types = [context, shape.memory.map(|_| memory)];
        let numbers = shape.numbers.iter().map(|wide| number(*wide));
        let types = types.into_iter().flatten().chain(numbers);
        let params: Vec<Param<'_>> = NAMES
            .into_iter()
            .zip(types)
            .map(|(name, ty)| Param { name, ty })
            .collect();
        let result = match self.returns_nothing {
            true => TypeId(0),
            false => number(shape.is_wide),
        };
        let prototype = self.builder.prototype(result, &params);
        let function = self.builder.function(name, prototype, linkage);
        if shape.memory == Some(true) {
            let at = u32::from(shape.context);
            self.builder
                .decl_tag("arg:nonnull", function, Some(at), false);
        }
        function
    }

    /// All of them.
    pub fn btf(&self) -> Option<Btf> {
        self.builder.build().ok()
    }
}
