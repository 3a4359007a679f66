//! Changing a map before it is loaded (libbpf, `bpf_map__set_*`).

use std::sync::Arc;

use super::error::{ObjectError, Problem};
use super::maps_btf::entries;
use super::maps_data;
use super::model::Object;
use crate::btf::{Array, Editor, Variable};
use crate::program::{MapDef, MapOrigin, Pinning, SharedMap};
use crate::spec::{MapFlags, MapType};

type Result<T> = std::result::Result<T, ObjectError>;

impl Object {
    /// Defines the map to which instructions refer by a file descriptor of the process that
    /// wrote the object. `bpftrace --emit-elf` before 0.18 refers to its maps so, and omits
    /// their definitions. A second definition replaces the first.
    pub fn define_descriptor(&mut self, fd: i32, map: MapDef) {
        match self.descriptors.get(&fd) {
            Some(id) => {
                if let Some(known) = self.maps.get_mut(id.index()) {
                    *known = map;
                }
            }
            None => {
                let id = self.add_map(map);
                self.descriptors.insert(fd, id);
            }
        }
    }
}

/// A map of an object, to change it before it is loaded.
#[derive(Debug)]
pub struct MapMut<'o> {
    object: &'o mut Object,
    index: usize,
}

impl<'o> MapMut<'o> {
    /// The map at this index in the object.
    pub(super) fn new(object: &'o mut Object, index: usize) -> Self {
        Self { object, index }
    }

    fn edit(&mut self, change: impl FnOnce(&mut MapDef)) -> &mut Self {
        if let Some(map) = self.object.maps.get_mut(self.index) {
            change(map);
        }
        self
    }

    /// The current definition.
    #[must_use]
    pub fn get(&self) -> Option<&MapDef> {
        self.object.maps.get(self.index)
    }

    fn fault(&self, text: String) -> ObjectError {
        let name = self.get().map_or("?", |map| &*map.name);
        ObjectError::map(name, Problem::Value(text)).of(&self.object.file)
    }

    /// Whether it contains global data or a `struct_ops` table, whose sizes are fixed.
    fn is_internal(&self) -> bool {
        self.get()
            .is_some_and(|map| map.origin != MapOrigin::Declared)
    }

    /// Sets the map type.
    pub fn set_type(&mut self, map_type: MapType) -> &mut Self {
        self.edit(|map| {
            map.map_type = map_type;
            map.max_entries = entries(map_type, map.max_entries);
        })
    }

    /// Sets the maximum number of entries; bytes for ring buffers, rounded up to a power of
    /// two of whole pages.
    ///
    /// # Errors
    /// The map is global data, which has one entry.
    pub fn set_max_entries(&mut self, max_entries: u32) -> Result<&mut Self> {
        if self.is_internal() && max_entries != 1 {
            return Err(self.fault(format!("{max_entries} entries; global data has one")));
        }
        Ok(self.edit(|map| map.max_entries = entries(map.map_type, max_entries)))
    }

    /// Sets the key size in bytes; drops the key type if its size differs.
    ///
    /// # Errors
    /// The map is global data.
    pub fn set_key_size(&mut self, size: u32) -> Result<&mut Self> {
        if self.is_internal() && size != 4 {
            return Err(self.fault(format!("keys of {size} bytes; global data has 4")));
        }
        Ok(self.edit(|map| {
            if map.key_size != size {
                map.key_type = None;
            }
            map.key_size = size;
        }))
    }

    /// Sets the value size in bytes; drops the value type if its size differs. For global
    /// data it is the section's size: added bytes are zero, and the last variable, if it is
    /// an array, grows.
    ///
    /// # Errors
    /// A section that would lose variables.
    pub fn set_value_size(&mut self, size: u32) -> Result<&mut Self> {
        if self.is_internal() {
            self.resize_section(size)?;
        }
        Ok(self.edit(|map| {
            if map.value_size != size && map.origin == MapOrigin::Declared {
                map.value_type = None;
            }
            map.value_size = size;
        }))
    }

    /// Extends the last variable of a section up to `size`, in the list of variables and in
    /// BTF.
    fn resize_section(&mut self, size: u32) -> Result<()> {
        let of_map = |global: &&mut super::model::Global| global.map.index() == self.index;
        let globals = self.object.globals.iter_mut().filter(of_map);
        let Some(last) = globals.max_by_key(|global| global.offset) else {
            return Ok(());
        };
        let Some(rest) = size.checked_sub(last.offset) else {
            let text = format!("{size} bytes, but '{}' is at {}", last.name, last.offset);
            return Err(self.fault(text));
        };
        let section = self.get().and_then(|map| map.value_type);
        let grown = self.object.btf.as_ref().zip(section).and_then(|(btf, id)| {
            let section = btf.get(id)?;
            let mut places: Vec<Variable> = section.variables().collect();
            let last = places.last_mut()?;
            let array = btf.resolve(btf.get(last.ty)?.target_id()?).ok()?.array()?;
            let element = btf.size_of(array.element).ok().filter(|size| *size > 0)?;
            let rest = size.checked_sub(last.offset)?;
            if rest % element != 0 {
                return None;
            }
            last.size = rest;
            let variable = last.ty;
            let mut editor = Editor::new(btf);
            let ty = editor.add_array(Array {
                len: rest / element,
                ..array
            });
            editor.set_variable_type(variable, ty);
            editor.set_variables(id, &places);
            editor.set_section_size(id, size);
            Some((editor.finish().ok()?, ty))
        });
        let ty = grown.as_ref().map(|(_, ty)| *ty);
        let of_map = |global: &&mut super::model::Global| global.map.index() == self.index;
        let globals = self.object.globals.iter_mut().filter(of_map);
        if let Some(last) = globals.max_by_key(|global| global.offset) {
            last.size = rest;
            last.ty = ty;
        }
        match grown {
            Some((btf, _)) => self.object.btf = Some(btf),
            // As in libbpf: the type no longer describes the value.
            None => {
                self.edit(|map| map.value_type = None);
            }
        }
        Ok(())
    }

    /// Sets the map flags.
    pub fn set_flags(&mut self, flags: MapFlags) -> &mut Self {
        self.edit(|map| map.flags = flags)
    }

    /// Sets `map_extra`.
    pub fn set_extra(&mut self, extra: u64) -> &mut Self {
        self.edit(|map| map.extra = extra)
    }

    /// Sets the definition of the inner maps to `inner`, without its entries (libbpf,
    /// `bpf_map__set_inner_map_fd`).
    ///
    /// # Errors
    /// The map is not a map of maps, or `inner` is one.
    pub fn set_inner(&mut self, inner: MapDef) -> Result<&mut Self> {
        let holds_maps = |map: &MapDef| map.map_type.holds_maps();
        if !self.get().is_some_and(holds_maps) {
            let is = self.get().map_or(MapType::Array, |map| map.map_type);
            return Err(self.fault(format!("a map of type {is} has no inner maps")));
        }
        if holds_maps(&inner) {
            let text = format!(
                "'{}' is a map of maps itself; maps nest only once",
                inner.name
            );
            return Err(self.fault(text));
        }
        let inner = MapDef {
            initial: Vec::new(),
            inner: None,
            pinning: Pinning::None,
            ..inner
        };
        Ok(self.edit(|map| map.inner = Some(Box::new(inner))))
    }

    /// Sets whether and how it is pinned.
    pub fn set_pinning(&mut self, pinning: Pinning) -> &mut Self {
        self.edit(|map| map.pinning = pinning)
    }

    /// Sets whether the map is created when the object is loaded; otherwise instructions
    /// that refer to it are poisoned.
    pub fn set_autocreate(&mut self, autocreate: bool) -> &mut Self {
        self.edit(|map| map.autocreate = autocreate)
    }

    /// Replaces the initial value of a map of global data.
    ///
    /// # Errors
    /// The map is not global data, or the size is not its value size.
    pub fn set_initial_value(&mut self, value: &[u8]) -> Result<&mut Self> {
        let size = self.get().map_or(0, |map| map.value_size as usize);
        let is_data = self
            .get()
            .is_some_and(|map| matches!(map.origin, MapOrigin::Section(_)));
        if !is_data || value.len() != size {
            let text = format!("{} bytes, but the global data has {size}", value.len());
            return Err(self.fault(text));
        }
        Ok(self.edit(|map| map.initial = vec![maps_data::initial(Arc::from(value))]))
    }

    /// Returns this map's token, which makes a map of another object the same map
    /// ([`reuse`](Self::reuse)).
    pub fn share(&mut self) -> SharedMap {
        let token = self
            .get()
            .and_then(|map| map.shared.clone())
            .unwrap_or_default();
        self.edit(|map| map.shared = Some(token.clone()));
        token
    }

    /// Makes it the same map as the one that returned the token ([`share`](Self::share)).
    /// It keeps its own name; the rest of its definition is the other map's, as with
    /// libbpf's `bpf_map__reuse_fd`.
    ///
    /// # Errors
    /// Different types, key sizes or value sizes.
    pub fn reuse(&mut self, other: &MapDef, token: &SharedMap) -> Result<&mut Self> {
        let Some(map) = self.get() else {
            return Ok(self);
        };
        let shape = |map: &MapDef| (map.map_type, map.key_size, map.value_size);
        if shape(map) != shape(other) {
            let (a, b) = (shape(map), shape(other));
            let text = format!(
                "type {}, key size {} and value size {} differ from those of '{}': {}, {} and {}",
                a.0, a.1, a.2, other.name, b.0, b.1, b.2
            );
            return Err(self.fault(text));
        }
        Ok(self.edit(|map| {
            map.max_entries = other.max_entries;
            map.flags = other.flags;
            map.extra = other.extra;
            map.numa_node = other.numa_node;
            map.shared = Some(token.clone());
        }))
    }
}
