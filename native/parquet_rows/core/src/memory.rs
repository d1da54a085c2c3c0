//! Memory whose large blocks go back to the system when they are freed, but for a few.
//!
//! The C library keeps what is freed for later: a process whose pages were kept held 140 to 240 MiB
//! more than it used. Here each large block is mapped by itself. To clear a new one takes time, so
//! some of those freed last are used again; see `benchmarks/README.md`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{self, null_mut};
use std::sync::Mutex;

/// From how many bytes a block is mapped by itself.
pub const LARGE: usize = 128 << 10;

/// How many bytes of freed blocks are kept, at most.
pub const KEPT: usize = 40 << 20;

/// The largest block that is kept.
const LARGEST_KEPT: usize = KEPT / 2;

/// The largest alignment of a mapped block: the smallest page of a system.
const ALIGNMENT: usize = 4096;

/// An allocator that maps large blocks, and leaves others to the system's.
pub struct LargeBlocks {
    /// Those kept, the oldest first. A thread that finds it locked does without: after a fork it may
    /// stay locked for ever.
    freed: Mutex<Vec<Block>>,
}

#[derive(Clone, Copy)]
struct Block {
    address: usize,
    bytes: usize,
}

impl LargeBlocks {
    /// Without any kept block.
    pub const fn new() -> Self {
        Self {
            freed: Mutex::new(Vec::new()),
        }
    }

    /// A freed block of `bytes`, the latest.
    fn take(&self, bytes: usize) -> Option<*mut u8> {
        let mut freed = self.freed.try_lock().ok()?;
        let at = freed.iter().rposition(|block| block.bytes == bytes)?;
        Some(ptr::with_exposed_provenance_mut(freed.remove(at).address))
    }

    /// Keeps a freed block in place of the oldest ones, if it is not too large for that.
    fn give_back(&self, block: Block) {
        let (Ok(mut freed), true) = (self.freed.try_lock(), block.bytes <= LARGEST_KEPT) else {
            return unmap(block);
        };
        freed.push(block);
        let mut bytes: usize = freed.iter().map(|block| block.bytes).sum();
        while bytes > KEPT {
            let oldest = freed.remove(0);
            bytes -= oldest.bytes;
            unmap(oldest);
        }
    }
}

impl Default for LargeBlocks {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: a block is mapped, or the system's, by its layout alone, which its owner hands in again.
// A mapped one has all bytes of `mapped_bytes`, and is in the hands of one owner or in `freed`.
unsafe impl GlobalAlloc for LargeBlocks {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match mapped_bytes(layout) {
            Some(bytes) => self.take(bytes).unwrap_or_else(|| map(bytes)),
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(bytes) = mapped_bytes(layout) else {
            return unsafe { System.alloc_zeroed(layout) };
        };
        let Some(block) = self.take(bytes) else {
            return map(bytes); // The system has cleared it.
        };
        unsafe { block.write_bytes(0, layout.size()) };
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match mapped_bytes(layout) {
            Some(bytes) => self.give_back(Block {
                address: block.expose_provenance(),
                bytes,
            }),
            None => unsafe { System.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the size is right for the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (mapped_bytes(layout), mapped_bytes(wanted)) {
            (None, None) => unsafe { System.realloc(block, layout, size) },
            (Some(before), Some(bytes)) if before == bytes => block,
            (Some(before), Some(bytes)) => remap(block, before, bytes),
            _ => unsafe {
                let moved = self.alloc(wanted);
                if !moved.is_null() {
                    moved.copy_from_nonoverlapping(block, layout.size().min(size));
                    self.dealloc(block, layout);
                }
                moved
            },
        }
    }
}

/// How many bytes are mapped for a block: an eighth more than asked for at most, so that blocks of
/// nearly the same size are used for each other. None if it is not mapped.
fn mapped_bytes(layout: Layout) -> Option<usize> {
    let size = layout.size();
    let step = size.next_power_of_two() / 16;
    (size >= LARGE && layout.align() <= ALIGNMENT).then(|| size.next_multiple_of(step))
}

fn map(bytes: usize) -> *mut u8 {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let mut kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    if bytes <= LARGEST_KEPT {
        // All its pages at once, which takes less time than one by one at their first use. A larger
        // block may be what a damaged file claims to need, and never be used.
        kind |= libc::MAP_POPULATE;
    }
    // SAFETY: a new mapping, of no file.
    or_null(unsafe { libc::mmap(null_mut(), bytes, access, kind, -1, 0) })
}

fn remap(block: *mut u8, before: usize, bytes: usize) -> *mut u8 {
    // SAFETY: the block was mapped with `before` bytes, and its owner gives it up for what is
    // returned.
    or_null(unsafe { libc::mremap(block.cast(), before, bytes, libc::MREMAP_MAYMOVE) })
}

fn unmap(block: Block) {
    let address = ptr::with_exposed_provenance_mut(block.address);
    // SAFETY: nobody has the block any more. The call fails only for a range that is not one of
    // pages.
    unsafe { libc::munmap(address, block.bytes) };
}

fn or_null(mapped: *mut libc::c_void) -> *mut u8 {
    if mapped == libc::MAP_FAILED {
        return null_mut();
    }
    mapped.cast()
}
