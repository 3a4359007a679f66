//! Completion scripts and manual pages: each verb is in all of them.

use crate::shared::{Need, command::run, is_emulated, skip};

use std::path::PathBuf;
use std::process::{Command, Output};

/// The verbs that `bpflab --help` lists.
fn verbs() -> Vec<String> {
    let output = run(["--help"], "");
    let help = text(&output);
    let verbs = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs = verbs.take_while(|line| !line.is_empty());
    let verbs = verbs.filter_map(|line| line.split_whitespace().next());
    let verbs: Vec<_> = verbs
        .filter(|verb| *verb != "help")
        .map(Into::into)
        .collect();
    assert!(verbs.len() > 5, "{verbs:?}");
    verbs
}

fn text(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// A folder that does not exist yet, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("bpflab-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn each_verb_is_in_each_completion_script() {
    for (shell, before, after) in [
        ("bash", "bpflab,", ")"),
        ("zsh", "'", ":"),
        ("fish", "-a \"", "\""),
        ("elvish", "cand ", " '"),
        ("powershell", "[CompletionResult]::new('", "'"),
    ] {
        let script = text(&run(["completions", shell], ""));
        for verb in verbs() {
            let word = format!("{before}{verb}{after}");
            assert!(script.contains(&word), "{shell}: no {word}");
        }
    }
}

#[test]
fn bash_completes_verbs_and_options() {
    if is_emulated() {
        return;
    }
    let script = text(&run(["completions", "bash"], ""));
    for (words, expected) in [
        ("bpflab ver", "verify\n"),
        ("bpflab kernel fun", "functions\n"),
        ("bpflab replay --eng", "--engine\n"),
        ("bpflab run --engine j", "jit\n"),
    ] {
        let complete = format!(
            "{script}\nCOMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n\
             _bpflab bpflab \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        match Command::new("bash")
            .args(["--norc", "-c", &complete])
            .output()
        {
            Ok(output) => assert_eq!(text(&output), expected, "{words}"),
            Err(error) => return skip(Need::Tools, format_args!("bash: {error}")),
        }
    }
}

#[test]
fn a_script_is_one_json_value() {
    let json = text(&run(["completions", "fish", "--json"], ""));
    let json: serde_json::Value = serde_json::from_str(&json).expect("one value");
    assert_eq!(json["shell"], "fish");
    assert_eq!(json["script"], text(&run(["completions", "fish"], "")));
}

#[test]
fn an_unknown_shell_is_told_with_those_that_exist() {
    let output = run(["completions", "csh"], "");
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("[possible values: bash, elvish, fish, powershell, zsh]"),
        "{error}"
    );
}

#[test]
fn each_verb_has_a_page_with_its_options_and_examples() {
    let folder = Folder::new("man");
    let named = text(&run(["man".as_ref(), folder.0.as_os_str()], ""));
    let written = std::fs::read_dir(&folder.0).expect("the folder").count();
    assert_eq!(named.lines().count(), written, "{named}");
    let page = |name: &str| {
        let path = folder.0.join(format!("{name}.1"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let first = page("bpflab");
    assert!(
        first.contains(".SH \"EXIT STATUS\"") && !first.contains("SEE ALSO"),
        "{first}"
    );
    assert_eq!(text(&run(["man"], "")), first);
    for verb in verbs() {
        let escaped = verb.replace('-', "\\-");
        assert!(first.contains(&format!("bpflab\\-{escaped}(1)")), "{verb}");
        let page = page(&format!("bpflab-{verb}"));
        assert!(
            page.contains(&format!("\\fBbpflab {escaped}\\fR")),
            "{verb}: {page}"
        );
        assert!(page.contains("\\-\\-json"), "{verb}: {page}");
        assert!(page.contains(".SH EXAMPLES\n.nf\n"), "{verb}: {page}");
        assert!(
            page.contains(".SH \"SEE ALSO\"\n\\fBbpflab\\fR(1)"),
            "{verb}: {page}"
        );
        assert!(!page.contains("EXTRA"), "{verb}: {page}");
    }
    // Verbs of verbs have pages, too; `kernels list` is everywhere the feature is.
    if cfg!(all(feature = "kernel", target_os = "linux")) {
        assert!(page("bpflab-kernels-list").contains("\\fBbpflab\\-kernels\\fR(1)"));
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let file = Folder::new("no-folder");
    std::fs::write(&file.0, "").expect("a file");
    let output = run(["man".as_ref(), file.0.join("man1").as_os_str()], "");
    let _ = std::fs::remove_file(&file.0);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    let name = file.0.join("man1").display().to_string();
    assert!(error.starts_with(&format!("error: {name}: ")), "{error}");
}

#[test]
fn a_quiet_command_prints_errors_and_results_only() {
    let object = "tests/objects/past_the_end.bpf.o";
    let loud = run(["run", object, "--unverified"], "");
    let quiet = run(["run", object, "--unverified", "-q"], "");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(text(&loud.stderr).contains("warning: "));
    assert!(!text(&quiet.stderr).contains("warning: "));
    assert!(text(&quiet.stderr).starts_with("error: program on_write: reads 8 bytes"));
    assert_eq!(quiet.stdout, loud.stdout);
    assert_eq!(quiet.status.code(), Some(1));
}
