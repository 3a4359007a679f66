//! Loads the recorded forms of an object's programs. Programs connected by tail calls are
//! recorded together or not at all: if the kernel rejects one form, the others are not used.

use super::options::LiveOptions;
use crate::instrument::{
    Candidate, Plan, RecordMaps, RecordOptions, Relay, Relays, Unrecordable, is_changing,
};
use crate::kernel::attach::AttachPoint;
use crate::kernel::{LoadOptions, LoadedMaps, LoadedProgram, NoVerdict, Uname, load};
use crate::program::Program;
use crate::spec::AttachType;

/// A program with its plan and attach point, before loading.
pub(super) struct Placed {
    pub program: Program,
    pub plan: Result<Plan, String>,
    /// Bytes of its context; 0 if not known.
    pub context_len: u32,
    /// Where it is to be attached.
    pub point: Option<AttachPoint>,
}

/// What programs are loaded with.
pub(super) struct Loader<'a> {
    pub maps: &'a LoadedMaps,
    pub record: &'a RecordMaps,
    pub options: &'a LiveOptions,
}

/// The recorded forms of a program, or why there are none.
pub(super) type Form = Result<Forms, String>;

/// The recorded forms of a program.
#[derive(Debug)]
pub(super) struct Forms {
    /// The form to attach; none without an attach point.
    pub opening: Option<LoadedProgram>,
    /// The form in prog arrays.
    pub following: Option<LoadedProgram>,
    /// Bytes of context that its firings need for the programs that it jumps to.
    pub context_len: u32,
}

/// The recorded forms of all programs.
pub(super) struct Recorded {
    pub forms: Vec<Form>,
    pub relays: Relays,
}

/// Forms that are loaded already, and the relay that they were made with.
struct Loaded {
    relay: Relay,
    forms: Forms,
}

/// Loads the recorded forms of numbered programs.
pub(super) fn load_all(placed: &[(u32, Placed)], loader: &Loader<'_>) -> Recorded {
    let mut refused: Vec<Option<String>> = vec![None; placed.len()];
    let mut loaded: Vec<Option<Loaded>> = placed.iter().map(|_| None).collect();
    loop {
        let candidates = placed.iter().zip(&refused).map(|((_, one), refused)| {
            let plan = one.plan.as_ref().map_err(Clone::clone);
            Candidate {
                program: &one.program,
                plan: match refused {
                    Some(why) => Err(why.clone()),
                    None => plan,
                },
                context_len: one.context_len,
            }
        });
        let candidates: Vec<_> = candidates.collect();
        let relays = Relays::new(&candidates);
        let mut complete = true;
        for (place, ((number, one), slot)) in placed.iter().zip(&mut loaded).enumerate() {
            let (Ok(relay), Ok(plan)) = (relays.get(place), &one.plan) else {
                *slot = None;
                continue;
            };
            if slot.as_ref().is_some_and(|known| known.relay == relay) {
                continue;
            }
            match loader.forms(*number, one, plan, relay) {
                Ok(forms) => *slot = Some(Loaded { relay, forms }),
                Err(why) => {
                    complete = false;
                    if let Some(slot) = refused.get_mut(place) {
                        *slot = Some(why);
                    }
                }
            }
        }
        if complete {
            let places = (0..).zip(loaded);
            let forms = places.map(|(place, loaded)| {
                relays.get(place)?;
                let forms = loaded.map(|loaded| loaded.forms);
                forms.ok_or_else(|| "it has no recorded form".to_owned())
            });
            return Recorded {
                forms: forms.collect(),
                relays,
            };
        }
    }
}

/// Whether a program runs in other processes than the command's: an iterator in the recorder's
/// own, which reads it, a program for packets in any. It is attached to its objects, its device
/// or its cgroup alone.
pub(super) fn is_anywhere(program: &Program) -> bool {
    program.expected_attach_type == Some(AttachType::TraceIter) || is_changing(program.prog_type)
}

/// The first release with atomic instructions that return the former value (`BPF_FETCH`), which
/// take the buffers of recorded forms.
const FETCHING_ATOMICS: (u32, u32) = (5, 12);

impl Loader<'_> {
    /// Loads a program: the program, or the verifier's message.
    pub fn judged(&self, program: &Program) -> Result<Result<LoadedProgram, String>, NoVerdict> {
        let options = LoadOptions::default().with_single_probes(true);
        let loaded = load(program, self.maps, &options)?;
        Ok(loaded.program.ok_or(loaded.verdict.message))
    }

    /// The recorded forms of one program, or why there are none.
    fn forms(&self, number: u32, one: &Placed, plan: &Plan, relay: Relay) -> Form {
        let options = RecordOptions {
            number,
            context_len: one.context_len,
            all: self.options.all || is_anywhere(&one.program),
        };
        let kernel = Uname::here();
        let load_form = |form: Result<Program, Unrecordable>| {
            let form = form.map_err(|error| error.to_string())?;
            if kernel.is_before(FETCHING_ATOMICS) {
                return Err(format!(
                    "a recorded form needs atomic instructions that return the former value: \
                     Linux 5.12 or later, this is {}",
                    kernel.release
                ));
            }
            self.judged(&form)
                .map_err(|none| none.to_string())?
                .map_err(|message| format!("the kernel rejects its recorded form: {message}"))
        };
        let opening = one.point.is_some().then(|| {
            let form = plan.record_opening(self.record, &options, &relay);
            load_form(form)
        });
        let following = relay.follows.then(|| {
            let form = plan.record_following(self.record, &options, &relay);
            load_form(form)
        });
        Ok(Forms {
            opening: opening.transpose()?,
            following: following.transpose()?,
            context_len: relay.context_len,
        })
    }
}
