//! A person's connection to the web chat: HTTP by hand, kept open from post to post.

use crate::receipts::Fault;
use std::io;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// One connection; requests go over it one after the other.
#[derive(Debug)]
pub(crate) struct Poster {
    stream: BufReader<TcpStream>,
    host: String,
    answer: String,
}

impl Poster {
    pub(crate) async fn connect(url: &str) -> Result<Self, Fault> {
        let host = url.trim_start_matches("http://").to_owned();
        let connect = async {
            let stream = TcpStream::connect(&host).await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        let stream = connect.await.map_err(|error| broken(&error))?;
        Ok(Self { stream: BufReader::new(stream), host, answer: String::new() })
    }

    /// Posts a message and waits until the server has it on its disk.
    pub(crate) async fn post(&mut self, room: &str, key: &str, body: &str) -> Result<(), Fault> {
        let request = format!(
            "POST /chat/api/rooms/{room}/messages HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        let status = self.exchange(request.as_bytes()).await.map_err(|error| broken(&error))?;
        if status.contains(" 201 ") { Ok(()) } else { Err(Fault::Post(status)) }
    }

    /// Writes a request, reads the whole answer, and gives its status line.
    async fn exchange(&mut self, request: &[u8]) -> io::Result<String> {
        self.stream.get_mut().write_all(request).await?;
        let status = self.line().await?.to_owned();
        let mut length = 0;
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        Ok(status)
    }

    async fn line(&mut self) -> io::Result<&str> {
        self.answer.clear();
        match self.stream.read_line(&mut self.answer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(self.answer.trim_end()),
        }
    }
}

fn broken(error: &io::Error) -> Fault {
    Fault::Broken(format!("a person's connection ended: {error}"))
}
