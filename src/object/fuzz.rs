//! The body of the object fuzz target: no input may panic, hang or take excessive memory.

use super::model::Object;
use super::target::Target;

/// Number of names to look up one by one.
const LOOKED_AT: usize = 8;

/// Opens `bytes` as an object and, if that succeeds, exercises all operations that need no
/// kernel.
#[doc(hidden)]
pub fn exercise(bytes: &[u8]) {
    let linked = Object::link("linked.o", &[("a.o", bytes)]);
    drop(linked.map(use_up));
    // Linking it with itself fails at its first global symbol, or joins everything.
    drop(Object::link("twice.o", &[("a.o", bytes), ("b.o", bytes)]).map(use_up));
    let Ok(object) = Object::parse("fuzz.bpf.o", bytes) else {
        return;
    };
    use_up(object);
}

fn use_up(mut object: Object) {
    object.set_target(Target::Own);
    object.set_kconfig("CONFIG_HZ", "250");
    let names: Vec<String> = object
        .globals()
        .iter()
        .map(|global| global.name.clone())
        .collect();
    for name in names.iter().take(LOOKED_AT) {
        if let Ok(value) = object.global(name) {
            let _ = object.set_global(name, value);
        }
        let _ = object.set_global(&format!("{name}[1].{name}"), 1);
    }
    let names: Vec<String> = object.maps().iter().map(|map| map.name.clone()).collect();
    for name in names.iter().take(LOOKED_AT) {
        if let Ok(mut map) = object.map_mut(name) {
            let _ = map.set_max_entries(1000).map(|_| ());
            let _ = map.set_value_size(1000).map(|_| ());
        }
    }
    let mut left = LOOKED_AT;
    for entry in object.entries() {
        if !entry.autoload() && left > 0 {
            left -= 1;
            let _ = object.program(entry.name());
        }
    }
    for program in object.programs().flatten() {
        for pc in 0..program.insns.len().min(LOOKED_AT) {
            let pc = crate::util::Pc::from_index(pc);
            let _ = (
                program.source(pc),
                program.core_access(pc),
                program.subprogram(pc),
            );
        }
    }
}
