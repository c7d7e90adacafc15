//! The arrays of a stored form, as bytes and as numbers.

use anden_base::memory::zeroed_huge;
use bytemuck::Pod;

use crate::Context;

/// Values that a worker copies at once.
const GRAIN: usize = 1 << 16;

/// The arrays of a form that has `N`.
pub(crate) fn arrays<'a, const N: usize>(arrays: &[&'a [u8]]) -> Result<[&'a [u8]; N], String> {
    arrays.try_into().map_err(|_| format!("{N} arrays expected, {} found", arrays.len()))
}

/// The values of an array.
pub(crate) fn values<T: Pod>(bytes: &[u8]) -> Result<&[T], String> {
    bytemuck::try_cast_slice(bytes).map_err(|error| format!("an array of {} bytes: {error}", bytes.len()))
}

/// A copy of the values, made by all workers.
pub(crate) fn copied<T: Pod + Send + Sync>(ctx: &Context<'_>, values: &[T]) -> Vec<T> {
    let mut copy = zeroed_huge(values.len());
    ctx.pool.for_each_part_mut(&mut copy, GRAIN, |start, part| part.copy_from_slice(&values[start..][..part.len()]));
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_arrays_are_refused() {
        assert!(values::<u32>(&[0; 7]).is_err() && arrays::<2>(&[&[]]).is_err());
        assert!(values::<u32>(&[0; 8]).is_ok() && arrays::<2>(&[&[], &[1]]).is_ok());
    }
}
