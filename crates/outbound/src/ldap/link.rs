//! One connection to a directory: a request, then its answers.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::filter::Filter;
use super::message::{Answer, Entry, bind, read, search, unbind};
use super::{LdapError, Malformed, ber};
use crate::tls::secure;

/// Time to reach a directory and to agree on TLS with it.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of an LDAP message that is taken in.
pub const MAX_MESSAGE: usize = 1024 * 1024;

/// LDAP messages that may answer one request.
pub const MAX_MESSAGES: usize = 64;

/// Where a directory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// TLS from the first byte on, with the certificates that the system trusts.
    pub tls: bool,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection to a directory.
pub struct Link {
    stream: Box<dyn Stream>,
    buffer: Vec<u8>,
    last_id: u32,
}

impl Link {
    /// Connects.
    ///
    /// # Errors
    /// When the server is not reached within [`CONNECT_TIMEOUT`], or TLS fails.
    pub async fn open(server: &Server) -> Result<Self, LdapError> {
        let host = server.host.trim_matches(['[', ']']);
        let dial = async {
            let tcp = TcpStream::connect((host, server.port)).await.map_err(|error| error.to_string())?;
            let _ = tcp.set_nodelay(true);
            let stream: Box<dyn Stream> = if server.tls { Box::new(secure(host, tcp).await?) } else { Box::new(tcp) };
            Ok(stream)
        };
        let dialed = timeout(CONNECT_TIMEOUT, dial).await.unwrap_or_else(|_| Err("no connection within ten seconds".to_owned()));
        Ok(Self { stream: dialed.map_err(LdapError::Broken)?, buffer: Vec::new(), last_id: 0 })
    }

    /// Logs in; as nobody with empty name and password.
    ///
    /// # Errors
    /// When the server refuses or is not there any more.
    pub async fn bind(&mut self, dn: &str, password: &str) -> Result<(), LdapError> {
        let id = self.next_id();
        self.send(&bind(id, dn, password)).await?;
        match self.answer(id).await? {
            Answer::Bound(outcome) if outcome.is_success() => Ok(()),
            Answer::Bound(outcome) => Err(LdapError::Refused(outcome)),
            _ => Err(broken(Malformed)),
        }
    }

    /// The first entry below `base` that the filter fits, with these attributes.
    ///
    /// # Errors
    /// When the server refuses or is not there any more.
    pub async fn first(&mut self, base: &str, filter: &Filter, attributes: &[&str]) -> Result<Option<Entry>, LdapError> {
        let id = self.next_id();
        self.send(&search(id, base, filter, attributes)).await?;
        let mut first = None;
        for _ in 0..MAX_MESSAGES {
            match self.answer(id).await? {
                Answer::Found(entry) => first = first.or(Some(entry)),
                Answer::Elsewhere => {}
                Answer::Done(outcome) if outcome.is_success() || outcome.is_cut_short() => return Ok(first),
                Answer::Done(outcome) => return Err(LdapError::Refused(outcome)),
                Answer::Bound(_) => return Err(broken(Malformed)),
            }
        }
        Err(LdapError::Broken("the search gives more than was asked for".to_owned()))
    }

    /// Says good-bye; whether that is heard does not matter.
    pub async fn close(mut self) {
        let id = self.next_id();
        let _ = self.send(&unbind(id)).await;
    }

    fn next_id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }

    async fn send(&mut self, message: &[u8]) -> Result<(), LdapError> {
        self.stream.write_all(message).await.map_err(broken)?;
        self.stream.flush().await.map_err(broken)
    }

    async fn answer(&mut self, wanted: u32) -> Result<Answer, LdapError> {
        loop {
            if let Some(head) = ber::head(&self.buffer).map_err(broken)? {
                if head.length > MAX_MESSAGE {
                    return Err(LdapError::Broken(format!("an LDAP message of more than {MAX_MESSAGE} bytes")));
                }
                if self.buffer.len() >= head.size + head.length {
                    let message: Vec<u8> = self.buffer.drain(..head.size + head.length).collect();
                    let (id, answer) = read(&message).map_err(broken)?;
                    return if id == wanted { Ok(answer) } else { Err(broken(Malformed)) };
                }
            }
            if self.stream.read_buf(&mut self.buffer).await.map_err(broken)? == 0 {
                return Err(LdapError::Broken("the server closed the connection".to_owned()));
            }
        }
    }
}

#[allow(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn broken(error: impl ToString) -> LdapError {
    LdapError::Broken(error.to_string())
}
