//! The figures of a run, and what follows from them.

use super::Plan;
use super::books::Books;
use crate::gauge::Sample;
use std::fmt::Write;
use std::sync::atomic::Ordering;

/// How much resident memory may grow over the second half of a run, in KiB: 32 KiB a minute if
/// that half is half an hour. An allocator that keeps what it was given back moves it by less,
/// a leak of a hundred bytes for each answer by more.
pub const MAX_GROWTH: f64 = 960.0;

/// The figures of one minute.
#[derive(Clone, Copy, Debug)]
pub(super) struct Minute {
    number: u32,
    sample: Sample,
    posts: u64,
    answers: u64,
    overdue: usize,
}

impl Minute {
    pub(super) fn new(number: u32, sample: Sample, books: &Books) -> Self {
        let (posts, answers, overdue) = (books.posts(), books.answers(), books.overdue());
        Self { number, sample, posts, answers, overdue }
    }
}

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    length: u32,
    minutes: Vec<Minute>,
    /// Resident memory at even distances, and the process's own part of it: the system may take
    /// back pages of the program meanwhile, and that must not hide a leak.
    rss: Vec<f64>,
    own: Vec<f64>,
    most_threads: u64,
    cpu: f64,
    /// Posts whose answers did not come.
    pub(super) lost: Vec<String>,
    /// Whether the server's log has a panic in it.
    pub(super) panicked: bool,
    posts: u64,
    answers: u64,
    actions: u64,
    streams: u64,
    sockets: u64,
    repeated: u64,
}

impl Report {
    pub(super) fn new(plan: &Plan) -> Self {
        Self { length: plan.minutes, ..Self::default() }
    }

    /// The heading of the rows.
    pub(super) fn head(&self) -> String {
        "minute  RSS KiB  own KiB  descriptors  threads  database KiB  log KiB  cores   posts  answers  overdue"
            .into()
    }

    /// Takes a look at the process.
    pub(super) fn looked(&mut self, sample: Sample) {
        #[expect(clippy::cast_precision_loss, reason = "kilobytes of one process")]
        let (rss, own) = (sample.rss as f64, sample.anonymous as f64);
        self.rss.push(rss);
        self.own.push(own);
        self.most_threads = self.most_threads.max(sample.threads);
    }

    /// Takes a minute; its row, for people to read.
    pub(super) fn row(&mut self, minute: Minute) -> String {
        let Minute { number, sample, posts, answers, overdue } = minute;
        let cores = (sample.cpu - self.cpu) / 60.0;
        self.cpu = sample.cpu;
        self.minutes.push(minute);
        let Sample { rss, anonymous, threads, descriptors, database, log, .. } = sample;
        format!(
            "{number:>6} {rss:>8} {anonymous:>8} {descriptors:>12} {threads:>8} {database:>13} {log:>8} \
             {cores:>6.2} {posts:>7} {answers:>8} {overdue:>8}"
        )
    }

    /// Takes what was counted in all.
    pub(super) fn count(&mut self, books: &Books) {
        (self.posts, self.answers) = (books.posts(), books.answers());
        self.actions = books.actions.load(Ordering::Relaxed);
        self.streams = books.streams.load(Ordering::Relaxed);
        self.sockets = books.sockets.load(Ordering::Relaxed);
        self.repeated = books.repeated.load(Ordering::Relaxed);
    }

    /// Growth of memory over the second half, in KiB: resident or its own, whichever grew more.
    pub fn growth(&self) -> f64 {
        growth(&self.rss).max(growth(&self.own))
    }

    /// The most threads the server had at any look.
    pub fn most_threads(&self) -> u64 {
        self.most_threads
    }

    /// Whether nothing was lost and nothing broke.
    pub fn is_whole(&self) -> bool {
        self.lost.is_empty() && !self.panicked
    }

    /// Whether besides nothing grew.
    pub fn is_good(&self) -> bool {
        self.is_whole() && self.growth() <= MAX_GROWTH
    }

    /// So much in the second half, as so much a minute.
    fn a_minute(&self, in_half: f64) -> f64 {
        in_half * 2.0 / f64::from(self.length)
    }

    /// The verdict, in a few lines.
    pub fn verdict(&self) -> String {
        let Self { length, posts, answers, actions, streams, sockets, repeated, .. } = self;
        let mut text = format!(
            "{length} minutes: {posts} posts, {answers} of them answered, {actions} actions of agents, \
             {streams} streams and {sockets} sockets opened, {repeated} requests made again.\n\
             Over the second half: RSS {:+.1}, its own part {:+.1} KiB a minute (at most {:.0}).",
            self.a_minute(growth(&self.rss)),
            self.a_minute(growth(&self.own)),
            self.a_minute(MAX_GROWTH)
        );
        if !self.lost.is_empty() {
            let some = self.lost.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
            let _ = write!(text, "\nLOST: {} posts have no answer, such as {some}.", self.lost.len());
        }
        if self.panicked {
            text.push_str("\nThe server panicked: see its log.");
        }
        text
    }

    /// The same as a table for the documentation.
    pub fn markdown(&self) -> String {
        let mut text =
            "| Minute | RSS KiB | of it its own | Descriptors | Threads | Database KiB | Posts | Answers |\n\
             |---:|---:|---:|---:|---:|---:|---:|---:|\n"
                .to_owned();
        for Minute { number, sample, posts, answers, .. } in &self.minutes {
            let Sample { rss, anonymous, threads, descriptors, database, .. } = sample;
            let _ = writeln!(
                text,
                "| {number} | {rss} | {anonymous} | {descriptors} | {threads} | {database} | {posts} | {answers} |"
            );
        }
        text
    }
}

/// Growth over the second half of the values.
fn growth(values: &[f64]) -> f64 {
    let half = &values[values.len() / 2..];
    #[expect(clippy::cast_precision_loss, reason = "a few hundred values")]
    let count = half.len() as f64;
    slope(half) * count
}

/// Growth from one value to the next, by least squares.
fn slope(values: &[f64]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a few hundred values")]
    let points: Vec<(f64, f64)> = values.iter().enumerate().map(|(at, value)| (at as f64, *value)).collect();
    #[expect(clippy::cast_precision_loss, reason = "a few hundred values")]
    let count = points.len() as f64;
    let (mean_x, mean_y) = (
        points.iter().map(|it| it.0).sum::<f64>() / count,
        points.iter().map(|it| it.1).sum::<f64>() / count,
    );
    let rise: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let run: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    if run > 0.0 { rise / run } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run whose second half grows by so many KiB at each of twelve looks a minute.
    fn report(length: u32, step: f64) -> Report {
        let looks = length * 12;
        let own = (0..looks).map(|look| 30_000.0 + f64::from(look.saturating_sub(looks / 2)) * step);
        let own: Vec<f64> = own.collect();
        Report { length, rss: own.iter().map(|own| own + 20_000.0).collect(), own, ..Report::default() }
    }

    #[test]
    fn growth_is_judged_over_the_second_half() {
        assert!((report(60, 2.5).growth() - 900.0).abs() < 0.01);
        assert!(report(60, 2.5).is_good());
        assert!(!report(60, 2.8).is_good());
        assert!(report(60, -5.0).is_good());
        let mut warm = report(60, 0.0);
        warm.own[..100].fill(3_000.0);
        assert!(warm.is_good(), "what happened at the beginning does not count");
        let mut hidden = report(60, 2.8);
        hidden.rss.fill(50_000.0);
        assert!(!hidden.is_good(), "a leak counts, also if the system took back other pages");
    }

    #[test]
    fn a_short_run_may_move_as_much_in_all_as_a_long_one() {
        assert!(report(10, 1.0).verdict().contains("its own part +12.0 KiB a minute (at most 192)"));
        assert!(report(10, 15.0).is_good());
        assert!(!report(10, 17.0).is_good());
    }

    #[test]
    fn a_lost_post_is_never_good() {
        let mut report = report(10, 0.0);
        report.lost.push("den-1".into());
        assert!(!report.is_good());
        assert!(report.verdict().contains("LOST: 1"));
    }
}
