//! The figures of all runs as a table, one build or two beside each other.

use crate::anchor::Anchor;
use crate::run::{Figures, Plan, Run, names};
use crate::summary::{Difference, Summary};
use std::fmt::Write;

/// Above this much of a core the generator, which has one thread, may be what is measured.
const BUSY: f64 = 0.85;

/// All runs of one build, or of two in turn.
#[derive(Clone, Debug)]
pub struct Report {
    plan: Plan,
    /// What the machine could do, before each run.
    pub anchors: Vec<Anchor>,
    /// The runs of the build that is measured.
    pub runs: Vec<Run>,
    /// The runs of the one beside it.
    pub beside: Vec<Run>,
}

/// A figure of every run.
struct Row {
    name: &'static str,
    /// Whether more of it is worse; of other figures no verdict depends.
    judged: bool,
    of: fn(&Figures) -> f64,
}

const ROWS: [Row; 5] = [
    Row { name: "server CPU, µs each", judged: true, of: |figures| figures.server_cpu },
    Row { name: "time p50, ms", judged: true, of: |figures| figures.p50 },
    Row { name: "time p99, ms", judged: false, of: |figures| figures.p99 },
    Row { name: "operations a second", judged: false, of: |figures| figures.rate },
    Row { name: "generator CPU, µs each", judged: false, of: |figures| figures.own_cpu },
];

impl Report {
    /// Without any runs yet.
    pub fn new(plan: Plan) -> Self {
        Self { plan, anchors: Vec::new(), runs: Vec::new(), beside: Vec::new() }
    }

    /// What is worse beside, by more than so many percent and beyond the spread: processor time
    /// and the median of the time. The slowest hundredth is shown and not judged: on a machine
    /// with other things to do it tells of those.
    pub fn worse_than(&self, at_most: f64) -> Vec<String> {
        let mut worse = Vec::new();
        for (load, name) in names(&self.plan).iter().enumerate() {
            for row in ROWS.iter().filter(|row| row.judged) {
                let difference = self.difference(|run| (row.of)(&run.loads[load]));
                if difference.is_worse_than(at_most) {
                    worse.push(format!("{name}: {} {:+.1} %", row.name, difference.percent));
                }
            }
        }
        worse
    }

    /// The table, in Markdown.
    pub fn table(&self) -> String {
        let mut table = Table::new(!self.beside.is_empty());
        for (load, name) in names(&self.plan).iter().enumerate() {
            for row in &ROWS {
                self.row(&mut table, &format!("{name}: {}", row.name), |run| (row.of)(&run.loads[load]));
            }
        }
        self.row(&mut table, "resident with idle sockets, MiB", |run| run.idle_memory);
        self.row(&mut table, "resident at its peak, MiB", |run| run.peak_memory);
        table.text
    }

    /// What the machine was like.
    pub fn machine(&self) -> String {
        let anchor = |of: fn(&Anchor) -> f64| Summary::of(self.anchors.iter().map(of).collect());
        let (syncs, message) = (anchor(|it| it.syncs), anchor(|it| it.message));
        let runs = || self.runs.iter().chain(&self.beside);
        let others = Summary::of(runs().map(|run| run.others).collect());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut text = format!(
            "Machine: {cores} cores, others used {:.1} of them; 4 KiB appended and synced {:.0} times a second \
             (±{:.0} %); 700 bytes over the loopback {:.1} µs of processor time (±{:.0} %).",
            others.median,
            syncs.median,
            syncs.spread(),
            message.median,
            message.spread(),
        );
        let own = |figures: &Figures| figures.own_cpu * figures.rate / 1e6;
        let most = runs().flat_map(|run| &run.loads).map(own).fold(0.0, f64::max);
        let _ = write!(text, "\nThe generator used at most {most:.2} of its one core.");
        if most > BUSY {
            text.push_str(" That may have been what was measured: times and rates are doubtful.");
        }
        text
    }

    fn row(&self, table: &mut Table, name: &str, of: impl Fn(&Run) -> f64) {
        let beside = (!self.beside.is_empty()).then(|| (self.over(&self.beside, &of), self.difference(&of)));
        table.row(name, &self.over(&self.runs, &of), beside);
    }

    fn difference(&self, of: impl Fn(&Run) -> f64) -> Difference {
        self.over(&self.runs, &of).to(&self.over(&self.beside, &of))
    }

    fn over(&self, runs: &[Run], of: impl Fn(&Run) -> f64) -> Summary {
        Summary::of(runs.iter().map(of).collect())
    }
}

/// Markdown, written row by row.
struct Table {
    text: String,
}

impl Table {
    fn new(two: bool) -> Self {
        let head = if two {
            "| Median of the runs, ± spread | A | B | B to A |\n|---|---:|---:|---|\n"
        } else {
            "| Median of the runs, ± spread | A |\n|---|---:|\n"
        };
        Self { text: head.to_owned() }
    }

    fn row(&mut self, name: &str, of: &Summary, beside: Option<(Summary, Difference)>) {
        let _ = write!(self.text, "| {name} | {} |", cell(of));
        if let Some((beside, difference)) = beside {
            let judged = if difference.is_beyond_spread { "" } else { ", within the spread" };
            let _ = write!(self.text, " {} | {:+.1} %{judged} |", cell(&beside), difference.percent);
        }
        self.text.push('\n');
    }
}

/// A median with as many digits as mean something.
fn cell(summary: &Summary) -> String {
    let digits = match summary.median {
        large if large >= 100.0 => 0,
        middle if middle >= 10.0 => 1,
        _ => 2,
    };
    // Whether it is ten or a hundred times as much says nothing more.
    let spread =
        if summary.spread() > 100.0 { ">100".to_owned() } else { format!("{:.0}", summary.spread()) };
    format!("{:.digits$} ±{spread} %", summary.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(server_cpu: f64) -> Run {
        let figures = Figures { operations: 9, rate: 3.0, server_cpu, own_cpu: 1.0, p50: 2.0, p99: 4.0 };
        Run { loads: [figures; 4], idle_memory: 30.0, peak_memory: 40.0, others: 0.5 }
    }

    fn report(first: [f64; 4], beside: [f64; 4]) -> Report {
        let plan = Plan { sockets: 10, at_once: 8, rate: 500.0, seconds: 1.0 };
        let (runs, beside) = (first.map(run).to_vec(), beside.map(run).to_vec());
        Report { runs, beside, anchors: vec![Anchor { syncs: 900.0, message: 5.0 }], ..Report::new(plan) }
    }

    #[test]
    fn a_slower_build_is_named_with_what_is_slower() {
        let report = report([100.0, 101.0, 101.0, 102.0], [120.0, 121.0, 121.0, 122.0]);
        let worse = report.worse_than(5.0);
        assert_eq!(worse.len(), 4, "{worse:?}");
        assert_eq!(worse[0], "durable delivery, 8 at a time: server CPU, µs each +19.8 %");
        assert!(report.worse_than(20.0).is_empty());
        assert!(report.table().contains("| 101 ±0 % | 121 ±0 % | +19.8 % |"), "{}", report.table());
    }

    #[test]
    fn what_is_within_the_spread_is_said_to_be() {
        let report = report([100.0, 120.0, 120.0, 140.0], [110.0, 130.0, 130.0, 150.0]);
        assert!(report.worse_than(5.0).is_empty());
        assert!(report.table().contains("+8.3 %, within the spread |"), "{}", report.table());
    }

    #[test]
    fn one_build_alone_has_one_column() {
        let mut report = report([100.0; 4], [100.0; 4]);
        report.beside.clear();
        assert!(report.table().contains("| resident at its peak, MiB | 40.0 ±0 % |\n"), "{}", report.table());
    }
}
