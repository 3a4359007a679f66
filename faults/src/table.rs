//! The results: a JSON file, one fault a line, and the table in the documentation.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::path::Path;

use crate::campaign::Outcome;
use crate::fault::{Faults, at};

/// Reads a file of results.
pub fn read(path: &Path) -> Result<Vec<Outcome>, Box<dyn Error>> {
    let text = std::fs::read_to_string(path).map_err(|why| at(path, &why))?;
    let mut results = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let result = serde_json::from_str(line);
        results.push(result.map_err(|why| format!("{} line {number}: {why}", path.display()))?);
    }
    Ok(results)
}

/// Writes a file of results.
pub fn write(path: &Path, results: &[Outcome]) -> Result<(), Box<dyn Error>> {
    let mut text = String::new();
    for result in results {
        text.push_str(&serde_json::to_string(result)?);
        text.push('\n');
    }
    std::fs::write(path, text).map_err(|why| at(path, &why))?;
    Ok(())
}

/// A line about one result.
pub fn line(outcome: &Outcome) -> String {
    let Outcome {
        id,
        oracle,
        says,
        programs,
        seconds,
        ..
    } = outcome;
    let programs = programs.map_or("?".to_owned(), |programs| programs.to_string());
    match oracle {
        Some(oracle) => {
            let says = says.as_deref().unwrap_or_default();
            format!("{id}: {oracle}, {programs} programs, {seconds} s: {says}")
        }
        None => format!("{id}: not found, {programs} programs, {seconds} s"),
    }
}

/// The table in Markdown, with the sums before it.
pub fn markdown(faults: &Faults, results: &[Outcome]) -> String {
    let of = |id: &str| results.iter().find(|result| result.id == id);
    let ran: Vec<_> = faults
        .all()
        .iter()
        .filter_map(|fault| of(&fault.id))
        .collect();
    let found = ran.iter().filter(|result| result.found()).count();
    let cited = |wanted: bool| {
        let cited = faults.all().iter().filter(|fault| fault.cite.is_some());
        let results = cited.filter_map(|fault| of(&fault.id));
        results.filter(|result| !wanted || result.found()).count()
    };
    let mut oracles: BTreeMap<String, usize> = BTreeMap::new();
    for result in &ran {
        if let Some(oracle) = by(result) {
            *oracles.entry(oracle).or_default() += 1;
        }
    }
    let mut text = String::new();
    // Writing to a string can't fail.
    let _ = writeln!(
        text,
        "Found: {found} of {} faults; of those re-made from published fixes, {} of {}.",
        ran.len(),
        cited(true),
        cited(false),
    );
    let sums: Vec<_> = oracles
        .iter()
        .map(|(oracle, count)| format!("{oracle} {count}"))
        .collect();
    let _ = writeln!(text, "First finding by: {}.\n", sums.join(", "));
    let _ = writeln!(
        text,
        "| fault | what | published fix | found by | programs | seconds |"
    );
    let _ = writeln!(text, "|---|---|---|---|---:|---:|");
    for fault in faults.all() {
        let Some(result) = of(&fault.id) else {
            continue;
        };
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | {:.1} |",
            fault.id,
            cell(&fault.what),
            cell(fault.cite.as_deref().unwrap_or_default()),
            by(result).unwrap_or("**not found**".into()),
            result
                .programs
                .map_or(String::new(), |count| count.to_string()),
            result.seconds,
        );
    }
    text
}

/// What found a fault; with the kernel, if it was not found without it.
fn by(result: &Outcome) -> Option<String> {
    let oracle = result.oracle.as_deref()?;
    Some(match result.kernel {
        true => format!("{oracle} (kernel)"),
        false => oracle.to_owned(),
    })
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
