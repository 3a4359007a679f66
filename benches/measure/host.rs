//! The machine that the figures were measured on.

use std::fmt::{self, Display};
use std::fs;
use std::path::Path;

/// A description of a machine.
#[derive(Debug)]
pub struct Host {
    cpu: String,
    cpus: usize,
    kernel: String,
    /// The kernel's mitigation for each vulnerability of the processor, without those that
    /// do not affect it.
    vulnerabilities: Vec<(String, String)>,
    compiler: String,
    load: String,
}

fn first_line(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.lines().next()?.trim().to_owned())
}

/// The value of a key in `/proc/cpuinfo`.
fn cpuinfo(key: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| name.trim() == key)?;
    Some(value.trim().to_owned())
}

impl Host {
    /// Describes this machine.
    pub fn this() -> Self {
        let unknown = || "unknown".to_owned();
        let family = cpuinfo("cpu family").zip(cpuinfo("model"));
        let family = family.map(|(family, model)| format!(", family {family}, model {model}"));
        let name = cpuinfo("model name").unwrap_or_else(unknown);
        let folder = Path::new("/sys/devices/system/cpu/vulnerabilities");
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut vulnerabilities: Vec<_> = files
            .filter_map(|file| {
                let name = file.file_name().into_string().ok()?;
                Some((name, first_line(file.path())?))
            })
            .filter(|(_, state)| state != "Not affected")
            .collect();
        vulnerabilities.sort();
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let version = std::process::Command::new(&compiler)
            .arg("--version")
            .output();
        let version = version
            .ok()
            .and_then(|output| String::from_utf8(output.stdout).ok());
        let version = version.as_deref().and_then(|text| text.lines().next());
        Self {
            cpu: name + &family.unwrap_or_default(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: first_line("/proc/sys/kernel/osrelease").unwrap_or_else(unknown),
            vulnerabilities,
            compiler: version.unwrap_or("none").to_owned(),
            load: first_line("/proc/loadavg").unwrap_or_else(unknown),
        }
    }

    /// The processor and the kernel, in one line for XML.
    pub fn short(&self) -> String {
        let text = format!("{}, Linux {}", self.cpu, self.kernel);
        text.replace('&', "&amp;").replace('<', "&lt;")
    }
}

impl Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cpu,
            cpus,
            kernel,
            vulnerabilities,
            compiler,
            load,
        } = self;
        writeln!(f, "- Processor: {cpu}; {cpus} CPUs, load {load}")?;
        writeln!(f, "- Kernel: {kernel}, {}", std::env::consts::ARCH)?;
        let known: Vec<_> = vulnerabilities
            .iter()
            .map(|(name, state)| format!("{name}: {state}"))
            .collect();
        let known = if known.is_empty() {
            "none".to_owned()
        } else {
            known.join(" · ")
        };
        writeln!(f, "- Mitigations: {known}")?;
        writeln!(f, "- Native code: {compiler}")
    }
}
