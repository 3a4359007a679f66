//! What can be changed in an opened object before programs are taken out of it:
//! libbpf's setters between open and load.

use std::path::Path;

use super::compressed;
use super::error::{ObjectError, Place, Problem};
use super::map_mut::MapMut;
use super::model::{Entry, Extern, Note, Object, unknown};
use super::resolve;
use super::target::Target;
use crate::btf::{Btf, Refusal};
use crate::program::{MapDef, MapOrigin};
use crate::spec::{AttachType, ProgFlags, ProgType, Section, SectionFlags, section_rules};

type Result<T> = std::result::Result<T, ObjectError>;

impl Object {
    /// The object's name as libbpf has it: that of the file without directory, from
    /// the first dot on cut off, 15 bytes of it.
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

    /// The kernel version that old kernels wanted programs to name.
    #[must_use]
    pub fn version(&self) -> Option<u32> {
        self.version
    }

    /// Its BTF, completed as the kernel is given it.
    #[must_use]
    pub fn btf(&self) -> Option<&Btf> {
        self.btf.as_ref()
    }

    /// Why the kernel refuses its BTF, as far as that can be read in it: programs are
    /// loaded without it then.
    #[must_use]
    pub fn btf_refusal(&self) -> Option<&Refusal> {
        self.btf_refusal.as_ref()
    }

    /// What its author may want to know: skipped sections and the like.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// What it leaves to the kernel, its configuration or another object.
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
    /// There is none; the error names those that there are.
    pub fn entry(&self, name: &str) -> Result<&Entry> {
        let found = self.entries.iter().find(|entry| entry.name == name);
        found.ok_or_else(|| self.no_entry(name))
    }

    /// The entry point of this name, to be changed.
    ///
    /// # Errors
    /// As for [`Object::entry`].
    pub fn entry_mut(&mut self, name: &str) -> Result<&mut Entry> {
        let error = self.entry(name).err();
        let found = self.entries.iter_mut().find(|entry| entry.name == name);
        found
            .ok_or_else(|| error.unwrap_or_else(|| ObjectError::new(Place::Object, Problem::NoBtf)))
    }

    fn no_entry(&self, name: &str) -> ObjectError {
        let known = self.entries.iter().map(Entry::name);
        let name = name.to_owned();
        ObjectError::new(Place::Entry { name }, unknown("no such program", known)).of(&self.file)
    }

    /// Its maps; a map's place here is its [`MapId`](crate::util::MapId).
    #[must_use]
    pub fn maps(&self) -> &[MapDef] {
        &self.maps
    }

    /// The map of this name: a declared one by its own, one of global data by
    /// libbpf's name (`write_hi.bss`) or its section's (`.bss`).
    ///
    /// # Errors
    /// There is none; the error names those that there are.
    pub fn map(&self, name: &str) -> Result<&MapDef> {
        self.map_index(name)
            .and_then(|index| self.maps.get(index))
            .ok_or_else(|| self.no_map(name))
    }

    /// The map of this name, to be changed.
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
    /// A name that no entry point has; nothing is changed then.
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

    /// The kernel that programs are relocated for; the running one, where it shows
    /// its BTF, unless something else is set.
    ///
    /// `__kconfig` externs get their values from the running kernel's configuration
    /// (`/boot/config-*`, `/proc/config.gz`) only while nothing else is set.
    pub fn set_target(&mut self, target: Target) {
        self.target = target;
        resolve::fill_kconfig(self);
    }

    /// Sets a value of the kernel's configuration as its file writes it (`y`,
    /// `250`, `"text"`), for the `__kconfig` extern of this name. It wins over
    /// [`Object::read_kconfig`].
    pub fn set_kconfig(&mut self, name: &str, value: &str) {
        self.kconfig.set(name, value);
        resolve::fill_kconfig(self);
    }

    /// Takes values for `__kconfig` externs from the text of a configuration file,
    /// such as `/boot/config-6.18.0`.
    ///
    /// # Errors
    /// A `CONFIG_` line that assigns nothing.
    pub fn read_kconfig(&mut self, text: &str) -> Result<()> {
        let read = self.kconfig.read(text);
        resolve::fill_kconfig(self);
        read.map_err(|text| ObjectError::new(Place::Object, Problem::Kconfig(text)).of(&self.file))
    }

    /// Takes values for `__kconfig` externs from a configuration file, plain or packed
    /// as `/proc/config.gz` is.
    ///
    /// # Errors
    /// A file that can't be read, or a `CONFIG_` line that assigns nothing.
    pub fn read_kconfig_file(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let bytes = compressed::read(path).map_err(|error| {
            let text = format!("{}: {error}", path.display());
            ObjectError::new(Place::Object, Problem::Unreadable(text)).of(&self.file)
        })?;
        self.read_kconfig(&String::from_utf8_lossy(&bytes))
    }

    /// Takes addresses of kernel symbols for untyped `__ksym` externs from the text
    /// of `/proc/kallsyms`. What was set with [`Object::set_ksym`] stays.
    pub fn read_kallsyms(&mut self, text: &str) {
        for line in text.lines() {
            let mut fields = line.split_ascii_whitespace();
            let (Some(address), Some(_), Some(name)) =
                (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            // Link-time optimisation appends to the names of static variables.
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

    /// The section it stands in, without a leading `?`.
    #[must_use]
    pub fn section(&self) -> &str {
        &self.section
    }

    /// Instruction slots, without the subprograms that it calls.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The program type; none if the section's name doesn't say.
    #[must_use]
    pub fn prog_type(&self) -> Option<ProgType> {
        self.prog_type
    }

    /// The attach type that it declares.
    #[must_use]
    pub fn expected_attach_type(&self) -> Option<AttachType> {
        self.expected_attach_type
    }

    /// What it attaches to: `syscalls/sys_enter_write`.
    #[must_use]
    pub fn attach_target(&self) -> Option<&str> {
        self.attach_target.as_deref()
    }

    /// The flags that it is loaded with.
    #[must_use]
    pub fn flags(&self) -> ProgFlags {
        self.flags
    }

    /// Whether it is loaded with the object.
    #[must_use]
    pub fn autoload(&self) -> bool {
        self.autoload
    }

    /// Loads it with the object, or doesn't.
    pub fn set_autoload(&mut self, autoload: bool) -> &mut Self {
        self.autoload = autoload;
        self
    }

    /// Makes it a program of this type.
    pub fn set_prog_type(&mut self, prog_type: ProgType) -> &mut Self {
        self.prog_type = Some(prog_type);
        self
    }

    /// Sets the attach type.
    pub fn set_expected_attach_type(&mut self, attach_type: Option<AttachType>) -> &mut Self {
        self.expected_attach_type = attach_type;
        self
    }

    /// Sets what it attaches to.
    pub fn set_attach_target(&mut self, target: impl Into<String>) -> &mut Self {
        self.attach_target = Some(target.into());
        self
    }

    /// Sets the flags that it is loaded with.
    pub fn set_flags(&mut self, flags: ProgFlags) -> &mut Self {
        self.flags = flags;
        self
    }

    /// The name in BTF of what it attaches to, if that is something in BTF.
    pub(super) fn btf_target(&self) -> Option<String> {
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
