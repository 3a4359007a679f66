//! Probes of functions: arguments by number and name, placed in registers by the calling
//! conventions of x86-64 and arm64.

use std::sync::Arc;

use super::attach::BranchEntry;
use super::context;
use super::error::EventError;
use super::event::{Event, EventKind};
use super::extras::{Extras, Inner};
use super::layout::Layout;
use super::record::Values;
use crate::spec::ContextKind;
use crate::spec::context::Arch;
use crate::spec::syscalls::Syscall;
use crate::vm::fields::{Field, FieldValue, Points, Shape, ValueProblem};
use crate::vm::maps::Counter;

/// Argument registers (System V ABI for x86-64, `PT_REGS_PARM*` of libbpf).
const X86_64: &[&str] = &["di", "si", "dx", "cx", "r8", "r9"];
/// Argument registers of a system call: the `syscall` instruction overwrites rcx.
const X86_64_SYSCALL: &[&str] = &["di", "si", "dx", "r10", "r8", "r9"];
/// Argument registers (AAPCS64).
const ARM64: &[&str] = &["x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"];
/// Argument registers of a system call.
const ARM64_SYSCALL: &[&str] = &["x0", "x1", "x2", "x3", "x4", "x5"];

/// The stack of the mocked task, for arguments of user functions.
const USER_STACK: u64 = 0x7ffd_1000_0000;
/// The highest argument number on the stack: no C function has more in practice.
const MAX_ARGUMENT: usize = 64;
/// Start of the kernel's text (`__START_KERNEL_map` plus the default offset).
const KERNEL_TEXT: u64 = 0xffff_ffff_8100_0000;
/// Default start of a program's text in user space (position-independent executable).
const USER_TEXT: u64 = 0x5555_5555_0000;

impl Arch {
    /// Argument registers of a function, first argument first.
    pub(super) const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::X86_64 => X86_64,
            Self::Arm64 => ARM64,
        }
    }

    /// Argument registers of a system call.
    pub(super) const fn syscall_arguments(self) -> &'static [&'static str] {
        match self {
            Self::X86_64 => X86_64_SYSCALL,
            Self::Arm64 => ARM64_SYSCALL,
        }
    }

    /// Bytes between the stack pointer and the first stack argument on function entry: the
    /// return address on x86-64.
    const fn above_stack_pointer(self) -> usize {
        match self {
            Self::X86_64 => 8,
            Self::Arm64 => 0,
        }
    }

    /// The prefix of a system call's kernel function
    /// (`arch/*/include/asm/syscall_wrapper.h`).
    #[must_use]
    pub const fn syscall_prefix(self) -> &'static str {
        match self {
            Self::X86_64 => "__x64_sys_",
            Self::Arm64 => "__arm64_sys_",
        }
    }
}

/// A stable made-up address for a function without one: it depends only on the name.
fn address_of(name: &str, base: u64) -> u64 {
    // FNV-1a, in steps of 16 bytes, over 16 MiB.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    base + (hash & 0xf_ffff) * 16
}

/// A register layout in which the arguments' names come before the registers' own, so an
/// argument called `flags` hides the register of that name.
fn registers(arch: Arch, name: &str, arguments: &[&str], named: &[Parameter]) -> Layout {
    let fields = |layout: &Layout| {
        let named = named.iter().filter_map(|parameter| {
            let offset = layout.offset(arguments.get(parameter.register)?)?;
            let shape = match parameter.points {
                Points::Nowhere => Shape::number(8, false),
                Points::ByEvent | Points::IntoUser => Shape::Pointer,
            };
            let mut field = Field::inline(parameter.name.clone(), offset, shape);
            field.points = parameter.points;
            Some(field)
        });
        named.chain(layout.fields.iter().cloned()).collect()
    };
    let base = context::layout(ContextKind::PtRegs, arch);
    let mut layout = base.unwrap_or_else(|| Layout::of_arguments(name, 0));
    layout.fields = fields(&layout);
    name.clone_into(&mut layout.name);
    layout
}

/// A function's parameter that has a name.
struct Parameter {
    name: String,
    /// The number of its register.
    register: usize,
    points: Points,
}

/// The named parameters of a function; a struct of more than 8 and up to 16 bytes takes two
/// registers.
fn parameters(function: &Layout) -> Vec<Parameter> {
    let fields = function.fields.iter().filter(|field| field.name != "ret");
    let slots = fields.map(|field| Parameter {
        name: field.name.clone(),
        register: field.offset as usize / 8,
        points: match field.shape {
            Shape::Pointer => field.points,
            _ => Points::Nowhere,
        },
    });
    slots.collect()
}

impl Event {
    fn probe(
        kind: EventKind,
        name: &str,
        arch: Arch,
        function: Option<&Layout>,
        base: u64,
    ) -> Self {
        let names = function.map(parameters).unwrap_or_default();
        let layout = registers(arch, name, arch.arguments(), &names);
        let mut event = Self::of_layout(kind, Arc::new(layout));
        let function = name.split_once('+').map_or(name, |(function, _)| function);
        event.extras = Some(Box::new(Extras {
            arch: Some(arch),
            ..Extras::default()
        }));
        event.at(address_of(function, base))
    }

    /// Entry of a kernel function. Parameters of `function` ([`Layout::of_function`]) name
    /// their registers; registers also have their own names, those of libbpf (`parm1`) and of
    /// assemblers (`rdi`, `x0`).
    #[must_use]
    pub fn kprobe(name: &str, arch: Arch, function: Option<&Layout>) -> Self {
        Self::probe(EventKind::Kprobe, name, arch, function, KERNEL_TEXT)
    }

    /// Return of a kernel function; `ret` is the return value.
    #[must_use]
    pub fn kretprobe(name: &str, arch: Arch) -> Self {
        Self::probe(EventKind::Kretprobe, name, arch, None, KERNEL_TEXT)
    }

    /// Execution reaches a user-space address: `/usr/bin/bash:readline`.
    #[must_use]
    pub fn uprobe(name: &str, arch: Arch, function: Option<&Layout>) -> Self {
        Self::probe(EventKind::Uprobe, name, arch, function, USER_TEXT)
    }

    /// Return of a user-space function; `ret` is the return value.
    #[must_use]
    pub fn uretprobe(name: &str, arch: Arch) -> Self {
        Self::probe(EventKind::Uretprobe, name, arch, None, USER_TEXT)
    }

    /// A USDT probe `provider:name`.
    #[must_use]
    pub fn usdt(name: &str, arch: Arch) -> Self {
        Self::probe(EventKind::Usdt, name, arch, None, USER_TEXT)
    }

    /// Entry of a system call's kernel function, such as `__x64_sys_write`. Its one argument
    /// points to the registers of the caller in user space. Fields and [`arg`](Self::arg)
    /// refer to these registers; arguments also have their names.
    #[must_use]
    pub fn ksyscall(name: &str, arch: Arch) -> Self {
        let syscall = Syscall::by_name(name);
        let wrapper = format!("{}{name}", arch.syscall_prefix());
        let mut event = Self::kprobe(&wrapper, arch, None);
        let names: Vec<_> = syscall
            .iter()
            .flat_map(Syscall::arguments)
            .zip(0..)
            .map(|(argument, register)| Parameter {
                name: argument.name.to_owned(),
                register,
                points: match argument.c_type.contains('*') {
                    true => Points::IntoUser,
                    false => Points::Nowhere,
                },
            })
            .collect();
        let layout = registers(arch, &wrapper, arch.syscall_arguments(), &names);
        let mut values = Values::new(&layout);
        let number = syscall.and_then(|syscall| syscall.number(arch));
        let number = FieldValue::from(number.unwrap_or_default());
        let (of_number, result) = match arch {
            Arch::X86_64 => (&["orig_ax"][..], Some("ax")),
            Arch::Arm64 => (&["syscallno", "x8"][..], None),
        };
        // All of them exist on this architecture.
        for register in of_number {
            let _ = values.set(&layout, register, &number);
        }
        if let Some(register) = result {
            // `-ENOSYS` before the call has a result (`entry_SYSCALL_64`).
            let _ = values.set(&layout, register, &FieldValue::from(-38));
        }
        let first = arch.arguments().first().copied().unwrap_or_default();
        let at = event.layout().and_then(|outer| outer.offset(first));
        if let (Some(extras), Some(at)) = (&mut event.extras, at) {
            extras.inner = Some(Inner {
                at,
                layout: Arc::new(layout),
                values,
            });
        }
        event
    }

    /// Sets argument `n`, from 1 on: a register or stack slot of a probed function, or an
    /// argument of a raw tracepoint, a traced function, a system call or a USDT probe.
    ///
    /// # Errors
    /// [`EventError::NoField`] if there is no such argument, [`EventError::Value`] for a
    /// value that does not fit.
    pub fn arg(mut self, n: usize, value: impl Into<FieldValue>) -> Result<Self, EventError> {
        let value = value.into();
        if let Err(refused) = self.change_argument(n, &value) {
            let field = match self.kind {
                EventKind::Context(_) => format!("parm{n}"),
                _ if self.layout().is_some_and(|layout| layout.has("args[0]")) => {
                    format!("args[{}]", n.saturating_sub(1))
                }
                _ => format!("arg{}", n.saturating_sub(1)),
            };
            self.point(&field, &value, refused)?;
        }
        Ok(self)
    }

    /// The number, from 1 on, of the argument that `arg0`, `arg1`, … names in a kprobe,
    /// uprobe or USDT probe (as in bpftrace).
    pub(super) fn argument_named(&self, field: &str) -> Option<usize> {
        self.extras.as_ref()?.arch?;
        let index: usize = field.strip_prefix("arg")?.parse().ok()?;
        // Arguments in registers are fields already.
        let is_register = self.layout().is_some_and(|layout| layout.has(field));
        let is_meant = self.kind == EventKind::Usdt || !is_register;
        index.checked_add(1).filter(|_| is_meant)
    }

    /// As [`arg`](Self::arg), in place; nothing is changed on an error.
    pub(super) fn change_argument(
        &mut self,
        n: usize,
        value: &FieldValue,
    ) -> Result<(), EventError> {
        let none = |event: &Self| EventError::NoField {
            event: event.name().to_owned(),
            field: format!("argument {n}"),
            known: Vec::new(),
        };
        let Some(index) = n.checked_sub(1).filter(|index| *index < MAX_ARGUMENT) else {
            return Err(none(self));
        };
        let arch = self.extras.as_ref().and_then(|extras| extras.arch);
        let Some(arch) = arch else {
            return match self.kind {
                EventKind::Context(ContextKind::PtRegs) => self.change(&format!("parm{n}"), value),
                _ => self.change(&format!("args[{index}]"), value),
            };
        };
        if self.kind == EventKind::Usdt {
            return self.change_usdt_argument(index, value);
        }
        if let Some(inner) = self
            .extras
            .as_mut()
            .and_then(|extras| extras.inner.as_mut())
        {
            return match arch.syscall_arguments().get(index) {
                Some(register) => {
                    inner.set(register, value)?;
                    if arch == Arch::Arm64 && index == 0 {
                        inner.set("orig_x0", value)?;
                    }
                    Ok(())
                }
                None => Err(none(self)),
            };
        }
        match arch.arguments().get(index) {
            Some(register) => self.change_register(register, value),
            None => self.change_stack(arch, index, value),
        }
    }

    /// Sets all arguments of a USDT probe, or the first arguments of any other event.
    ///
    /// # Errors
    /// As of [`arg`](Self::arg).
    pub fn args<V: Into<FieldValue>>(
        mut self,
        values: impl IntoIterator<Item = V>,
    ) -> Result<Self, EventError> {
        if self.kind == EventKind::Usdt {
            self.extras.get_or_insert_default().usdt_args.clear();
        }
        for (n, value) in (1..).zip(values) {
            self = self.arg(n, value)?;
        }
        Ok(self)
    }

    /// Sets an argument of a USDT probe and extends their number if needed.
    fn change_usdt_argument(&mut self, index: usize, value: &FieldValue) -> Result<(), EventError> {
        if index >= USDT_ARGUMENTS {
            let problem = ValueProblem::TooLong {
                room: USDT_ARGUMENTS,
                len: index + 1,
                unit: "arguments",
            };
            return Err(self.refused("args", problem));
        }
        let mut bytes = [0; 8];
        let encoded = Shape::number(8, true).encode(value, &mut bytes);
        let field = format!("argument {}", index + 1);
        encoded.map_err(|problem| self.refused(&field, problem))?;
        let arguments = &mut self.extras.get_or_insert_default().usdt_args;
        arguments.resize(arguments.len().max(index + 1), 0);
        if let Some(argument) = arguments.get_mut(index) {
            *argument = i64::from_le_bytes(bytes);
        }
        Ok(())
    }

    fn refused(&self, field: &str, problem: ValueProblem) -> EventError {
        EventError::Value {
            event: self.name().to_owned(),
            field: field.to_owned(),
            problem,
        }
    }

    /// Sets a register by its own name, even if an argument has the same name.
    fn change_register(&mut self, register: &str, value: &FieldValue) -> Result<(), EventError> {
        self.change(&format!("regs.{register}"), value)
    }

    /// Sets an argument on the stack.
    fn change_stack(
        &mut self,
        arch: Arch,
        index: usize,
        value: &FieldValue,
    ) -> Result<(), EventError> {
        let mut bytes = [0; 8];
        let encoded = Shape::number(8, false).encode(value, &mut bytes);
        let field = format!("argument {}", index + 1);
        encoded.map_err(|problem| self.refused(&field, problem))?;
        let slot = index.saturating_sub(arch.arguments().len());
        let at = arch.above_stack_pointer() + 8 * slot;
        let stack = &mut self.extras.get_or_insert_default().stack;
        if stack.len() < at + 8 {
            stack.resize(at + 8, 0);
        }
        if let Some(place) = stack.get_mut(at..at + 8) {
            place.copy_from_slice(&bytes);
        }
        if self.is_user() {
            self.change_register("sp", &FieldValue::from(USER_STACK))?;
        }
        Ok(())
    }

    /// Whether the registers are those of user space.
    fn is_user(&self) -> bool {
        matches!(
            self.kind,
            EventKind::Uprobe | EventKind::Uretprobe | EventKind::Usdt
        )
    }

    /// Sets the address of the traced function or instruction (`bpf_get_func_ip`) and the
    /// instruction pointer register. On x86-64 the register of a kprobe is one byte higher,
    /// after the breakpoint.
    #[must_use]
    pub fn at(mut self, address: u64) -> Self {
        let extras = self.extras.get_or_insert_default();
        extras.ip = address;
        let pointer = match (self.kind, extras.arch) {
            (EventKind::Kprobe, Some(Arch::X86_64)) => Some(address.wrapping_add(1)),
            (EventKind::Kprobe | EventKind::Uprobe | EventKind::Usdt, Some(_)) => Some(address),
            _ => None,
        };
        if let Some(pointer) = pointer {
            // Both architectures have it.
            let _ = self.change_register("ip", &FieldValue::from(pointer));
        }
        self
    }

    /// Sets the counter of the perf event that overflowed (`bpf_perf_prog_read_value`).
    #[must_use]
    pub fn counter(mut self, counter: impl Into<Counter>) -> Self {
        self.extras.get_or_insert_default().counter = Some(counter.into());
        self
    }

    /// Sets the branch records, latest first (`bpf_read_branch_records`,
    /// `bpf_get_branch_snapshot`).
    #[must_use]
    pub fn branches(mut self, branches: impl Into<Arc<[BranchEntry]>>) -> Self {
        self.extras.get_or_insert_default().branches = Some(branches.into());
        self
    }

    /// The address of the traced function or instruction; 0 if unset.
    pub(crate) fn ip(&self) -> u64 {
        self.extras.as_ref().map_or(0, |extras| extras.ip)
    }

    /// The arguments of a USDT probe.
    pub(crate) fn usdt_args(&self) -> &[i64] {
        self.extras
            .as_ref()
            .map_or(&[], |extras| extras.usdt_args.as_slice())
    }

    /// The address and the bytes of the mocked task's stack when the event fires.
    pub(super) fn user_stack(&self) -> Option<(u64, &[u8])> {
        let extras = self.extras.as_ref().filter(|_| self.is_user())?;
        (!extras.stack.is_empty()).then_some((USER_STACK, &extras.stack[..]))
    }
}

/// `BPF_USDT_MAX_ARG_CNT`, libbpf's `usdt.bpf.h`.
const USDT_ARGUMENTS: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn word(event: &Event, register: &str) -> u64 {
        let at = event.layout().unwrap().part(register).unwrap().offset as usize;
        u64::from_le_bytes(event.record()[at..at + 8].try_into().unwrap())
    }

    #[test]
    fn arguments_go_to_the_registers_of_the_convention() {
        for (arch, registers) in [(Arch::X86_64, X86_64), (Arch::Arm64, ARM64)] {
            let mut event = Event::kprobe("f", arch, None);
            for n in 1..=registers.len() {
                event = event.arg(n, n * 10).unwrap();
            }
            for (n, register) in (1..).zip(registers) {
                assert_eq!(word(&event, register), n * 10, "{register}");
            }
        }
        let event = Event::kprobe("f", Arch::X86_64, None);
        let event = event.set("rdi", 5).unwrap().set("ret", 6).unwrap();
        assert_eq!((word(&event, "parm1"), word(&event, "ax")), (5, 6));
        let error = Event::kprobe("f", Arch::X86_64, None).arg(0, 1);
        assert_eq!(
            error.unwrap_err().to_string(),
            "f has no field `argument 0`; it has no fields"
        );
    }

    #[test]
    fn arguments_are_fields_by_bpftraces_names() {
        let event = Event::kprobe("f", Arch::X86_64, None);
        let event = event.set("arg1", 5).unwrap().assign("arg7=6").unwrap();
        assert_eq!(word(&event, "si"), 5);
        assert_eq!(event.extras.as_ref().unwrap().stack[16], 6);
        assert!(event.set("arg99", 1).is_err());

        let arguments = |event: &Event| event.usdt_args().to_vec();
        let event = Event::usdt("p:m", Arch::X86_64).set("arg1", -2).unwrap();
        assert_eq!(arguments(&event), [0, -2]);
        let event = event.arg(1, 7).unwrap();
        assert_eq!((arguments(&event), word(&event, "di")), (vec![7, -2], 0));
        assert_eq!(arguments(&event.clone().args([1]).unwrap()), [1]);
        assert!(event.clone().args([0; 12]).is_ok());
        let error = event.args([0; 13]).unwrap_err().to_string();
        assert!(error.contains("12"), "{error}");
    }

    #[test]
    fn a_parameter_may_be_called_like_a_register() {
        let mut function = Layout::of_arguments("f", 3);
        for (field, name) in function.fields.iter_mut().zip(["dfd", "flags", "ip"]) {
            field.name = name.to_owned();
        }
        let event = Event::kprobe("f", Arch::X86_64, Some(&function));
        let event = event.set("flags", 7).unwrap().set("regs.flags", 9).unwrap();
        assert_eq!((word(&event, "si"), word(&event, "regs.flags")), (7, 9));
        assert_eq!(word(&event, "dx"), 0, "the address is in the register ip");
        assert!(word(&event, "regs.ip") > KERNEL_TEXT);
    }

    #[test]
    fn later_arguments_are_on_the_stack() {
        let event = Event::kprobe("f", Arch::X86_64, None).arg(8, 88).unwrap();
        let stack = &event.extras.as_ref().unwrap().stack;
        assert_eq!((stack.len(), stack[16]), (24, 88));
        let event = Event::uprobe("f", Arch::Arm64, None).arg(9, 99).unwrap();
        assert_eq!(event.user_stack().map(|(_, bytes)| bytes[0]), Some(99));
        assert_eq!(word(&event, "sp"), USER_STACK);
    }

    #[test]
    fn a_system_call_has_its_registers_behind_a_pointer() {
        let event = Event::ksyscall("pread64", Arch::X86_64);
        let event = event.set("pos", 4).unwrap().arg(1, 3).unwrap();
        assert_eq!(event.name(), "__x64_sys_pread64");
        let inner = event.extras.as_ref().unwrap().inner.as_ref().unwrap();
        let at = |name: &str| inner.layout.offset(name).unwrap() as usize;
        assert_eq!(inner.values.fixed[at("r10")], 4, "not rcx");
        assert_eq!(inner.values.fixed[at("di")], 3);
        assert_eq!(inner.values.fixed[at("orig_ax")], 17);
        assert!(event.clone().arg(7, 1).is_err());
        assert!(event.set("nothing", 1).is_err());
    }

    #[test]
    fn a_function_has_the_same_address_each_time() {
        let one = Event::kprobe("vfs_read", Arch::X86_64, None);
        let two = Event::kretprobe("vfs_read", Arch::X86_64);
        let ip = |event: &Event| event.extras.as_ref().unwrap().ip;
        assert_eq!(ip(&one), ip(&two));
        assert_eq!(word(&one, "ip"), ip(&one) + 1);
        assert_eq!(word(&one.at(0x1000), "ip"), 0x1001);
    }
}
