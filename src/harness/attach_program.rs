//! Attaching to functions of loaded programs: extensions replace one, fentry and fexit programs
//! trace it (`bpf_tracing_prog_attach`, `kernel/bpf/syscall.c`).

use std::sync::Arc;

use super::attach_point::{AttachPoint, Attached};
use super::error::{Error, Result};
use super::programs::{Programs, WhichProgram};
use super::vm::Vm;
use crate::engine::{AttachedFunction, Attachment, Image};
use crate::program::{Program, TargetFunction, TargetProgram};
use crate::util::Errno;
use crate::vm::ProgramHandle;
use crate::vm::attach::Hook;
use crate::vm::events::{Event, Layout};

impl Vm {
    /// A loaded program as one to which others attach: extensions (`freplace/FUNCTION`), and
    /// fentry and fexit programs that trace it. Load their object into the same `Vm`, and attach
    /// them. A call of the function then runs them.
    ///
    /// ```
    /// use bpflab::vm::events::Event;
    /// use bpflab::{Object, Vm};
    ///
    /// let mut vm = Vm::new(Object::open("tests/attach_targets/dispatcher.bpf.o")?)?;
    /// let mut drops = Object::open("tests/attach_targets/dispatched.bpf.o")?;
    /// drops.set_attach_program(vm.target("dispatch")?);
    /// vm.load(drops)?;
    ///
    /// vm.attach("drops")?;
    /// let outcome = vm.run("dispatch", &Event::packet([0; 64]))?;
    /// assert_eq!(outcome.runs[0].r0, 1);
    /// # Ok::<(), bpflab::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoProgram`]; [`Error::Attach`] for a program that was not accepted.
    pub fn target(&self, program: impl WhichProgram) -> Result<TargetProgram> {
        let handle = program.handle(&self.programs)?;
        match &self.verification(handle)?.outcome {
            Ok(verified) => Ok(verified.target()),
            Err(why) => Err(Error::Attach {
                program: self.programs.image(handle)?.program().name.clone(),
                why: format!("it is not accepted, so no program attaches to it: {why}"),
            }),
        }
    }

    /// Attaches a loaded extension or tracing program to the function for which it was loaded.
    ///
    /// # Errors
    /// [`Error::NoProgram`]; [`Error::Attach`] if the other program is not known, or not loaded.
    pub(crate) fn attach_loaded(&mut self, handle: ProgramHandle) -> Result<()> {
        let program = self.programs.image(handle)?.program().clone();
        let Some(target) = program.attach_prog.known() else {
            return Err(Error::Attach {
                program: program.name.clone(),
                why: "it attaches to no known program".to_owned(),
            });
        };
        self.attach_to_function(handle, &program, target, 0)
    }

    /// Attaches a program to the function for which it was verified.
    pub(super) fn attach_to_function(
        &mut self,
        handle: ProgramHandle,
        program: &Program,
        target: &TargetProgram,
        cookie: u64,
    ) -> Result<()> {
        let wrong = |why: &str| Error::Attach {
            program: program.name.clone(),
            why: why.to_owned(),
        };
        let mut images = self.programs.images.iter();
        let Some(at) = images.position(|image| Arc::ptr_eq(image.program(), &target.program))
        else {
            return Err(wrong(
                "the program that it attaches to is not loaded here; take it from `Vm::target`",
            ));
        };
        let owner = ProgramHandle(u32::try_from(at).unwrap_or(u32::MAX));
        let is_target = |id| id == program.attach_btf_id;
        let mut functions = target.program.subprograms.iter();
        let function = functions.find(|function| is_target(function.type_id));
        let (Some(function), Some(point)) = (function, AttachPoint::of(program)) else {
            return Err(wrong("the other program does not have the function"));
        };
        self.check_room(handle, &point)?;
        let start = function.start;
        let extends = |hook| hook == Hook::Freplace;
        let mut there = self.programs.attached.iter();
        let is_refused = there.any(|one| {
            let here = |(program, function): &(ProgramHandle, AttachedFunction)| {
                (*program, function.start) == (owner, start)
            };
            one.function.as_ref().is_some_and(here)
                && extends(one.point.hook) != extends(point.hook)
        });
        if is_refused {
            let why = "a function is either replaced or traced";
            return Err(self.refused(handle, &point, Errno::EBUSY, why));
        }
        let attachment = if extends(point.hook) {
            Attachment::Replaced(handle)
        } else {
            let mut known = target.functions.iter();
            let known = known.find(|known| is_target(Some(known.type_id)));
            let name = point.target.clone().unwrap_or_default();
            traced(target, known, name)
        };
        self.has_attached = true;
        let programs = Arc::make_mut(&mut self.programs);
        programs.attached.push(Attached {
            program: handle,
            point,
            cookie,
            function: Some((owner, AttachedFunction { start, attachment })),
        });
        programs.hook_functions();
        Ok(())
    }
}

impl Programs {
    /// Tells the programs which of their functions have others attached to them.
    pub(super) fn hook_functions(&mut self) {
        for (owner, image) in (0..).map(ProgramHandle).zip(&mut self.images) {
            let attached = self.attached.iter().filter_map(|one| one.function.as_ref());
            let own = attached.filter(|(program, _)| *program == owner);
            let mut functions: Vec<AttachedFunction> = Vec::new();
            for (_, function) in own {
                // All programs that trace a function see one event.
                if functions.iter().all(|known| known.start != function.start) {
                    functions.push(function.clone());
                }
            }
            *image = Image::with_attached(image, functions);
        }
    }
}

/// A function whose calls fire an event.
fn traced(target: &TargetProgram, function: Option<&TargetFunction>, name: String) -> Attachment {
    let types = target.program.btf.as_ref();
    let typed = function.filter(|function| function.reliable == Some(true));
    let ty = typed.and_then(|function| types?.get(function.type_id));
    let layout = Layout::of_program_function(ty, name);
    let fields = layout.fields.iter();
    let args = fields.filter(|field| field.name != "ret").count();
    let event = Event::function(layout);
    Attachment::Traced { event, args }
}
