//! Every server starts, answers, dies and comes back, and none outlives the process that started it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::{self, sleep};
use std::time::Duration;

use angelia_services::{PgBouncer, Postgres, Redis, S3, psql};

const POLL: Duration = Duration::from_millis(20);

#[test]
fn postgres_keeps_what_it_committed_through_a_crash_and_a_stop() {
    let postgres = Postgres::start_with(&[("deadlock_timeout", "123ms")]).unwrap();
    let url = postgres.create_database("kept").unwrap();
    assert_eq!(url, format!("postgres://angelia@127.0.0.1:{}/kept", postgres.port()));
    let settings = ["fsync", "synchronous_commit", "full_page_writes", "max_connections", "shared_buffers"];
    let shown = settings.map(|name| psql(&url, &format!("SHOW {name}")).unwrap());
    assert_eq!(shown, ["on", "on", "on", "300", "128MB"]);
    assert_eq!(psql(&url, "SHOW deadlock_timeout").unwrap(), "123ms");
    let meant = psql(
        &url,
        "SELECT current_user, pg_encoding_to_char(encoding), datcollate FROM pg_database \
         WHERE datname = current_database()",
    );
    assert_eq!(meant.unwrap(), "angelia|UTF8|C");
    let socket = postgres.folder().unwrap().display();
    let through = format!("host={socket} port={} user=angelia dbname=kept", postgres.port());
    assert_eq!(psql(&through, "SELECT 1").unwrap(), "1");

    psql(&url, "CREATE TABLE t (n int); INSERT INTO t VALUES (7)").unwrap();
    postgres.kill().unwrap();
    assert!(psql(&url, "SELECT 1").is_err());
    postgres.start_again().unwrap();
    assert_eq!(psql(&url, "UPDATE t SET n = n + 1 RETURNING n").unwrap(), "8");
    postgres.stop().unwrap();
    assert!(psql(&url, "SELECT 1").is_err());
    let asleep = postgres.pause().unwrap_err();
    assert_eq!(asleep.to_string(), "postgres does not run");
    postgres.start_again().unwrap();
    assert_eq!(psql(&url, "SELECT n FROM t").unwrap(), "8");

    let folder = postgres.folder().unwrap().to_owned();
    drop(postgres);
    assert!(!folder.exists());
    assert!(psql(&url, "SELECT 1").is_err());
}

#[test]
fn postgres_answers_nothing_while_it_is_paused() {
    let postgres = Postgres::start().unwrap();
    let url = postgres.fresh_database().unwrap();
    // A backend that is there before the pause is halted with the rest.
    let (said, heard) = sync_channel(1);
    let script = "SELECT pg_sleep(0.2)";
    let ticks = format!("{script}; {script}; SELECT 'awake'");
    let client = thread::spawn({
        let url = url.clone();
        move || said.send(psql(&url, &ticks).unwrap()).unwrap()
    });
    until("a client is served", || psql(&url, &asking("pg_sleep")).unwrap() == "1");
    postgres.pause().unwrap();
    // Fixed pause: longer than the client's whole work, of which nothing may come.
    assert_eq!(heard.recv_timeout(Duration::from_secs(1)), Err(RecvTimeoutError::Timeout));
    postgres.resume().unwrap();
    assert!(heard.recv_timeout(Duration::from_secs(30)).unwrap().ends_with("awake"));
    client.join().unwrap();
}

/// How many others run a statement like this.
fn asking(like: &str) -> String {
    format!("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%{like}%' AND pid <> pg_backend_pid()")
}

#[test]
fn one_postgres_is_shared_and_databases_are_fresh() {
    let shared = Postgres::shared().unwrap();
    assert!(std::ptr::eq(shared, Postgres::shared().unwrap()));
    let makers: Vec<_> = (0..4).map(|_| thread::spawn(|| shared.fresh_database().unwrap())).collect();
    let urls: Vec<String> = makers.into_iter().map(|maker| maker.join().unwrap()).collect();
    for url in &urls {
        psql(url, "CREATE TABLE t (n int)").unwrap();
        assert!(url.starts_with(&shared.url("angelia_")), "{url}");
    }
    let error = psql(&urls[0], "CREATE TABLE t (n int)").unwrap_err();
    assert!(error.to_string().contains("already exists"), "{error}");
}

#[test]
fn pgbouncer_lends_connections_for_a_transaction() {
    let postgres = Postgres::shared().unwrap();
    let direct = postgres.fresh_database().unwrap();
    let database = direct.rsplit('/').next().unwrap();
    let settings = [("default_pool_size", "1"), ("query_wait_timeout", "10")];
    let pooler = PgBouncer::start_with(postgres, &settings).unwrap();
    let url = pooler.url(database);
    // The one connection behind it serves a second client while the first is still there.
    let backend = "SELECT pg_backend_pid()";
    let mut first = Command::new("psql");
    let mut first = first.args(["-XqAt", &url]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    writeln!(first.stdin.as_mut().unwrap(), "{backend};").unwrap();
    let mut serves = String::new();
    BufReader::new(first.stdout.take().unwrap()).read_line(&mut serves).unwrap();
    assert_eq!(psql(&url, backend).unwrap(), serves.trim_end());
    assert!(first.try_wait().unwrap().is_none());
    drop(first.stdin.take());
    first.wait().unwrap();
    pooler.kill().unwrap();
    assert!(psql(&url, "SELECT 1").is_err());
    assert_eq!(psql(&direct, "SELECT 1").unwrap(), "1");
    pooler.start_again().unwrap();
    assert_eq!(psql(&url, "SELECT current_user").unwrap(), "angelia");
}

#[test]
fn redis_answers_is_killed_and_comes_back() {
    let redis = Redis::start().unwrap();
    assert_eq!(redis.url(), format!("redis://127.0.0.1:{}", redis.port()));
    assert_eq!(redis.cli(&["ping"]).unwrap(), "PONG");
    redis.cli(&["set", "k", "v"]).unwrap();
    redis.kill().unwrap();
    assert!(redis.cli(&["ping"]).is_err());
    redis.start_again().unwrap();
    assert_eq!(redis.cli(&["get", "k"]).unwrap(), "");
    let error = redis.cli(&["no-such-command"]).unwrap_err();
    assert!(error.to_string().contains("unknown command"), "{error}");

    let keeps = Redis::start_with(&["--appendonly", "yes", "--appendfsync", "always"]).unwrap();
    keeps.cli(&["set", "k", "v"]).unwrap();
    keeps.kill().unwrap();
    keeps.start_again().unwrap();
    assert_eq!(keeps.cli(&["get", "k"]).unwrap(), "v");
    keeps.stop().unwrap();
    assert!(keeps.cli(&["ping"]).is_err());
}

#[test]
fn redis_answers_nothing_while_it_is_paused() {
    let redis = Redis::start().unwrap();
    redis.pause().unwrap();
    thread::scope(|scope| {
        let (said, heard) = sync_channel(1);
        scope.spawn({
            let redis = &redis;
            move || said.send(redis.cli(&["ping"]).unwrap()).unwrap()
        });
        let silence = heard.recv_timeout(Duration::from_millis(300));
        redis.resume().unwrap();
        assert_eq!(silence, Err(RecvTimeoutError::Timeout));
        assert_eq!(heard.recv_timeout(Duration::from_secs(30)).unwrap(), "PONG");
    });
}

#[test]
fn a_cluster_of_one_has_every_slot_and_is_whole_again_after_a_crash() {
    let redis = Redis::start_cluster().unwrap();
    let whole = |redis: &Redis| {
        let info = redis.cli(&["cluster", "info"]).unwrap();
        assert!(info.contains("cluster_state:ok") && info.contains("cluster_slots_ok:16384"), "{info}");
        let slots = redis.cli(&["cluster", "slots"]).unwrap();
        assert!(slots.contains(&format!("127.0.0.1\n{}", redis.port())), "{slots}");
    };
    whole(&redis);
    redis.kill().unwrap();
    redis.start_again().unwrap();
    whole(&redis);
}

#[test]
fn redis_behind_tls_has_a_certificate_of_its_authority() {
    let redis = Redis::start_tls().unwrap();
    assert!(redis.url().starts_with("rediss://"));
    assert_eq!(redis.cli(&["ping"]).unwrap(), "PONG");
    let authority = redis.authority().unwrap();
    let mut verify = Command::new("openssl");
    verify.args(["verify", "-verify_ip", "127.0.0.1", "-purpose", "sslserver", "-CAfile"]);
    let verdict = verify.arg(&authority).arg(authority.with_file_name("certificate.pem")).output().unwrap();
    assert!(verdict.status.success(), "{verdict:?}");
}

#[test]
fn no_server_outlives_a_process_that_was_killed() {
    let mut starter = Command::new(std::env::current_exe().unwrap());
    starter.args(["--ignored", "--exact", "starts_servers_and_waits", "--nocapture"]);
    let mut starter = starter.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(starter.stdout.take().unwrap()).lines().map(Result::unwrap);
    let started: Vec<String> =
        lines.filter_map(|line| Some(line.strip_prefix("started ")?.into())).take(4).collect();
    let listens = |port: &str| TcpStream::connect(format!("127.0.0.1:{port}")).is_ok();
    let [port, folder, redis, pooler] = &started[..] else { panic!("{started:?}") };
    assert!(listens(port) && listens(redis) && listens(pooler) && Path::new(folder).exists());
    starter.kill().unwrap();
    starter.wait().unwrap();
    until("the servers are gone", || !listens(port) && !listens(redis) && !listens(pooler));
    until("the folder is gone", || !Path::new(folder).exists());
    let folder_left = |name: &str| name.contains(&format!("-{}_", starter.id()));
    let left = || std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    until("no folder is left", || !left().any(|entry| folder_left(&entry.file_name().to_string_lossy())));
}

#[test]
#[ignore = "is run, and killed, by another test"]
fn starts_servers_and_waits() {
    let postgres = Postgres::shared().unwrap();
    let redis = Redis::start().unwrap();
    let pooler = PgBouncer::start(postgres).unwrap();
    // Halted, and so unable to notice anything.
    redis.pause().unwrap();
    let own = Postgres::start().unwrap();
    own.pause().unwrap();
    println!("\nstarted {}\nstarted {}", own.port(), own.folder().unwrap().display());
    println!("started {}\nstarted {}", redis.port(), pooler.port());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn until(what: &str, done: impl Fn() -> bool) {
    for _ in 0..1_500 {
        if done() {
            return;
        }
        sleep(POLL);
    }
    panic!("not within 30 s: {what}");
}

#[test]
fn a_bucket_is_there_for_its_key_only() {
    let s3 = S3::start().unwrap();
    assert_eq!(s3.objects().unwrap(), []);
    assert!(!s3.access_key_id().is_empty() && !s3.secret_access_key().is_empty());
    let mut stream = TcpStream::connect(("127.0.0.1", s3.port())).unwrap();
    write!(stream, "GET /{} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", S3::BUCKET).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap();
    assert!(status != "200", "somebody without a key: {answer}");
    s3.kill().unwrap();
    assert!(s3.objects().is_err());
}
