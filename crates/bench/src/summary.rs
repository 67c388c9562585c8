//! Many runs as one figure, and when two of those differ.

/// With fewer runs of a build nothing is known of how much they differ among themselves.
const FEWEST: usize = 4;
/// How many of all pairs, a run of each build, have to agree. With five runs of each that is 23 of
/// 25, which builds that do not differ show in three of a hundred cases.
const AGREE: f64 = 0.9;

/// The value at or below which `percent` of all values are, between neighbours in proportion.
/// Of no values it is nothing.
pub fn percentile(values: &[f64], percent: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    #[expect(clippy::cast_precision_loss, reason = "counts of samples")]
    let place = percent / 100.0 * last as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index of the values")]
    let below = place as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * place.fract()
}

/// One figure over all runs of a build.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Half of the runs were below it.
    pub median: f64,
    runs: Vec<f64>,
}

/// What a second build is to a first one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Of the medians, in percent of the first; more is worse where less is better.
    pub percent: f64,
    /// Whether nearly every run of the one was on the same side of nearly every run of the other.
    /// If not, other runs might as well have shown the opposite.
    pub is_beyond_spread: bool,
}

impl Summary {
    /// Of one value a run.
    pub fn of(runs: Vec<f64>) -> Self {
        Self { median: percentile(&runs, 50.0), runs }
    }

    /// Half of the width of the middle half of the runs, in percent of the median.
    pub fn spread(&self) -> f64 {
        percent(percentile(&self.runs, 75.0) - percentile(&self.runs, 25.0), self.median) / 2.0
    }

    /// What `other` is to this.
    pub fn to(&self, other: &Self) -> Difference {
        let more = self.runs.iter().flat_map(|run| other.runs.iter().map(move |other| other > run));
        let less = self.runs.iter().flat_map(|run| other.runs.iter().map(move |other| other < run));
        let enough = self.runs.len().min(other.runs.len()) >= FEWEST;
        Difference {
            percent: percent(other.median - self.median, self.median),
            is_beyond_spread: enough && (share(more) >= AGREE || share(less) >= AGREE),
        }
    }
}

impl Difference {
    /// Whether it is worse by more than so many percent, and not by chance.
    pub fn is_worse_than(&self, at_most: f64) -> bool {
        self.is_beyond_spread && self.percent > at_most
    }
}

/// How many of these are so, as a part of one.
fn share(pairs: impl Iterator<Item = bool>) -> f64 {
    let (all, so) = pairs.fold((0.0, 0.0), |(all, so), pair| (all + 1.0, so + f64::from(u8::from(pair))));
    if all == 0.0 { 0.0 } else { so / all }
}

fn percent(part: f64, of: f64) -> f64 {
    if of == 0.0 { 0.0 } else { part / of * 100.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    fn difference(before: &[f64], after: &[f64]) -> Difference {
        Summary::of(before.to_vec()).to(&Summary::of(after.to_vec()))
    }

    #[test]
    fn a_percentile_lies_between_its_neighbours() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert!(close(percentile(&values, 50.0), 2.5));
        assert!(close(percentile(&values, 0.0), 1.0) && close(percentile(&values, 100.0), 4.0));
        assert!(close(percentile(&[], 50.0), 0.0) && close(percentile(&[7.0], 99.0), 7.0));
    }

    #[test]
    fn what_nearly_every_run_shows_is_a_difference() {
        let after = [110.0, 111.0, 109.0, 112.0, 102.5];
        let difference = difference(&[100.0, 101.0, 99.0, 102.0, 103.0], &after);
        assert!(difference.is_beyond_spread && difference.is_worse_than(5.0), "{difference:?}");
        assert!(!difference.is_worse_than(10.0), "{difference:?}");
    }

    #[test]
    fn what_lies_within_the_spread_is_no_difference() {
        let difference = difference(&[90.0, 100.0, 120.0, 80.0, 110.0], &[108.0, 118.0, 98.0, 88.0, 128.0]);
        assert!(close(difference.percent, 8.0) && !difference.is_worse_than(5.0), "{difference:?}");
    }

    #[test]
    fn the_same_figures_do_not_differ() {
        assert!(!difference(&[100.0; 5], &[100.0; 5]).is_beyond_spread);
    }

    #[test]
    fn an_improvement_is_never_worse() {
        let difference = difference(&[100.0; 5], &[50.0; 5]);
        assert!(difference.is_beyond_spread && !difference.is_worse_than(5.0), "{difference:?}");
    }

    #[test]
    fn three_runs_prove_nothing() {
        assert!(!difference(&[100.0; 3], &[200.0; 3]).is_worse_than(5.0));
    }
}
