//! Recording in user space: the recorded form is an ordinary program, so a `Vm` can run it, and its
//! ring buffer has the firings.

use std::sync::Arc;

use bpflab::Vm;
use bpflab::compare::recording::{
    Contents, CpuTotal, Header, How, LeftOut, MapEntry, MapRead, Output, OutputSource, RecordedMap,
    RecordedProgram, Summary, When, Writer, sites_checksum,
};
use bpflab::harness::EngineKind;
use bpflab::instrument::{
    Candidate, Firing, Plan, RecordMaps, RecordOptions, Relays, Unrecordable,
};
use bpflab::program::{MapDef, Program};
use bpflab::spec::MapType;
use bpflab::vm::events::Event;
use bpflab::vm::maps::{Kind, Queue};
use bpflab::vm::{Output as Given, ProgramHandle, World};

/// Number of CPUs of the recorded machine.
pub const CPUS: u32 = 4;

/// The values of a queue or stack, without keys, the oldest first.
fn values(queue: &Queue, map_type: MapType) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut values = queue.values();
    if map_type == MapType::Stack {
        values.reverse();
    }
    values
        .into_iter()
        .map(|value| (Vec::new(), value))
        .collect()
}

/// An output: its source, map, CPU and bytes.
pub type RecordedOutput = (OutputSource, Option<u32>, Option<u32>, Vec<u8>);

/// A recording that tests can change before it is written to a file.
#[derive(Clone)]
pub struct UserRecording {
    pub programs: Vec<Arc<Program>>,
    pub maps: Vec<MapDef>,
    pub context_lens: Vec<u32>,
    /// Entries of maps: before or after, map, key, value.
    pub entries: Vec<(When, u32, Vec<u8>, Vec<u8>)>,
    pub firings: Vec<Vec<u8>>,
    pub outputs: Vec<RecordedOutput>,
    pub sequences: Vec<u64>,
    /// The kernel release in the header.
    pub release: String,
    /// How programs were recorded, by index, if not by firings.
    pub how: Vec<(usize, How)>,
    /// The programs left out in the header.
    pub left_out: Vec<LeftOut>,
    /// The plans that the programs were recorded with.
    plans: Vec<Plan>,
}

/// A machine in which programs are recorded.
pub struct Recorder {
    pub vm: Vm,
    pub handles: Vec<ProgramHandle>,
    ring: usize,
    /// Whether the programs' rings are not drained, so that they fill up.
    pub forgets: bool,
    recording: UserRecording,
}

impl Recorder {
    /// Loads the recorded forms of programs that share their maps.
    pub fn new(programs: Vec<Arc<Program>>, context_len: u32) -> Self {
        let world = World::with_cpus(CPUS);
        Self::in_world(world, programs, context_len, EngineKind::Jit)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same; an error if a program has no room for the code that recording adds.
    pub fn try_new(programs: Vec<Arc<Program>>, context_len: u32) -> Option<Self> {
        let world = World::with_cpus(CPUS);
        match Self::in_world(world, programs, context_len, EngineKind::Jit) {
            Ok(recorder) => Some(recorder),
            Err(why) => {
                eprintln!("{why}");
                None
            }
        }
    }

    pub fn in_world(
        world: World,
        programs: Vec<Arc<Program>>,
        context_len: u32,
        engine: EngineKind,
    ) -> Result<Self, Unrecordable> {
        let plans = programs.iter().map(|program| Plan::new(program));
        let plans = plans.collect::<Result<_, _>>()?;
        Self::with_plans(world, programs, plans, context_len, engine)
    }

    /// The same with the plans of another version of bpflab.
    pub fn with_plans(
        world: World,
        programs: Vec<Arc<Program>>,
        plans: Vec<Plan>,
        context_len: u32,
        engine: EngineKind,
    ) -> Result<Self, Unrecordable> {
        let maps = programs[0].maps.clone();
        let added = RecordMaps::add(&maps, 1 << 22);
        let candidates = programs
            .iter()
            .zip(&plans)
            .map(|(program, plan)| Candidate {
                program,
                plan: Ok(plan),
                context_len,
            });
        let relays = Relays::new(&candidates.collect::<Vec<_>>());
        let (mut recorded, mut following) = (Vec::new(), Vec::new());
        for (number, plan) in (0..).zip(&plans) {
            let relay = relays.get(number as usize).unwrap();
            let options = RecordOptions {
                number,
                context_len,
                all: true,
            };
            recorded.push(Arc::new(plan.record_opening(&added, &options, &relay)?));
            if relay.follows {
                let form = plan.record_following(&added, &options, &relay)?;
                following.push(Arc::new(form));
            }
        }
        let count = recorded.len();
        recorded.append(&mut following);
        let mut vm = Vm::with_world(world);
        vm.set_engine(engine);
        // Of two programs of the same name the last one is in prog arrays.
        let mut handles = vm.load_unverified_programs(&added.maps, recorded).unwrap();
        for handle in &handles {
            let verification = vm.verification(*handle).unwrap();
            let verdict = &verification.verdict;
            assert!(
                verdict.is_accepted() || verdict.is_unjudged(),
                "{}\n{}",
                verdict.message,
                verdict.log
            );
        }
        handles.truncate(count);
        let mut recorder = Self {
            vm,
            handles,
            ring: added.ring.index(),
            forgets: false,
            recording: UserRecording {
                context_lens: vec![0; programs.len()],
                programs,
                maps: maps.to_vec(),
                entries: Vec::new(),
                firings: Vec::new(),
                outputs: Vec::new(),
                sequences: vec![0; CPUS as usize],
                release: String::new(),
                how: Vec::new(),
                left_out: Vec::new(),
                plans,
            },
        };
        recorder.read_maps(When::Before);
        Ok(recorder)
    }

    /// Fires one of the programs.
    pub fn fire(&mut self, program: usize, event: &Event) {
        let outcome = self.vm.run(self.handles[program], event).unwrap();
        let cpu = self.vm.world().cpu();
        let map_number = |name: &str| {
            let place = self.recording.maps.iter().position(|map| map.name == *name);
            u32::try_from(place.unwrap()).unwrap()
        };
        let mut outputs = Vec::new();
        for output in &outcome.outputs {
            match output {
                Given::RingBuf { map, .. } if **map == *"rec_ring" => {}
                Given::RingBuf { map, data } => {
                    outputs.push((
                        OutputSource::Ring,
                        Some(map_number(map)),
                        None,
                        data.clone(),
                    ));
                }
                Given::Perf { map, cpu, data } => {
                    let map = Some(map_number(map));
                    outputs.push((OutputSource::Perf, map, Some(*cpu), data.clone()));
                }
                Given::Printk(line) => {
                    outputs.push((
                        OutputSource::Printk,
                        None,
                        Some(cpu),
                        line.clone().into_bytes(),
                    ));
                }
                _ => {}
            }
        }
        self.recording.outputs.extend(outputs);
        self.take();
    }

    /// Drains the rings.
    pub fn take(&mut self) {
        for map in self.vm.maps() {
            let is_ours = map.handle().index() == self.ring;
            match map.raw().kind() {
                Kind::RingBuf(ring) if is_ours => self.recording.firings.extend(ring.take()),
                Kind::RingBuf(ring) if !self.forgets => drop(ring.take()),
                _ => {}
            }
        }
    }

    fn read_maps(&mut self, when: When) {
        for (number, map) in (0..).zip(self.vm.maps()).take(self.recording.maps.len()) {
            let entries = match map.raw().kind() {
                Kind::Queue(queue) => values(queue, map.def().map_type),
                _ => map.entries_bytes().unwrap_or_default(),
            };
            for (key, value) in entries {
                self.recording.entries.push((when, number, key, value));
            }
        }
    }

    /// The whole recording.
    pub fn finish(mut self) -> UserRecording {
        self.read_maps(When::After);
        let mut recording = self.recording;
        for bytes in &recording.firings {
            let firing = Firing::parse(bytes).unwrap();
            let len = u32::try_from(firing.context.len()).unwrap();
            let known = &mut recording.context_lens[firing.program as usize];
            *known = len.max(*known);
            let next = &mut recording.sequences[firing.cpu as usize];
            *next = (firing.sequence + 1).max(*next);
        }
        recording
    }
}

impl UserRecording {
    /// The bytes of the file.
    pub fn file(&self) -> Vec<u8> {
        self.file_with(|_| ())
    }

    /// The bytes of the file with a changed header.
    pub fn file_with(&self, change: impl FnOnce(&mut Header)) -> Vec<u8> {
        let programs = (0..).zip(self.programs.iter().zip(&self.context_lens));
        let mut header = Header::default();
        header.possible_cpus = CPUS;
        header.kernel.release.clone_from(&self.release);
        header.left_out = Some(self.left_out.clone());
        header.programs = programs
            .map(|(number, (program, context_len))| {
                let mut told = self.how.iter();
                let how = told.find(|(place, _)| *place == number as usize);
                let how = how.map_or(How::Instrumented, |(_, how)| how.clone());
                RecordedProgram::new(number, program, "here", *context_len, how)
            })
            .collect();
        header.maps = (0..)
            .zip(&self.maps)
            .map(|(number, map)| RecordedMap::new(number, map))
            .collect();
        for (program, plan) in header.programs.iter_mut().zip(&self.plans) {
            if program.how == How::Instrumented {
                program.sites = sites_checksum(plan);
                program.schema = Some(plan.schema());
            }
        }
        change(&mut header);
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, &header).unwrap();
        self.write_maps(&mut writer, When::Before);
        for firing in &self.firings {
            writer.firing(firing).unwrap();
        }
        for (source, map, cpu, bytes) in &self.outputs {
            let output = Output {
                source: *source,
                map: *map,
                cpu: *cpu,
                pid: None,
                time: None,
                bytes,
            };
            writer.output(&output).unwrap();
        }
        self.write_maps(&mut writer, When::After);
        let cpus = (0..).zip(&self.sequences);
        let cpus = cpus.map(|(cpu, sequence)| CpuTotal::new(cpu, *sequence));
        let mut summary = Summary::default();
        summary.cpus = cpus.collect();
        writer.finish(summary).unwrap();
        file
    }

    fn write_maps(&self, writer: &mut Writer<&mut Vec<u8>>, at: When) {
        for (number, def) in (0..).zip(&self.maps) {
            let own = self.entries.iter();
            let own: Vec<_> = own
                .filter(|(when, map, ..)| *when == at && *map == number)
                .collect();
            for (when, map, key, value) in &own {
                let entry = MapEntry {
                    when: *when,
                    map: *map,
                    key,
                    value,
                };
                writer.map_entry(&entry).unwrap();
            }
            let read = MapRead {
                when: at,
                map: number,
                contents: match def.map_type {
                    MapType::Queue | MapType::Stack => Contents::Whole,
                    _ if def.key_size == 0 => Contents::Unread,
                    _ => Contents::Whole,
                },
                entries: own.len() as u64,
                why: b"",
            };
            writer.map_read(&read).unwrap();
        }
    }
}
