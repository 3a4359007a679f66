//! The list of public items: `public_items.txt` has each type, function, method, variant and
//! field that the documentation shows. A change of the list is a change of the promise.
//! `BLESS=1` rewrites it. The signatures of public items name public types only.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

use crate::shared::skip::{Need, skip};

const LIST: &str = "tests/library/public_items.txt";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The documentation of the library as rustdoc's JSON.
fn documentation() -> Value {
    let target = root().join("target/public-items");
    let made = Command::new(env!("CARGO"))
        .args(["rustdoc", "--quiet", "--lib"])
        .current_dir(root())
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTDOC", root().join("tests/library/rustdoc_json.sh"))
        .output()
        .expect("cargo starts");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "cargo rustdoc: {said}");
    let file: PathBuf = target.join("doc/bpflab.json");
    let text = fs::read_to_string(file).expect("rustdoc wrote it");
    serde_json::from_str(&text).expect("JSON")
}

/// The items of the documentation, and those found so far.
struct Items<'a> {
    index: &'a Value,
    found: BTreeSet<String>,
    /// Items with a public path.
    public: BTreeSet<String>,
    /// Items that public items name, by the name of the public item.
    named: Vec<(String, String)>,
    /// Items that are being visited, since a module may export one around it.
    open: Vec<String>,
}

impl<'a> Items<'a> {
    fn item(&self, id: &Value) -> Option<&'a Value> {
        self.index.get(id.to_string().trim_matches('"'))
    }

    fn note(&mut self, kind: &str, path: &str) {
        self.found.insert(format!("{kind} {path}"));
    }

    /// Whether an item has `#[doc(hidden)]`.
    fn is_hidden(&self, id: &Value) -> bool {
        let attributes = self.item(id).and_then(|item| item["attrs"].as_array());
        let mut attributes = attributes.into_iter().flatten();
        attributes.any(|attribute| attribute["other"] == "#[doc(hidden)]")
    }

    /// The items of a list in a place, without the hidden ones.
    fn all(&mut self, ids: &'a Value, path: &str) {
        for id in ids.as_array().into_iter().flatten() {
            if !self.is_hidden(id) {
                self.visit(id, path, None);
            }
        }
    }

    /// The types and traits that a part of a signature names.
    fn names(&mut self, part: &Value, path: &str) {
        match part {
            Value::Array(parts) => parts.iter().for_each(|part| self.names(part, path)),
            Value::Object(parts) => {
                let paths = [&part["resolved_path"]["id"], &part["trait"]["id"]];
                for id in paths.into_iter().filter(|id| !id.is_null()) {
                    self.named.push((path.to_owned(), id.to_string()));
                }
                parts.values().for_each(|part| self.names(part, path));
            }
            _ => {}
        }
    }

    /// An item, in a place, under its own name or the one that it is exported by.
    fn visit(&mut self, id: &'a Value, path: &str, name: Option<&str>) {
        let Some(item) = self.item(id) else {
            return; // of another crate
        };
        let Some((kind, inner)) = item["inner"]
            .as_object()
            .and_then(|inner| inner.iter().next())
        else {
            return;
        };
        if kind == "use" {
            return self.export(inner, path);
        }
        let Some(name) = name.or_else(|| item["name"].as_str()) else {
            return;
        };
        let own = if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}::{name}")
        };
        let mark = format!("{id} {own}");
        if self.open.contains(&mark) {
            return;
        }
        self.open.push(mark);
        self.public.insert(id.to_string());
        match kind.as_str() {
            "module" => self.all(&inner["items"], &own),
            "struct" | "union" => {
                self.note(kind, &own);
                self.all(&inner["kind"]["plain"]["fields"], &own);
                self.methods(&inner["impls"], &own);
            }
            "enum" => {
                self.note(kind, &own);
                self.all(&inner["variants"], &own);
                self.methods(&inner["impls"], &own);
            }
            "trait" => {
                self.note(kind, &own);
                self.all(&inner["items"], &own);
            }
            "variant" => {
                self.note(kind, &own);
                for fields in [&inner["kind"]["tuple"], &inner["kind"]["struct"]["fields"]] {
                    for field in fields.as_array().into_iter().flatten() {
                        if let Some(field) = self.item(field) {
                            self.names(&field["inner"], &own);
                        }
                    }
                }
            }
            kind => {
                let kind = match kind {
                    "struct_field" => "field",
                    "assoc_const" | "constant" | "static" => "const",
                    "assoc_type" | "type_alias" => "type",
                    "function" => "fn",
                    kind => kind,
                };
                self.note(kind, &own);
                self.names(inner, &own);
            }
        }
        self.open.pop();
    }

    /// What `pub use` exports.
    fn export(&mut self, inner: &'a Value, path: &str) {
        let id = &inner["id"];
        match inner["is_glob"].as_bool() {
            Some(true) => {
                if let Some(from) = self.item(id) {
                    self.all(&from["inner"]["module"]["items"], path);
                    self.all(&from["inner"]["enum"]["variants"], path);
                }
            }
            _ => self.visit(id, path, inner["name"].as_str()),
        }
    }

    /// The methods of a type's own blocks.
    fn methods(&mut self, blocks: &'a Value, path: &str) {
        for id in blocks.as_array().into_iter().flatten() {
            let block = self.item(id).map(|item| &item["inner"]["impl"]);
            if let Some(block) = block.filter(|block| block["trait"].is_null()) {
                self.all(&block["items"], path);
            }
        }
    }
}

/// The public items.
fn items(documentation: &Value) -> Items<'_> {
    let mut items = Items {
        index: &documentation["index"],
        found: BTreeSet::new(),
        public: BTreeSet::new(),
        named: Vec::new(),
        open: Vec::new(),
    };
    items.visit(&documentation["root"], "", None);
    items
}

/// The public items that name a type of this crate without a public path. Excepted are the
/// descriptions of logs: `docs/recording-format.md` has their fields.
fn naming_hidden_types(documentation: &Value, items: &Items) -> Vec<String> {
    let hidden = |(item, id): &(String, String)| {
        let named = &documentation["paths"][id];
        let path = named["path"].as_array()?;
        let is_own = named["crate_id"] == 0 && path.get(1)? != "instrument";
        let is_hidden = is_own && !items.public.contains(id);
        is_hidden.then(|| format!("{item}: {}", named["path"]))
    };
    items.named.iter().filter_map(hidden).collect()
}

#[test]
fn the_list_of_public_items_is_current() {
    if !env::var("BPFLAB_REQUIRE").is_ok_and(|needs| needs.contains(Need::Rustdoc.word())) {
        return skip(Need::Rustdoc, "the list of public items takes a minute");
    }
    let documentation = documentation();
    let items = items(&documentation);
    let hidden = naming_hidden_types(&documentation, &items);
    assert!(hidden.is_empty(), "{hidden:#?}");
    let now = items.found;
    assert!(
        now.contains("fn bpflab::harness::Vm::fire"),
        "{}",
        now.len()
    );
    let text: String = now.iter().map(|item| format!("{item}\n")).collect();
    let file = root().join(LIST);
    if env::var_os("BLESS").is_some() {
        fs::write(&file, &text).expect("writable");
    }
    let listed = fs::read_to_string(&file).unwrap_or_default();
    let listed: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    let added: Vec<_> = now.difference(&listed).map(String::as_str).collect();
    let removed: Vec<_> = listed.difference(&now).map(String::as_str).collect();
    assert!(
        added.is_empty() && removed.is_empty(),
        "{LIST} is not current (BLESS=1 rewrites it)\nnot in the list:\n{}\nno longer there:\n{}",
        added.join("\n"),
        removed.join("\n")
    );
}
