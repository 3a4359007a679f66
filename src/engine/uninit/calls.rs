//! What calls of helpers and kfuncs do with undefined bytes: which they send out of the program,
//! and which they define.

use super::found::Draft;
use super::pending::Pending;
use super::{Tracker, printed};
use crate::engine::watch::Step;
use crate::isa::{CallTarget, Reg};
use crate::program::MapDef;
use crate::spec::call::{Access, CallSpec, DynptrUse, Precondition};
use crate::spec::helpers::{self, Caller, id};
use crate::spec::limits;
use crate::util::HelperId;
use crate::vm::LeakTarget;
use crate::vm::dynptr::{Dynptr, DynptrKind};

/// Memory that a helper sends: the number of the argument, and where the bytes go.
fn sent(helper: HelperId) -> &'static [(usize, LeakTarget)] {
    use LeakTarget as To;
    match helper {
        id::map_lookup_elem | id::map_delete_elem | id::map_lookup_percpu_elem => {
            &[(2, To::MapKey)]
        }
        id::map_update_elem => &[(2, To::MapKey), (3, To::MapValue)],
        id::map_push_elem => &[(2, To::MapValue)],
        id::sk_storage_get
        | id::task_storage_get
        | id::inode_storage_get
        | id::cgrp_storage_get => &[(3, To::MapValue)],
        id::ringbuf_output => &[(2, To::RingBuffer)],
        id::perf_event_output | id::skb_output | id::xdp_output => &[(4, To::PerfBuffer)],
        id::probe_write_user => &[(2, To::UserMemory)],
        id::skb_store_bytes
        | id::xdp_store_bytes
        | id::lwt_push_encap
        | id::lwt_seg6_store_bytes => &[(3, To::Packet)],
        id::skb_set_tunnel_opt => &[(2, To::Packet)],
        id::seq_write => &[(2, To::Iterator)],
        id::sysctl_set_new_value => &[(2, To::Sysctl)],
        _ => &[],
    }
}

/// Whether the result is the number of bytes that were written to the memory in an argument:
/// those behind the end of the string stay as they were.
fn returns_length(function: &str) -> bool {
    matches!(
        function,
        "bpf_probe_read_str"
            | "bpf_probe_read_user_str"
            | "bpf_probe_read_kernel_str"
            | "bpf_d_path"
            | "bpf_snprintf"
            | "bpf_read_branch_records"
            | "bpf_copy_from_user_str"
            | "bpf_copy_from_user_task_str"
    )
}

/// The largest errno.
const ERRNOS: i64 = 4095;

/// The flag of `bpf_copy_from_user_str` that fills the rest with zeros.
const PAD_ZEROS: u64 = 1;

/// A call, before it is made.
struct Site<'s> {
    step: &'s Step<'s>,
    spec: CallSpec,
    args: [u64; 5],
    /// Key and value size of the map in the arguments.
    sizes: Option<(u32, u32)>,
}

impl Site<'_> {
    fn arg(&self, n: usize) -> u64 {
        let arg = n.checked_sub(1).and_then(|n| self.args.get(n));
        arg.copied().unwrap_or_default()
    }

    /// The size of the memory in an argument, by its number.
    fn size(&self, n: usize) -> Option<usize> {
        let at = n.checked_sub(1)?;
        let region = self.spec.arguments.get(at)?.region()?;
        CallSpec::extent(region, at, &self.args, self.sizes)
    }

    /// The dynptr in an argument.
    fn dynptr(&self, n: usize) -> Option<(DynptrKind, u64, usize)> {
        let found = Dynptr::load(&self.step.machine.space, self.arg(n)).ok()?;
        let at = found.data.wrapping_add(found.offset.into());
        Some((found.kind()?, at, found.size() as usize))
    }
}

impl Tracker<'_> {
    /// A helper or kfunc is about to be called.
    pub(super) fn call(&mut self, step: &Step<'_>, target: CallTarget) {
        let found = match target {
            CallTarget::Helper(helper) => spec_of(step, helper).map(|spec| (spec, Some(helper))),
            CallTarget::Kfunc { id, fd_index } => {
                let callee = step.image.kfunc(id, fd_index);
                let row = callee.and_then(|callee| callee.id());
                row.map(|kfunc| (kfunc.row().call(), None))
            }
            CallTarget::Subprogram { .. } => return,
        };
        let mut pending = Pending::default();
        if let Some((spec, helper)) = found {
            let regs = step
                .frames
                .last()
                .map_or([0; Reg::COUNT], |frame| frame.regs);
            let [_, a, b, c, d, e, ..] = regs;
            let args = [a, b, c, d, e];
            let map = spec.map_argument().and_then(|at| args.get(at).copied());
            let def = map.and_then(|at| {
                let machine = step.machine;
                Some(machine.map(machine.map_at(at)?)?.def())
            });
            let site = Site {
                step,
                spec,
                args,
                sizes: def.map(|def| (def.key_size, def.value_size)),
            };
            pending.map = map.unwrap_or_default();
            self.writes(&site, &mut pending);
            if let Some(helper) = helper {
                self.helper(&site, helper, def, &mut pending);
            }
        }
        if let Some(frame) = self.shadow.frames.last_mut() {
            frame.pending = Some(Box::new(pending));
        }
    }

    /// The memory that a call writes.
    fn writes(&self, site: &Site<'_>, pending: &mut Pending) {
        let name = site.spec.name;
        let pads = name.starts_with("bpf_copy_from_user")
            && site.args.get(3..).unwrap_or_default().contains(&PAD_ZEROS);
        let by_length = returns_length(name) && !pads;
        for (argument, n) in site.spec.arguments.iter().zip(1..) {
            let address = site.arg(n);
            for condition in argument.preconditions {
                match condition {
                    Precondition::Memory(region) if region.access == Access::Write => {
                        // Without a size: all that is left of the frame.
                        let len = site.size(n).unwrap_or(limits::STACK_SIZE);
                        pending.writes.push((address, len, by_length));
                    }
                    Precondition::Dynptr(DynptrUse::Initialises) => {
                        let len = limits::DYNPTR_SIZE as usize;
                        pending.writes.push((address, len, false));
                    }
                    Precondition::Dynptr(_) if fills_dynptr(name) => {
                        if let Some((_, at, len)) = site.dynptr(n) {
                            pending.writes.push((at, len, false));
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// What a helper sends, copies and reserves.
    fn helper(
        &mut self,
        site: &Site<'_>,
        helper: HelperId,
        def: Option<&MapDef>,
        pending: &mut Pending,
    ) {
        let name = site.spec.name;
        for (n, to) in sent(helper) {
            let len = site.size(*n).unwrap_or_default();
            let Some(mask) = self.undefined(site.arg(*n), len) else {
                continue;
            };
            let ty = def.and_then(|def| super::found::type_in(site.step, *to, &def.name, len));
            let draft = Draft::new(site.step, *to, mask).by(name).in_map(def).of(ty);
            pending.drafts.push(draft);
        }
        match helper {
            id::ringbuf_reserve => {
                pending.reserves = usize::try_from(site.arg(2)).ok().map(|len| (len, None));
            }
            id::ringbuf_reserve_dynptr => {
                let len = usize::try_from(site.arg(2)).ok();
                pending.reserves = len.map(|len| (len, Some(site.arg(4))));
            }
            id::ringbuf_submit | id::ringbuf_discard => {
                self.give_back(site, site.arg(1), helper == id::ringbuf_submit);
            }
            id::ringbuf_submit_dynptr | id::ringbuf_discard_dynptr => {
                let data = Dynptr::load(&site.step.machine.space, site.arg(1));
                let at = data.map_or(0, |data| data.data);
                self.give_back(site, at, helper == id::ringbuf_submit_dynptr);
            }
            id::dynptr_write => self.dynptr_write(site, pending),
            id::probe_read | id::probe_read_kernel => {
                // The program may read its own memory.
                if let Some(mask) = self.undefined(site.arg(3), site.size(1).unwrap_or_default()) {
                    pending.copies.push((site.arg(1), mask));
                }
            }
            id::dynptr_read => {
                let (to, len) = (site.arg(1), site.size(1).unwrap_or_default());
                if let Some((_, data, _)) = site.dynptr(3)
                    && let Some(mask) = self.undefined(data.wrapping_add(site.arg(4)), len)
                {
                    pending.copies.push((to, mask));
                }
            }
            id::csum_diff => {
                let undefined = [1, 3].into_iter().any(|n| {
                    let len = site.size(n).unwrap_or_default();
                    self.undefined(site.arg(n), len).is_some()
                });
                pending.result = if undefined { u64::MAX } else { 0 };
            }
            id::trace_printk | id::trace_vprintk | id::seq_printf => {
                pending
                    .drafts
                    .extend(printed::drafts(self, site.step, helper, name, &site.args));
            }
            _ => {}
        }
    }

    /// `bpf_dynptr_write(dynptr, offset, data, size, flags)`.
    fn dynptr_write(&mut self, site: &Site<'_>, pending: &mut Pending) {
        let len = site.size(3).unwrap_or_default();
        let Some((kind, data, _)) = site.dynptr(1) else {
            return;
        };
        let at = data.wrapping_add(site.arg(2));
        match self.undefined(site.arg(3), len) {
            None => pending.writes.push((at, len, false)),
            Some(mask) if self.shadow.bytes(at, len).is_some() => pending.copies.push((at, mask)),
            Some(mask) => {
                let to = match kind {
                    DynptrKind::Skb | DynptrKind::Xdp | DynptrKind::SkbMeta => LeakTarget::Packet,
                    DynptrKind::Local | DynptrKind::Ringbuf => LeakTarget::MapValue,
                };
                let draft = Draft::new(site.step, to, mask).by(site.spec.name);
                let draft = match to {
                    LeakTarget::MapValue => draft.in_map_at(site.step, at),
                    _ => draft,
                };
                pending.drafts.push(draft);
            }
        }
    }

    /// A record is submitted or discarded.
    fn give_back(&mut self, site: &Site<'_>, record: u64, submits: bool) {
        let Some(record) = self.shadow.take_record(record) else {
            return;
        };
        if !submits || record.bytes.iter().all(|bits| *bits == 0) {
            return;
        }
        let machine = site.step.machine;
        let map = machine.map_at(record.map).and_then(|map| machine.map(map));
        let def = map.map(|map| map.def());
        let to = LeakTarget::RingBuffer;
        let len = record.bytes.len();
        let ty = def.and_then(|def| super::found::type_in(site.step, to, &def.name, len));
        let draft = Draft::new(site.step, to, record.bytes);
        let draft = draft.by(site.spec.name).in_map(def).of(ty);
        self.found.add(draft.reserved_at(record.reserved));
    }

    /// The call of the innermost function has returned.
    pub(super) fn returned(&mut self, step: &Step<'_>, pending: Pending) {
        let r0 = step
            .frames
            .last()
            .map_or(0, |frame| frame.regs[Reg::R0.index()]);
        // An address is negative, too.
        let failed = (-ERRNOS..0).contains(&r0.cast_signed());
        for (address, len, by_length) in pending.writes {
            let length = usize::try_from(r0).unwrap_or(usize::MAX);
            let written = if by_length && !failed {
                length.min(len)
            } else {
                len
            };
            self.shadow.define(address, written);
        }
        if let Some((len, dynptr)) = pending.reserves {
            let at = match dynptr {
                Some(at) => Dynptr::load(&step.machine.space, at).map_or(0, |found| found.data),
                None => r0,
            };
            if at != 0 {
                self.reserve(step, at, len, pending.map);
            }
        }
        if !failed {
            for (address, mask) in pending.copies {
                if let Some(bytes) = self.shadow.bytes_mut(address, mask.len()) {
                    for (to, from) in bytes.iter_mut().zip(mask) {
                        *to = from;
                    }
                }
            }
            for draft in pending.drafts {
                self.found.add(draft);
            }
        }
        self.regs[Reg::R0.index()] = pending.result;
    }
}

/// The rules for a call of a helper by the running program.
fn spec_of(step: &Step<'_>, helper: HelperId) -> Option<CallSpec> {
    let row = helpers::helper(helper)?;
    let program = step.program().owner_of_context();
    let prototype = row.prototype(&Caller::of(program.prog_type));
    let prototype = prototype.or(row.prototypes.first())?;
    Some(row.call(prototype))
}

/// Whether a function writes to the memory of the dynptrs in its arguments.
fn fills_dynptr(function: &str) -> bool {
    match function.strip_prefix("bpf_dynptr_") {
        Some(rest) => matches!(rest, "copy" | "memset"),
        None => !function.starts_with("bpf_ringbuf"),
    }
}
