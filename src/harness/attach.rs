//! Attaching and detaching programs, as libbpf and the kernel do.

use std::sync::Arc;

use super::attach_point::{AttachPoint, Attached};
use super::error::{Error, Result};
use super::vm::Vm;
use crate::isa::{CallTarget, Code, Insn};
use crate::program::Program;
use crate::spec::helpers;
use crate::util::{Errno, HelperId};
use crate::vm::ProgramHandle;
use crate::vm::attach::Hook;

/// Whether programs at an attach point may override the function's return value, so that
/// the function is not called (`__perf_event_set_bpf_prog`, `perf_event_attach_bpf_prog`).
/// An instruction in the middle of a function does not allow it.
fn may_override(point: &AttachPoint) -> bool {
    let is_entry = |target: &String| !target.contains('+');
    let probe = matches!(
        point.hook,
        Hook::Kprobe | Hook::Ksyscall | Hook::KprobeMulti | Hook::KprobeSession
    );
    probe && point.target.as_ref().is_none_or(is_entry)
}

impl Vm {
    /// Attaches every program to the target that its section name gives, in the order of
    /// the object. Programs that are attached already stay where they are.
    ///
    /// As in libbpf's skeleton attach, a program whose section names no target
    /// (`SEC("tp")`, `SEC("kprobe")`) is skipped; use [`attach_to`](Self::attach_to).
    /// Programs that libbpf can't attach by itself (XDP, tc, cgroup, perf events) are
    /// attached as long as their hook, which exists once, accepts another program.
    ///
    /// # Errors
    /// [`Error::Context`] for a program that reads more than the tracepoint's record has;
    /// [`Error::Refused`] where the kernel would refuse.
    pub fn attach_all(&mut self) -> Result<()> {
        for handle in self.handles() {
            let is_attached = self
                .programs
                .attached
                .iter()
                .any(|one| one.program == handle);
            let Some(program) = self.program(handle).filter(|_| !is_attached) else {
                continue;
            };
            if let Some(other) = program.attach_prog.known() {
                let (program, other) = (program.clone(), other.clone());
                self.attach_to_function(handle, &program, &other, 0)?;
                continue;
            }
            let Some(point) = AttachPoint::of(program) else {
                continue;
            };
            let is_libbpfs = point.hook.rule().needs_target;
            match self.set_attached(handle, point, 0) {
                // An object may have several programs for a device's only hook.
                Err(Error::Refused { .. }) if !is_libbpfs => {}
                result => result?,
            }
        }
        Ok(())
    }

    /// Attaches one program to the target that its section name gives.
    ///
    /// # Errors
    /// [`Error::NoProgram`]; [`Error::Attach`] where the section name gives no target;
    /// [`Error::Context`] where the program reads more than the event has;
    /// [`Error::Refused`] where the kernel would refuse.
    pub fn attach(&mut self, program: &str) -> Result<()> {
        self.attach_with_cookie(program, None, 0)
    }

    /// Attaches a program to a target: `group/name` for tracepoints, a function, a pattern
    /// of functions, the hook's name for other types. A program can be attached to several
    /// targets.
    ///
    /// # Errors
    /// As of [`attach`](Self::attach).
    pub fn attach_to(&mut self, program: &str, target: &str) -> Result<()> {
        self.attach_with_cookie(program, Some(target), 0)
    }

    /// Attaches a program with a cookie, which `bpf_get_attach_cookie` returns
    /// (`bpf_usdt_cookie` in USDT probes). Without a `target` it is the one of the section
    /// name. Several calls, each with a function and its cookie, do what
    /// `bpf_program__attach_kprobe_multi_opts` does.
    ///
    /// # Errors
    /// As of [`attach`](Self::attach).
    pub fn attach_with_cookie(
        &mut self,
        program: &str,
        target: Option<&str>,
        cookie: u64,
    ) -> Result<()> {
        let handle = self.program_handle(program)?;
        let mut aimed = Program::clone(self.programs.images[handle.index()].program());
        if target.is_none()
            && let Some(other) = aimed.attach_prog.known()
        {
            return self.attach_to_function(handle, &aimed, other, cookie);
        }
        if let Some(target) = target {
            aimed.attach_target = Some(target.to_owned());
        }
        let point = AttachPoint::of(&aimed).ok_or_else(|| Error::Attach {
            program: aimed.name.clone(),
            why: format!(
                "its section '{}' does not say where; use `attach_to` with a name like \
                 'syscalls/sys_enter_write'",
                aimed.section
            ),
        })?;
        self.set_attached(handle, point, cookie)
    }

    fn set_attached(
        &mut self,
        program: ProgramHandle,
        point: AttachPoint,
        cookie: u64,
    ) -> Result<()> {
        self.check_room(program, &point)?;
        let target = point.target.as_deref().unwrap_or_default();
        let event = match point.hook {
            Hook::Tracepoint => Some(self.tracepoint(target)),
            Hook::RawTracepoint => Some(self.raw_tracepoint(target)),
            _ => None,
        };
        match event {
            Some(Ok(event)) => self.dispatcher().2.check_context(program, &event)?,
            Some(Err(_)) if self.is_unknown(&point) => {
                return Err(self.refused(
                    program,
                    &point,
                    Errno::ENOENT,
                    "no such tracepoint; add one with `Vm::declare`",
                ));
            }
            _ => {}
        }
        self.has_attached = true;
        Arc::make_mut(&mut self.programs).attached.push(Attached {
            program,
            point,
            cookie,
            function: None,
        });
        Ok(())
    }

    /// Whether a tracepoint without a layout certainly does not exist: all system calls are
    /// known, and so are all events of a kernel whose BTF was given.
    fn is_unknown(&self, point: &AttachPoint) -> bool {
        let target = point.target.as_deref().unwrap_or_default();
        target.starts_with("syscalls/") || self.kernel_btf.is_some()
    }

    /// Checks whether an attach point takes another program, and this one.
    pub(super) fn check_room(&self, program: ProgramHandle, point: &AttachPoint) -> Result<()> {
        let rule = point.hook.rule();
        if !may_override(point) && self.calls(program, helpers::id::override_return) {
            let why = "only a kprobe at a function's entry can override it";
            return Err(self.refused(program, point, Errno::EINVAL, why));
        }
        let here = || {
            self.programs
                .attached
                .iter()
                .filter(|one| one.point == *point)
        };
        if let Some(errno) = rule.again
            && here().any(|one| one.program == program)
        {
            let why = "it is already attached there";
            return Err(self.refused(program, point, errno, why));
        }
        if let Some((room, errno)) = rule.room
            && here().count() >= room
        {
            let why = "there is no room for another program";
            return Err(self.refused(program, point, errno, why));
        }
        Ok(())
    }

    /// Whether a program calls a helper.
    fn calls(&self, program: ProgramHandle, helper: HelperId) -> bool {
        let insns = self
            .program(program)
            .map_or(&[][..], |program| &program.insns);
        let call = Insn::Call(CallTarget::Helper(helper));
        Code::new(insns).iter().any(|(_, insn)| insn == Ok(call))
    }

    pub(super) fn refused(
        &self,
        program: ProgramHandle,
        point: &AttachPoint,
        errno: Errno,
        why: &'static str,
    ) -> Error {
        let name = self.program(program).map(|program| program.name.clone());
        Error::Refused {
            program: name.unwrap_or_default(),
            place: point.to_string(),
            errno,
            why,
        }
    }

    /// Detaches a program from everything; events no longer run it.
    ///
    /// # Errors
    /// [`Error::NoProgram`].
    pub fn detach(&mut self, program: &str) -> Result<()> {
        let handle = self.program_handle(program)?;
        let programs = Arc::make_mut(&mut self.programs);
        programs.attached.retain(|one| one.program != handle);
        programs.hook_functions();
        Ok(())
    }

    /// The program's attach points, in the order of attachment.
    ///
    /// # Errors
    /// [`Error::NoProgram`].
    pub fn attachments(&self, program: &str) -> Result<impl Iterator<Item = &AttachPoint>> {
        let handle = self.program_handle(program)?;
        let attached = self.programs.attached.iter();
        let own = attached.filter(move |one| one.program == handle);
        Ok(own.map(|one| &one.point))
    }
}
