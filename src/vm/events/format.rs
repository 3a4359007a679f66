//! The text of a tracefs `format` file (`events/<group>/<name>/format`, written by
//! `f_show` in `kernel/trace/trace_events.c`).
//!
//! ```text
//! name: sched_process_exec
//! ID: 365
//! format:
//! <TAB>field:__data_loc char[] filename;<TAB>offset:8;<TAB>size:4;<TAB>signed:0;
//!
//! print fmt: "…", …
//! ```

use super::error::EventError;
use super::layout::{HIDDEN, Layout, LayoutSource};
use super::syscall;
use crate::spec::limits::MAX_TRACE_SIZE;
use crate::vm::fields::{Field, Points, Shape, Storage, c_size};

/// A `format` file: the record's layout, and the other data of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Format {
    /// The ID that `perf_event_open` takes; `None` if the text has none.
    pub id: Option<u32>,
    /// The fields as declared, in the order of the text.
    pub fields: Vec<FormatField>,
    /// The layout of its records.
    pub layout: Layout,
}

/// A field as a `format` file declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormatField {
    /// Type and name in C, verbatim: `__data_loc char[] filename`.
    pub declaration: String,
    /// The name.
    pub name: String,
    /// Offset in the record, in bytes.
    pub offset: u32,
    /// Size in the record, in bytes.
    pub size: u32,
    /// Whether it is a signed number.
    pub signed: bool,
}

impl FormatField {
    /// Whether it is a field of the common header.
    #[must_use]
    pub const fn is_common(&self) -> bool {
        self.offset < HIDDEN
    }

    /// The type: the declaration without the name, an array's brackets included
    /// (`char[16]`).
    #[must_use]
    pub fn c_type(&self) -> String {
        let Some((before, behind)) = self.declaration.rsplit_once(&self.name) else {
            return self.declaration.clone();
        };
        format!("{}{}", before.trim_end(), behind.trim())
    }
}

impl Layout {
    /// Reads a `format` file and returns only the layout; see [`Format::parse`].
    ///
    /// # Errors
    /// [`EventError::Format`] with line and column.
    pub fn from_format(group: &str, text: &str) -> Result<Self, EventError> {
        Ok(Format::parse(group, text)?.layout)
    }
}

impl Format {
    /// Reads a `format` file. `group` (`sched`) is not in the text; `print fmt` is ignored.
    ///
    /// # Errors
    /// [`EventError::Format`] with line and column.
    pub fn parse(group: &str, text: &str) -> Result<Self, EventError> {
        let mut parser = Parser {
            event: format!("{group}/?"),
            line: 0,
        };
        let mut name = None;
        let mut id = None;
        let mut in_format = false;
        let mut fields: Vec<Field> = Vec::new();
        let mut declared = Vec::new();
        for (index, line) in text.lines().enumerate() {
            parser.line = index + 1;
            if line.trim().is_empty() {
                continue;
            }
            if let Some(number) = line.strip_prefix("ID:") {
                match number.trim().parse() {
                    Ok(number) => id = Some(number),
                    Err(_) => return parser.error(line, number, "a number of 32 bits"),
                }
            } else if let Some(rest) = line.strip_prefix("name:") {
                parser.event = format!("{group}/{}", rest.trim());
                name = Some(rest.trim());
            } else if line.trim_end() == "format:" {
                in_format = true;
            } else if line.starts_with("print fmt:") {
                break;
            } else if !in_format {
                return parser.error(line, line, "`name:`, `ID:` or `format:`");
            } else {
                let (text, field) = parser.field(line)?;
                if let Some(other) = fields.iter().find(|other| other.name == field.name) {
                    let problem = format!("second field `{}`", other.name);
                    return Err(parser.at(1, problem));
                }
                fields.push(field);
                declared.push(text);
            }
        }
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            parser.line = 1;
            return Err(parser.at(
                1,
                "no line `name: …`; is this a tracefs format file?".into(),
            ));
        };
        if !in_format {
            return Err(parser.at(
                1,
                "no line `format:`; is this a tracefs format file?".into(),
            ));
        }
        let full = format!("{group}/{name}");
        let layout = Layout::of_fields(full, fields, LayoutSource::Format);
        if layout.size as usize > MAX_TRACE_SIZE {
            let size = layout.size;
            let problem =
                format!("the fields take {size} bytes, but a record has at most {MAX_TRACE_SIZE}");
            return Err(parser.at(1, problem));
        }
        Ok(Self {
            id,
            fields: declared,
            layout: match syscall::Side::of(group, name) {
                Some(side) => side.adapt(layout),
                None => layout,
            },
        })
    }
}

struct Parser {
    event: String,
    line: usize,
}

impl Parser {
    fn at(&self, column: usize, problem: String) -> EventError {
        EventError::Format {
            event: self.event.clone(),
            line: self.line,
            column,
            problem,
        }
    }

    /// An error "expected …" at the start of `rest`, a tail of `line`.
    fn error<T>(&self, line: &str, rest: &str, expected: &str) -> Result<T, EventError> {
        let column = line.len() - rest.len() + 1;
        let found = rest.split(['\t', ';']).next().unwrap_or_default().trim();
        let problem = if found.is_empty() {
            format!("expected {expected}")
        } else {
            format!("expected {expected}, found `{found}`")
        };
        Err(self.at(column, problem))
    }

    /// One line `field:…; offset:…; size:…; signed:…;`.
    fn field(&self, line: &str) -> Result<(FormatField, Field), EventError> {
        let rest = line.trim_start();
        let Some(rest) = rest.strip_prefix("field:") else {
            return self.error(line, rest, "`field:`");
        };
        let Some((declaration, rest)) = rest.split_once(';') else {
            return self.error(line, rest, "a declaration that ends with `;`");
        };
        let (offset, rest) = self.number(line, rest, "offset:")?;
        let (size, rest) = self.number(line, rest, "size:")?;
        // Kernels before 2.6.33 don't print `signed:`.
        let signed = match rest.trim() {
            "" => 0,
            _ => self.number(line, rest, "signed:")?.0,
        } != 0;
        let start = line.len() - line.trim_start().len() + "field:".len() + 1;
        let field = Declared::parse(declaration)
            .and_then(|declared| declared.field(offset, size, signed))
            .map_err(|problem| self.at(start, problem))?;
        let text = FormatField {
            declaration: declaration.trim().to_owned(),
            name: field.name.clone(),
            offset,
            size,
            signed,
        };
        Ok((text, field))
    }

    /// `key` and its number, up to and including the `;`.
    fn number<'a>(
        &self,
        line: &str,
        rest: &'a str,
        key: &str,
    ) -> Result<(u32, &'a str), EventError> {
        let rest = rest.trim_start();
        let Some(after) = rest.strip_prefix(key) else {
            return self.error(line, rest, &format!("`{key}`"));
        };
        let Some((digits, tail)) = after.split_once(';') else {
            return self.error(line, after, "a number and `;`");
        };
        match digits.trim().parse() {
            // The kernel stores the offset in 16 bits.
            Ok(number) if number <= 0xffff => Ok((number, tail)),
            _ => self.error(line, after, "a number below 65536"),
        }
    }
}

/// A parsed C declaration: `__data_loc`, type, name, dimensions.
struct Declared<'a> {
    storage: Storage,
    /// The words of the type without dimensions, verbatim.
    ctype: &'a str,
    name: &'a str,
    /// The text in brackets; empty for `[]`.
    dimensions: Vec<&'a str>,
}

impl<'a> Declared<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let text = text.trim();
        let (storage, text) = match text.split_once(' ') {
            Some(("__data_loc", rest)) => (Storage::DataLoc, rest.trim()),
            Some(("__rel_loc", rest)) => (Storage::RelLoc, rest.trim()),
            _ => (Storage::Inline, text),
        };
        let bad = || format!("`{text}` is not a field declaration");
        let (before, mut dimensions) = brackets(text).ok_or_else(bad)?;
        let cut = before
            .rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .ok_or_else(bad)?;
        let (ctype, name) = before.split_at_checked(cut + 1).ok_or_else(bad)?;
        let (ctype, inner) = brackets(ctype.trim()).ok_or_else(bad)?;
        dimensions.extend(inner);
        if name.is_empty() || ctype.is_empty() {
            return Err(bad());
        }
        Ok(Self {
            storage,
            ctype,
            name,
            dimensions,
        })
    }

    fn field(&self, offset: u32, size: u32, signed: bool) -> Result<Field, String> {
        let name = self.name.to_owned();
        if self.storage != Storage::Inline {
            if size != 4 {
                return Err(format!(
                    "`{name}` is a location of 4 bytes, but its size is {size}"
                ));
            }
            let prefix = match self.storage {
                Storage::RelLoc => "__rel_loc_",
                Storage::DataLoc | Storage::Inline => "__data_loc_",
            };
            return Ok(Field {
                aliases: vec![format!("{prefix}{name}")],
                name,
                offset,
                // If the size of the type is unknown, the elements are bytes.
                shape: self.element(None, signed),
                storage: self.storage,
                narrow: None,
                points: Points::default(),
            });
        }
        if offset < HIDDEN && offset.saturating_add(size) > HIDDEN {
            return Err(format!(
                "`{name}` crosses the end of the common header (8 bytes)"
            ));
        }
        let shape = if self.dimensions.is_empty() {
            self.element(Some(size), signed)
        } else {
            self.array(size, signed)
        };
        Ok(Field::inline(name, offset, shape).of_c_type(self.ctype))
    }

    /// An array with this total size.
    fn array(&self, size: u32, signed: bool) -> Shape {
        let count = self
            .dimensions
            .iter()
            .try_fold(1u32, |product, text| {
                product.checked_mul(text.trim().parse().ok()?)
            })
            .filter(|count| *count != 0 && size.is_multiple_of(*count));
        if let Some(count) = count {
            return self.element(Some(size / count), signed).times(count);
        }
        // `[TASK_COMM_LEN]` or `[]`: the element's size comes from its type.
        let element = self.element(None, signed);
        let len = element.size().max(1);
        match &element {
            Shape::Opaque { .. } => Shape::Opaque { size },
            _ if size.is_multiple_of(len) => element.times(size / len),
            _ => Shape::Opaque { size },
        }
    }

    /// The shape that the type's words describe; for an array that of one element.
    fn element(&self, size: Option<u32>, signed: bool) -> Shape {
        let mut words: Vec<_> = self.ctype.split_whitespace().collect();
        words.retain(|word| !matches!(*word, "const" | "volatile" | "__user" | "__rcu"));
        if self.ctype.contains('*') && matches!(size, None | Some(8)) {
            return Shape::Pointer;
        }
        if words == ["char"] && matches!(size, None | Some(1)) {
            return Shape::Char;
        }
        let known = size.or_else(|| c_size(&words));
        match (known, words.first()) {
            (Some(size), Some(&("struct" | "union"))) => Shape::Opaque { size },
            (Some(size), _) => Shape::number(size, signed),
            (None, _) => Shape::Opaque { size: 1 },
        }
    }
}

/// Splits `[a][b]` off the end.
fn brackets(text: &str) -> Option<(&str, Vec<&str>)> {
    let mut rest = text.trim_end();
    let mut found = Vec::new();
    while let Some(inner) = rest.strip_suffix(']') {
        let (before, dimension) = inner.rsplit_once('[')?;
        found.push(dimension);
        rest = before.trim_end();
    }
    Some((rest, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXEC: &str = "name: sched_process_exec\nID: 365\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n\
        \tfield:pid_t old_pid;\toffset:16;\tsize:4;\tsigned:1;\n\n\
        print fmt: \"filename=%s\", __get_str(filename)\n";

    #[test]
    fn a_format_file_becomes_fields() {
        let layout = Layout::from_format("sched", EXEC).unwrap();
        assert_eq!(layout.name, "sched/sched_process_exec");
        assert_eq!(
            (layout.size, layout.data_offset, layout.readable),
            (20, 20, 20)
        );
        let own: Vec<_> = layout.own_fields().collect();
        assert_eq!(own.len(), 3);
        assert_eq!(own[0].storage, Storage::DataLoc);
        assert_eq!(own[0].shape, Shape::Char);
        assert!(own[0].is_named("__data_loc_filename"));
        assert_eq!(
            own[2].shape,
            Shape::Int {
                size: 4,
                signed: true
            }
        );
    }

    #[test]
    fn what_the_text_says_is_kept() {
        let format = Format::parse("sched", EXEC).unwrap();
        assert_eq!(format.id, Some(365));
        let types: Vec<_> = format.fields.iter().map(FormatField::c_type).collect();
        let wanted = ["unsigned short", "unsigned char", "unsigned char", "int"];
        assert_eq!(types[..4], wanted);
        assert_eq!(types[4..], ["__data_loc char[]", "pid_t", "pid_t"]);
        let file = &format.fields[4];
        assert_eq!(file.declaration, "__data_loc char[] filename");
        assert_eq!((file.offset, file.size, file.signed), (8, 4, false));
        assert_eq!(format.fields.iter().filter(|f| f.is_common()).count(), 4);
        let array = FormatField {
            declaration: "char comm[TASK_COMM_LEN]".to_owned(),
            name: "comm".to_owned(),
            ..file.clone()
        };
        assert_eq!(array.c_type(), "char[TASK_COMM_LEN]");
        let error = Layout::from_format("g", &EXEC.replace("ID: 365", "ID: x")).unwrap_err();
        assert!(error.to_string().contains("line 2, column 4"), "{error}");
    }

    fn shape(declaration: &str, size: u32) -> (String, Shape) {
        let field = Declared::parse(declaration)
            .unwrap()
            .field(16, size, false)
            .unwrap();
        (field.name, field.shape)
    }

    #[test]
    fn declarations_of_every_form() {
        let u = |size| Shape::number(size, false);
        for (text, size, name, wanted) in [
            ("unsigned long args[6]", 48, "args", u(8).times(6)),
            (
                "char comm[TASK_COMM_LEN]",
                16,
                "comm",
                Shape::Char.times(16),
            ),
            ("__u8 m[2][3]", 6, "m", u(1).times(6)),
            ("const char * buf", 8, "buf", Shape::Pointer),
            ("void *ptr", 8, "ptr", Shape::Pointer),
            ("struct in6_addr ip", 16, "ip", Shape::Opaque { size: 16 }),
            ("enum zone_type zone", 4, "zone", u(4)),
            ("u32 buf[]", 0, "buf", u(4).times(0)),
            ("__rel_loc unsigned int[] xs", 4, "xs", u(4)),
            (
                "__data_loc cpumask_t mask",
                4,
                "mask",
                Shape::Opaque { size: 1 },
            ),
            ("unsigned char c", 1, "c", u(1)),
        ] {
            assert_eq!(shape(text, size), (name.to_owned(), wanted), "{text}");
        }
    }

    #[test]
    fn errors_say_line_and_column() {
        let error = |text: &str| Layout::from_format("g", text).unwrap_err().to_string();
        assert_eq!(
            error(&EXEC.replace("offset:12", "ofset:12")),
            "format of g/sched_process_exec, line 10, column 19: expected `offset:`, \
             found `ofset:12`"
        );
        assert_eq!(
            error(&EXEC.replace("size:4;\tsigned:1;\n\nprint", "size:x;\tsigned:1;\n\nprint")),
            "format of g/sched_process_exec, line 11, column 39: expected a number below 65536, \
             found `x`"
        );
        assert_eq!(
            error(&EXEC.replace("field:pid_t pid", "field:pid")),
            "format of g/sched_process_exec, line 10, column 8: `pid` is not a field declaration"
        );
        assert!(error(&EXEC.replace("old_pid", "pid")).contains("line 11, column 1: second field"));
        assert!(error("").contains("line 1, column 1: no line `name: …`"));
        assert!(error("name: x\n").contains("no line `format:`"));
        assert!(
            error("name: x\nformat:\n\tfield:u64 a;\toffset:9000;\tsize:8;\n").contains("8192")
        );
        assert!(error("hello").contains("expected `name:`"));
        assert!(error("name: x\nformat:\n\tfield:u64 a;\toffset:4;\tsize:8;\n").contains("header"));
    }
}
