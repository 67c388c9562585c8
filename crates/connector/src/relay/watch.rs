//! A slow look at the logs of live sockets: finds what a hint that never came
//! would have told.

use crate::server::Server;
use std::sync::Arc;
use std::time::Duration;

/// On one node hints come by a call and none gets lost; this is for what nobody thought of.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Logs looked at in one read.
const AT_ONCE: usize = 500;

/// Tells every live socket how far its log is, again and again until the server stops.
pub(crate) async fn watch_logs(server: Arc<Server>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = server.stopped() => return,
        }
        let live = server.sessions.live();
        for some in live.chunks(AT_ONCE) {
            // What cannot be read now is looked at the next time.
            for (instance, mark) in server.ports.log.marks(some.to_vec()).await.unwrap_or_default() {
                server.sessions.tell(instance, mark);
            }
        }
    }
}
