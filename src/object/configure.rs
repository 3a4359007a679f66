//! Settings of an opened object before its programs are built: libbpf's setters between
//! open and load.

use std::path::Path;
use std::sync::Arc;

use super::error::{ErrorLocation, ObjectError, Problem};
use super::map_mut::MapMut;
use super::model::{Entry, Extern, Note, Object, unknown};
use super::resolve;
use super::target::Target;
use crate::btf::{Btf, Refusal};
use crate::program::{MapDef, MapOrigin, TargetProgram};
use crate::spec::{AttachType, ProgFlags, ProgType, Section, SectionFlags, section_rules};
use crate::util::compressed;

type Result<T> = std::result::Result<T, ObjectError>;

impl Object {
    /// The object's name as in libbpf: the file name without directory, up to the first
    /// dot, at most 15 bytes.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path or name that it was opened with.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The license of its programs; empty if it has none.
    #[must_use]
    pub fn license(&self) -> &str {
        &self.license
    }

    /// The kernel version in its `version` section, which old kernels required.
    #[must_use]
    pub fn version(&self) -> Option<u32> {
        self.version
    }

    /// Its BTF, completed as for loading into the kernel.
    #[must_use]
    pub fn btf(&self) -> Option<&Btf> {
        self.btf.as_ref()
    }

    /// Why the kernel refuses its BTF, as far as bpflab checks it; programs are then loaded
    /// without it.
    #[must_use]
    pub fn btf_refusal(&self) -> Option<&Refusal> {
        self.btf_refusal.as_ref()
    }

    /// Notes for the object's author: skipped sections and the like.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Symbols that the kernel, its configuration or another object defines.
    #[must_use]
    pub fn externs(&self) -> &[Extern] {
        &self.externs
    }

    /// Its entry points, by section and position: each is a program to load.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry point of this name.
    ///
    /// # Errors
    /// There is none; the error lists the existing ones.
    pub fn entry(&self, name: &str) -> Result<&Entry> {
        let found = self.entries.iter().find(|entry| entry.name == name);
        found.ok_or_else(|| self.no_entry(name))
    }

    /// The entry point of this name, mutable.
    ///
    /// # Errors
    /// As for [`Object::entry`].
    pub fn entry_mut(&mut self, name: &str) -> Result<&mut Entry> {
        let error = self.entry(name).err();
        let found = self.entries.iter_mut().find(|entry| entry.name == name);
        found.ok_or_else(|| {
            error.unwrap_or_else(|| ObjectError::new(ErrorLocation::Object, Problem::NoBtf))
        })
    }

    fn no_entry(&self, name: &str) -> ObjectError {
        let known = self.entries.iter().map(Entry::name);
        let name = name.to_owned();
        ObjectError::new(
            ErrorLocation::Entry { name },
            unknown("no such program", known),
        )
        .of(&self.file)
    }

    /// Its maps; the index of a map is its [`MapId`](crate::util::MapId).
    #[must_use]
    pub fn maps(&self) -> &[MapDef] {
        &self.maps
    }

    /// The map of this name: a declared one by its own name, one of global data by libbpf's
    /// name (`write_hi.bss`) or the section's (`.bss`).
    ///
    /// # Errors
    /// There is none; the error lists the existing ones.
    pub fn map(&self, name: &str) -> Result<&MapDef> {
        self.map_index(name)
            .and_then(|index| self.maps.get(index))
            .ok_or_else(|| self.no_map(name))
    }

    /// The map of this name, mutable.
    ///
    /// # Errors
    /// As for [`Object::map`].
    pub fn map_mut(&mut self, name: &str) -> Result<MapMut<'_>> {
        match self.map_index(name) {
            Some(index) => Ok(MapMut::new(self, index)),
            None => Err(self.no_map(name)),
        }
    }

    fn map_index(&self, name: &str) -> Option<usize> {
        let by_name = self.maps.iter().position(|map| map.name == name);
        by_name.or_else(|| {
            self.maps.iter().position(|map| match &map.origin {
                MapOrigin::Section(section) => section == name,
                _ => false,
            })
        })
    }

    fn no_map(&self, name: &str) -> ObjectError {
        let known = self.maps.iter().map(|map| &*map.name);
        ObjectError::map(name, unknown("no such map", known)).of(&self.file)
    }

    /// Loads only the entry points of these names.
    ///
    /// # Errors
    /// An unknown name; then nothing is changed.
    pub fn load_only<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) -> Result<()> {
        let names: Vec<&str> = names.into_iter().collect();
        for name in &names {
            self.entry(name)?;
        }
        for entry in &mut self.entries {
            entry.autoload = names.contains(&&*entry.name);
        }
        Ok(())
    }

    /// Sets the kernel that programs are relocated for. Default: the running kernel if its
    /// BTF is available.
    ///
    /// `__kconfig` externs get values from the running kernel's configuration
    /// (`/boot/config-*`, `/proc/config.gz`) only if no target is set.
    pub fn set_target(&mut self, target: Target) {
        self.target = target;
        resolve::fill_kconfig(self);
    }

    /// Sets the program that this object's programs attach to (libbpf:
    /// `bpf_program__set_attach_target`): `freplace/FUNCTION` replaces a function of it,
    /// `fentry/FUNCTION` and `fexit/FUNCTION` trace one. If it has no such function, the latter
    /// two attach to the kernel's.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use bpflab::Object;
    /// use bpflab::verifier::{Options, verify};
    ///
    /// let target = Object::open("tests/attach_targets/target.bpf.o")?.program("filters")?;
    /// let verified = verify(&Arc::new(target), &Options::default()).outcome.unwrap();
    /// let mut object = Object::open("tests/attach_targets/extension.bpf.o")?;
    /// object.set_attach_program(verified.target());
    ///
    /// let extension = Arc::new(object.program("counts")?);
    /// assert!(verify(&extension, &Options::default()).outcome.is_ok());
    /// # Ok::<(), bpflab::ObjectError>(())
    /// ```
    pub fn set_attach_program(&mut self, target: TargetProgram) {
        self.attach_program = Some(Arc::new(target));
    }

    /// The program that a program of this object attaches to, if it attaches to one.
    pub(crate) fn attach_program_of(&self, entry: &Entry) -> Option<&Arc<TargetProgram>> {
        use AttachType::{ModifyReturn, TraceFentry, TraceFexit};
        let target = self.attach_program.as_ref()?;
        let attaches = match (entry.prog_type, entry.expected_attach_type) {
            (Some(ProgType::Ext), _) => true,
            (Some(ProgType::Tracing), Some(TraceFentry | TraceFexit | ModifyReturn)) => {
                target.has_function(entry.attach_target.as_deref().unwrap_or_default())
            }
            _ => false,
        };
        attaches.then_some(target)
    }

    /// Sets a kernel configuration value in the syntax of its file (`y`, `250`, `"text"`),
    /// for the `__kconfig` extern of this name. It overrides [`Object::read_kconfig`].
    pub fn set_kconfig(&mut self, name: &str, value: &str) {
        self.kconfig.set(name, value);
        resolve::fill_kconfig(self);
    }

    /// Reads values for `__kconfig` externs from the text of a configuration file, such as
    /// `/boot/config-6.18.0`.
    ///
    /// # Errors
    /// A `CONFIG_` line that is not an assignment.
    pub fn read_kconfig(&mut self, text: &str) -> Result<()> {
        let read = self.kconfig.read(text);
        resolve::fill_kconfig(self);
        read.map_err(|text| {
            ObjectError::new(ErrorLocation::Object, Problem::Kconfig(text)).of(&self.file)
        })
    }

    /// Reads values for `__kconfig` externs from a configuration file, plain or packed as
    /// `/proc/config.gz` is.
    ///
    /// # Errors
    /// A file that can't be read, or a `CONFIG_` line that is not an assignment.
    pub fn read_kconfig_file(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let bytes = compressed::read(path).map_err(|error| {
            let text = format!("{}: {error}", path.display());
            ObjectError::new(ErrorLocation::Object, Problem::Unreadable(text)).of(&self.file)
        })?;
        self.read_kconfig(&String::from_utf8_lossy(&bytes))
    }

    /// Reads addresses of kernel symbols for untyped `__ksym` externs from the text of
    /// `/proc/kallsyms`. Addresses set with [`Object::set_ksym`] are kept.
    pub fn read_kallsyms(&mut self, text: &str) {
        for line in text.lines() {
            let mut fields = line.split_ascii_whitespace();
            let (Some(address), Some(_), Some(name)) =
                (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            // Link-time optimisation appends suffixes to the names of static variables.
            let name = name.split(".llvm.").next().unwrap_or(name);
            let wanted = self.externs.iter().any(|ext| ext.name == name);
            if let (true, Ok(address)) = (wanted, u64::from_str_radix(address, 16)) {
                self.ksyms.entry(name.to_owned()).or_insert(address);
            }
        }
    }

    /// Sets the address of a kernel symbol, for the untyped `__ksym` extern of this
    /// name (`extern const void name __ksym`).
    pub fn set_ksym(&mut self, name: &str, address: u64) {
        self.ksyms.insert(name.to_owned(), address);
    }

    /// The address of a kernel symbol, if it was set or read.
    #[must_use]
    pub fn ksym(&self, name: &str) -> Option<u64> {
        self.ksyms.get(name).copied()
    }
}

impl Entry {
    /// Name of the C function.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its section, without a leading `?`.
    #[must_use]
    pub fn section(&self) -> &str {
        &self.section
    }

    /// Instruction slots, without the subprograms that it calls.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The program type; `None` if the section name doesn't determine it.
    #[must_use]
    pub fn prog_type(&self) -> Option<ProgType> {
        self.prog_type
    }

    /// Its expected attach type.
    #[must_use]
    pub fn expected_attach_type(&self) -> Option<AttachType> {
        self.expected_attach_type
    }

    /// Its attach target: `syscalls/sys_enter_write`.
    #[must_use]
    pub fn attach_target(&self) -> Option<&str> {
        self.attach_target.as_deref()
    }

    /// Its load flags.
    #[must_use]
    pub fn flags(&self) -> ProgFlags {
        self.flags
    }

    /// Whether it is loaded with the object.
    #[must_use]
    pub fn autoload(&self) -> bool {
        self.autoload
    }

    /// Sets whether it is loaded with the object.
    pub fn set_autoload(&mut self, autoload: bool) -> &mut Self {
        self.autoload = autoload;
        self
    }

    /// Sets the program type.
    pub fn set_prog_type(&mut self, prog_type: ProgType) -> &mut Self {
        self.prog_type = Some(prog_type);
        self
    }

    /// Sets the attach type.
    pub fn set_expected_attach_type(&mut self, attach_type: Option<AttachType>) -> &mut Self {
        self.expected_attach_type = attach_type;
        self
    }

    /// Sets the attach target.
    pub fn set_attach_target(&mut self, target: impl Into<String>) -> &mut Self {
        self.attach_target = Some(target.into());
        self
    }

    /// Sets the load flags.
    pub fn set_flags(&mut self, flags: ProgFlags) -> &mut Self {
        self.flags = flags;
        self
    }

    /// The name of its attach target in the kernel's BTF, if that has it. Extensions replace
    /// functions of other programs.
    pub(super) fn btf_target(&self) -> Option<String> {
        if self.prog_type == Some(ProgType::Ext) {
            return None;
        }
        let target = self.attach_target.as_deref()?;
        let rule = section_rules().iter().find(|rule| {
            rule.flags.contains(SectionFlags::ATTACH_BTF)
                && Some(rule.prog_type) == self.prog_type
                && rule.attach_type == self.expected_attach_type
        })?;
        let section = Section {
            rule,
            target: Some(target),
            autoload: true,
        };
        Some(format!("{}{target}", section.btf_prefix()))
    }
}
