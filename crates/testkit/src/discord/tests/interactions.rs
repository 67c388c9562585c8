//! The rules of interactions, seen from a bare socket and a bare endpoint.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A call with no credential but the path; returns status and Discord's code.
async fn act(discord: &FakeDiscord, method: Method, path: &str, body: Value) -> (u16, u64) {
    let url = format!("{}/api/v10{path}", discord.url());
    let ask = http_client().request(method, url).header("User-Agent", "DiscordBot (https://example.org, 1)");
    let answer = ask.json(&body).send().await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.json::<Value>().await.unwrap_or_default();
    (status, body["code"].as_u64().unwrap_or_default())
}

async fn answer(discord: &FakeDiscord, one: &Interaction, body: Value) -> (u16, u64) {
    let path = format!("/interactions/{}/{}/callback", one.id, one.token);
    act(discord, Method::POST, &path, body).await
}

/// Where the interaction's token acts.
fn hook(discord: &FakeDiscord, one: &Interaction) -> String {
    format!("/webhooks/{}/{}", discord.bot_id(), one.token)
}

#[tokio::test]
async fn an_interaction_is_answered_once_and_only_with_what_fits() {
    let discord = fake("answers", json!({ "limits": false })).await;
    let (guild, channel, ann) = place(&discord).await;
    let (mut shard, _) = Shard::identified(&discord, MESSAGES, [0, 1]).await;
    let asked = discord.slash(&channel, &ann, "ask", json!({ "text": "hi", "deep": true, "n": 3 })).await;
    let seen = loop {
        let frame = shard.next().await;
        if frame["t"] == "INTERACTION_CREATE" {
            break frame["d"].clone();
        }
    };
    assert_eq!(seen["id"], asked.id);
    assert_eq!(seen["token"], asked.token);
    assert!(asked.token.len() > 150, "as long as Discord's");
    assert_eq!(seen["guild_id"], guild.id);
    assert_eq!(seen["authorizing_integration_owners"], json!({ "0": guild.id }));
    assert!(seen["member"]["permissions"].is_string() && seen["app_permissions"].is_string());
    let option = json!({ "name": "deep", "type": 5, "value": true });
    assert_eq!(seen["data"]["options"][0], option);
    assert_eq!((asked.via.as_str(), asked.state.as_str()), ("gateway", "waiting"));

    // A command has no message to update, a deferral no text and one flag.
    for wrong in [json!({ "type": 6 }), json!({ "type": 8 }), json!({ "type": 1 }), json!({})] {
        assert_eq!(answer(&discord, &asked, wrong.clone()).await, (400, 50035), "{wrong}");
    }
    for data in [json!({ "flags": 4 }), json!({ "content": "x" })] {
        let wrong = json!({ "type": 5, "data": data });
        assert_eq!(answer(&discord, &asked, wrong.clone()).await, (400, 50035), "{wrong}");
    }
    let long = json!({ "type": 4, "data": { "content": "x".repeat(2001) } });
    assert_eq!(answer(&discord, &asked, long).await, (400, 50035));
    let mut stranger = asked.clone();
    stranger.token.push('x');
    assert_eq!(answer(&discord, &stranger, json!({ "type": 5 })).await, (404, 10062));
    assert_eq!(answer(&discord, &asked, json!({ "type": 5 })).await, (204, 0));
    assert_eq!(answer(&discord, &asked, json!({ "type": 5 })).await, (400, 40060));
    assert_eq!(discord.interaction(&asked.id).await.state, "deferred");
    let loading = discord.messages(&channel).await.pop().unwrap();
    assert!(loading.own && loading.loading && loading.content.is_empty());
    assert_eq!(loading.interaction, Some(asked.id));

    discord.set(json!({ "interaction_deadline": 0.0 })).await;
    let late = discord.slash(&channel, &ann, "ask", json!({})).await;
    assert_eq!(answer(&discord, &late, json!({ "type": 5 })).await, (404, 10062));
    let late = discord.interaction(&late.id).await;
    assert_eq!(
        (late.state.as_str(), late.error.as_deref()),
        ("failed", Some("The application did not respond"))
    );
}

#[tokio::test]
async fn a_token_acts_from_the_answer_to_its_end() {
    let discord = fake("tokens", json!({ "limits": false })).await;
    let (_, channel, ann) = place(&discord).await;
    let one = discord.slash(&channel, &ann, "ask", json!({})).await;
    let hook_of = hook(&discord, &one);
    let original = format!("{hook_of}/messages/@original");
    let text = |content: &str| json!({ "content": content, "allowed_mentions": { "parse": [] } });
    assert_eq!(act(&discord, Method::POST, &hook_of, text("too early")).await, (404, 10015));
    assert_eq!(act(&discord, Method::PATCH, &original, text("too early")).await, (404, 10015));
    answer(&discord, &one, json!({ "type": 5 })).await;
    assert_eq!(act(&discord, Method::PATCH, &original, text("")).await, (400, 50006));
    assert_eq!(act(&discord, Method::PATCH, &original, text(&"x".repeat(2001))).await, (400, 50035));
    assert_eq!(discord.interaction(&one.id).await.state, "deferred");
    assert_eq!(act(&discord, Method::PATCH, &original, text("done")).await.0, 200);
    assert_eq!(act(&discord, Method::POST, &hook_of, text("more")).await.0, 200);
    let mut seen = discord.interaction(&one.id).await;
    assert_eq!((seen.state.as_str(), seen.content.as_deref(), seen.edits), ("answered", Some("done"), 1));
    let more = seen.followups.pop().unwrap();
    assert_eq!(more.content.as_deref(), Some("more"));
    let messages = discord.messages(&channel).await;
    assert_eq!(messages.iter().map(|one| one.content.as_str()).collect::<Vec<_>>(), ["done", "more"]);
    assert!(messages.iter().all(|one| !one.loading && one.allowed_mentions == json!({ "parse": [] })));
    let logged = discord.requests(0).await.pop().unwrap();
    assert_eq!(logged.channel.as_deref(), Some(channel.as_str()), "the log knows where a token writes");
    let message = format!("{hook_of}/messages/{}", more.id);
    assert_eq!(act(&discord, Method::DELETE, &message, json!({})).await.0, 204);
    assert_eq!(discord.interaction(&one.id).await.followups[0].content, None);

    // The first message after a deferral is the answer, with the eyes it was deferred for.
    let two = discord.slash(&channel, &ann, "ask", json!({})).await;
    answer(&discord, &two, json!({ "type": 5, "data": { "flags": 64 } })).await;
    assert_eq!(act(&discord, Method::POST, &hook(&discord, &two), text("psst")).await.0, 200);
    let seen = discord.interaction(&two.id).await;
    assert_eq!((seen.content.as_deref(), seen.ephemeral, seen.followups.len()), (Some("psst"), true, 0));

    let elsewhere = format!("/webhooks/{ann}/{}", two.token);
    assert_eq!(act(&discord, Method::POST, &elsewhere, text("x")).await, (404, 10015));
    discord.set(json!({ "interaction_life": 0.0, "interaction_deadline": 3.0 })).await;
    let three = discord.slash(&channel, &ann, "ask", json!({})).await;
    assert_eq!(act(&discord, Method::POST, &hook(&discord, &three), text("x")).await, (401, 50027));
}

#[tokio::test]
async fn commands_are_registered_and_then_hold_people_to_their_options() {
    let discord = fake("commands", json!({ "limits": false })).await;
    let (_, channel, ann) = place(&discord).await;
    let path = format!("/applications/{}/commands", discord.bot_id());
    let option = json!({ "name": "text", "description": "What", "type": 3, "required": true });
    let ask = json!({ "name": "ask", "description": "Ask", "type": 1, "options": [option] });
    let put = async |body: Value| call(&discord, Method::PUT, &path, Some(body)).await;
    for (field, bad) in [("name", json!("Ask")), ("name", json!("a b")), ("description", json!(""))] {
        let mut wrong = ask.clone();
        wrong[field] = bad;
        assert_eq!(put(json!([wrong])).await.0, 400);
    }
    assert_eq!(put(json!([ask, ask])).await.0, 400, "twice the same name");
    let (status, _, made) = put(json!([ask])).await;
    assert_eq!((status, &made[0]["name"]), (200, &json!("ask")));
    let (_, _, told) = call(&discord, Method::GET, &path, None).await;
    assert_eq!(told, made);
    assert_eq!(put(json!([ask])).await.2[0]["id"], made[0]["id"], "a command keeps its id");
    let stranger = format!("/applications/{ann}/commands");
    assert_eq!(call(&discord, Method::GET, &stranger, None).await.0, 403);
    discord.slash(&channel, &ann, "ask", json!({ "text": "hi" })).await;
    let url = format!("{}/_fake/slash", discord.url());
    let without = json!({ "channel": channel, "user": ann, "name": "ask" });
    assert_eq!(http_client().post(url).json(&without).send().await.unwrap().status(), 400);
    let (_, _, me) = call(&discord, Method::GET, "/applications/@me", None).await;
    assert_eq!(
        (&me["verify_key"], &me["interactions_endpoint_url"]),
        (&json!(discord.public_key()), &Value::Null)
    );
}

/// An endpoint that defers whatever comes, whoever sent it.
async fn careless_endpoint() -> String {
    const ANSWER: &str =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{\"type\":5}";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut read = vec![0; 1 << 16];
                // Requests on loopback come in one piece.
                while stream.read(&mut read).await.is_ok_and(|size| size > 0) {
                    if stream.write_all(ANSWER.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    url
}

#[tokio::test]
async fn many_interactions_go_out_at_the_pace_asked_for() {
    let url = careless_endpoint().await;
    let discord = fake("volley", json!({ "interactions_url": url })).await;
    let (_, channel, ann) = place(&discord).await;
    let ask = json!({ "count": 500, "within_ms": 500, "channels": [channel], "users": [ann],
        "options": { "text": "number {n}" } });
    let volley = discord.volley(ask).await;
    assert_eq!(volley.state("deferred"), 500, "{volley:?}");
    assert_eq!((volley.ids.len(), volley.types["5"], volley.statuses["200"]), (500, 500, 500));
    assert!(volley.fired >= Duration::from_millis(490) && volley.p50 <= volley.p99, "{volley:?}");
    assert!(volley.p99 <= volley.max && volley.errors.is_empty(), "{volley:?}");
    assert_eq!(discord.messages(&channel).await.iter().filter(|one| one.loading).count(), 500);
    // Who takes what is forged is no endpoint for Discord.
    let ping = discord.ping().await;
    assert_eq!((&ping["accepted"], &ping["forged_status"]), (&json!(false), &json!(200)));
}
