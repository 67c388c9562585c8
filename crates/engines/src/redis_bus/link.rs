//! One connection to the server, or to all servers of a Redis cluster, with the few commands
//! the bus needs. It speaks RESP3, so hints come and go on the same connection.

use super::channel::{Channel, SLOTS};
use angelia_core::error::{Error, Result};
use futures_util::future::try_join_all;
use redis::aio::{MultiplexedConnection, SendError};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{MultipleNodeRoutingInfo, ResponsePolicy, RoutingInfo};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, IntoConnectionInfo, Pipeline, ProtocolVersion,
    PushInfo, RedisError, RedisResult, TlsCertificates, Value,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// How long a server may take to answer anything before it counts as gone.
const ANSWER: Duration = Duration::from_millis(900);
/// How long it may take to be connected with a server, or with all of a cluster.
const CONNECT: Duration = Duration::from_secs(2);
/// How often a cluster's client follows a slot that has moved.
const REDIRECTS: u32 = 2;

/// Where the bus is. Shown without users and passwords.
pub(super) struct Servers {
    /// Never empty.
    all: Vec<ConnectionInfo>,
    /// Whom to trust, if not whom the system does.
    authority: Option<TlsCertificates>,
}

impl Servers {
    /// Addresses with commas between them.
    pub(super) fn parse(urls: &str, authority: Option<Vec<u8>>) -> Result<Self> {
        // The only provider there is; whoever was first has set the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let all: RedisResult<Vec<_>> = urls.split(',').map(|url| resp3(url.trim())).collect();
        // Whatever it is that is wrong with an address, it may hold a password.
        let all = all.map_err(|_| {
            Error::invalid("the address of the bus has to be redis://host:port or rediss://host:port")
        })?;
        // The client takes a file without any for one that trusts nobody.
        let is_empty = |pem: &Vec<u8>| CertificateDer::pem_slice_iter(pem).next().is_none();
        let empty = authority.as_ref().is_some_and(is_empty);
        let authority = authority.map(|pem| TlsCertificates { client_tls: None, root_cert: Some(pem) });
        let servers = Self { all, authority };
        if empty || servers.all.iter().any(|server| servers.client(server.clone()).is_err()) {
            let why = "the authority of the bus has to be certificates as PEM, and its address rediss://";
            return Err(Error::invalid(why));
        }
        Ok(servers)
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    fn client(&self, server: ConnectionInfo) -> RedisResult<Client> {
        match &self.authority {
            Some(authority) => Client::build_with_tls(server, authority.clone()),
            None => Client::open(server),
        }
    }

    fn cluster(&self) -> ClusterClientBuilder {
        let builder = ClusterClientBuilder::new(self.all.iter().cloned());
        match &self.authority {
            Some(authority) => builder.certs(authority.clone()),
            None => builder,
        }
    }
}

impl fmt::Display for Servers {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.all.iter().map(|server| server.addr().to_string()).collect();
        to.write_str(&all.join(", "))
    }
}

/// An address, spoken to in the third version of the protocol.
fn resp3(url: &str) -> RedisResult<ConnectionInfo> {
    let info = url.into_connection_info()?;
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    Ok(info.set_redis_settings(settings))
}

/// Who hears what the server says unasked.
pub(super) type OnPush = Arc<dyn Fn(PushInfo) + Send + Sync>;

/// A message in its channel.
pub(super) struct Post {
    pub(super) channel: Channel,
    pub(super) message: Vec<u8>,
}

/// A connection.
#[derive(Clone)]
pub(super) enum Link {
    /// To one server.
    One(MultiplexedConnection),
    /// To a cluster, in which a channel is at home on one of the servers.
    Cluster(ClusterConnection),
}

impl Link {
    /// Connects, as it suits the server that answers; the `first` of them is asked what it is.
    pub(super) async fn open(servers: &Servers, first: usize, on_push: OnPush) -> RedisResult<Self> {
        let Some(server) = servers.all.get(first).cloned() else { return Err(gone()) };
        within(CONNECT, async {
            let heard = on_push.clone();
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(CONNECT))
                .set_response_timeout(Some(ANSWER))
                .set_push_sender(move |push| heard_by(&heard, push));
            let client = servers.client(server)?;
            let mut one = client.get_multiplexed_async_connection_with_config(&config).await?;
            if !is_cluster(&mut one).await? {
                return Ok(Self::One(one));
            }
            let cluster = servers
                .cluster()
                .connection_timeout(CONNECT)
                .response_timeout(ANSWER)
                .retries(REDIRECTS)
                .use_protocol(ProtocolVersion::RESP3)
                .push_sender(move |push| heard_by(&on_push, push))
                .build()?;
            Ok(Self::Cluster(cluster.get_async_connection().await?))
        })
        .await
    }

    /// Whether every server answers.
    pub(super) async fn ping(&mut self) -> RedisResult<()> {
        let ping = redis::cmd("PING");
        within(ANSWER, async {
            match self {
                Self::One(one) => ping.exec_async(one).await,
                Self::Cluster(cluster) => {
                    let all = MultipleNodeRoutingInfo::AllMasters;
                    let every = RoutingInfo::MultiNode((all, Some(ResponsePolicy::AllSucceeded)));
                    cluster.route_command(ping, every).await.map(drop)
                }
            }
        })
        .await
    }

    /// Has the server bring these channels.
    pub(super) async fn subscribe(&mut self, channels: Vec<Channel>) -> RedisResult<()> {
        within(ANSWER, async {
            match self {
                Self::One(one) => one.subscribe(names(channels)).await,
                Self::Cluster(cluster) => {
                    let each = by_slot(channels, |channel| channel.slot).into_iter().map(|of_slot| {
                        let mut cluster = cluster.clone();
                        async move { cluster.ssubscribe(names(of_slot)).await }
                    });
                    try_join_all(each).await.map(drop)
                }
            }
        })
        .await
    }

    /// Has the server bring them no more.
    pub(super) async fn unsubscribe(&mut self, channels: Vec<Channel>) -> RedisResult<()> {
        within(ANSWER, async {
            match self {
                Self::One(one) => one.unsubscribe(names(channels)).await,
                Self::Cluster(cluster) => {
                    let each = by_slot(channels, |channel| channel.slot).into_iter().map(|of_slot| {
                        let mut cluster = cluster.clone();
                        async move { cluster.sunsubscribe(names(of_slot)).await }
                    });
                    try_join_all(each).await.map(drop)
                }
            }
        })
        .await
    }

    /// Sends messages, in their order within a channel.
    pub(super) async fn publish(&mut self, posts: &[Post]) -> RedisResult<()> {
        within(ANSWER, async {
            match self {
                Self::One(one) => all("PUBLISH", posts).exec_async(one).await,
                Self::Cluster(cluster) => {
                    let each = by_slot(posts, |post| post.channel.slot).into_iter().map(|of_slot| {
                        let mut cluster = cluster.clone();
                        async move { all("SPUBLISH", of_slot).exec_async(&mut cluster).await }
                    });
                    try_join_all(each).await.map(drop)
                }
            }
        })
        .await
    }
}

fn gone() -> RedisError {
    RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut))
}

fn heard_by(on_push: &OnPush, push: PushInfo) -> std::result::Result<(), SendError> {
    on_push(push);
    Ok(())
}

/// Whether the server is one of a cluster, by what it says of itself.
async fn is_cluster(one: &mut MultiplexedConnection) -> RedisResult<bool> {
    let says: HashMap<String, Value> = redis::cmd("HELLO").query_async(one).await?;
    let mode = says.get("mode").cloned().map(redis::from_redis_value::<String>).transpose()?;
    Ok(mode.as_deref() == Some("cluster"))
}

fn names(channels: Vec<Channel>) -> Vec<String> {
    channels.into_iter().map(|channel| channel.name).collect()
}

/// One publication after the other, in one go.
fn all<'a>(command: &str, posts: impl IntoIterator<Item = &'a Post>) -> Pipeline {
    let mut pipeline = Pipeline::new();
    for post in posts {
        let mut publish = Cmd::new();
        publish.arg(command).arg(&post.channel.name).arg(&post.message);
        pipeline.add_command(publish);
    }
    pipeline
}

/// Sorted by slot, in the order they had: a command of a cluster concerns one.
fn by_slot<T>(items: impl IntoIterator<Item = T>, slot: impl Fn(&T) -> u16) -> Vec<Vec<T>> {
    let mut slots: Vec<Vec<T>> = (0..SLOTS).map(|_| Vec::new()).collect();
    for item in items {
        let at = usize::from(slot(&item)) % slots.len();
        slots[at].push(item);
    }
    slots.retain(|slot| !slot.is_empty());
    slots
}

/// The answer, if it comes in time.
async fn within<T>(time: Duration, answer: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    tokio::time::timeout(time, answer).await.map_err(|_| gone())?
}
