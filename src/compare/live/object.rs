//! A session with the programs of an object.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use super::consume::Drain;
use super::error::LiveError;
use super::follow::{Follow, Tree, exited, forks};
use super::forms::is_anywhere;
use super::options::LiveOptions;
use super::outputs::Outputs;
use super::programs::{Chosen, Programs, Watched};
use super::session::{Begun, Counted, Subject, record};
use super::snapshot::Snapshot;
use super::summary::{ProgramSummary, Summary};
use crate::compare::recording::{
    self, Cause, CpuTotal, Header, Loss, ObjectInfo, RecordedMap, Resource, Writer,
};
use crate::instrument::{RecordMaps, RecordState};
use crate::kernel::process::settle;
use crate::kernel::{Availability, LoadedMaps, USDT_SPECS, possible_cpus};
use crate::object::Object;
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::{Errno, MapId};

/// Records the programs of an object in the kernel while a command runs.
///
/// ```no_run
/// use std::process::Command;
/// use bpflab::Object;
/// use bpflab::compare::live::{Live, LiveOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let object = Object::open("examples/bpf/write_hist.bpf.o")?;
/// let mut live = Live::start(&object, &LiveOptions::default())?;
/// let mut recording = Vec::new();
/// let summary = live.run(Command::new("echo").arg("hello"), &mut recording)?;
/// assert_eq!((summary.recorded(), summary.lost()), (1, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Live {
    options: LiveOptions,
    /// The object's entry in the header, and the files that the recording carries.
    object: ObjectInfo,
    files: Vec<(&'static [u8], Vec<u8>)>,
    maps: Arc<LoadedMaps>,
    record: RecordMaps,
    /// How many of the maps are the object's own.
    own: usize,
    tree: Tree,
    programs: Programs,
    follow: Option<Follow>,
    /// Children that were not followed, as the map of targets was full.
    unfollowed: u64,
    /// The command's executable, for user-space probes whose own file does not exist.
    binary: Option<PathBuf>,
}

impl Live {
    /// Creates an object's maps and loads its programs, each in its recorded form if it has one.
    /// Nothing is attached yet.
    ///
    /// # Errors
    /// [`LiveError::is_unavailable`] without the required rights; a program that the kernel
    /// rejects; a process to follow that does not exist.
    pub fn start(object: &Object, options: &LiveOptions) -> Result<Self, LiveError> {
        options.check_process()?;
        let kernel = Availability::probe();
        if !kernel.usable() || kernel.is_locked_down() {
            return Err(LiveError::unavailable(kernel.missing().join("; ")));
        }
        let buffer = options.buffer()?;
        let chosen = Chosen::of(object, options)?;
        // An object's programs share its maps.
        let own = chosen.programs.first().map(|program| program.maps.clone());
        let own = own.unwrap_or_default();
        let mut record = RecordMaps::add(&own, buffer);
        let forks_map = MapId::from_index(record.maps.len());
        let added = [forks(), exited()];
        record.maps = record.maps.iter().cloned().chain(added).collect();
        let maps = LoadedMaps::create(&record.maps, object.btf())?;
        let programs = Programs::load(chosen, &maps, &record, options)?;
        let mut files = Vec::new();
        let file = std::fs::read(object.file()).unwrap_or_default();
        let described = ObjectInfo::new(object.file(), &file);
        if !file.is_empty() {
            files.push((Resource::OBJECT, file));
        }
        let types = object.kernel_types();
        files.extend(types.map(|types| (Resource::KERNEL_BTF, types.to_bytes())));
        Ok(Self {
            options: options.clone(),
            object: described,
            files,
            maps: Arc::new(maps),
            own: own.len(),
            tree: Tree {
                maps: record.maps.clone(),
                targets: record.targets,
                forks: forks_map,
                exited: MapId::from_index(forks_map.index() + 1),
            },
            record,
            programs,
            follow: None,
            unfollowed: 0,
            binary: None,
        })
    }

    /// Runs a command, with the programs attached from before its first instruction to its end,
    /// and writes a recording to `sink`. If the [options](LiveOptions) end it earlier, the
    /// command gets a `SIGTERM`.
    ///
    /// Maps keep their contents between two runs.
    ///
    /// # Errors
    /// The command can't be started, a program can't be attached, or the recording can't be
    /// written. `sink` has what was recorded until then.
    pub fn run(
        &mut self,
        command: &mut Command,
        sink: impl Write + Send,
    ) -> Result<Summary, LiveError> {
        self.binary = find_binary(command);
        let options = self.options.clone();
        record(self, Some(command), &options, sink)
    }

    /// Records without a command: a running process ([`LiveOptions::pid`]) or all processes
    /// ([`LiveOptions::all`]), until the [duration](LiveOptions::duration) is over or
    /// [`LiveOptions::stop`] is triggered.
    ///
    /// # Errors
    /// As of [`run`](Self::run), and if the options name no process or no end.
    pub fn watch(&mut self, sink: impl Write + Send) -> Result<Summary, LiveError> {
        self.binary = None;
        let options = self.options.clone();
        options.can_watch()?;
        record(self, None, &options, sink)
    }

    /// The object's own maps.
    fn own(&self) -> &[MapDef] {
        self.record.maps.get(..self.own).unwrap_or_default()
    }

    /// Resets the recorder's maps after an earlier run: sequence numbers of firings, followed and
    /// exited processes.
    fn reset(&self) -> Result<(), LiveError> {
        let failed = LiveError::system("clearing the recorder's maps");
        if let Some(state) = self.maps.map(self.record.state) {
            let zeros = vec![0; state.value_size()];
            let updated = state.update(&0u32.to_ne_bytes(), &zeros, UpdateFlags::empty());
            updated.map_err(&failed)?;
        }
        for map in [self.record.targets, self.tree.exited] {
            let Some(processes) = self.maps.map(map) else {
                continue;
            };
            for process in self.maps.keys(map)? {
                match processes.delete(&process) {
                    Ok(()) | Err(Errno::ENOENT) => {}
                    Err(errno) => return Err(failed(errno)),
                }
            }
        }
        Ok(())
    }

    /// The contents of the maps and the recorder's state of each CPU, once no program runs any
    /// more and all firings are written.
    ///
    /// That may be a little after everything is detached: a process that another thread forked
    /// has copies of the descriptors until it calls `execve`.
    fn final_state<W: Write>(
        &self,
        drain: &mut Outputs,
        writer: &mut Writer<W>,
    ) -> Result<(Snapshot, Vec<RecordState>), LiveError> {
        const ROUNDS: usize = 100;
        let mut round = 0;
        loop {
            let states = self.states()?;
            settle();
            drain.drain(writer)?;
            let maps = Snapshot::read(&self.maps, self.own());
            if self.states()? == states {
                return Ok((maps, states));
            }
            round += 1;
            if round == ROUNDS {
                return Err(LiveError::StillThere);
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// The recorder's state of each CPU.
    fn states(&self) -> Result<Vec<RecordState>, LiveError> {
        let value = self.maps.lookup(self.record.state, &0u32.to_ne_bytes())?;
        let value = value.ok_or(LiveError::system("reading the recorder's state")(
            Errno::ENOENT,
        ))?;
        let cpus = usize::try_from(possible_cpus()).unwrap_or(0).max(1);
        let each = value.len() / cpus;
        let states = value.chunks_exact(each.max(1)).map(RecordState::parse);
        let states = states.collect::<Result<Vec<_>, _>>();
        states.map_err(|_| LiveError::system("reading the recorder's state")(Errno::EINVAL))
    }
}

impl Subject for Live {
    type Drain = Outputs;

    fn expect_child(&mut self) -> Result<(), LiveError> {
        if self.options.all {
            return Ok(());
        }
        let follow = Follow::start(self.tree.clone(), &self.maps)?;
        follow.expect(&self.maps)?;
        self.follow = Some(follow);
        Ok(())
    }

    fn begin(
        &mut self,
        child: Option<u32>,
        header: &mut Header,
    ) -> Result<Begun<Outputs>, LiveError> {
        self.reset()?;
        let mut before = Snapshot::read(&self.maps, self.own());
        let programs = self.programs.all();
        let drain = Outputs::open(
            &self.maps,
            &self.record,
            self.own(),
            programs,
            self.options.all,
        )?
        .with_exited(self.tree.exited);
        match (child, &self.follow) {
            (Some(_), Some(follow)) => drop(follow.adopt(&self.maps)?),
            (None, None) if !self.options.all => {
                let follow = Follow::start(self.tree.clone(), &self.maps)?;
                if let Some(pid) = self.options.pid {
                    follow.add_tree(&self.maps, pid)?;
                }
                self.follow = Some(follow);
            }
            _ => {}
        }
        self.programs
            .attach(&self.options, self.binary.as_deref())?;
        // Attaching to USDT probes fills this map.
        before.renew(&self.maps, self.own(), USDT_SPECS);
        let running = self.programs.running();
        header.programs = running.map(Watched::described).collect();
        let maps = (0..).zip(self.own());
        header.maps = maps
            .map(|(number, map)| RecordedMap::new(number, map))
            .collect();
        header.object = Some(self.object.clone());
        let left_out = self.programs.left_out().map(|left| recording::LeftOut {
            program: left.program.clone(),
            why: format!("not attached: {}", left.why),
        });
        header.left_out = Some(left_out.collect());
        Ok(Begun {
            drain,
            before,
            resources: self.files.clone(),
        })
    }

    fn end(&mut self) -> Result<(), LiveError> {
        let detached = self.programs.detach();
        // Last, so that processes are followed until all programs are detached.
        if let Some(follow) = self.follow.take() {
            self.unfollowed = follow.missed(&self.maps)?;
        }
        detached
    }

    fn conclude<W: Write>(
        &mut self,
        mut drain: Outputs,
        writer: &mut Writer<W>,
        summary: &mut Summary,
    ) -> Result<Counted, LiveError> {
        let (after, states) = self.final_state(&mut drain, writer)?;
        let mut losses = drain.losses()?;
        let mut cpus = Vec::new();
        for (cpu, state) in (0..).zip(states) {
            for (cause, count) in [
                (Cause::RingFull, state.lost),
                (Cause::TooDeep, state.skipped),
            ] {
                losses.push(Loss {
                    cause,
                    cpu: Some(cpu),
                    of: None,
                    count,
                });
            }
            cpus.push(CpuTotal {
                cpu,
                sequence: state.begun,
            });
        }
        losses.retain(|loss| loss.count > 0);
        summary.losses = losses;
        summary.unfollowed = self.unfollowed;
        let ring = self.record.maps.get(self.record.ring.index());
        summary.buffer_bytes = ring.map_or(0, |ring| ring.max_entries.into());
        summary.left_out = self.programs.left_out().cloned().collect();
        let running = self.programs.running();
        summary.programs = running
            .map(|one| ProgramSummary {
                number: one.number,
                name: one.program.name.clone(),
                section: one.program.section.clone(),
                attach: one.place(),
                how: one.how.clone(),
                anywhere: is_anywhere(&one.program),
                firings: drain.count(one.number).firings,
                missed: one.missed,
            })
            .collect();
        Ok(Counted { after, cpus })
    }
}

/// The executable of a command, found through `PATH`.
fn find_binary(command: &Command) -> Option<PathBuf> {
    let program = Path::new(command.get_program());
    if program.components().count() > 1 {
        return program.canonicalize().ok();
    }
    let folders = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&folders).map(|folder| folder.join(program));
    files.find(|file| file.is_file())?.canonicalize().ok()
}
