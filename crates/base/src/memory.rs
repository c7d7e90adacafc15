//! Memory: huge pages, atomic views of plain arrays, free memory, and an account of the heap.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

mod available;

pub use available::{addresses_left, available, available_now};

/// Where more addresses than this are left, heaps of threads do not matter.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MANY_ADDRESSES: u64 = 8 << 30;

/// Number of bytes in a huge page.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Asks for huge pages behind `slice`. A hint; call it before the first write.
pub fn prefer_huge_pages<T>(slice: &mut [T]) {
    let start = (slice.as_ptr() as usize).next_multiple_of(HUGE_PAGE_BYTES);
    let end = (slice.as_ptr() as usize + size_of_val(slice)) & !(HUGE_PAGE_BYTES - 1);
    // Miri does not interpret the hint.
    if start < end && !cfg!(miri) {
        // SAFETY: the range lies inside an exclusively borrowed allocation, and MADV_HUGEPAGE
        // changes neither its contents nor its validity.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
}

/// Creates `len` zeros, on huge pages if the system grants them.
pub fn zeroed_huge<T: bytemuck::Zeroable>(len: usize) -> Vec<T> {
    let mut values = bytemuck::zeroed_vec(len);
    prefer_huge_pages(&mut values);
    values
}

/// Views the numbers as atomics, for several threads.
pub fn as_atomic_u32(values: &mut [u32]) -> &[AtomicU32] {
    // SAFETY: `AtomicU32` has the size and alignment of `u32` on every platform we build for. The exclusive borrow
    // rules out access other than through the returned slice.
    unsafe { &*(values as *mut [u32] as *const [AtomicU32]) }
}

/// Views the numbers as atomics, for several threads.
pub fn as_atomic_u64(values: &mut [u64]) -> &[AtomicU64] {
    const { assert!(align_of::<AtomicU64>() == align_of::<u64>()) };
    // SAFETY: as for `as_atomic_u32`; the assertion covers 32-bit platforms.
    unsafe { &*(values as *mut [u64] as *const [AtomicU64]) }
}

static HEAP_BYTES: AtomicUsize = AtomicUsize::new(0);
static HEAP_PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator with an account of the allocated bytes.
///
/// Programs install it with `#[global_allocator]`. Without it, [`heap_peak`] stays 0.
#[derive(Debug, Default)]
pub struct CountingAllocator;

fn grown(num_bytes: usize) {
    let now = HEAP_BYTES.fetch_add(num_bytes, Ordering::Relaxed) + num_bytes;
    // A plain load saves the locked instruction unless the peak grows.
    if now > HEAP_PEAK.load(Ordering::Relaxed) {
        HEAP_PEAK.fetch_max(now, Ordering::Relaxed);
    }
}

/// Takes an allocation of `num_bytes` off the account again if it failed.
fn counted(pointer: *mut u8, num_bytes: usize) -> *mut u8 {
    if pointer.is_null() {
        HEAP_BYTES.fetch_sub(num_bytes, Ordering::Relaxed);
    }
    pointer
}

// SAFETY: every call is passed on to the system's allocator unchanged; the account beside it touches no memory of the
// caller.
unsafe impl GlobalAlloc for CountingAllocator {
    /// # Safety
    /// That of [`GlobalAlloc::alloc`].
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        let pointer = unsafe { System.alloc(layout) };
        counted(pointer, layout.size())
    }

    /// # Safety
    /// That of [`GlobalAlloc::alloc_zeroed`].
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc_zeroed`.
        let pointer = unsafe { System.alloc_zeroed(layout) };
        counted(pointer, layout.size())
    }

    /// # Safety
    /// That of [`GlobalAlloc::dealloc`].
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HEAP_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    /// # Safety
    /// That of [`GlobalAlloc::realloc`].
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // Added first: both blocks may exist while the allocator copies.
        grown(new_size);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::realloc`.
        let moved = unsafe { System.realloc(pointer, layout, new_size) };
        // After a failure the old block stays.
        HEAP_BYTES.fetch_sub(if moved.is_null() { new_size } else { layout.size() }, Ordering::Relaxed);
        moved
    }
}

/// Heap bytes in use now.
pub fn heap_bytes() -> usize {
    HEAP_BYTES.load(Ordering::Relaxed)
}

/// Maximum of the heap bytes since [`reset_heap_peak`] or the start.
pub fn heap_peak() -> usize {
    HEAP_PEAK.load(Ordering::Relaxed)
}

/// Resets the peak to the heap bytes in use now, and returns those.
pub fn reset_heap_peak() -> usize {
    let now = heap_bytes();
    HEAP_PEAK.store(now, Ordering::Relaxed);
    now
}

/// Returns unused memory of the allocator to the system, if the allocator can.
///
/// Cost: a scan of all free memory. Later allocations take new memory again.
pub fn give_back_unused() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` takes no memory that is in use, and may be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0)
    };
}

/// Limits the heaps of the allocator to one where addresses are limited. Call it before the first thread starts.
///
/// The system's allocator reserves 64 MB of addresses for each thread that allocates, so a few threads would use up a
/// small limit. With one heap, threads wait for each other when they allocate.
pub fn save_addresses() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if addresses_left().is_some_and(|left| left < MANY_ADDRESSES) {
        // SAFETY: `mallopt` changes a number of the allocator, and may be called at any time.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// Resets the resident peak to the memory that is resident now. Returns false if the system cannot.
pub fn reset_resident_peak() -> bool {
    // In proc(5), 5 resets the peak of the resident set.
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// Maximum resident memory of this process since its start or [`reset_resident_peak`], in bytes. Includes mapped
/// files. 0 if unknown.
pub fn resident_peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    available::in_kib(&status, "VmHWM:").unwrap_or(0)
}

/// Resident bytes of this process without files on disks: heap, stacks and shared memory, which includes files in
/// memory. 0 if unknown.
pub fn resident_beside_files() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ["RssAnon:", "RssShmem:"].iter().filter_map(|name| available::in_kib(&status, name)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomics_write_through() {
        let mut small = vec![1_u32, 2];
        as_atomic_u32(&mut small)[1].store(9, Ordering::Relaxed);
        let mut large = zeroed_huge::<u64>(3 << 18);
        as_atomic_u64(&mut large)[5].store(7, Ordering::Relaxed);
        assert_eq!((small[1], large[5], large[6]), (9, 7, 0));
    }
}
