//! What a guest tells its host, on one way from the guest to the host: frames of a kind, a
//! length and so many bytes.

use std::io::{self, Read, Write};

/// The longest frame. What is longer goes in several.
const MAX: usize = 1 << 16;

/// A part of what a guest tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    /// The guest runs, with a kernel of this release.
    Hello(String),
    /// The guest still runs.
    Alive,
    /// Bytes of the command's standard output.
    Out(Vec<u8>),
    /// Bytes of its standard error.
    Err(Vec<u8>),
    /// A file that the command has written begins: the n-th output of the [`Job`](super::Job), or
    /// one with this path in the output, if that is a folder.
    File(u8, String),
    /// Bytes of this file.
    Bytes(Vec<u8>),
    /// The command has ended with this code; the last frame.
    Exit(u8),
}

impl Frame {
    /// Writes the frame.
    pub fn write(&self, sink: &mut impl Write) -> io::Result<()> {
        let named;
        let (kind, bytes): (u8, &[u8]) = match self {
            Self::Hello(release) => (b'h', release.as_bytes()),
            Self::Alive => (b'a', &[]),
            Self::Out(bytes) => (b'o', bytes),
            Self::Err(bytes) => (b'e', bytes),
            Self::File(number, path) => {
                named = [&[*number], path.as_bytes()].concat();
                (b'f', &named)
            }
            Self::Bytes(bytes) => (b'b', bytes),
            Self::Exit(code) => (b'x', &[*code]),
        };
        let len = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        // One write: each is a way through the emulator.
        let whole = [&[kind], len.to_le_bytes().as_slice(), bytes].concat();
        sink.write_all(&whole)
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// `UnexpectedEof` at the end, `InvalidData` for what is no frame.
    pub fn read(source: &mut impl Read) -> io::Result<Self> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "not a guest's output");
        let mut head = [0; 5];
        source.read_exact(&mut head)?;
        let [kind, len @ ..] = head;
        let len = usize::try_from(u32::from_le_bytes(len)).unwrap_or(usize::MAX);
        if len > MAX {
            return Err(invalid());
        }
        let mut bytes = vec![0; len];
        source.read_exact(&mut bytes)?;
        Ok(match (kind, bytes.as_slice()) {
            (b'h', release) => Self::Hello(String::from_utf8_lossy(release).into_owned()),
            (b'a', []) => Self::Alive,
            (b'o', _) => Self::Out(bytes),
            (b'e', _) => Self::Err(bytes),
            (b'f', [number, path @ ..]) => {
                Self::File(*number, String::from_utf8_lossy(path).into_owned())
            }
            (b'b', _) => Self::Bytes(bytes),
            (b'x', [code]) => Self::Exit(*code),
            _ => return Err(invalid()),
        })
    }

    /// Passes what a source gives on as frames, until its end.
    pub fn copy(
        mut source: impl Read,
        make: fn(Vec<u8>) -> Self,
        mut send: impl FnMut(Self) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut buffer = vec![0; MAX];
        loop {
            let len = match source.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            send(make(buffer.get(..len).unwrap_or_default().to_vec()))?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written() {
        let mut frames = vec![
            Frame::Hello("6.12".into()),
            Frame::Alive,
            Frame::Err(b"warning".to_vec()),
            Frame::File(1, String::new()),
            Frame::File(2, "btf/types".into()),
        ];
        let long = vec![7; 3 * MAX / 2];
        Frame::copy(long.as_slice(), Frame::Bytes, |frame| {
            frames.push(frame);
            Ok(())
        })
        .unwrap();
        frames.push(Frame::Exit(3));
        assert_eq!(frames.len(), 8);
        let mut bytes = Vec::new();
        for frame in &frames {
            frame.write(&mut bytes).unwrap();
        }
        let mut source = bytes.as_slice();
        for frame in frames {
            assert_eq!(Frame::read(&mut source).unwrap(), frame);
        }
        let end = Frame::read(&mut source).unwrap_err();
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn other_bytes_are_an_error() {
        for bytes in [b"Linux version".as_slice(), b"a\x01\0\0\0x", b"x\0\0\0\0"] {
            let error = Frame::read(&mut &*bytes).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{bytes:?}");
        }
    }
}
