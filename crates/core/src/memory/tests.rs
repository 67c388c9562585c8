//! What is counted is what is held, to the byte, and returns to zero.

use super::*;
use angelia_contract::action::Action;
use angelia_contract::frame::GatewayFrame;
use angelia_contract::line::LineBuffer;
use proptest::prelude::*;
use std::time::Duration;

const SMALL: MemoryLimits =
    MemoryLimits { all: 1_000, reserve: 200, tenant: 500, instance: 300, socket: 150 };

#[test]
fn nobody_takes_the_share_of_another() {
    let memory = Memory::new(SMALL);
    let (acme, globex) = (memory.instance("acme", InstanceId(1)), memory.instance("globex", InstanceId(2)));
    let whole = acme.hold(300).unwrap();
    assert!(acme.hold(1).is_none(), "an instance has its share");
    let more = memory.instance("acme", InstanceId(3)).hold(200).unwrap();
    assert!(memory.instance("acme", InstanceId(4)).hold(1).is_none(), "and so has a tenant");
    let others = globex.hold(300).unwrap();
    assert_eq!((memory.held_by("acme"), memory.held_by("globex")), (500, 300));
    assert_eq!(memory.heavy(), [("acme".to_owned(), 500), ("globex".to_owned(), 300)]);
    assert!(memory.instance("initech", InstanceId(5)).hold(1).is_none(), "and so have all gateways");
    let operator = memory.operators().hold(200).expect("the reserve is theirs");
    assert!(memory.operators().hold(1).is_none());
    drop((whole, more, others, operator));
    assert_eq!(memory.heavy(), []);
    assert_eq!((memory.held_by("acme"), memory.gateways().held(), memory.operators().held()), (0, 0, 0));
}

#[test]
fn what_grows_asks_and_what_shrinks_gives_back() {
    let budget = ByteBudget::new(100);
    let mut held = budget.hold(40).unwrap();
    assert!(held.resize(100) && !held.resize(101));
    assert_eq!((held.bytes(), budget.held()), (100, 100), "a refusal changes nothing");
    assert!(held.resize(10));
    assert_eq!(budget.held(), 10);
    drop(held);
    assert_eq!(budget.held(), 0);
    assert!(budget.hold(usize::MAX).is_none());
}

#[test]
fn owners_that_are_gone_are_forgotten() {
    let memory = Memory::new(SMALL);
    for number in 0..10_000 {
        drop(memory.instance(&format!("tenant-{number}"), InstanceId(number)));
    }
    assert!(memory.tenants.0.lock().len() < 100);
    assert!(memory.instances.0.lock().len() < 100);
}

#[test]
fn a_rate_outlives_its_sockets_and_not_its_use() {
    let (memory, at) = (Memory::new(SMALL), |seconds| Mono(Duration::from_secs(seconds)));
    let rate = |seconds| memory.rate("acme", InstanceId(1), at(seconds));
    rate(0).took(64 << 20, at(0));
    assert!(rate(0).ready_at(at(0)).is_some(), "dialling again brings no new burst");
    for number in 2..2_000 {
        drop(memory.rate(&format!("tenant-{number}"), InstanceId(number), at(1)));
    }
    assert!(memory.instance_rates.0.lock().len() < 100, "those that are rested are forgotten");
    assert!(memory.tenant_rates.0.lock().len() < 100);
    assert!(rate(2).ready_at(at(2)).is_some(), "it was not");
    assert_eq!(rate(60).ready_at(at(60)), None);
}

/// A world of its own size: its lines and actions are real ones.
const WORLD: MemoryLimits =
    MemoryLimits { all: 48_000, reserve: 8_000, tenant: 20_000, instance: 14_000, socket: 6_000 };
const MAX_LINE: usize = 4_000;

/// Something that happens to what is held.
#[derive(Clone, Debug)]
enum Happening {
    /// A socket is opened for an instance of a tenant.
    Open(u8, u8),
    /// A socket says a part of a frame, or all of it.
    Say(u8, Vec<u8>),
    /// An action is done.
    Done(u8),
    /// A socket breaks off.
    Close(u8),
    /// The process ends.
    Crash,
}

/// What gateways say: actions, frames that are none, and anything else.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let send = (0..2_000usize, 0..40usize).prop_map(|(content, id)| {
        let (content, id) = ("x".repeat(content), "r".repeat(id));
        format!(
            "{{\"type\":\"outbound\",\"requestId\":\"{id}\",\"action\":{{\"op\":\"send\",\"chat_id\":\"c\",\"content\":\"{content}\"}}}}\n"
        )
        .into_bytes()
    });
    let acknowledgement = Just(b"{\"type\":\"inbound_ack\",\"bufferId\":\"7\"}\n".to_vec());
    let noise = prop::collection::vec(any::<u8>(), 0..6_000);
    prop_oneof![4 => send, 1 => acknowledgement, 1 => noise]
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        2 => (0..4u8, 0..3u8).prop_map(|(tenant, instance)| Happening::Open(tenant, instance)),
        6 => (any::<u8>(), frame(), 1..=4usize).prop_map(|(socket, frame, part)| {
            // Now and then it ends in the middle; what follows there is another frame.
            Happening::Say(socket, frame[..frame.len() * part / 4].to_vec())
        }),
        2 => any::<u8>().prop_map(Happening::Done),
        1 => any::<u8>().prop_map(Happening::Close),
        1 => Just(Happening::Crash),
    ]
}

struct Socket {
    tenant: u8,
    instance: u8,
    budget: Arc<ByteBudget>,
    lines: LineBuffer,
    held: HeldBytes,
}

struct Waiting {
    tenant: u8,
    instance: u8,
    action: Action,
    _held: HeldBytes,
}

/// The server as far as it holds memory.
struct World {
    memory: Memory,
    sockets: Vec<Socket>,
    actions: Vec<Waiting>,
}

impl World {
    fn new() -> Self {
        Self { memory: Memory::new(WORLD), sockets: Vec::new(), actions: Vec::new() }
    }

    fn happen(&mut self, happening: &Happening) {
        let at = |index: u8, length: usize| (length > 0).then(|| usize::from(index) % length);
        match happening {
            &Happening::Open(tenant, instance) => {
                let budget = self.memory.socket(&tenant.to_string(), number(tenant, instance));
                let held = budget.nothing();
                self.sockets.push(Socket {
                    tenant,
                    instance,
                    budget,
                    lines: LineBuffer::new(MAX_LINE),
                    held,
                });
            }
            Happening::Say(index, bytes) => {
                if let Some(at) = at(*index, self.sockets.len()) {
                    self.say(at, bytes);
                }
            }
            Happening::Done(index) => {
                if let Some(at) = at(*index, self.actions.len()) {
                    self.actions.swap_remove(at);
                }
            }
            Happening::Close(index) => {
                if let Some(at) = at(*index, self.sockets.len()) {
                    self.sockets.swap_remove(at);
                }
            }
            Happening::Crash => *self = Self::new(),
        }
    }

    /// What a session does with what it hears.
    fn say(&mut self, at: usize, bytes: &[u8]) {
        let socket = &mut self.sockets[at];
        let (tenant, instance) = (socket.tenant, socket.instance);
        let share = self.memory.instance(&tenant.to_string(), number(tenant, instance));
        for line in socket.lines.push(bytes).flatten() {
            if let Ok(GatewayFrame::Outbound(outbound)) = GatewayFrame::parse(&line)
                && let Some(held) = share.hold(outbound.action.size())
            {
                self.actions.push(Waiting { tenant, instance, action: outbound.action, _held: held });
            }
        }
        if !socket.held.resize(socket.lines.held()) {
            socket.lines.give_up();
            assert!(socket.held.resize(socket.lines.held()), "what was given up holds nothing");
        }
    }

    /// What is there, asked of the buffers and the actions themselves.
    fn held(&self, matches: impl Fn(u8, u8) -> bool) -> usize {
        let lines = self.sockets.iter().map(|it| (it.tenant, it.instance, it.lines.held()));
        let actions = self.actions.iter().map(|it| (it.tenant, it.instance, it.action.size()));
        lines.chain(actions).filter(|it| matches(it.0, it.1)).map(|it| it.2).sum()
    }

    fn check(&self) {
        let all = self.held(|_, _| true);
        assert_eq!(self.memory.gateways().held(), all);
        assert!(all <= WORLD.all - WORLD.reserve);
        for tenant in 0..4 {
            let of_tenant = self.held(|it, _| it == tenant);
            assert_eq!(self.memory.held_by(&tenant.to_string()), of_tenant);
            assert!(of_tenant <= WORLD.tenant);
            for instance in 0..3 {
                let known = self.memory.instances.known(&number(tenant, instance));
                let of_instance = self.held(|of, it| of == tenant && it == instance);
                assert_eq!(known.map_or(0, |budget| budget.held()), of_instance);
                assert!(of_instance <= WORLD.instance);
            }
        }
        assert!(self.sockets.iter().all(|it| it.budget.held() == it.lines.held()));
        assert!(self.sockets.iter().all(|it| it.lines.held() <= WORLD.socket));
    }
}

fn number(tenant: u8, instance: u8) -> InstanceId {
    InstanceId(i64::from(tenant) * 10 + i64::from(instance))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn what_is_counted_is_what_is_held(happenings in prop::collection::vec(happening(), 0..80)) {
        let mut world = World::new();
        for happening in &happenings {
            world.happen(happening);
            world.check();
        }
        world.sockets.clear();
        world.actions.clear();
        world.check();
        prop_assert_eq!(world.memory.gateways().held(), 0);
    }
}

#[test]
fn many_threads_lose_no_byte() {
    let memory = Memory::new(SMALL);
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let memory = &memory;
            scope.spawn(move || {
                let share = memory.instance(&(thread % 2).to_string(), InstanceId(i64::from(thread)));
                for round in 0..20_000usize {
                    if let Some(mut held) = share.hold(round % 97) {
                        held.resize((round * 7) % 131);
                    }
                }
            });
        }
    });
    assert_eq!(memory.gateways().held(), 0);
}
