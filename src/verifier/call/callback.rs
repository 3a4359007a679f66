//! Callbacks of helpers (`push_callback_call`, `set_…_callback_state`).
//!
//! At a helper that calls its callback before it returns, exploration continues on two
//! paths: after the call, as if the callback was never called, and in the callback. The
//! callback returns to the call, which branches again, so that it is explored like a loop.
//! An asynchronous callback is explored once for each such call, with a stack of its own.

use crate::isa::Reg;
use crate::spec::MapType;
use crate::spec::helpers::{Effects, TypeFlags, helper, id};
use crate::util::{Errno, HelperId, Pc};
use crate::verifier::env::Verifier;
use crate::verifier::explore::worklist::Resume;
use crate::verifier::reg::{DynptrKind, Kind, MapRef, ObjectType, RegState};
use crate::verifier::reject::{VerifyResult, reject};
use crate::verifier::state::{Entry, Frame, ReturnRange, State};

/// The return values of callbacks that continue or stop an iteration.
const GO_ON_OR_STOP: ReturnRange = ReturnRange { min: 0, max: 1 };

/// The first argument registers of a callback, and its allowed return values.
struct Start {
    arguments: [RegState; 4],
    range: ReturnRange,
}

impl Start {
    fn enter(&self, frame: &mut Frame) {
        for (reg, state) in Reg::ARGUMENTS.into_iter().zip(self.arguments) {
            frame.regs[reg.index()] = state;
        }
        frame.callback_range = self.range;
    }
}

/// The map of a callback that runs later, and the callback's return values.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallbackArguments {
    /// The map with the field that schedules the callback.
    pub map: MapRef,
    /// The id of an inner map.
    pub uid: u32,
    /// The allowed return values.
    pub range: ReturnRange,
}

impl CallbackArguments {
    /// The return values of a callback of a timer or a work queue.
    pub(super) const NOTHING: ReturnRange = ReturnRange { min: 0, max: 0 };
    /// The return values of a callback of a task's work.
    pub(super) const ANYTHING: ReturnRange = ReturnRange {
        min: i32::MIN,
        max: i32::MAX,
    };

    /// The arguments map, key and value.
    fn start(&self) -> Start {
        let Self { map, uid, range } = *self;
        let pointer = |kind| RegState::pointer(kind, TypeFlags::empty());
        Start {
            arguments: [
                pointer(Kind::MapPtr { map, uid }),
                pointer(Kind::MapKey { map, uid }),
                pointer(Kind::MapValue { map, uid }),
                RegState::NOT_INIT,
            ],
            range,
        }
    }
}

impl Verifier<'_> {
    /// Pushes a state for a callback that a kfunc schedules, which runs in a task and may
    /// sleep.
    pub(super) fn push_work(
        &mut self,
        subprogram: u32,
        arguments: CallbackArguments,
    ) -> VerifyResult {
        self.note_call_types(subprogram)?;
        self.usage.call_later(subprogram);
        self.check_room_for_callback()?;
        self.push_frame_for_later(subprogram, None, &arguments.start(), true);
        Ok(())
    }

    /// Pushes a state for the callback that compares two elements of a tree: `node` is a
    /// non-owning reference to an element.
    pub(super) fn push_comparison(&mut self, subprogram: u32, node: RegState) -> VerifyResult {
        self.note_call_types(subprogram)?;
        self.usage.call_back(subprogram);
        let nothing = RegState::NOT_INIT;
        let start = |_: &mut Self| {
            Ok(Start {
                arguments: [node, node, nothing, nothing],
                range: GO_ON_OR_STOP,
            })
        };
        self.push_now(subprogram, None, start)
    }

    /// Pushes a state for the callback of the current helper call.
    pub(crate) fn push_callback(&mut self, id: HelperId, subprogram: u32) -> VerifyResult {
        self.note_call_types(subprogram)?;
        let effects = helper(id).map_or(Effects::empty(), |helper| helper.effects);
        if effects.contains(Effects::CALLS_BACK_LATER) {
            self.usage.call_later(subprogram);
            return self.push_later(id, subprogram);
        }
        self.usage.call_back(subprogram);
        self.push_now(subprogram, Some(id), |verifier| verifier.callback_start(id))
    }

    /// Pushes a state for a callback that runs before the current call returns.
    fn push_now(
        &mut self,
        subprogram: u32,
        helper: Option<HelperId>,
        arguments: impl FnOnce(&mut Self) -> VerifyResult<Start>,
    ) -> VerifyResult {
        let (start, pc) = (self.subprogram(subprogram).start, self.pc());
        // The kernel checks the number of pushed states first, then the frames, then the
        // arguments.
        self.push_branch(start, pc, Errno::ENOMEM)?;
        let mut callee = self.enter(subprogram, pc)?;
        arguments(self)?.enter(&mut callee);
        callee.entry = Entry::Callback;
        callee.callback_of = helper;
        self.state.frame_mut().callback_depth = 0;
        if let Some(state) = self.worklist.last_mut() {
            state.callback_unroll_depth += 1;
            state.frame_mut().callback_depth += 1;
            state.frames.push(callee);
        }
        Ok(())
    }

    /// Pushes a state for a callback that runs after the program has returned
    /// (`push_async_cb`).
    fn push_later(&mut self, id: HelperId, subprogram: u32) -> VerifyResult {
        self.check_room_for_callback()?;
        let start = self.callback_start(id)?;
        // A timer's callback runs in an interrupt, whatever set it.
        self.push_frame_for_later(subprogram, Some(id), &start, false);
        Ok(())
    }

    /// Checks that one more state can be pushed.
    fn check_room_for_callback(&self) -> VerifyResult {
        if let Some(text) = self.worklist.too_complex() {
            reject!(EFAULT, "{text} for async cb.");
        }
        Ok(())
    }

    fn push_frame_for_later(
        &mut self,
        subprogram: u32,
        helper: Option<HelperId>,
        arguments: &Start,
        sleepable: bool,
    ) {
        let entries = match self.frame().entry {
            Entry::AsyncCallback(entries) => entries,
            Entry::Call | Entry::Callback => 0,
        };
        let (start, prev) = (self.subprogram(subprogram).start, self.pc());
        let mut frame = Frame::new(None, subprogram, 0);
        frame.entry = Entry::AsyncCallback(entries.saturating_add(1));
        frame.callback_of = helper;
        arguments.enter(&mut frame);
        self.log.touch_all();
        let state = State {
            pc: start,
            // As in the kernel: its path begins with the program's.
            first: Pc(0),
            last: prev,
            branches: 1,
            sleepable,
            ..State::new(frame)
        };
        let resume = Resume {
            pc: start,
            prev,
            log_len: self.log.len(),
        };
        self.worklist.push(&state, resume);
    }

    /// The arguments and return values of a callback of this helper.
    fn callback_start(&mut self, helper: HelperId) -> VerifyResult<Start> {
        let caller = |number: Reg| *self.reg(number);
        let context = caller(match helper {
            id::find_vma => Reg::R4,
            _ => Reg::R3,
        });
        let mut start = Start {
            arguments: [RegState::NOT_INIT; 4],
            range: GO_ON_OR_STOP,
        };
        let pointer = |kind| RegState::pointer(kind, TypeFlags::empty());
        match helper {
            // (map, key, value, context)
            id::for_each_map_elem => {
                let r1 = caller(Reg::R1);
                let map = r1.map().filter(|map| {
                    let def = self.map(*map);
                    def.is_some_and(|def| has_for_each(def.map_type))
                });
                let Some(map) = map else {
                    reject!(ENOTSUPP, "callback function not allowed for map");
                };
                start.arguments = [
                    r1,
                    pointer(Kind::MapKey { map, uid: 0 }),
                    pointer(Kind::MapValue { map, uid: 0 }),
                    context,
                ];
            }
            // (index, context)
            id::r#loop => {
                (start.arguments[0], start.arguments[1]) = (RegState::UNKNOWN, context);
            }
            // (task, vma, context)
            id::find_vma => {
                let id = self.kernel_struct("vm_area_struct");
                let task = caller(Reg::R1);
                let ty = ObjectType::kernel(id);
                let vma = pointer(Kind::BtfId { ty });
                start.arguments = [task, vma, context, RegState::NOT_INIT];
            }
            // (dynptr, context)
            id::user_ringbuf_drain => {
                let mut record = pointer(Kind::Dynptr {
                    kind: DynptrKind::Local,
                    first: true,
                });
                record.id = self.new_id();
                (start.arguments[0], start.arguments[1]) = (record, context);
            }
            // (map, key, value)
            id::timer_set_callback => {
                let (Kind::MapValue { map, uid } | Kind::MapKey { map, uid }) =
                    caller(Reg::R1).kind
                else {
                    reject!(EFAULT, "a timer is not in a map's value");
                };
                let range = CallbackArguments::NOTHING;
                start = CallbackArguments { map, uid, range }.start();
            }
            _ => reject!(EFAULT, "helper {helper} does not call back"),
        }
        Ok(start)
    }
}

/// Whether `bpf_for_each_map_elem` supports this map type.
const fn has_for_each(map_type: MapType) -> bool {
    matches!(
        map_type,
        MapType::Array
            | MapType::PercpuArray
            | MapType::Hash
            | MapType::LruHash
            | MapType::PercpuHash
            | MapType::LruPercpuHash
    )
}
