//! Files that people send to a gateway that fetches none.

use std::path::Path;

use super::{TENANT, TURN, connected, pinned};
use crate::clock;
use crate::connector::Connector;
use crate::hermes::{Hermes, Setup, Version};
use crate::model::Model;
use crate::process::{eventually, free_port, until};
use crate::webchat::http_client;

/// A little over the hour for which a link works.
const AN_HOUR: i64 = 3_660;
const REPORT: &[u8] = b"%PDF-1.7 what the model is to read";

/// The model is given a line with a link, which whoever has a shell can fetch; after an hour it leads
/// nowhere, like one that never was.
pub async fn link(version: Version, binary: &Path, folder: &Path) {
    let home = folder.join("connector");
    std::fs::create_dir_all(&home).expect("a folder");
    clock::set(&home, 0);
    let environment = clock::environment(&home);
    let variables: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, &**value)).collect();
    let connector = Connector::start_as(binary, &home, free_port(), "", &variables).await;
    let model = Model::start().await;
    let gateway = connector.gateway(TENANT, "gw-test").await;
    let ann = connector.person(TENANT, "lobby", "ann").await;
    let setup = Setup::new(version, folder.join("hermes"), &model.url(), pinned(&connector, &gateway));
    let _hermes = connected(Hermes::start(setup)).await;
    ann.say_with("what-does-it-say", ("report.pdf", "application/pdf"), REPORT).await;
    let asked = || model.texts().into_iter().find(|text| text.contains("what-does-it-say"));
    let asked = eventually("the question at the model", TURN, asked).await;
    let line = asked.lines().find(|line| line.starts_with("report.pdf (application/pdf, 34 B): "));
    let link = line.unwrap_or_else(|| panic!("no link: {asked}")).rsplit(' ').next().expect("a link");
    let fetch = async |url: &str| {
        let answer = http_client().get(url).send().await.expect("an answer");
        (answer.status().as_u16(), answer.bytes().await.expect("a body"))
    };
    assert_eq!(fetch(link).await, (200, REPORT.into()), "{link}");
    clock::set(&home, AN_HOUR);
    until("the end of the link", TURN, async || fetch(link).await.0 == 404).await;
    let (base, secret) = link.rsplit_once('/').expect("a path");
    let never = format!("{base}/{}", secret.chars().rev().collect::<String>());
    assert_eq!(fetch(link).await, fetch(&never).await, "in the same words");
    assert!(!connector.whole_log().contains(secret), "the link is in the log");
}
