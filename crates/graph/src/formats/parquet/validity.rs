//! Which rows of a column have a value.

/// A bit for each row, which is not there until a row has no value.
#[derive(Debug, Default)]
pub(super) struct Validity {
    words: Vec<u64>,
    num_rows: usize,
    has_nulls: bool,
}

impl Validity {
    /// Appends rows that all have a value, or none.
    #[inline]
    pub(super) fn push(&mut self, is_valid: bool, num_rows: usize) {
        if num_rows == 0 {
            return;
        }
        let first = self.num_rows;
        self.num_rows += num_rows;
        if !is_valid && !self.has_nulls {
            self.has_nulls = true;
            self.set(0, first);
        }
        if self.has_nulls {
            match is_valid {
                true => self.set(first, num_rows),
                false => self.words.resize(self.num_rows.div_ceil(64), 0),
            }
        }
    }

    fn set(&mut self, first: usize, num_rows: usize) {
        let end = first + num_rows;
        self.words.resize(end.div_ceil(64), 0);
        let (mut row, words) = (first, &mut self.words);
        while row < end {
            let num_now = (64 - row % 64).min(end - row);
            words[row / 64] |= u64::MAX >> (64 - num_now) << (row % 64);
            row += num_now;
        }
    }

    /// Whether a row has a value.
    #[inline(always)]
    pub(super) fn is_valid(&self, row: usize) -> bool {
        !self.has_nulls || self.words[row / 64] >> (row % 64) & 1 == 1
    }

    /// The bits; `None` where all rows have a value.
    pub(super) fn words(&self) -> Option<&[u64]> {
        self.has_nulls.then_some(&self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_told_apart_once_one_has_no_value() {
        let mut validity = Validity::default();
        let mut expected = Vec::new();
        for (is_valid, num_rows) in [(true, 70), (true, 0), (true, 3), (false, 2), (true, 130), (false, 64), (true, 1)]
        {
            assert_eq!(validity.words().is_some(), expected.contains(&false));
            validity.push(is_valid, num_rows);
            expected.extend(vec![is_valid; num_rows]);
            let found: Vec<bool> = (0..expected.len()).map(|row| validity.is_valid(row)).collect();
            assert_eq!(found, expected);
        }
    }
}
