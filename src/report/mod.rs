//! Renders the results of the other layers as text (`Display`) and JSON (`Serialize`).

mod bench;
mod bench_baseline;
mod bench_lines;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod compare;
mod counted;
mod coverage;
mod datum;
#[cfg(feature = "cli")]
mod explained;
#[cfg(all(feature = "cli", feature = "kernel", target_os = "linux"))]
mod functions;
mod fuzz;
mod heatmap;
mod histogram;
mod histogram_rule;
mod injected;
mod inspection;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod kernel_check;
#[cfg(all(feature = "cli", feature = "kernel", target_os = "linux"))]
mod kernel_images;
mod kfuncs;
mod leak;
mod listing;
#[cfg(all(feature = "jit", feature = "cli"))]
mod machine_listing;
mod map_contents;
mod map_summary;
mod needs;
mod outputs;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod overhead;
mod packet;
mod page;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod record;
mod recording;
mod replay;
mod slot_keys;
mod support;
mod table;
mod tally;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod tracepoints;
mod verdict;

pub use bench::{BenchRow, BenchTable, ReadyRow};
pub use bench_baseline::{BenchBaseline, BenchBaselineError};
pub use bench_lines::{LineRow, LinesTable};
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub use compare::{CompareReport, EngineVerdicts, FindingRow, GeneratedSummary};
pub use coverage::{CoverageReport, CoverageRow, FailUnder, Share, cobertura, coverage_page, lcov};
pub use datum::{Datum, hex};
#[cfg(feature = "cli")]
pub use explained::ExplainedRow;
#[cfg(all(feature = "cli", feature = "kernel", target_os = "linux"))]
pub use functions::{FunctionRow, FunctionTable};
pub use fuzz::{FuzzFinding, FuzzProgress, FuzzSummary};
pub use heatmap::Heatmap;
pub use histogram::{Buckets, Histogram, Row};
pub use histogram_rule::HistogramRule;
pub use injected::InjectedRow;
pub use inspection::{
    BtfSummary, ExternSummary, GlobalSummary, Inspection, NoteRow, ProgramSummary, RelocationRow,
};
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub use kernel_check::KernelCheck;
#[cfg(all(feature = "cli", feature = "kernel", target_os = "linux"))]
pub use kernel_images::{KernelImageRow, KernelImages};
pub use kfuncs::KfuncSupport;
pub use leak::{LeakRow, LeakedBytesRow};
pub use listing::{ListedInsn, ListedLine, Listing};
#[cfg(all(feature = "jit", feature = "cli"))]
pub use machine_listing::{ListedMachineInsn, MachineListing};
#[cfg(feature = "cli")]
pub(crate) use map_contents::map_value;
pub use map_contents::{Chart, MapContents, MapEntry, NamedChart, Variables};
pub use map_summary::MapSummary;
pub use needs::{Needs, UsedFeature};
pub use outputs::{OutputRow, RecordTypes};
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub use overhead::{Overhead, OverheadRow, WatchTurn};
pub use packet::{PacketRow, PacketState};
pub use page::{Judged, Picture, ReplayPage, RunPage, Timeline, VerdictPage, pictures};
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub use record::RecordReport;
pub use recording::{
    CpuActivity, EventActivity, LossRow, MapActivity, MapReading, ProgramActivity, ReadState,
    RecordingReport, ResourceRow,
};
pub use replay::ReplayView;
pub use support::{Need, ProgramSupport, State, Support};
pub use table::Table;
pub use tally::{EventTally, FaultRow, ProgramTally, Returned};
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub use tracepoints::{TracepointDetail, TracepointRow};
pub use verdict::{
    Baseline, BaselineError, Before, Change, Changes, Count, FailOn, FailOnError, Finding,
    GithubAnnotations, Gravity, Headline, KernelSaid, KernelsTable, LogDifference, Match,
    MatchTable, MissingRow, Percent, Subject, VerdictRow, VerdictTable, VerdictTally, code_quality,
    sarif,
};
