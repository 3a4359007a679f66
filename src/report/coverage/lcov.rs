//! Coverage as a trace file of lcov (`man geninfo`).

use std::fmt::Write;

use crate::coverage::{Source, SourceFile};

/// The coverage as an lcov trace file. Lines, functions and branches that are dead or were not
/// measured are left out: lcov has no such states.
#[must_use]
pub fn lcov(source: &Source) -> String {
    let mut text = String::new();
    for (name, file) in &source.files {
        // Writing to a string can't fail.
        let _ = write_file(&mut text, name, file);
    }
    text
}

fn write_file(text: &mut String, name: &str, file: &SourceFile) -> std::fmt::Result {
    writeln!(text, "TN:\nSF:{name}")?;
    let functions: Vec<_> = file
        .functions
        .iter()
        .filter(|(_, tally)| tally.is_counted())
        .collect();
    for (function, _) in &functions {
        writeln!(text, "FN:{},{}", function.line, function.name)?;
    }
    for (function, tally) in &functions {
        writeln!(text, "FNDA:{},{}", tally.count, function.name)?;
    }
    let hit = functions.iter().filter(|(_, tally)| tally.count > 0);
    writeln!(text, "FNF:{}\nFNH:{}", functions.len(), hit.count())?;
    let (mut found, mut hit) = (0, 0);
    for (number, line) in &file.lines {
        for (block, sides) in line.branches.values().enumerate() {
            let is_executed = sides.iter().any(|side| side.count > 0);
            for (side, tally) in sides.iter().enumerate() {
                if !tally.is_counted() {
                    continue;
                }
                found += 1;
                hit += u32::from(tally.count > 0);
                // A dash: the condition was never evaluated.
                match is_executed {
                    true => writeln!(text, "BRDA:{number},{block},{side},{}", tally.count)?,
                    false => writeln!(text, "BRDA:{number},{block},{side},-")?,
                }
            }
        }
    }
    writeln!(text, "BRF:{found}\nBRH:{hit}")?;
    let (mut found, mut hit) = (0, 0);
    for (number, line) in file
        .lines
        .iter()
        .filter(|(_, line)| line.tally.is_counted())
    {
        found += 1;
        hit += u32::from(line.tally.count > 0);
        writeln!(text, "DA:{number},{}", line.tally.count)?;
    }
    writeln!(text, "LF:{found}\nLH:{hit}\nend_of_record")
}
