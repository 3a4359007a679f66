//! The table of `docs/peers.md`.

use std::collections::HashMap;

use super::Found;

/// Before and after the table.
const MARK: &str = "<!-- table -->\n";
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/peers.md");

/// The page, and the cells of its table.
pub struct Page {
    before: String,
    pub table: String,
    after: String,
    /// By instruction: a cell for each peer, and the example.
    rows: HashMap<String, Vec<String>>,
}

impl Page {
    /// Reads the page.
    pub fn read() -> Self {
        let page = std::fs::read_to_string(PATH).expect("the page");
        let mut parts = page.split(MARK).map(str::to_owned);
        let [before, table, after] = std::array::from_fn(|_| parts.next().expect("two marks"));
        let rows = table.lines().skip(2).map(|line| {
            let line = line.trim_start_matches("| ").trim_end_matches('|');
            let mut cells = line.split(" | ").map(|cell| cell.trim().to_owned());
            (cells.next().unwrap_or_default(), cells.collect())
        });
        Self {
            rows: rows.collect(),
            before,
            table,
            after,
        }
    }

    /// The row of an instruction; none if all peers have it as RFC 9669 says. Cells of peers that
    /// were not run are those of the page, which leaves out rows that are equal throughout.
    pub fn row(&self, name: &str, found: &[Option<Found>]) -> String {
        // A bar in code ends a cell, too.
        let name = format!("`{}`", name.replace('|', "\\|"));
        let old = self.rows.get(&name);
        let old_cell = |at: usize| old.and_then(|cells| cells.get(at)).cloned();
        let equal = || "equal".to_owned();
        let cells = found.iter().enumerate().map(|(at, found)| match found {
            Some(found) => found.to_string(),
            None => old_cell(at).unwrap_or_else(equal),
        });
        let cells: Vec<_> = cells.collect();
        if cells.iter().all(|cell| *cell == "equal") {
            return String::new();
        }
        let ran = found.iter().flatten();
        let example = ran.filter_map(|found| found.example.as_deref()).next();
        let example = example.map(|example| example.replace('|', "\\|"));
        // Peers that did not run are the last ones, whose example counts where others have none.
        let was_run = found.iter().all(Option::is_some);
        let old = || old_cell(found.len()).filter(|_| !was_run);
        let example = example.or_else(old).unwrap_or_default();
        format!("| {name} | {} | {example} |\n", cells.join(" | "))
    }

    /// Writes the page with another table.
    pub fn write(&self, table: &str) {
        let page = [&*self.before, table, &self.after].join(MARK);
        std::fs::write(PATH, page).expect("it can be written");
    }
}

/// A table of these rows.
pub fn table(titles: &[&str], rows: &str) -> String {
    let rule = "---|".repeat(titles.len());
    let titles = titles.join(" | ");
    format!("| instruction | {titles} | first example |\n|---|{rule}---|\n{rows}")
}
