//! Prints the table of `docs/benchmarks.md`, in Markdown:
//!
//! ```text
//! cargo bench --bench table                      all of it
//! cargo bench --bench table -- --write           and writes it into the page, and the chart
//! cargo bench --bench table -- --quick           fewer and shorter samples
//! cargo bench --bench table -- sum fnv           only these programs
//! cargo bench --bench table -- compile           only this part: compile, loading, verifying, events
//! ```

mod chart;
mod measure;
mod rows;
#[allow(dead_code, reason = "each target uses a part of it")]
mod suite;

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt::Write;

use measure::host::Host;
use measure::{Effort, Row};
use rows::goals::{HEADING, number};
use rows::programs::Rows;
use suite::columns::Column;
use suite::engine::Engine;
use suite::installed::Peer;
use suite::llvmbpf::LLVMBPF;
use suite::programs::{Group, PROGRAMS};
use suite::ubpf::UBPF;

/// Parts of the table that are measured alone if they are named.
const PARTS: [&str; 4] = ["compile", "loading", "verifying", "events"];

/// The page with the table, and the lines around the table.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/benchmarks.md");
const BEGIN: &str = "<!-- table -->\n";
const END: &str = "<!-- /table -->\n";
/// The chart, which the README shows.
const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/benchmarks.svg");

fn main() {
    // Cargo adds `--bench`.
    let words = std::env::args().skip(1).filter(|word| word != "--bench");
    let (options, names): (Vec<_>, Vec<_>) = words.partition(|word| word.starts_with("--"));
    let quick = options.iter().any(|option| option == "--quick");
    let write = options.iter().any(|option| option == "--write");
    let all = PROGRAMS.iter().map(|program| program.name).chain(PARTS);
    let all: Vec<_> = all.collect();
    if let Some(unknown) = names.iter().find(|name| !all.contains(&name.as_str())) {
        eprintln!(
            "error: no program or part '{unknown}'; there are {}",
            all.join(", ")
        );
        std::process::exit(2);
    }
    if write && !names.is_empty() {
        eprintln!("error: --write replaces the whole table: leave out the names");
        std::process::exit(2);
    }
    let mut text = String::new();
    let (host, table) = measure_all(
        &names,
        if quick { Effort::QUICK } else { Effort::FULL },
        &mut |part| {
            println!("{part}");
            text.push_str(part);
            text.push('\n');
        },
    );
    if write {
        let page = std::fs::read_to_string(PAGE).expect("the page is there");
        let (before, rest) = page.split_once(BEGIN).expect("the table has a begin");
        let (_, after) = rest.split_once(END).expect("the table has an end");
        let page = format!("{before}{BEGIN}{text}{END}{after}");
        std::fs::write(PAGE, page).expect("the page can be written");
        match chart::chart(&table, &host) {
            Some(chart) => std::fs::write(CHART, chart).expect("the chart can be written"),
            None => eprintln!("the chart was not written: it needs a kernel"),
        }
    }
}

/// Measures everything, or the programs and parts with these names, and prints the parts in turn.
fn measure_all(names: &[String], effort: Effort, show: &mut dyn FnMut(&str)) -> (Host, Vec<Row>) {
    let host = Host::this();
    show(&host.to_string());
    let engines: Vec<_> = Column::ALL.into_iter().map(Column::engine).collect();
    let table = programs(&engines, names, effort);
    let mut figures = Rows(&table).figures();
    let mut details = Vec::new();
    let is_wanted = |part: &str| names.is_empty() || names.iter().any(|name| name == part);
    if is_wanted("compile") {
        let compiled = rows::compile::measure(effort);
        figures.extend(rows::compile::figures(&compiled));
        details.push(rows::compile::table(&compiled));
    }
    if is_wanted("loading") {
        figures.push(rows::loading::figure(effort));
    }
    if is_wanted("verifying") {
        figures.push(rows::verifying::figure(effort));
    }
    if is_wanted("events") {
        figures.push(rows::events::figure(effort));
    }
    if names.is_empty() {
        let maps = rows::maps::all(effort);
        figures.extend(maps.figures());
        details.push(maps.to_string());
        details.push(rows::threads::table(effort));
        details.push(rows::scaling::table(effort));
    }
    let shown = figures
        .iter()
        .filter(|figure| names.is_empty() || figure.measured.is_some());
    let lines = shown.map(ToString::to_string);
    show(&lines.fold(HEADING.to_owned(), |text, line| text + &line));
    if !table.is_empty() {
        show(&ratios(&table));
        show(&times(&table));
    }
    for part in [absences(&table), details.join("\n")] {
        if !part.is_empty() {
            show(&part);
        }
    }
    (host, table)
}

/// Measures the programs (all or the named ones), and with any of them the empty one.
fn programs(engines: &[Box<dyn Engine>], names: &[String], effort: Effort) -> Vec<Row> {
    if !names.is_empty() && names.iter().all(|name| PARTS.contains(&name.as_str())) {
        return Vec::new();
    }
    let wanted = PROGRAMS.iter().filter(|program| {
        let is_named = names.iter().any(|name| name == program.name);
        names.is_empty() || is_named || program.group == Group::Empty
    });
    let rows = wanted.map(|program| {
        eprintln!("{}", program.title);
        Row::measure(program, engines, effort)
    });
    rows.collect()
}

/// The heading of a table of numbers.
fn heading(first: &str, titles: &[impl Borrow<str>]) -> String {
    let rule = "--:|".repeat(titles.len());
    format!("| {first} | {} |\n|---|{rule}\n", titles.join(" | "))
}

/// The table of nanoseconds per run; its first row is what each engine checks.
fn times(table: &[Row]) -> String {
    let columns = Column::ALL.into_iter().filter(|it| it.is_installed());
    let columns: Vec<_> = columns.collect();
    let words = |word: fn(Column) -> &'static str| -> Vec<_> {
        columns.iter().map(|column| word(*column)).collect()
    };
    let mut text = heading("ns a run", &words(Column::title));
    let checks = words(Column::checks_memory);
    let _ = writeln!(text, "| *checks memory* | *{}* |", checks.join("* | *"));
    for row in table {
        let cell = |column: &Column| row.ns(*column).map_or("–".to_owned(), number);
        let cells: Vec<_> = columns.iter().map(cell).collect();
        let _ = writeln!(text, "| {} | {} |", row.program.title, cells.join(" | "));
    }
    text
}

/// The table of ratios.
fn ratios(table: &[Row]) -> String {
    use Column::{
        Checked, Interp, Jit, Kernel, Llvmbpf, Native, RbpfInterp, RbpfJit, SbpfInterp, SbpfJit,
        UbpfInterp, UbpfJit,
    };
    const RATIOS: &[(Column, Column)] = &[
        (Jit, Kernel),
        (Jit, Native),
        (Interp, Kernel),
        (RbpfInterp, Interp),
        (SbpfInterp, Interp),
        (UbpfInterp, Interp),
        (RbpfJit, Jit),
        (SbpfJit, Jit),
        (UbpfJit, Jit),
        (Llvmbpf, Jit),
        (Checked, Interp),
    ];
    let ratios: Vec<_> = RATIOS.iter().filter(|(of, _)| of.is_installed()).collect();
    let title = |(of, to): &&(Column, Column)| format!("{} / {}", of.title(), to.title());
    let titles: Vec<_> = ratios.iter().map(title).collect();
    let mut text = heading("ratio of times", &titles);
    for row in table {
        let cell =
            |(of, to): &&(Column, Column)| row.ratio(*of, *to).map_or("–".to_owned(), number);
        let cells: Vec<_> = ratios.iter().map(cell).collect();
        let _ = writeln!(text, "| {} | {} |", row.program.title, cells.join(" | "));
    }
    text
}

/// The reasons for empty cells and missing columns.
fn absences(table: &[Row]) -> String {
    let mut why: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for row in table {
        for column in Column::ALL.into_iter().filter(|it| it.is_installed()) {
            if let Err(absent) = row.ns(column) {
                why.entry((column.title(), absent))
                    .or_default()
                    .push(row.program.title);
            }
        }
    }
    let lines = why.iter().map(|((column, absent), programs)| {
        let programs = match programs.len() == table.len() {
            true => "all".to_owned(),
            false => programs.join(", "),
        };
        format!("- {column}, {programs}: not available here: {absent}\n")
    });
    let peers = [UBPF, LLVMBPF].into_iter().filter_map(Peer::missing);
    let peers = peers.map(|why| format!("- {why}\n"));
    lines.chain(peers).collect()
}
