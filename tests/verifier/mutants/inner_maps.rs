//! Programs that the kernel rejects with a message that names a map: one of the program's
//! own, or an inner map, which has no name.

use bpflab::isa::RawInsn;
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType};

const LOOK_UP: i32 = 1;
const SPIN_LOCK: i32 = 93;
const TIMER_START: i32 = 170;

/// Helpers that need a special field in a map's value; these maps have none.
pub const HELPERS: [i32; 2] = [SPIN_LOCK, TIMER_START];

/// The map named in the message, and a map of such maps.
pub fn maps() -> Vec<MapDef> {
    let plain = MapDef::new("a_map_by_name", MapType::Array, 4, 48, 1);
    let mut outer = MapDef::new("outer", MapType::ArrayOfMaps, 4, 4, 1);
    outer.inner = Some(Box::new(plain.clone()));
    vec![plain, outer]
}

/// Passes the value of the first map, or of an inner map of the second, to a helper.
pub fn program(maps: &[MapDef], inner: bool, helper: i32) -> Program {
    let mut insns = vec![RawInsn::new(0x62, 10, 0, -4, 0)];
    let look_up = |insns: &mut Vec<RawInsn>| {
        insns.push(RawInsn::new(0xbf, 2, 10, 0, 0));
        insns.push(RawInsn::new(0x07, 2, 0, 0, -4));
        insns.push(RawInsn::new(0x85, 0, 0, 0, LOOK_UP));
        insns.push(RawInsn::new(0x55, 0, 0, 1, 0));
        insns.push(RawInsn::new(0x95, 0, 0, 0, 0));
        insns.push(RawInsn::new(0xbf, 1, 0, 0, 0));
    };
    insns.push(RawInsn::new(0x18, 1, 5, 0, i32::from(inner)));
    insns.push(RawInsn::default());
    look_up(&mut insns);
    if inner {
        look_up(&mut insns);
    }
    insns.push(RawInsn::new(0xb7, 2, 0, 0, 0));
    insns.push(RawInsn::new(0xb7, 3, 0, 0, 0));
    insns.push(RawInsn::new(0x85, 0, 0, 0, helper));
    insns.push(RawInsn::new(0xb7, 0, 0, 0, 0));
    insns.push(RawInsn::new(0x95, 0, 0, 0, 0));
    let mut program = Program::new("names", ProgType::SchedCls, insns);
    program.license = "GPL".into();
    program.maps = maps.into();
    program
}
