//! Arguments that several verbs share: an object, and the kernel that it is relocated for.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::Failure;
use super::files::read_text;
use super::map_values;
use super::object_rules::{MapRule, TypeRule};
use crate::btf::Btf;
use crate::object::cases::{CaseError, Cases};
use crate::object::{Entry, Object, Target};
use crate::program::{MapDef, MapOrigin, Program};
use crate::spec::limits::PAGE_SIZE;
use crate::spec::{MapType, nearest_section};

/// The object's own types, as a value of `--btf`.
const OWN: &str = "own";
/// The bundled types, as a value of `--btf`.
const BUNDLED: &str = "bundled";

/// Options of the kernel that programs are relocated for.
#[derive(Debug, Clone, Args)]
pub(super) struct KernelArguments {
    /// Relocate for the kernel with this BTF file (BTF or vmlinux; plain, gzip, xz); `own` for
    /// the object's own types; `bundled` for bpflab's description of common kernel types
    /// [default: the running kernel; without its BTF `bundled` for objects that attach to one of
    /// its functions or tracepoints, `own` for others]
    #[arg(long, value_name = "FILE|own|bundled")]
    pub btf: Option<PathBuf>,
    /// Add a module of the kernel (repeatable): its BTF file or its ELF file, or the name of a
    /// module of the running kernel, from /sys/kernel/btf
    #[arg(long, value_name = "FILE|NAME")]
    pub btf_module: Vec<PathBuf>,
    /// Set kernel configuration for `__kconfig` variables: a configuration file, or one value
    /// (CONFIG_HZ=250)
    #[arg(long, value_name = "FILE|NAME=VALUE")]
    pub kconfig: Vec<String>,
    /// Set addresses of kernel symbols for `__ksym` variables: a file like /proc/kallsyms, or
    /// one address (NAME=0xffffffff81000000)
    #[arg(long, value_name = "FILE|NAME=ADDRESS")]
    pub ksym: Vec<String>,
    /// Set the type of programs whose section names none, or of those whose name or section
    /// matches a pattern: --type sched_cls, --type 'count=xdp', --type '2/*=sched_cls', --type
    /// 'hook=cgroup_sock_addr:cgroup_inet4_connect'
    #[arg(long = "type", value_name = "[PATTERN=]PROG_TYPE[:ATTACH_TYPE]", value_parser = TypeRule::parse)]
    pub types: Vec<TypeRule>,
    /// Set an attribute of a map that its tool sets at run time: type, key_size, value_size,
    /// max_entries, map_flags, map_extra, or inner, the definition of its inner maps (--map-def
    /// events.max_entries=4096, --map-def outer.inner=counters, --map-def
    /// outer.inner=array:4:8:16); or define the map that instructions name by a descriptor, as
    /// bpftrace 0.17 writes them (--map-def fd:0=percpu_hash:16:8:4096)
    #[arg(long, value_name = "MAP.ATTRIBUTE=VALUE", value_parser = MapRule::parse)]
    pub map_def: Vec<MapRule>,
    /// Set a global variable, or a part of one, before the object is loaded
    #[arg(long, value_name = "NAME=VALUE")]
    pub global: Vec<String>,
    /// Set the constants of .rodata from a dump of the loaded map (`bpftool map dump -j`), before
    /// --global: the verdict is that of the configured program
    #[arg(long, value_name = "FILE")]
    pub rodata: Option<PathBuf>,
}

impl KernelArguments {
    /// Opens an object and sets the kernel to relocate for.
    pub fn open(&self, path: &Path) -> Result<Object, Failure> {
        self.apply(Object::open(path)?)
    }

    /// Opens another object and sets the kernel to relocate for; the other options are not for it.
    pub fn open_bare(&self, path: &Path) -> Result<Object, Failure> {
        let mut object = Object::open(path)?;
        if let Some(target) = self.target()? {
            object.set_target(target);
        }
        Ok(object)
    }

    /// Sets the kernel to relocate an object for.
    pub fn apply(&self, mut object: Object) -> Result<Object, Failure> {
        if let Some(target) = self.target()? {
            object.set_target(target);
        }
        for given in &self.kconfig {
            match given.split_once('=') {
                Some((name, value)) => object.set_kconfig(name, value),
                None => object.read_kconfig_file(given)?,
            }
        }
        for given in &self.ksym {
            match given.split_once('=') {
                Some((name, value)) => object.set_ksym(name, address(name, value)?),
                None => object.read_kallsyms(&read_text(given)?),
            }
        }
        // Rules that name programs win over those for all untyped programs.
        let (named, rest): (Vec<_>, Vec<_>) =
            self.types.iter().partition(|rule| rule.names_programs());
        for rule in named.into_iter().chain(rest) {
            rule.apply(&mut object)?;
        }
        // Other rules may change a map whose definition an `inner` rule copies, so they come
        // first.
        let (takes, other): (Vec<_>, Vec<_>) =
            self.map_def.iter().partition(|rule| rule.takes_shape());
        for rule in other.into_iter().chain(takes) {
            rule.apply(&mut object)?;
        }
        self.set_globals(&mut object)?;
        Ok(object)
    }

    fn set_globals(&self, object: &mut Object) -> Result<(), Failure> {
        if let Some(file) = &self.rodata {
            let wrong = |text: String| Failure::bad(format!("{}: {text}", file.display()));
            let dump = serde_json::from_str(&read_text(file)?)
                .map_err(|error| wrong(format!("invalid JSON: {error}")))?;
            map_values::set_rodata(object, &dump).map_err(wrong)?;
        }
        for given in &self.global {
            let (name, value) = assignment("--global", given)?;
            map_values::set_global(object, name, value)?;
        }
        Ok(())
    }

    /// Opens a file of cases, `-` for standard input, whose type ids are those of this kernel;
    /// without `--btf`, those of `otherwise`.
    pub fn open_cases(&self, file: &Path, otherwise: Option<Btf>) -> Result<Cases, Failure> {
        let opened = if file.as_os_str() == "-" {
            Cases::read("standard input", ".", BufReader::new(std::io::stdin()))
        } else {
            Cases::open(file)
        };
        let are_maps = !self.map_def.is_empty() || !self.global.is_empty() || self.rodata.is_some();
        if !self.types.is_empty() || are_maps {
            return Err(Failure::bad(
                "--type, --map-def, --global and --rodata change objects; a case says its program \
                 type and its maps itself (prog_type, maps)",
            ));
        }
        // The file itself can't be read, not one of its lines.
        let unreadable =
            |error: CaseError| Failure::bad(format!("{}: {}", error.file, error.problem));
        let mut cases = opened.map_err(unreadable)?;
        if let Some(btf) = self.btf()?.or(otherwise) {
            cases.set_kernel(btf);
        }
        Ok(cases)
    }

    /// The target that `--btf` names, if it was given.
    fn target(&self) -> Result<Option<Target>, Failure> {
        let target = match &self.btf {
            None => None,
            Some(own) if own.as_os_str() == OWN => Some(Target::Own),
            Some(bundled) if bundled.as_os_str() == BUNDLED => Some(Target::bundled()),
            Some(file) => Some(Target::file(file)?),
        };
        self.btf_module.iter().try_fold(target, |target, module| {
            // A name has no folder, and is that of no file here.
            let named = Path::new(Target::RUNNING).with_file_name(module);
            let is_name = self.btf.is_none() && !module.exists() && named.exists();
            let file = if is_name { &named } else { module };
            Ok(Some(target.unwrap_or_default().with_module(file)?))
        })
    }

    /// The BTF that a program was relocated for: a file, `own` or `bundled`.
    pub fn btf_name(&self, program: &Program) -> Option<String> {
        let used = program.kernel_btf.as_ref()?;
        Some(match program.kernel_types() {
            None => OWN.to_owned(),
            Some(_) if Target::is_bundled(used) => BUNDLED.to_owned(),
            Some(_) => {
                let file = self.btf.as_deref().unwrap_or(Path::new(Target::RUNNING));
                file.display().to_string()
            }
        })
    }

    /// The BTF of the file given by `--btf`.
    pub fn btf(&self) -> Result<Option<Btf>, Failure> {
        Ok(match self.target()? {
            Some(Target::Kernel(btf)) => Some(btf),
            _ => None,
        })
    }
}

/// The types that generated programs and cases refer to: those of `--btf`, or the running
/// kernel's.
pub(super) fn kernel_types(file: Option<&Path>) -> Result<Option<Btf>, Failure> {
    if let Some(file) = file {
        let Target::Kernel(btf) = Target::file(file)? else {
            let text = format!("{}: not the types of a kernel", file.display());
            return Err(Failure::bad(text));
        };
        return Ok(Some(btf));
    }
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    {
        Ok(crate::kernel::running_btf().cloned())
    }
    #[cfg(not(all(feature = "kernel", target_os = "linux")))]
    {
        Ok(None)
    }
}

/// The failure for an object without programs to work on.
pub(super) fn no_program(object: &Object) -> Failure {
    let optional: Vec<_> = object.entries().iter().map(|entry| entry.name()).collect();
    let file = object.file();
    Failure::bad(match optional.as_slice() {
        [] => format!(
            "{file}: no programs; put a program into a section such as 'xdp' or \
             'tp/syscalls/sys_enter_write'"
        ),
        names => format!(
            "{file}: no program is loaded by default; name one: {}",
            names.join(", ")
        ),
    })
}

/// Leaves out the programs whose sections name no type, unless they are in `wanted`. Returns a
/// warning for each.
pub(super) fn skip_untyped(object: &mut Object, wanted: &[String]) -> Result<Vec<String>, Failure> {
    let untyped: Vec<_> = object.untyped().cloned().collect();
    let mut said = Vec::new();
    for entry in untyped
        .iter()
        .filter(|entry| !wanted.iter().any(|name| name == entry.name()))
    {
        object.entry_mut(entry.name())?.set_autoload(false);
        if wanted.is_empty() {
            let why = no_type(entry);
            said.push(format!("program '{}' is skipped: {why}", entry.name()));
        }
    }
    Ok(said)
}

/// The warning about a program that was relocated for the bundled types.
pub(super) fn bundled_types(program: &Program) -> Option<&'static str> {
    let kernel = program.kernel_types()?;
    Target::is_bundled(kernel).then_some(
        "the kernel's types are bpflab's own description (--btf bundled): offsets differ from a \
         kernel's, and verdicts may; give a kernel's BTF (--btf FILE)",
    )
}

/// Warnings about an object: BTF that the kernel refuses, and maps that can't be created before
/// their tool has completed them.
pub(super) fn warnings(object: &Object) -> Vec<String> {
    let file = object.file();
    let refused = object.btf_refusal().map(|refusal| {
        format!(
            "{file}: the kernel refuses the BTF ({refusal}); the programs are judged without it, \
             as libbpf loads them"
        )
    });
    let maps = object.maps().iter().filter_map(|map| {
        let (missing, attribute) = match (unset(map), map.inner.as_deref().and_then(unset)) {
            (Some(attribute), _) => (attribute.to_owned(), attribute),
            (None, Some(of_inner)) => (format!("{of_inner} for its inner maps"), "inner"),
            (None, None) => return None,
        };
        let name = &map.name;
        Some(format!(
            "{file}: map '{name}' ({}) has no {missing}, which its tool sets at run time; set \
             it: --map-def {name}.{attribute}=…",
            map.map_type
        ))
    });
    refused.into_iter().chain(maps).collect()
}

/// The required attribute that is 0 or missing, without which the kernel can't create the map.
fn unset(map: &MapDef) -> Option<&'static str> {
    let info = map.map_type.info();
    // libbpf fills in the number of CPUs.
    let counts_cpus = map.map_type == MapType::PerfEventArray;
    if !map.autocreate || map.origin != MapOrigin::Declared {
        None
    } else if map.key_size == 0 && !info.key.allows(0) {
        Some("key_size")
    } else if map.value_size == 0 && !info.value.allows(0) {
        Some("value_size")
    } else if map.max_entries == 0 && !counts_cpus && !info.entries.allows(0, PAGE_SIZE) {
        Some("max_entries")
    } else {
        (map.map_type.holds_maps() && map.inner.is_none()).then_some("inner")
    }
}

/// The error for a program without a type, and the option for it.
pub(super) fn no_type(entry: &Entry) -> String {
    let (section, name) = (entry.section(), entry.name());
    let rename = match nearest_section(section) {
        Some(nearest) => format!("rename it (`{nearest}`?) or "),
        None => String::new(),
    };
    format!("section '{section}' names no program type; {rename}give one: --type {name}=PROG_TYPE")
}

/// Splits `NAME=VALUE` of an option.
pub(super) fn assignment<'a>(option: &str, text: &'a str) -> Result<(&'a str, &'a str), Failure> {
    text.split_once('=').ok_or_else(|| {
        Failure::bad(format!(
            "{option} {text}: `=` and a value are missing: {option} {text}=…"
        ))
    })
}

/// Parses an address in hexadecimal, with or without `0x`.
fn address(name: &str, text: &str) -> Result<u64, Failure> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|error| {
        Failure::bad(format!(
            "--ksym {name}={text}: not a hexadecimal address: {error}"
        ))
    })
}
