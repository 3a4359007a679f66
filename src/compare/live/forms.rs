//! The recorded forms of an object's programs in the kernel. Those that tail calls connect are
//! recorded together or not at all, so that one which the kernel refuses takes others with it.

use super::programs::{Loader, Placed};
use crate::instrument::{Candidate, Plan, RecordOptions, Relay, Relays, Unrecordable};
use crate::kernel::LoadedProgram;
use crate::program::Program;

/// The recorded forms of a program, or why there are none.
pub(super) type Form = Result<Forms, String>;

/// The recorded forms of a program.
#[derive(Debug)]
pub(super) struct Forms {
    /// What is attached, where there is a place for it.
    pub opening: Option<LoadedProgram>,
    /// What prog arrays hold.
    pub following: Option<LoadedProgram>,
    /// Bytes of context that firings have on account of the others.
    pub context_len: u32,
}

/// The recorded forms of all programs.
pub(super) struct Recorded {
    pub forms: Vec<Form>,
    pub relays: Relays,
}

/// A form that is loaded already, and what it was made from.
struct Loaded {
    relay: Relay,
    forms: Forms,
}

/// Loads the recorded forms of these programs, which have these numbers.
pub(super) fn load(placed: &[(u32, Placed)], loader: &Loader<'_>) -> Recorded {
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

impl Loader<'_> {
    /// The recorded forms of one program, or why there are none.
    fn forms(&self, number: u32, one: &Placed, plan: &Plan, relay: Relay) -> Form {
        let options = RecordOptions {
            number,
            context_len: one.context_len,
            all: self.options.all,
        };
        let load = |form: Result<Program, Unrecordable>| {
            let form = form.map_err(|error| error.to_string())?;
            self.judged(&form)
                .map_err(|none| none.to_string())?
                .map_err(|message| format!("the kernel rejects its recorded form: {message}"))
        };
        let opening = one.point.is_some().then(|| {
            let form = plan.record_opening(self.record, &options, &relay);
            load(form)
        });
        let following = relay.follows.then(|| {
            let form = plan.record_following(self.record, &options, &relay);
            load(form)
        });
        Ok(Forms {
            opening: opening.transpose()?,
            following: following.transpose()?,
            context_len: relay.context_len,
        })
    }
}
