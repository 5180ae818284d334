//! Memory for the vertices of a crowd, in large pages. A kernel writes to many poses in turn, each on pages of its own: with
//! pages of four kilobytes most writes miss the TLB, with pages of two megabytes they do not.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use understudy_core::Vec3;

/// A large page.
const PAGE: usize = 2 << 20;

/// So many places, in large pages where the system has them. Reads as a slice; any other slice does for a crowd too,
/// only more slowly.
pub struct VertexBuffer {
    first: NonNull<Vec3>,
    count: usize,
    layout: Layout,
}

// SAFETY: it owns its places, as a `Vec` does.
unsafe impl Send for VertexBuffer {}
// SAFETY: as above.
unsafe impl Sync for VertexBuffer {}

impl VertexBuffer {
    /// Places at the origin.
    ///
    /// # Panics
    /// Where there are more bytes than addresses, as a `Vec` does; ends the program where there is no memory.
    pub fn new(count: usize) -> Self {
        let layout = Layout::array::<Vec3>(count).expect("fewer bytes than addresses");
        if layout.size() == 0 {
            return Self { first: NonNull::dangling(), count, layout };
        }
        let large = if layout.size() >= PAGE { PAGE } else { layout.align() };
        let layout = layout.align_to(large).expect("fewer bytes than addresses");
        // SAFETY: the size is not zero, and all bytes are written before anyone reads them; zeros are places.
        let first = unsafe {
            let bytes = alloc(layout);
            let Some(first) = NonNull::new(bytes.cast::<Vec3>()) else { handle_alloc_error(layout) };
            // Before the first byte is touched: pages are chosen then.
            prefer_large_pages(bytes, layout.size());
            bytes.write_bytes(0, layout.size());
            first
        };
        Self { first, count, layout }
    }
}

impl Deref for VertexBuffer {
    type Target = [Vec3];

    fn deref(&self) -> &[Vec3] {
        // SAFETY: `count` places were written and belong to `self`.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

impl DerefMut for VertexBuffer {
    fn deref_mut(&mut self) -> &mut [Vec3] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr(), self.count) }
    }
}

impl Drop for VertexBuffer {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            // SAFETY: allocated with this layout, and nobody borrows it any more.
            unsafe { dealloc(self.first.as_ptr().cast(), self.layout) };
        }
    }
}

/// Only advice: where the system does not follow it, pages stay small.
///
/// # Safety
/// The bytes are allocated and belong to the caller.
#[cfg(all(target_os = "linux", not(miri)))]
unsafe fn prefer_large_pages(bytes: *mut u8, size: usize) {
    use std::ffi::{c_int, c_void};
    unsafe extern "C" {
        fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
    }
    const MADV_HUGEPAGE: c_int = 14;
    if size >= PAGE {
        // SAFETY: whole pages inside the caller's bytes, which start at the start of one.
        unsafe { madvise(bytes.cast(), size / PAGE * PAGE, MADV_HUGEPAGE) };
    }
}

/// Other systems choose themselves.
#[cfg(not(all(target_os = "linux", not(miri))))]
unsafe fn prefer_large_pages(_bytes: *mut u8, _size: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_start_at_the_origin_and_keep_what_is_written() {
        // An interpreter needs minutes for a whole page.
        let large = if cfg!(miri) { 2000 } else { PAGE / size_of::<Vec3>() + 1 };
        for count in [0, 1, 1000, large] {
            let mut buffer = VertexBuffer::new(count);
            assert_eq!(buffer.len(), count);
            assert!(buffer.iter().all(|place| *place == Vec3::ZERO));
            buffer.iter_mut().enumerate().for_each(|(index, place)| place.x = index as f32);
            assert!(buffer.iter().enumerate().all(|(index, place)| place.x == index as f32));
        }
    }

    #[test]
    fn buffers_go_to_other_threads() {
        let buffer = std::thread::spawn(|| VertexBuffer::new(10)).join().expect("the thread ends");
        assert_eq!(buffer.len(), 10);
    }
}
