//! The results: a JSON file, one fault a line, and the table in the documentation.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::path::Path;

use crate::campaign::Outcome;
use crate::fault::{Seeds, at};

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
pub fn markdown(faults: &dyn Seeds, results: &[Outcome]) -> String {
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

/// The sums of each file in Markdown, then the faults that were not found.
pub fn by_file(faults: &dyn Seeds, results: &[Outcome]) -> String {
    let mut text = String::from("| file | faults | compile | ran | found | share |\n");
    text.push_str("|---|---:|---:|---:|---:|---:|\n");
    let found: BTreeMap<_, _> = results
        .iter()
        .map(|it| (it.id.as_str(), it.found()))
        .collect();
    let mut total = Sum::default();
    for file in faults.files() {
        let mut sum = Sum::default();
        let of_file = faults.all().iter().filter(|fault| fault.file == file);
        sum.all = of_file.count();
        for (_, fault) in faults.numbered().filter(|(_, fault)| fault.file == file) {
            sum.compile += 1;
            sum.ran += usize::from(found.contains_key(&*fault.id));
            sum.found += usize::from(found.get(&*fault.id) == Some(&true));
        }
        total.add(&sum);
        text.push_str(&sum.line(&format!("`{file}`")));
    }
    text.push_str(&total.line("all"));
    text.push_str("\nNot found:\n\n");
    for (_, fault) in faults.numbered() {
        if found.get(&*fault.id) == Some(&false) {
            text.push_str(&format!("- `{}`\n", fault.id));
        }
    }
    text
}

/// Counts of faults.
#[derive(Debug, Default)]
struct Sum {
    all: usize,
    compile: usize,
    ran: usize,
    found: usize,
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.all += other.all;
        self.compile += other.compile;
        self.ran += other.ran;
        self.found += other.found;
    }

    fn line(&self, name: &str) -> String {
        let Self {
            all,
            compile,
            ran,
            found,
        } = self;
        let share = match ran {
            0 => "none ran".into(),
            _ => format!("{:.1} %", 100.0 * *found as f64 / *ran as f64),
        };
        format!("| {name} | {all} | {compile} | {ran} | {found} | {share} |\n")
    }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::fault::{Applied, Fault};

    /// Three faults, of which the second does not compile.
    struct Three(Vec<Fault>, BTreeSet<u32>);

    impl Seeds for Three {
        fn all(&self) -> &[Fault] {
            &self.0
        }

        fn left_out(&self) -> &BTreeSet<u32> {
            &self.1
        }

        fn leave_out(&mut self, number: u32) -> Result<(), String> {
            self.1.insert(number);
            Ok(())
        }

        fn applied(&mut self, _: &str, _: &str) -> Result<Applied, String> {
            Err("not asked for".into())
        }
    }

    fn outcome(id: &str, oracle: Option<&str>) -> Outcome {
        Outcome {
            id: id.into(),
            oracle: oracle.map(str::to_owned),
            says: None,
            programs: None,
            seconds: 1.0,
            kernel: false,
        }
    }

    #[test]
    fn a_fault_that_did_not_run_is_in_no_share() {
        let fault = |id: &str, file: &str| Fault {
            id: id.into(),
            file: file.into(),
            what: String::new(),
            cite: None,
        };
        let all = [("a", "f"), ("b", "f"), ("c", "f"), ("d", "g")];
        let all = all.map(|(id, file)| fault(id, file));
        let faults = Three(all.into(), BTreeSet::from([2]));
        let results = [outcome("a", Some("state")), outcome("c", None)];
        let text = by_file(&faults, &results);
        let lines: Vec<_> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| `f` | 3 | 2 | 2 | 1 | 50.0 % |",
                "| `g` | 1 | 1 | 0 | 0 | none ran |",
                "| all | 4 | 3 | 2 | 1 | 50.0 % |",
                "",
                "Not found:",
                "",
                "- `c`",
            ]
        );
    }
}
