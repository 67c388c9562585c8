//! Questions with buttons, and the presses that answer them.

use std::time::Duration;

use angelia_contract::{Action, ActionResult, Event, Outbound, PromptResponse};
use angelia_gateway::{Conversation, Question};
use tokio::sync::mpsc;

use crate::support::{Peer, Server, message, run, soon};

fn question() -> Question {
    Question::approval("May I?").primary("once", "Once").danger("deny", "No")
}

/// The question that a gateway asks: the request, and what it calls it.
async fn asked(peer: &mut Peer) -> (Outbound, String) {
    let outbound = peer.outbound().await;
    let Action::Prompt { prompt_id, prompt_kind, options, metadata, .. } = &outbound.action else {
        panic!("{outbound:?}");
    };
    assert_eq!(metadata["user_id"], "42", "whose turn it is");
    assert_eq!(
        (prompt_kind.as_str(), options.len(), options[1].style.as_deref()),
        ("approval", 2, Some("danger"))
    );
    let id = prompt_id.clone();
    (outbound, id)
}

fn press(prompt_id: &str, message_id: &str) -> Event {
    let (prompt_id, option_id) = (prompt_id.to_owned(), "deny".to_owned());
    let prompt_response = Some(PromptResponse { prompt_id, option_id, ..PromptResponse::default() });
    Event { prompt_response, ..message("1", "42", message_id, "/deny") }
}

#[tokio::test(start_paused = true)]
async fn a_press_answers_the_turn_that_waits_for_it() {
    let server = Server::start().await;
    let (told, mut answers) = mpsc::channel(8);
    let (_handle, _running) = run(server.builder(), move |event: Event, conversation: Conversation| {
        let told = told.clone();
        async move {
            let answer = match event.prompt_response {
                Some(late) => format!("late {}", late.option_id),
                None => format!("{:?}", conversation.ask(question()).await.unwrap().map(|it| it.option_id)),
            };
            told.send(answer).await.unwrap();
        }
    });
    let mut peer = server.greet().await;
    peer.event(message("1", "42", "m1", "clean up"), "b1").await;
    assert_eq!(peer.ack().await, "b1");
    let (outbound, id) = asked(&mut peer).await;
    peer.answer(&outbound, ActionResult::sent("q1")).await;
    peer.event(press(&id, "p1"), "b2").await;
    assert_eq!(peer.ack().await, "b2");
    assert_eq!(soon(answers.recv()).await.unwrap(), r#"Some("deny")"#);
    // Its acknowledgement did not get through.
    peer.event(press(&id, "p1"), "b2").await;
    assert_eq!(peer.ack().await, "b2");
    // Nobody waits for it any more: it is an event like any other.
    peer.event(press(&id, "p2"), "b3").await;
    assert_eq!(soon(answers.recv()).await.unwrap(), "late deny");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_ends() {
    let server = Server::start().await;
    let (told, mut answers) = mpsc::channel(8);
    let (_handle, _running) = run(server.builder(), move |_: Event, conversation: Conversation| {
        let told = told.clone();
        async move {
            let asked = conversation.ask(question().within(Duration::from_secs(60))).await;
            told.send(asked.map_err(|error| error.to_string())).await.unwrap();
        }
    });
    let mut peer = server.greet().await;
    peer.event(message("1", "42", "m1", "clean up"), "").await;
    let (outbound, _) = asked(&mut peer).await;
    peer.answer(&outbound, ActionResult::sent("q1")).await;
    assert_eq!(soon(answers.recv()).await.unwrap(), Ok(None));
    peer.event(message("1", "42", "m2", "again"), "").await;
    let (outbound, _) = asked(&mut peer).await;
    peer.answer(&outbound, ActionResult::failed("no buttons here")).await;
    let refused = soon(answers.recv()).await.unwrap().unwrap_err();
    assert!(refused.contains("no buttons here"), "{refused}");
}
