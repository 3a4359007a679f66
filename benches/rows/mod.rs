//! The figures other than the programs' times, and their goals.
//!
//! | file | what it measures |
//! |---|---|
//! | `programs` | figures derived from the programs' times |
//! | `compile` | compiling programs of 100 to 60,000 instructions |
//! | `loading` | from a file to a program that is ready to run |
//! | `events` | events from memory |
//! | `maps` | single operations on maps |
//! | `threads` | map operations from one and two threads |
//! | `scaling` | many records on one and two CPUs |
//! | `verifying` | verification of programs that take most of it |

pub mod compile;
pub mod events;
pub mod goals;
pub mod loading;
pub mod maps;
pub mod programs;
pub mod scaling;
pub mod threads;
pub mod verifying;
