//! A listener that hears nothing: views with one read lists one by one.

use std::ops::Range;

use anden_lama::{Listener, Parts, Side};

#[derive(Debug)]
pub struct Deaf;

impl Listener for Deaf {
    fn will_need(&self, _side: Side, _parts: Parts, _vertices: &[u32]) {}
    fn will_need_runs(&self, _side: Side, _parts: Parts, _runs: &[Range<u32>]) {}
    fn will_walk(&self, _side: Side, _parts: Parts, _vertices: Range<u32>) {}
    fn has_walked(&self, _side: Side, _parts: Parts, _vertices: Range<u32>) {}
    fn forget(&self) {}
}
