//! Recording of explored states.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::spec::limits::MAX_CALL_FRAMES;
use crate::util::Pc;
use crate::verifier::history::History;
use crate::verifier::pool::Pools;
use crate::verifier::state::{SavedState, State};

/// A program point: an instruction, with the chain of calls that led there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ProgramPoint {
    /// The first instruction of the function that exploration started with.
    pub root: Pc,
    pub calls: SmallVec<[Pc; MAX_CALL_FRAMES]>,
    pub pc: Pc,
}

/// A function of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function {
    pub start: Pc,
    /// Whether it is explored on its own.
    pub global: bool,
}

/// A recorded state.
#[derive(Debug)]
pub(super) struct Recorded {
    pub state: SavedState,
    /// The next one of the same point.
    next: Option<usize>,
}

/// The recorded states of a point: the numbers of the first and the last of a list.
#[derive(Debug, Clone, Copy)]
struct StateList {
    first: usize,
    last: usize,
}

/// The recorded states. What is equal in two that follow each other is stored once.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub(super) functions: Vec<Function>,
    points: FxHashMap<ProgramPoint, StateList>,
    states: Vec<Recorded>,
    /// Their registers and slots.
    pub(super) pools: Pools,
    /// Whether exploration was complete.
    pub(super) complete: bool,
}

impl Recording {
    /// The number of states.
    pub(super) const fn len(&self) -> usize {
        self.states.len()
    }

    /// The states of a point, in the order in which they were explored.
    pub(super) fn at(&self, point: &ProgramPoint) -> impl Iterator<Item = &Recorded> {
        let state = |number: Option<usize>| self.states.get(number?);
        let first = state(self.points.get(point).map(|states| states.first));
        std::iter::successors(first, move |recorded| state(recorded.next))
    }

    fn add(&mut self, point: ProgramPoint, state: &State) {
        let before = self.states.last().map(|before| &before.state.frames);
        let frames = state.frames.iter().enumerate().map(|(number, frame)| {
            let before = before.and_then(|frames| frames.get(number));
            self.pools.save(frame, before)
        });
        let frames = frames.collect();
        let added = self.states.len();
        self.states.push(Recorded {
            state: state.with(frames, state.refs.clone(), History::default()),
            next: None,
        });
        let (first, last) = (added, added);
        let known = self
            .points
            .entry(point)
            .or_insert(StateList { first, last });
        if known.last != added {
            self.states[known.last].next = Some(added);
            known.last = added;
        }
    }
}

/// Records explored states, up to a limit.
#[derive(Debug)]
pub(crate) struct Recorder {
    recording: Recording,
    left: u64,
}

impl Recorder {
    pub(crate) fn new(functions: Vec<Function>, limit: u64) -> Self {
        Self {
            recording: Recording {
                functions,
                ..Recording::default()
            },
            left: limit,
        }
    }

    /// Records the state before its current instruction; returns whether there was room.
    pub(crate) fn record(&mut self, state: &State) -> bool {
        let Some(left) = self.left.checked_sub(1) else {
            return false;
        };
        self.left = left;
        let root = state.frames.first().map_or(0, |frame| frame.subprogram);
        let root = self.recording.functions.get(root as usize);
        let point = ProgramPoint {
            root: root.map_or(Pc(0), |function| function.start),
            calls: state
                .frames
                .iter()
                .filter_map(|frame| frame.callsite)
                .collect(),
            pc: state.pc,
        };
        self.recording.add(point, state);
        true
    }

    /// The recorded states; `complete` if exploration was complete.
    pub(crate) fn finish(self, complete: bool) -> Recording {
        Recording {
            complete,
            ..self.recording
        }
    }
}
