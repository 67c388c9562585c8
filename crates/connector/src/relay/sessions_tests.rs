use super::*;

fn record(id: &str) -> Arc<GatewayRecord> {
    Arc::new(GatewayRecord {
        tenant: "acme".into(),
        gateway_id: id.into(),
        instance: InstanceId(1),
        instance_name: "gw".into(),
        secrets: Vec::new(),
        revoked_at: None,
        wake_url: None,
        display_name: None,
        while_busy: None,
        shared_groups: false,
        subject: None,
    })
}

#[test]
fn an_instance_is_barred_for_itself() {
    let (sessions, at) = (Sessions::default(), |seconds| Mono(Duration::from_secs(seconds)));
    assert!((0..10).any(|second| sessions.took_over(InstanceId(1), None, at(second))));
    assert!(sessions.barred(InstanceId(1), at(10)).is_some());
    assert!(sessions.barred(InstanceId(2), at(10)).is_none());
}

#[test]
fn the_surest_sign_of_any_platform_is_told() {
    let told = |signs: &[Signs]| {
        let signs = signs.iter().map(|signs| ("webchat".into(), *signs)).collect();
        Standing { signs, ..Standing::default() }.marks_turns()
    };
    let (reacts, notifies) =
        (Signs { reacts: true, ..Signs::default() }, Signs { notifies: true, ..Signs::default() });
    assert_eq!(told(&[]), "not seen yet");
    assert_eq!(told(&[Signs { types: true, ..Signs::default() }]), "not seen yet");
    assert_eq!(told(&[Signs::default(), notifies]), "says which answer is the last");
    assert_eq!(told(&[notifies, reacts]), "marks its turns");
}

#[tokio::test]
async fn the_newest_claim_wins_and_an_old_end_is_nothing_to_it() {
    let sessions = Arc::new(Sessions::default());
    let id = InstanceId(1);
    let (old, new) = (Arc::new(Mailbox::default()), Arc::new(Mailbox::default()));
    let (first, none) = sessions.claim(record("old"), old.clone());
    assert!(none.is_none());
    let (second, replaced) = sessions.claim(record("new"), new.clone());
    assert_eq!(old.take().ending, Some(Ending::Replaced));
    drop(first);
    replaced.unwrap().changed().await.unwrap_err();
    assert!(sessions.is_live(id), "the old one takes nothing with it");
    assert!(sessions.is_connected(&record("new")) && !sessions.is_connected(&record("old")));
    drop(second);
    assert!(!sessions.is_live(id));
}

#[test]
fn a_claim_elsewhere_ends_a_socket_that_is_still_at_its_own() {
    let sessions = Arc::new(Sessions::default());
    let (id, mailbox) = (InstanceId(1), Arc::new(Mailbox::default()));
    let (_claim, _) = sessions.claim(record("gw"), mailbox.clone());
    // It waits for the one before under epoch 5; meanwhile another node claims under 6.
    sessions.claimed_elsewhere(id, Epoch(6));
    assert_eq!(mailbox.take().ending, None, "it may be the later one");
    sessions.drains(id, &mailbox, Epoch(5));
    assert_eq!(mailbox.take().ending, Some(Ending::Replaced));
    let next = Arc::new(Mailbox::default());
    let (_claim, _) = sessions.claim(record("gw"), next.clone());
    sessions.drains(id, &next, Epoch(7));
    assert_eq!(next.take().ending, None, "it came after that");
}

#[test]
fn an_instance_that_is_gone_is_forgotten_with_its_socket() {
    let sessions = Arc::new(Sessions::default());
    sessions.remember(InstanceId(1), Standing { idle: true, ..Standing::default() });
    let (claim, _) = sessions.claim(record("gw"), Arc::default());
    sessions.forget(InstanceId(1));
    assert!(sessions.is_live(InstanceId(1)), "its socket ends in order");
    drop(claim);
    assert!(sessions.slots.lock().is_empty());
    sessions.remember(InstanceId(2), Standing::default());
    sessions.forget(InstanceId(2));
    assert!(sessions.slots.lock().is_empty());
}

#[test]
fn every_open_socket_is_told_to_stop() {
    let sessions = Arc::new(Sessions::default());
    let mailbox = Arc::new(Mailbox::default());
    let seat = sessions.enter(record("gw"), mailbox.clone(), 4).unwrap();
    sessions.end_all(Ending::Shutdown);
    sessions.end_all(Ending::WhenDone);
    assert_eq!(mailbox.take().ending, Some(Ending::Shutdown), "the sterner word counts");
    drop(seat);
    assert_eq!(sessions.open(), 0);
}

#[tokio::test(start_paused = true)]
async fn sockets_that_go_to_another_node_go_in_turn() {
    let sessions = Arc::new(Sessions::default());
    let sockets: Vec<_> = (0..120)
        .map(|n| {
            let mailbox = Arc::new(Mailbox::default());
            (sessions.enter(record(&format!("gw{n}")), mailbox.clone(), 4).unwrap(), mailbox)
        })
        .collect();
    let told = || sockets.iter().filter(|(_, mailbox)| mailbox.take().ending.is_some()).count();
    let mut ending = Box::pin(sessions.end_in_turn(Ending::WhenDone, Duration::from_secs(30)));
    assert!(tokio::time::timeout(Duration::from_millis(1), &mut ending).await.is_err());
    assert_eq!(told(), END_AT_ONCE);
    ending.await;
    assert_eq!(told(), 120);
    let began = tokio::time::Instant::now();
    sessions.end_in_turn(Ending::WhenDone, Duration::ZERO).await;
    assert!(began.elapsed() < END_EVERY, "whoever may not wait does not");
}

#[test]
fn a_gateway_has_so_many_sockets_and_gets_them_back() {
    let sessions = Arc::new(Sessions::default());
    let enter = |id: &str| sessions.enter(record(id), Arc::default(), 2);
    let seats = [enter("gw").unwrap(), enter("gw").unwrap()];
    assert!(enter("gw").is_none());
    assert!(enter("other").is_some(), "another gateway");
    drop(seats);
    assert!(enter("gw").is_some());
    assert!(sessions.sockets.lock().of_gateway.is_empty(), "nothing is kept of who left");
}
