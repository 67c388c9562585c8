use super::*;

const SOON: Duration = Duration::from_secs(10);

fn turn_body(users: &[&str]) -> Value {
    let messages: Vec<_> = users.iter().map(|text| json!({"role": "user", "content": text})).collect();
    json!({"stream": true, "tools": [{}], "messages": messages})
}

async fn ask(model: &Model, body: &Value) -> String {
    let client = crate::webchat::http_client();
    let url = format!("{}/chat/completions", model.url());
    let response = client.post(url).json(body).send().await.unwrap();
    response.text().await.unwrap()
}

#[tokio::test]
async fn echoes_streamed_and_whole() {
    let model = Model::start().await;
    let streamed = ask(&model, &turn_body(&["hello"])).await;
    assert!(streamed.contains(r#""content":"echo: hello""#), "{streamed}");
    assert!(streamed.ends_with("data: [DONE]\n\n"));
    let mut body = turn_body(&["again"]);
    body["stream"] = false.into();
    let whole: Value = serde_json::from_str(&ask(&model, &body).await).unwrap();
    assert_eq!(whole["choices"][0]["message"]["content"], "echo: again");
    assert_eq!(model.texts(), ["hello", "again"]);
}

#[tokio::test]
async fn auxiliary_requests_are_no_turns() {
    let model = Model::start().await;
    let body = json!({"messages": [{"role": "user", "content": "User: hi"}]});
    assert!(ask(&model, &body).await.contains(AUXILIARY_REPLY));
    assert!(model.turns().is_empty());
}

#[tokio::test]
async fn only_the_new_part_of_a_carried_message_counts() {
    let model = Model::start().await;
    for users in [
        &["a1"][..],
        &["a1", "a2"],
        // The turn with a2 was cut; its text comes again, joined with the next.
        &["a1", "a2\n\na3"],
        &["b1"],
        // A real repetition stays visible.
        &["a1", "a2\n\na3", "a3"],
    ] {
        ask(&model, &turn_body(users)).await;
    }
    assert_eq!(model.texts(), ["a1", "a2", "a3", "b1", "a3"]);
    assert_eq!(model.arrivals("a2"), 1);
    assert_eq!(model.arrivals("a3"), 2);
    assert_eq!(model.order_of(&["b1", "a2", "a1", "zz"]), ["a1", "a2", "b1"]);
}

#[tokio::test]
async fn an_agent_that_asks_once_more_in_the_same_words_is_not_a_second_arrival() {
    let model = Model::start().await;
    let ask = async |key: &str, users: &[&str]| {
        let url = format!("{}/chat/completions", model.url());
        let request = crate::webchat::http_client().post(url).bearer_auth(key).json(&turn_body(users));
        request.send().await.unwrap().text().await.unwrap()
    };
    for _ in 0..2 {
        assert!(ask("ann's", &["a1"]).await.contains("echo: a1"));
    }
    assert_eq!(model.texts(), ["a1"]);
    // Another agent that is given the same text is one, and so is the same agent later on.
    ask("bob's", &["a1"]).await;
    ask("ann's", &["a1", "a1"]).await;
    assert_eq!(model.arrivals("a1"), 3);
}

#[test]
fn system_notes_are_left_out() {
    assert_eq!(without_notes("hi\n\n[System note: a [b] c.]"), "hi");
    assert_eq!(without_notes("[System note: x]\n\nhi"), "hi");
    assert_eq!(without_notes("hi [not a note]"), "hi [not a note]");
    assert_eq!(without_notes("hi [System note: open"), "hi");
}

#[tokio::test]
async fn a_held_turn_is_answered_after_the_release() {
    let model = Arc::new(Model::start().await);
    model.hang_on("wait");
    let asked = tokio::spawn({
        let model = Arc::clone(&model);
        async move { ask(&model, &turn_body(&["wait here"])).await }
    });
    model.wait_for_text("wait", SOON).await;
    // Others are not held up.
    ask(&model, &turn_body(&["quick"])).await;
    assert_eq!(model.outcome("wait"), Some(Outcome::Running));
    model.release();
    assert!(asked.await.unwrap().contains("echo: wait here"));
    assert_eq!(model.outcome("wait"), Some(Outcome::Answered));
}

#[tokio::test]
async fn a_client_that_goes_away_cuts_its_turn() {
    let model = Arc::new(Model::start().await);
    model.hang_on("wait");
    let asked = tokio::spawn({
        let model = Arc::clone(&model);
        async move { ask(&model, &turn_body(&["wait here"])).await }
    });
    model.wait_for_text("wait", SOON).await;
    asked.abort();
    model.wait_for_outcome("wait", Outcome::Cut, SOON).await;
}
