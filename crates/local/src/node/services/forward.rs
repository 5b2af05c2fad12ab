//! One address of a Service.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

const PAUSE: Duration = Duration::from_millis(100);

/// Listens until it is dropped. Connections that were made go on.
pub(super) struct Forwarder {
    endpoints: watch::Sender<Arc<[SocketAddr]>>,
    task: JoinHandle<()>,
}

impl Forwarder {
    pub(super) async fn bind(address: SocketAddr, endpoints: Vec<SocketAddr>) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let (sender, receiver) = watch::channel(endpoints.into());
        Ok(Self { endpoints: sender, task: tokio::spawn(accept(listener, receiver)) })
    }

    pub(super) fn set(&self, endpoints: Vec<SocketAddr>) {
        self.endpoints.send_if_modified(|known| {
            let changed = **known != *endpoints;
            if changed {
                *known = endpoints.into();
            }
            changed
        });
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, endpoints: watch::Receiver<Arc<[SocketAddr]>>) {
    let mut turn: usize = 0;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let all = endpoints.borrow().clone();
                // Not held: a connection ends with either of its sides.
                tokio::spawn(pass_on(stream, all, turn));
                turn = turn.wrapping_add(1);
            }
            // Too many open files, most likely: others must end first.
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// To the endpoint whose turn it is, or the next one that takes it.
async fn pass_on(mut client: TcpStream, endpoints: Arc<[SocketAddr]>, turn: usize) {
    for step in 0..endpoints.len() {
        let at = turn.wrapping_add(step) % endpoints.len();
        let Some(endpoint) = endpoints.get(at) else { return };
        if let Ok(mut server) = TcpStream::connect(endpoint).await {
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            // Either side may end it in any way.
            let _ = copy_bidirectional(&mut client, &mut server).await;
            return;
        }
    }
}
