//! Replaces the crate `flate2` (through `[patch.crates-io]`) with the items that the parquet crate
//! uses. Gzip pages are in memory, and libdeflate decodes them about twice as fast as any zlib.

/// A compression level.
pub struct Compression;

impl Compression {
    /// Accepts any level: this crate does not compress.
    pub fn new(_level: u32) -> Self {
        Self
    }
}

/// Decoding.
pub mod read {
    use std::ffi::c_void;
    use std::io::{Error, ErrorKind, Read, Result};
    use std::ptr::NonNull;

    use libdeflate_sys::{
        libdeflate_alloc_decompressor, libdeflate_decompressor, libdeflate_free_decompressor,
        libdeflate_gzip_decompress_ex, libdeflate_result_LIBDEFLATE_SUCCESS as SUCCESS,
    };

    /// Decodes consecutive gzip members in memory.
    pub struct MultiGzDecoder<'a> {
        input: &'a [u8],
    }

    impl<'a> MultiGzDecoder<'a> {
        /// A decoder for the whole of `input`.
        pub fn new(input: &'a [u8]) -> Self {
            Self { input }
        }
    }

    impl Read for MultiGzDecoder<'_> {
        fn read(&mut self, _output: &mut [u8]) -> Result<usize> {
            Err(Error::new(ErrorKind::Unsupported, "use read_to_end"))
        }

        /// Appends all decoded bytes. `output` must already have capacity for them: a page states
        /// its decoded size, and a page that is larger is damaged.
        fn read_to_end(&mut self, output: &mut Vec<u8>) -> Result<usize> {
            let decompressor = Decompressor::new()?;
            let before = output.len();
            while !self.input.is_empty() {
                let read = decompressor.append_member(self.input, output)?;
                self.input = &self.input[read..];
            }
            Ok(output.len() - before)
        }
    }

    struct Decompressor(NonNull<libdeflate_decompressor>);

    impl Decompressor {
        fn new() -> Result<Self> {
            // SAFETY: the function only allocates and has no preconditions.
            let allocated = unsafe { libdeflate_alloc_decompressor() };
            let allocated = NonNull::new(allocated).ok_or(ErrorKind::OutOfMemory)?;
            Ok(Self(allocated))
        }

        /// Decodes the first member of `input` and returns the member's length.
        fn append_member(&self, input: &[u8], output: &mut Vec<u8>) -> Result<usize> {
            let room = output.spare_capacity_mut();
            let (mut read, mut written) = (0, 0);
            // SAFETY: the pointers come from slices and are passed with their lengths; `room` is
            // only written to, within its length.
            let outcome = unsafe {
                libdeflate_gzip_decompress_ex(
                    self.0.as_ptr(),
                    input.as_ptr().cast::<c_void>(),
                    input.len(),
                    room.as_mut_ptr().cast::<c_void>(),
                    room.len(),
                    &raw mut read,
                    &raw mut written,
                )
            };
            if outcome != SUCCESS {
                return Err(Error::new(ErrorKind::InvalidData, "corrupt gzip data"));
            }
            // SAFETY: libdeflate wrote that many bytes after the old length.
            unsafe { output.set_len(output.len() + written) };
            Ok(read)
        }
    }

    impl Drop for Decompressor {
        fn drop(&mut self) {
            // SAFETY: `new` allocated it, and it is freed only once.
            unsafe { libdeflate_free_decompressor(self.0.as_ptr()) };
        }
    }
}

/// Encoding, which this replacement does not support.
pub mod write {
    use std::io::{Error, ErrorKind, Result, Write};

    use crate::Compression;

    /// Refuses to encode.
    pub struct GzEncoder<W>(std::marker::PhantomData<W>);

    impl<W: Write> GzEncoder<W> {
        /// An encoder that fails.
        pub fn new(_output: W, _level: Compression) -> Self {
            Self(std::marker::PhantomData)
        }

        /// Fails.
        pub fn try_finish(&mut self) -> Result<()> {
            Err(refused())
        }
    }

    impl<W: Write> Write for GzEncoder<W> {
        fn write(&mut self, _bytes: &[u8]) -> Result<usize> {
            Err(refused())
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    fn refused() -> Error {
        Error::new(ErrorKind::Unsupported, "compression is not supported")
    }
}
