//! A prefetch hook that ignores all announcements. Views with a hook read lists one by one.

use std::ops::Range;

use anden_snapshots::{Direction, Listener, Parts};

#[derive(Debug)]
pub struct Deaf;

impl Listener for Deaf {
    fn will_need(&self, _direction: Direction, _parts: Parts, _vertices: &[u32]) {}
    fn will_need_runs(&self, _direction: Direction, _parts: Parts, _runs: &[Range<u32>]) {}
    fn will_walk(&self, _direction: Direction, _parts: Parts, _vertices: Range<u32>) {}
    fn has_walked(&self, _direction: Direction, _parts: Parts, _vertices: Range<u32>) {}
    fn forget(&self) {}
}
