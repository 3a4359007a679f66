//! Random inputs: events for programs, and map contents.

use std::collections::BTreeMap;

use super::candidate::{Candidate, context_size};
use super::pointers::pointers;
use super::random::Random;
use crate::btf::{Kind, Type};
use crate::harness::Vm;
use crate::program::{MapOrigin, Program};
use crate::spec::{MapType, ProgType, UpdateFlags, struct_ops};
use crate::vm::events::Event;
use crate::vm::maps::Map;
use crate::vm::world::kernel::KernelObject;

/// A source of inputs; the same seed gives the same inputs.
#[derive(Debug)]
pub struct Inputs {
    random: Random,
}

impl Inputs {
    /// Inputs of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
        }
    }

    /// 64 random bits.
    pub const fn bits(&mut self) -> u64 {
        self.random.bits()
    }

    fn below(&mut self, end: u64) -> usize {
        usize::try_from(self.random.below(end)).unwrap_or_default()
    }

    /// Bytes of which all, few or none are zero, so that length limits are reached and
    /// exceeded.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let style = self.below(5);
        if style == 0 {
            return vec![0; len];
        }
        if style == 4 {
            // Numbers near limits.
            let words = (0..len.div_ceil(8)).flat_map(|_| self.random.wide().to_le_bytes());
            return words.take(len).collect();
        }
        (0..len)
            .map(|_| {
                let byte = self.bits().to_le_bytes()[0];
                match style {
                    1 => byte & 3,
                    2 if byte < 200 => 0,
                    _ => byte,
                }
            })
            .collect()
    }

    /// A random event for a candidate: of the size of its own input, if it was generated.
    pub fn event_of(&mut self, vm: &mut Vm, candidate: &Candidate) -> Event {
        let program = candidate.entry();
        if candidate.strategy.is_some() && program.prog_type == ProgType::Syscall {
            let len = candidate.input.len();
            return Event::bytes(self.bytes(len));
        }
        self.event(vm, program)
    }

    /// A random event for the program.
    pub fn event(&mut self, vm: &mut Vm, program: &Program) -> Event {
        let len = [14, 64, 200, 1500][self.below(4)];
        let len = len + self.below(40);
        let bytes = self.bytes(len);
        if Event::packet(bytes.clone()).accepts(program.prog_type) {
            return Event::packet(bytes);
        }
        if program.prog_type == ProgType::Syscall {
            return Event::bytes(self.bytes(context_size(program.prog_type)));
        }
        if let Some(event) = self.typed(vm, program) {
            return event;
        }
        match vm.event_for(program, None) {
            Ok(event) if event.accepts(program.prog_type) => event,
            _ => Event::bytes(self.bytes(context_size(program.prog_type))),
        }
    }

    /// The arguments of a function or tracepoint whose prototype is known: an object for each
    /// pointer to a structure, since the kernel passes no null there.
    fn typed(&mut self, vm: &mut Vm, program: &Program) -> Option<Event> {
        let btf = program.kernel_btf.as_ref()?;
        if program.prog_type == ProgType::Netfilter {
            let context = ["nf_hook_state", "sk_buff"].map(|name| {
                let found = btf.find(name, Kind::Struct)?;
                object(vm, found, true, &mut Objects::default())
            });
            let context = context.map(Option::unwrap_or_default);
            let bytes = context.map(u64::to_le_bytes).concat();
            return Some(Event::input(ProgType::Netfilter, bytes));
        }
        let hook = btf.get(program.attach_btf_id?)?;
        if program.prog_type == ProgType::StructOps {
            return self.operation(vm, program, hook);
        }
        let prototype = btf.resolve(hook.target_id()?).ok()?;
        // A tracepoint is a pointer to its prototype, whose first parameter is not passed.
        let (prototype, skipped) = match prototype.kind() {
            Kind::FuncProto => (prototype, 0),
            Kind::Ptr => (btf.resolve(prototype.target_id()?).ok()?, 1),
            _ => return None,
        };
        let (mut context, mut objects) = (Vec::new(), Objects::default());
        for param in prototype.params().skip(skipped) {
            let ty = btf.resolve(param.ty).ok()?;
            let to = (ty.kind() == Kind::Ptr).then(|| btf.resolve(ty.target_id()?).ok());
            let to = to.flatten().filter(|to| to.kind() == Kind::Struct);
            let object = to.and_then(|to| object(vm, to, true, &mut objects));
            let argument = object.unwrap_or_else(|| self.bits());
            context.extend(argument.to_le_bytes());
        }
        context.resize(context.len() + 8, 0);
        let event = Event::bytes(context);
        event.accepts(program.prog_type).then_some(event)
    }

    /// A call of the member that a program implements, with objects for its pointers.
    fn operation(&mut self, vm: &mut Vm, program: &Program, structure: Type<'_>) -> Option<Event> {
        let (name, member) = program.attach_target.as_deref()?.split_once('.')?;
        let operations = struct_ops::find(name)?;
        let prototype = struct_ops::prototype(structure, member)?;
        let stub = struct_ops::stub(structure.btf(), name, member);
        let mut event = vm.struct_ops_call(name, member).ok()?;
        let mut objects = Objects {
            known: BTreeMap::new(),
            writable: true,
        };
        // Programs get the current task by helpers.
        let task = structure.btf().find("task_struct", Kind::Struct);
        if let (Some(task), Ok(current)) = (task, vm.world().current_task()) {
            fill(vm, current, task, true, &mut objects);
        }
        for (number, param) in prototype.params().enumerate() {
            let to = operations.pointee(structure.btf(), (member, number), param.ty);
            let may_be_null = struct_ops::is_marked(stub, number, struct_ops::NULLABLE);
            let is_null = may_be_null && self.random.chance(30);
            let argument = match to {
                Some(_) if is_null => 0,
                Some(to) => object(vm, to, true, &mut objects).unwrap_or_default(),
                // As wide as its type, and positive.
                None => {
                    let ty = structure.btf().resolve(param.ty).ok();
                    let bytes = ty.and_then(|ty| ty.size()).unwrap_or(8).clamp(1, 8);
                    self.bits() >> (65 - 8 * bytes)
                }
            };
            event = event.arg(number + 1, argument).ok()?;
        }
        Some(event)
    }

    /// Writes random contents to the maps that user space fills.
    pub fn fill_maps(&mut self, vm: &mut Vm) {
        let maps: Vec<_> = vm.machine().maps().map(|(_, map)| map.clone()).collect();
        maps.iter().for_each(|map| self.fill(&**map));
    }

    /// Does the same to those that the source declares, in the order of their names: the same for
    /// another build of the source. (Compilers order global variables.)
    pub(super) fn fill_declared_maps(&mut self, vm: &mut Vm) {
        let maps = vm.machine().maps().map(|(_, map)| map.clone());
        let mut maps: Vec<_> = maps
            .filter(|map| map.def().origin == MapOrigin::Declared)
            .collect();
        maps.sort_by(|one, other| one.def().name.cmp(&other.def().name));
        maps.iter().for_each(|map| self.fill(&**map));
    }

    fn fill(&mut self, map: &dyn Map) {
        let def = map.def();
        let filled = matches!(
            def.map_type,
            MapType::Array | MapType::Hash | MapType::LruHash | MapType::PercpuArray
        );
        // The verifier relies on the contents of frozen maps.
        if !filled || def.frozen || def.value_size > 4096 {
            return;
        }
        for key in 0..def.max_entries.min(8) {
            let mut bytes = key.to_le_bytes().to_vec();
            bytes.resize(def.key_size as usize, 0);
            let value = self.bytes(map.user_value_size());
            // A map may reject the value and stays unchanged then.
            let _ = map.write(&bytes, &value, UpdateFlags::empty());
        }
    }
}

/// The objects of a machine that were made for its programs.
#[derive(Debug, Default)]
struct Objects {
    /// Their addresses by the structure's name.
    known: BTreeMap<String, u64>,
    /// Whether programs may write to them. (The verifier says where.)
    writable: bool,
}

/// The address of an object of a structure; one of each type. Its members that point to
/// structures are not null, as in the kernel; if it is no argument and large, only those that the
/// verifier takes for not null are set.
fn object(vm: &mut Vm, ty: Type<'_>, is_argument: bool, objects: &mut Objects) -> Option<u64> {
    if let Some(known) = objects.known.get(ty.name()) {
        return Some(*known);
    }
    let made = vm.world().kernel(ty.name()).ok()?;
    Some(fill(vm, made, ty, is_argument, objects))
}

/// Sets the pointers of an object; returns its address.
fn fill(
    vm: &mut Vm,
    mut made: KernelObject,
    ty: Type<'_>,
    is_argument: bool,
    objects: &mut Objects,
) -> u64 {
    if objects.writable {
        made = made.writable();
    }
    let address = made.address();
    objects.known.insert(ty.name().to_owned(), address);
    let sets_all = is_argument || ty.members().len() < 16;
    let mut bytes = made.bytes();
    for pointer in pointers(ty, sets_all).iter() {
        let to = ty.btf().get(pointer.to);
        let to = to.and_then(|to| object(vm, to, false, objects));
        let place = bytes.get_mut(pointer.offset..pointer.offset + 8);
        if let (Some(to), Some(place)) = (to, place) {
            place.copy_from_slice(&to.to_le_bytes());
        }
    }
    // It lives, and the bytes are as many.
    let _ = made.write(&bytes);
    address
}
