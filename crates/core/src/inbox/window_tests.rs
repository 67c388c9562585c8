use super::*;
use proptest::prelude::*;

fn at(ms: u64) -> Mono {
    Mono(Duration::from_millis(ms))
}

fn push(window: &mut Window, seq: i64, ms: u64) {
    window.pushed(Seq(seq), FrameKind::Acknowledged, 700, at(ms));
}

fn seqs(settled: &[Settled]) -> Vec<i64> {
    settled.iter().map(|s| s.seq.0).collect()
}

#[test]
fn eight_await_an_ack_and_no_more() {
    let mut window = Window::new(AckHabit::Acknowledges);
    for seq in 1..=8 {
        assert_eq!(window.permit(FrameKind::Acknowledged, 700, at(0)), Permit::Push);
        push(&mut window, seq, 0);
    }
    assert_eq!(window.permit(FrameKind::Acknowledged, 700, at(1)), Permit::Wait);
    assert_eq!(window.permit(FrameKind::Unacknowledged, 700, at(1)), Permit::Push);
    assert_eq!(seqs(&window.ack(Seq(1))), [1]);
    assert_eq!(window.permit(FrameKind::Acknowledged, 700, at(1)), Permit::Wait, "settled, but not durably");
    window.committed(1);
    assert_eq!(window.permit(FrameKind::Acknowledged, 700, at(1)), Permit::Push);
}

#[test]
fn what_nobody_acknowledges_keeps_nothing_back_once_it_was_read() {
    let mut window = Window::new(AckHabit::Acknowledges);
    for seq in 1..=12 {
        window.pushed(Seq(seq), FrameKind::Unacknowledged, MAX_IN_FLIGHT_BYTES / 12, at(0));
    }
    let ping = window.ping_due().unwrap();
    assert_eq!(window.permit(FrameKind::Acknowledged, 700, at(1)), Permit::Wait, "they may not be read yet");
    window.pong(ping, at(2));
    assert_eq!(window.permit(FrameKind::Acknowledged, 700, at(2)), Permit::Push);
    assert!(window.tick(at(2)).is_empty(), "though they settle later");
    assert_eq!(window.tick(at(5_002)).len(), 12);
}

#[test]
fn a_later_ack_settles_all_before_it() {
    let mut window = Window::new(AckHabit::Acknowledges);
    for seq in 1..=5 {
        push(&mut window, seq, 0);
    }
    let settled = window.ack(Seq(3));
    assert_eq!(seqs(&settled), [1, 2, 3]);
    assert_eq!(settled[0].by, SettledBy::LaterAck);
    assert_eq!(settled[2].by, SettledBy::Ack);
    assert!(window.ack(Seq(3)).is_empty(), "a repeated ack is nothing");
}

#[test]
fn a_stalled_gateway_gets_no_more() {
    let mut window = Window::new(AckHabit::Acknowledges);
    push(&mut window, 1, 0);
    assert_eq!(window.permit(FrameKind::Acknowledged, 700, at(5_000)), Permit::Push);
    assert_eq!(window.permit(FrameKind::Acknowledged, 700, at(5_001)), Permit::Wait);
    window.ack(Seq(1));
    assert_eq!(window.permit(FrameKind::Acknowledged, 700, at(5_001)), Permit::Push);
}

#[test]
fn a_new_peer_has_45_seconds_and_then_pongs_settle() {
    let mut window = Window::new(AckHabit::Unknown);
    push(&mut window, 1, 0);
    let ping = window.ping_due().unwrap();
    assert_eq!(window.ping_due(), None, "one ping serves all frames before it");
    window.pong(ping, at(10));
    assert!(window.tick(at(44_999)).is_empty());
    assert_eq!(window.habit(), AckHabit::Unknown);
    assert_eq!(window.next_tick(), Some(at(1_000)));
    assert_eq!(window.lingering(at(1_000)), [(Seq(1), at(0))]);
    assert_eq!(window.lingering(at(2_000)), [], "noted once");
    assert_eq!(window.next_tick(), Some(at(45_000)));
    assert_eq!(seqs(&window.tick(at(45_000))), [1]);
    assert_eq!(window.habit(), AckHabit::Silent);
}

#[test]
fn the_time_for_a_first_ack_starts_with_a_frame_that_asks_for_one() {
    let mut window = Window::new(AckHabit::Unknown);
    window.pushed(Seq(1), FrameKind::Unacknowledged, 10, at(0));
    let ping = window.ping_due().unwrap();
    window.pong(ping, at(1));
    window.tick(at(10_000));
    push(&mut window, 2, 60_000);
    assert!(window.tick(at(61_000)).is_empty());
    assert_eq!(window.habit(), AckHabit::Unknown);
}

#[test]
fn a_silent_peer_settles_five_seconds_after_the_pong() {
    let mut window = Window::new(AckHabit::Silent);
    for seq in 1..=12 {
        assert_eq!(window.permit(FrameKind::Acknowledged, 700, at(0)), Permit::Push);
        push(&mut window, seq, 0);
    }
    assert_eq!(window.permit(FrameKind::Acknowledged, 700, at(0)), Permit::Wait, "twelve unsettled");
    let ping = window.ping_due().unwrap();
    assert!(window.tick(at(60_000)).is_empty(), "without a pong nothing settles");
    window.pong(ping, at(60_000));
    assert!(window.tick(at(64_999)).is_empty());
    assert_eq!(window.tick(at(65_000)).len(), 12);
    push(&mut window, 13, 65_000);
    assert_eq!(seqs(&window.ack(Seq(13))), [13], "a silent peer that starts to acknowledge is heard");
    assert_eq!(window.habit(), AckHabit::Acknowledges);
}

#[test]
fn a_passthrough_settles_by_pong_even_with_an_acknowledging_peer() {
    let mut window = Window::new(AckHabit::Acknowledges);
    window.pushed(Seq(1), FrameKind::Unacknowledged, 10, at(0));
    push(&mut window, 2, 0);
    let ping = window.ping_due().unwrap();
    window.pong(ping, at(5));
    assert_eq!(seqs(&window.tick(at(5_005))), [1]);
    assert!(window.contains(Seq(2)), "what is acknowledged waits for its ack");
}

#[test]
fn a_ping_written_before_a_frame_proves_nothing_of_it() {
    let mut window = Window::new(AckHabit::Silent);
    push(&mut window, 1, 0);
    let first = window.ping_due().unwrap();
    push(&mut window, 2, 1);
    window.pong(first, at(2));
    assert_eq!(seqs(&window.tick(at(20_000))), [1]);
    assert!(window.contains(Seq(2)));
}

#[test]
fn a_socket_without_an_ack_strikes_its_oldest_entry() {
    let mut window = Window::new(AckHabit::Acknowledges);
    push(&mut window, 7, 0);
    push(&mut window, 8, 1);
    let ended = window.end();
    assert_eq!(ended.strike, Some(Seq(7)));
    assert_eq!(ended.returned, [(Seq(7), at(0)), (Seq(8), at(1))]);

    let mut window = Window::new(AckHabit::Acknowledges);
    push(&mut window, 7, 0);
    push(&mut window, 8, 1);
    window.ack(Seq(7));
    assert_eq!(window.end().strike, None);
}

#[test]
fn bytes_in_flight_are_bounded_but_one_large_frame_passes() {
    let mut window = Window::new(AckHabit::Acknowledges);
    assert_eq!(window.permit(FrameKind::Acknowledged, 9_000_000, at(0)), Permit::Push);
    window.pushed(Seq(1), FrameKind::Acknowledged, 9_000_000, at(0));
    assert_eq!(window.permit(FrameKind::Acknowledged, 1, at(0)), Permit::Wait);
    window.ack(Seq(1));
    window.committed(1);
    assert_eq!(window.permit(FrameKind::Acknowledged, 1, at(0)), Permit::Push);
}

#[derive(Clone, Debug)]
enum Step {
    Push(bool),
    Ack(usize),
    Ping,
    Pong(u64),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => any::<bool>().prop_map(Step::Push),
        2 => (0..20usize).prop_map(Step::Ack),
        1 => Just(Step::Ping),
        1 => (0..10u64).prop_map(Step::Pong),
        2 => (0..20_000u64).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 0..80)
}

proptest! {
    /// Whatever happens: each entry settles at most once, nothing is lost
    /// (settled + returned = pushed), and the bounds hold.
    #[test]
    fn every_frame_settles_once_or_returns(steps in steps(), habit in 0..3u8) {
        let habit = [AckHabit::Unknown, AckHabit::Acknowledges, AckHabit::Silent][habit as usize];
        let mut window = Window::new(habit);
        let (mut now, mut next) = (0, 1);
        let (mut pushed, mut settled) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Push(acked) => {
                    let kind = if acked { FrameKind::Acknowledged } else { FrameKind::Unacknowledged };
                    if window.permit(kind, 700, at(now)) == Permit::Push {
                        window.pushed(Seq(next), kind, 700, at(now));
                        pushed.push(next);
                        next += 1;
                    }
                }
                Step::Ack(back) => settled.extend(seqs(&window.ack(Seq(next - 1 - back as i64)))),
                Step::Ping => { window.ping_due(); }
                Step::Pong(number) => window.pong(number, at(now)),
                Step::Wait(ms) => { window.committed(99); now += ms; settled.extend(seqs(&window.tick(at(now)))); }
            }
            prop_assert!(window.unread().0 <= MAX_UNSETTLED && window.flights.len() <= MAX_READ + MAX_UNSETTLED);
        }
        settled.extend(window.end().returned.iter().map(|(seq, _)| seq.0));
        settled.sort_unstable();
        prop_assert_eq!(settled, pushed);
    }
}
