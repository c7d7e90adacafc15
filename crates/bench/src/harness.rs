//! Alternating measurements of two sides, and their statistics.
//!
//! Machines drift, so the two sides alternate, and the result is the median of the ratios of consecutive runs. Its
//! interval needs no assumption about the noise: by the binomial distribution, the median lies between the k-th
//! smallest and the k-th largest ratio.

use std::time::Instant;

/// Runs `body`. Returns its seconds and its result.
pub fn seconds<R>(body: impl FnOnce() -> R) -> (f64, R) {
    let start = Instant::now();
    let result = body();
    (start.elapsed().as_secs_f64(), result)
}

/// The median; the mean of the middle two if their number is even, 0 without values.
pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

/// The geometric mean; 1 without ratios.
pub fn geometric_mean(ratios: &[f64]) -> f64 {
    let sum: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (sum / ratios.len().max(1) as f64).exp()
}

/// Pairs of measurements of two sides.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    ours: Vec<f64>,
    other: Vec<f64>,
}

impl Pairs {
    /// Runs each side once as a warm-up, then `num_pairs` times in turn. The other side begins in every second pair.
    /// Each closure gets the number of its pair and returns its seconds.
    pub fn alternate<E>(
        num_pairs: usize,
        mut ours: impl FnMut(usize) -> Result<f64, E>,
        mut other: impl FnMut(usize) -> Result<f64, E>,
    ) -> Result<Self, E> {
        ours(0)?;
        other(0)?;
        let mut pairs = Self::default();
        for pair in 0..num_pairs {
            let (our_time, other_time) = if pair % 2 == 0 {
                let our_time = ours(pair)?;
                (our_time, other(pair)?)
            } else {
                let other_time = other(pair)?;
                (ours(pair)?, other_time)
            };
            pairs.push(our_time, other_time);
        }
        Ok(pairs)
    }

    /// Adds one pair.
    pub fn push(&mut self, ours: f64, other: f64) {
        self.ours.push(ours);
        self.other.push(other);
    }

    /// The pairs with `parts[i]` subtracted from our time of pair `i`.
    pub fn less(&self, parts: &[f64]) -> Self {
        let ours = self.ours.iter().zip(parts).map(|(time, part)| time - part).collect();
        Self { ours, other: self.other.clone() }
    }

    /// A pair of the two *other* sides: ours are the other side of `self`, the other ones that of `others`.
    pub fn beside(&self, others: &Self) -> Self {
        Self { ours: self.other.clone(), other: others.other.clone() }
    }

    /// Whether no pair ran.
    pub fn is_empty(&self) -> bool {
        self.ours.is_empty()
    }

    /// The median of our side.
    pub fn ours(&self) -> f64 {
        median(&self.ours)
    }

    /// The median of the other side.
    pub fn other(&self) -> f64 {
        median(&self.other)
    }

    /// The median ratio ours ÷ other, and the ends of its interval of at least 95 % confidence. With fewer than six
    /// pairs the ends are the smallest and the largest ratio.
    pub fn ratio(&self) -> (f64, f64, f64) {
        let mut ratios: Vec<f64> = self.ours.iter().zip(&self.other).map(|(a, b)| a / b).collect();
        ratios.sort_by(f64::total_cmp);
        let Some(last) = ratios.len().checked_sub(1) else { return (0.0, 0.0, 0.0) };
        let cut = cut_of_interval(ratios.len());
        (median(&ratios), ratios[cut], ratios[last - cut])
    }
}

/// The number of values to cut at each end of `n` sorted ones, so that the rest encloses the median with 95 %
/// confidence.
fn cut_of_interval(n: usize) -> usize {
    let mut probability = 0.5_f64.powi(n as i32);
    let mut below = 0.0;
    let mut cut = 0;
    for k in 0..n {
        below += probability;
        if below > 0.025 {
            break;
        }
        cut = k + 1;
        probability *= (n - k) as f64 / (k + 1) as f64;
    }
    // Leaving out `cut` values errs on each side with the probability of fewer than `cut` hits.
    cut.saturating_sub(1).min(n.saturating_sub(1) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_follow_the_binomial_table() {
        // Order statistics of the 95 % interval of a median: 6 → 1st and 6th, 15 → 4th and 12th,
        // 25 → 8th and 18th.
        assert_eq!((cut_of_interval(6), cut_of_interval(15), cut_of_interval(25)), (0, 3, 7));
        assert_eq!((cut_of_interval(1), cut_of_interval(2)), (0, 0));
    }

    #[test]
    fn ratios_are_taken_pair_by_pair() {
        let mut pairs = Pairs::default();
        for (ours, other) in [(1.0, 2.0), (10.0, 20.0), (3.0, 3.0)] {
            pairs.push(ours, other);
        }
        assert_eq!(pairs.ratio(), (0.5, 0.5, 1.0));
        assert_eq!((pairs.ours(), pairs.other()), (3.0, 3.0));
        assert_eq!((median(&[]), median(&[4.0, 1.0])), (0.0, 2.5));
        assert_eq!((geometric_mean(&[]), geometric_mean(&[0.5, 2.0])), (1.0, 1.0));
    }

    #[test]
    fn other_sides_become_a_pair() {
        let (mut slow, mut fast) = (Pairs::default(), Pairs::default());
        for time in [1.0, 2.0, 3.0] {
            slow.push(0.0, 3.0 * time);
            fast.push(0.0, time);
        }
        assert_eq!(slow.beside(&fast).ratio(), (3.0, 3.0, 3.0));
    }

    #[test]
    fn sides_alternate() {
        let order = std::cell::RefCell::new(String::new());
        let side = |name: char| {
            let order = &order;
            move |_| -> Result<f64, ()> {
                order.borrow_mut().push(name);
                Ok(1.0)
            }
        };
        Pairs::alternate(3, side('a'), side('b')).unwrap();
        assert_eq!(order.into_inner(), "ababbaab");
    }
}
