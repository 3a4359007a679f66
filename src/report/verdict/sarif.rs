//! Findings as SARIF 2.1.0, the format that code hosts read.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::finding::{Finding, Gravity};

/// The log with all findings of a run, as section 3.13 of the standard defines it.
#[must_use]
pub fn sarif(findings: &[Finding]) -> Value {
    let rules: BTreeMap<&str, &str> = findings
        .iter()
        .map(|finding| (finding.rule.as_str(), finding.about.as_str()))
        .collect();
    let index = |rule: &str| rules.keys().position(|id| *id == rule);
    let results = findings.iter().map(|finding| {
        let mut place = json!({ "artifactLocation": { "uri": uri(&finding.file) } });
        if let Some(line) = finding.line {
            let mut region = json!({ "startLine": line });
            if let Some(column) = finding.column {
                region["startColumn"] = column.into();
            }
            if let Some(text) = &finding.text {
                region["snippet"] = json!({ "text": text });
            }
            place["region"] = region;
        }
        let program = json!({ "name": finding.program, "kind": "function" });
        json!({
            "ruleId": finding.rule,
            "ruleIndex": index(&finding.rule),
            "level": level(finding.gravity),
            "message": { "text": finding.message },
            "locations": [{ "physicalLocation": place, "logicalLocations": [program] }],
        })
    });
    let results: Vec<Value> = results.collect();
    let rules = rules.iter().map(|(id, about)| {
        json!({
            "id": id,
            "shortDescription": { "text": about },
        })
    });
    let rules: Vec<Value> = rules.collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "bpflab",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "results": results,
        }],
    })
}

const fn level(gravity: Gravity) -> &'static str {
    match gravity {
        Gravity::Error => "error",
        Gravity::Warning => "warning",
    }
}

/// A path as a URI: relative, or with the scheme `file`.
fn uri(path: &str) -> String {
    let mut uri = if path.starts_with('/') {
        "file://".to_owned()
    } else {
        String::new()
    };
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            byte => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri("bpf/a b.c"), "bpf/a%20b.c");
        assert_eq!(uri("/usr/include/é.h"), "file:///usr/include/%C3%A9.h");
        assert_eq!(uri("a:b#c%"), "a%3Ab%23c%25");
    }

    #[test]
    fn each_result_names_its_rule_and_its_place() {
        let finding = |rule: &str, line| Finding {
            rule: rule.to_owned(),
            about: rule.to_uppercase(),
            gravity: Gravity::Warning,
            message: "m".to_owned(),
            program: "p".to_owned(),
            file: "a.c".to_owned(),
            line,
            column: None,
            text: None,
        };
        let log = sarif(&[
            finding("b", Some(3)),
            finding("a", None),
            finding("b", None),
        ]);
        let run = &log["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        assert_eq!(rules.len(), 2);
        for result in run["results"].as_array().unwrap() {
            let at = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(rules[at]["id"], result["ruleId"]);
            assert_eq!(result["level"], "warning");
        }
        let place = |at: usize| &run["results"][at]["locations"][0]["physicalLocation"];
        assert_eq!(place(0)["region"], json!({ "startLine": 3 }));
        assert!(place(1).get("region").is_none());
        assert_eq!(sarif(&[])["runs"][0]["results"], json!([]));
    }
}
