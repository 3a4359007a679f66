//! PMUs that the kernel numbers at boot, such as `uprobe`: their type number and the bits of
//! their fields (`/sys/bus/event_source/devices`).

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the PMUs.
const DEVICES: &str = "/sys/bus/event_source/devices";

/// A PMU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pmu {
    /// The field `type` of `struct perf_event_attr`.
    pub number: u32,
    path: PathBuf,
}

impl Pmu {
    /// The PMU of this name; `None` if the kernel has none.
    pub fn find(name: &str) -> Option<Self> {
        Self::in_folder(&Path::new(DEVICES).join(name))
    }

    fn in_folder(path: &Path) -> Option<Self> {
        let number = fs::read_to_string(path.join("type")).ok()?;
        Some(Self {
            number: number.trim().parse().ok()?,
            path: path.to_owned(),
        })
    }

    /// A field's value shifted to its bits of `config`. `None` if there is no such field in
    /// `config`, or the value does not fit.
    pub fn in_config(&self, field: &str, value: u64) -> Option<u64> {
        let format = fs::read_to_string(self.path.join("format").join(field)).ok()?;
        let (first, last) = bits(&format)?;
        let room = u64::MAX >> (63 - (last - first));
        (value <= room).then(|| value << first)
    }
}

/// The first and the last bit of a field of `config`, from its format: `config:0`,
/// `config:32-63`.
fn bits(format: &str) -> Option<(u32, u32)> {
    let range = format.trim().strip_prefix("config:")?;
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last && last < 64).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_read() {
        assert_eq!(bits("config:0\n"), Some((0, 0)));
        assert_eq!(bits("config:32-63"), Some((32, 63)));
        assert_eq!(bits("config1:0-7"), None, "another word");
        assert_eq!(bits("config:8-3"), None);
        assert_eq!(bits("config:0-64"), None);
        assert_eq!(bits("config:0,3-5"), None, "in pieces");
    }

    #[test]
    fn values_are_put_at_their_place() {
        let folder = std::env::temp_dir().join(format!("bpflab-pmu-{}", std::process::id()));
        fs::create_dir_all(folder.join("format")).unwrap();
        fs::write(folder.join("type"), "8\n").unwrap();
        fs::write(folder.join("format/retprobe"), "config:0\n").unwrap();
        fs::write(folder.join("format/ref_ctr_offset"), "config:32-63\n").unwrap();
        let pmu = Pmu::in_folder(&folder).unwrap();
        fs::write(folder.join("type"), "no number").unwrap();
        assert_eq!(Pmu::in_folder(&folder), None);
        assert_eq!(pmu.number, 8);
        assert_eq!(pmu.in_config("retprobe", 1), Some(1));
        assert_eq!(pmu.in_config("retprobe", 2), None);
        assert_eq!(pmu.in_config("ref_ctr_offset", 5), Some(5 << 32));
        assert_eq!(pmu.in_config("ref_ctr_offset", 1 << 32), None);
        assert_eq!(pmu.in_config("other", 0), None);
        fs::remove_dir_all(folder).unwrap();
        assert_eq!(Pmu::find("no-such-pmu"), None);
    }
}
