//! Loading objects: creates and fills maps, and prepares programs.

use std::sync::Arc;

use super::error::{Error, Result};
use super::unverified::UnverifiedProgram;
use super::vm::{Sharing, Vm};
use crate::btf::Btf;
use crate::coverage::{self, Meter};
use crate::engine::{Compilers, Image};
use crate::object::Object;
use crate::program::{Initial, MapDef, Pinning, Program};
use crate::spec::UpdateFlags;
use crate::util::Pc;
use crate::verifier::{Options, Verification, verify};
use crate::vm::maps::{self, Kind};
use crate::vm::{MapHandle, ProgramHandle, World};

/// An object's programs, relocated.
fn relocated(object: &Object) -> Result<Vec<Arc<Program>>> {
    let programs = object.programs().map(|program| program.map(Arc::new));
    Ok(programs.collect::<std::result::Result<_, _>>()?)
}

/// A program and what the verifier found out about it, for machines: with default options.
#[derive(Debug, Clone)]
pub(crate) struct Judged {
    pub program: Arc<Program>,
    pub verification: Arc<Verification>,
}

impl Judged {
    /// Verifies a program.
    pub(crate) fn new(program: Arc<Program>) -> Self {
        let verification = Arc::new(verify(&program, &Options::default()));
        Self {
            program,
            verification,
        }
    }
}

fn verify_all(programs: Vec<Arc<Program>>) -> Vec<Judged> {
    programs.into_iter().map(Judged::new).collect()
}

impl Vm {
    /// Creates a machine with the programs and maps of an object, in the default world.
    /// Only accepted programs are loaded; a rejected or unjudged one is an error with its
    /// report.
    ///
    /// ```
    /// use bpflab::{Error, Object, Vm};
    ///
    /// # fn main() -> bpflab::Result<()> {
    /// let object = Object::open("tests/objects/past_the_end.bpf.o")?;
    /// let Err(Error::Unverified(programs)) = Vm::new(object) else {
    ///     panic!("the program reads past the end of a map's value");
    /// };
    /// assert_eq!(programs[0].program, "on_write");
    /// println!("{}", programs[0].report);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unverified`] when a program is rejected or unjudged,
    /// [`Error::Object`] when a program can't be relocated, [`Error::MapCreate`]
    /// when a map can't be made.
    pub fn new(object: Object) -> Result<Self> {
        let mut vm = Self::with_world(World::default());
        vm.load(object)?;
        Ok(vm)
    }

    /// Creates a machine with all programs and maps of an object, including rejected and
    /// unjudged programs. Those run on the checked interpreter, which checks each access.
    ///
    /// ```
    /// use bpflab::{Object, Vm};
    ///
    /// # fn main() -> bpflab::Result<()> {
    /// let object = Object::open("tests/objects/past_the_end.bpf.o")?;
    /// let vm = Vm::unverified(object)?;
    /// assert!(!vm.verification("on_write")?.verdict.is_accepted());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As of [`new`](Self::new), except [`Error::Unverified`].
    pub fn unverified(object: Object) -> Result<Self> {
        let mut vm = Self::with_world(World::default());
        vm.load_unverified(object)?;
        Ok(vm)
    }

    /// Loads another object's programs and maps. Maps that both objects share
    /// (`Object::share_map`, or pinned under one name) become one map.
    ///
    /// # Errors
    /// As of [`new`](Self::new); then none of the object's programs can be run.
    /// [`Error::Cpu`] while other [CPUs](Self::cpu) are in use.
    pub fn load(&mut self, mut object: Object) -> Result<()> {
        self.share_symbols(&mut object);
        self.load_programs(object.maps(), relocated(&object)?)?;
        Ok(())
    }

    /// Loads another object's programs and maps as [`load`](Self::load) does, including
    /// rejected and unjudged programs: see [`unverified`](Self::unverified).
    ///
    /// # Errors
    /// As of [`load`](Self::load), except [`Error::Unverified`].
    pub fn load_unverified(&mut self, mut object: Object) -> Result<()> {
        self.share_symbols(&mut object);
        self.load_unverified_programs(object.maps(), relocated(&object)?)?;
        Ok(())
    }

    /// Loads programs that share the maps `defs`; returns their handles.
    ///
    /// # Errors
    /// [`Error::Unverified`] when a program is rejected or unjudged; then none is loaded.
    /// [`Error::MapCreate`] when a map can't be created or filled.
    pub fn load_programs(
        &mut self,
        defs: &[MapDef],
        programs: Vec<Arc<Program>>,
    ) -> Result<Vec<ProgramHandle>> {
        let judged = verify_all(programs);
        let unverified: Vec<_> = judged
            .iter()
            .filter_map(|known| UnverifiedProgram::of(&known.program, &known.verification))
            .collect();
        if !unverified.is_empty() {
            return Err(Error::Unverified(unverified));
        }
        self.load_judged(defs, judged)
    }

    /// Loads programs as [`load_programs`](Self::load_programs) does, including rejected
    /// and unjudged ones: see [`unverified`](Self::unverified).
    ///
    /// # Errors
    /// As of [`load_programs`](Self::load_programs), except [`Error::Unverified`].
    pub fn load_unverified_programs(
        &mut self,
        defs: &[MapDef],
        programs: Vec<Arc<Program>>,
    ) -> Result<Vec<ProgramHandle>> {
        self.load_judged(defs, verify_all(programs))
    }

    /// Loads programs whose verdicts are known, whatever these are: as
    /// [`load_unverified_programs`](Self::load_unverified_programs) does, for programs that run on
    /// several machines.
    ///
    /// # Errors
    /// As of [`load_programs`](Self::load_programs), except [`Error::Unverified`].
    pub(crate) fn load_judged(
        &mut self,
        defs: &[MapDef],
        programs: Vec<Judged>,
    ) -> Result<Vec<ProgramHandle>> {
        let handles = self.load_all(defs, programs)?;
        self.measure(&handles)?;
        Ok(handles)
    }

    /// Loads forms of programs that are not what a user wrote, as
    /// [`load_unverified_programs`](Self::load_unverified_programs) does. Their coverage is not
    /// measured: see [`measure_form`](Self::measure_form).
    ///
    /// # Errors
    /// As of [`load_programs`](Self::load_programs), except [`Error::Unverified`].
    pub(crate) fn load_forms(
        &mut self,
        defs: &[MapDef],
        forms: Vec<Arc<Program>>,
    ) -> Result<Vec<ProgramHandle>> {
        self.load_all(defs, verify_all(forms))
    }

    /// Counts what these programs execute, if coverage is measured.
    fn measure(&mut self, handles: &[ProgramHandle]) -> Result<()> {
        let Some(collector) = coverage::collector() else {
            return Ok(());
        };
        for handle in handles {
            let verification = self.programs.verifications.get(handle.index());
            let verified = verification.and_then(|known| known.outcome.as_ref().ok());
            let program = self.programs.image(*handle)?.program();
            let meter = collector.meter(program, verified)?;
            self.count_with(*handle, meter);
        }
        Ok(())
    }

    /// Counts what a form of a program executes as coverage of the original, if coverage is
    /// measured. `place` tells where the code of an instruction of the original begins.
    ///
    /// # Errors
    /// [`Error::Other`] if the counts can't be written.
    pub(crate) fn measure_form(
        &mut self,
        handle: ProgramHandle,
        original: &Arc<Program>,
        place: impl Fn(Pc) -> Option<Pc>,
    ) -> Result<()> {
        let Some(collector) = coverage::collector() else {
            return Ok(());
        };
        let verification = verify(original, &Options::default());
        let verified = verification.outcome.as_ref().ok();
        let form = self.programs.image(handle)?.program();
        let meter = collector.meter_of_form(original, verified, form, place)?;
        self.count_with(handle, meter);
        Ok(())
    }

    fn count_with(&mut self, handle: ProgramHandle, meter: Option<Meter>) {
        let programs = Arc::make_mut(&mut self.programs);
        let image = programs.images.get_mut(handle.index());
        // It was loaded just now: nothing else has it.
        if let Some(image) = image.and_then(Arc::get_mut) {
            image.count_with(meter);
        }
    }

    fn load_all(&mut self, defs: &[MapDef], judged: Vec<Judged>) -> Result<Vec<ProgramHandle>> {
        let programs = || judged.iter().map(|known| &known.program);
        self.machine.may_add("programs")?;
        // All programs of an object share its BTF.
        let btf = programs().find_map(|program| program.btf.as_ref());
        let maps = defs
            .iter()
            .map(|def| self.load_map(def, btf))
            .collect::<Result<Vec<_>>>()?;
        self.share_types(programs().map(Arc::as_ref));
        self.layouts.clear();
        let mut kernels = programs().filter_map(|program| program.kernel_btf.as_ref());
        if let Some(kernel) = kernels.next() {
            self.machine.show_maps(&maps, kernel);
        }
        if self.kernel_btf.is_none() {
            let mut kernels = programs().filter_map(|program| program.kernel_types());
            self.kernel_btf = kernels.next().cloned();
        }
        let mut handles = Vec::with_capacity(judged.len());
        for known in judged {
            let Judged {
                program,
                verification,
            } = known;
            let machine = &mut self.machine;
            machine.add_names(&program);
            let image = match &verification.outcome {
                Ok(verified) => {
                    let image = Image::verified(verified, maps.clone(), machine, self.passes)?;
                    image.compiled_by(Compilers {
                        cells: self.threaded.then_some(crate::interp::compile),
                        #[cfg(feature = "jit")]
                        native: Some(crate::jit::compile),
                        #[cfg(not(feature = "jit"))]
                        native: None,
                    })
                }
                Err(why) => {
                    let mut image = Image::new(program, maps.clone(), machine)?;
                    if why.unjudged().is_none() {
                        image = image.rejected();
                    }
                    // The verifier did not determine which pointers point to kernel
                    // objects.
                    image.probing(why.unjudged().is_some() || why.pc().is_none())
                }
            };
            let programs = Arc::make_mut(&mut self.programs);
            handles.push(ProgramHandle(
                u32::try_from(programs.images.len()).unwrap_or(u32::MAX),
            ));
            programs.verifications.push(verification);
            programs.images.push(Arc::new(image));
        }
        for (def, handle) in defs.iter().zip(&maps) {
            self.fill(def, *handle, &maps)?;
        }
        Ok(handles)
    }

    /// Creates a map, or finds the shared one.
    fn load_map(&mut self, def: &MapDef, btf: Option<&Btf>) -> Result<MapHandle> {
        let sharing = match (&def.shared, def.pinning) {
            (Some(token), _) => Some(Sharing::Token(token.clone())),
            (None, Pinning::ByName) => Some(Sharing::Pinned(def.name.clone())),
            (None, Pinning::None | Pinning::ByObject | Pinning::Other(_)) => None,
        };
        let known = self
            .shared
            .iter()
            .find(|(known, _)| Some(known) == sharing.as_ref());
        if let Some((_, handle)) = known {
            return Ok(*handle);
        }
        let cpus = self.machine.world.cpus();
        let map = match btf {
            Some(btf) => maps::create(&def.clone().with_special_fields(btf), cpus)?,
            None => maps::create(def, cpus)?,
        };
        let handle = self.machine.add_map(map)?;
        self.map_types.resize(handle.index(), None);
        self.map_types.push(btf.cloned());
        if let Some(sharing) = sharing {
            self.shared.push((sharing, handle));
        }
        Ok(handle)
    }

    /// Writes a map's initial contents.
    fn fill(&self, def: &MapDef, handle: MapHandle, maps: &[MapHandle]) -> Result<()> {
        let Some(map) = self.machine.map(handle).cloned() else {
            return Ok(());
        };
        let failed = |errno| Error::MapOperation {
            map: def.name.clone(),
            what: "setting its initial values",
            errno,
        };
        for entry in &def.initial {
            match (entry, map.kind()) {
                // The object's global variables in the arena.
                (Initial::Bytes { value, .. }, Kind::Arena(arena)) => {
                    let start = arena.user_start();
                    arena.write_memory(start, value).map_err(failed)?;
                }
                (Initial::Bytes { key, value }, _) => {
                    let mut whole = value.to_vec();
                    whole.resize(map.user_value_size(), 0);
                    map.write(key, &whole, UpdateFlags::empty())
                        .map_err(failed)?;
                }
                (Initial::Map { index, map: inner }, Kind::MapOfMaps(_)) => {
                    if let Some(inner) = maps.get(inner.index()) {
                        let set = self.machine.set_inner(
                            handle,
                            &index.to_le_bytes(),
                            *inner,
                            UpdateFlags::empty(),
                        );
                        set.map_err(failed)?;
                    }
                }
                (Initial::Program { index, name }, Kind::ProgArray(array)) => {
                    let program = self.program_handle(name)?;
                    array.set(*index, program).map_err(failed)?;
                }
                (Initial::Program { index, name }, Kind::StructOps(table)) => {
                    let program = self.program_handle(name)?;
                    self.set_function(table, *index, program).map_err(failed)?;
                }
                _ => {}
            }
        }
        if def.frozen {
            map.freeze();
        }
        Ok(())
    }

    /// The handle of a loaded program. If several programs have the name, the one loaded
    /// last is returned, so that an object's own programs precede those of earlier objects.
    ///
    /// # Errors
    /// [`Error::NoProgram`] with the existing names.
    pub fn program_handle(&self, name: &str) -> Result<ProgramHandle> {
        self.programs.by_name(name)
    }
}
