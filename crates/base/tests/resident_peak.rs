//! The peak of resident memory, in a process of its own: the memory of other tests would count too.

use anden_base::memory::{give_back_unused, reset_resident_peak, resident_beside_files, resident_peak};

#[test]
#[cfg_attr(anden_asan, ignore = "a sanitizer takes memory of its own")]
fn the_system_knows_our_peak() {
    let big = vec![1_u8; 64 << 20];
    assert!(resident_peak() >= big.len() as u64);
    assert!((64 << 20..128 << 20).contains(&resident_beside_files()));
    drop(big);
    // Too small for mappings of their own, so the allocator keeps them.
    let small: Vec<Vec<u8>> = (0..64 << 10).map(|_| vec![1; 1000]).collect();
    assert_eq!(small.iter().map(|bytes| usize::from(bytes[9])).sum::<usize>(), 64 << 10);
    let _last = Box::new([1_u8; 1000]);
    drop(small);
    give_back_unused();
    if reset_resident_peak() {
        assert!(resident_peak() < 64 << 20);
    }
}
