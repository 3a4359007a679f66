//! The library: instructions, engines, maps, the mocked world.

#[path = "../shared/mod.rs"]
mod shared;

mod attach;
mod attach_program;
mod corpus_runs;
mod dynptrs;
mod engine_tests;
mod engines;
mod equality;
mod equality_objects;
// The list is of the errors of a build with everything.
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod errors;
mod formatting;
mod fuzz;
mod harness;
mod inject;
mod instrument;
mod instrument_same;
mod isa_objdump;
mod isa_text;
mod jit;
mod jit_large;
mod kernel_memory;
mod kernel_structures;
mod kfuncs;
mod kfuncs_world;
mod layering;
mod logarithms;
mod machine_code;
mod map_view;
mod maps_kinds;
mod net;
mod probes;
mod public_items;
mod qdisc;
mod runs;
mod sched_ext;
mod since;
mod snippets;
mod stacks;
mod threads;
mod threads_maps;
mod timers;
mod uninit;
