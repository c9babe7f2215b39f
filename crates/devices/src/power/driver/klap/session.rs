//! Sessions with a plug: two handshakes, then sealed messages until it ends or the plug has forgotten it.

use std::time::Duration;

use outbound::{Client, Request, header};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;
use tokio::time::Instant;

use super::Fault;
use super::cipher::{Cipher, Generation, Login, Proof, Seed};
use crate::base::Base;
use crate::power::driver::web::{failing_status, reason};

/// Time for one exchange with a smart plug; the device's own `timeout` usually ends it earlier.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes of an answer of a smart plug.
const MAX_ANSWER: usize = 64 * 1024;

/// Seconds that a session lasts when the plug does not say it, and at most.
const LONGEST_SESSION: u64 = 24 * 60 * 60;

/// Longest name of a session that is taken.
const MAX_COOKIE: usize = 256;

/// Names in what the plug hands out with a session.
const COOKIE: &str = "TP_SESSIONID";
const LASTS: &str = "TIMEOUT";

/// The way to one plug.
pub(super) struct Line {
    client: Client,
    base: Base,
    /// Logins that the plug may have, in the order in which they are tried.
    logins: Vec<Login>,
    session: Option<Session>,
}

struct Session {
    cipher: Cipher,
    generation: Generation,
    cookie: Option<String>,
    ends: Instant,
}

impl Line {
    pub(super) fn new(client: &Client, base: Base, logins: Vec<Login>) -> Self {
        Self { client: client.lane(1), base, logins, session: None }
    }

    /// The answer to a question, and which generation the plug belongs to.
    ///
    /// A session is put back only after a whole answer: one that was broken off is out of step.
    pub(super) async fn ask(&mut self, question: &Value) -> Result<(Value, Generation), Fault> {
        if let Some(session) = self.session.take().filter(|session| Instant::now() < session.ends)
            && let Ok(answer) = self.ask_within(session, question).await
        {
            return Ok(answer);
        }
        // There was none, or the plug was restarted and has forgotten it.
        let session = self.shake_hands().await?;
        self.ask_within(session, question).await
    }

    async fn ask_within(&mut self, mut session: Session, question: &Value) -> Result<(Value, Generation), Fault> {
        let (number, message) = session.cipher.seal(question.to_string().as_bytes());
        let answer = self.post(&format!("/app/request?seq={number}"), message, session.cookie.as_deref()).await?.body;
        let plain = session.cipher.open(&answer).ok_or_else(|| Fault::new("the answer of the plug cannot be deciphered"))?;
        let value = serde_json::from_slice(&plain).map_err(|_| Fault::new("the answer of the plug is no JSON"))?;
        let generation = session.generation;
        self.session = Some(session);
        Ok((value, generation))
    }

    async fn shake_hands(&self) -> Result<Session, Fault> {
        let mut local = Seed::default();
        SystemRandom::new().fill(&mut local).map_err(|_| Fault::new("the system gives no random numbers"))?;
        let answer = self.post("/app/handshake1", local.to_vec(), None).await?;
        let (remote, proof) = read_proof(&answer.body).ok_or_else(|| Fault::new("this is no plug that speaks KLAP"))?;
        let login = self.logins.iter().find(|login| login.proof_of_plug(&local, &remote) == proof);
        let login = login.ok_or_else(|| Fault::new("the plug has another login: check `user` and `password`, capitals count"))?;
        let cookies: Vec<&str> = answer.headers.get_all(header::SET_COOKIE).iter().filter_map(|value| value.to_str().ok()).collect();
        let cookie = cookie(&cookies, COOKIE).map(|value| format!("{COOKIE}={value}"));
        self.post("/app/handshake2", login.proof_of_client(&local, &remote).to_vec(), cookie.as_deref()).await?;
        let lasts = cookie_seconds(&cookies);
        let cipher = Cipher::new(login, &local, &remote);
        Ok(Session { cipher, generation: login.generation, cookie, ends: Instant::now() + lasts })
    }

    async fn post(&self, path: &str, body: Vec<u8>, cookie: Option<&str>) -> Result<outbound::Response, Fault> {
        let request = || {
            let request = Request::new(outbound::Method::POST, &self.base.join(path))?.timeout(EXCHANGE_TIMEOUT);
            let request = request.max_body(MAX_ANSWER).max_redirects(0).body(body);
            cookie.map_or(Ok(request.clone()), |cookie| request.header(header::COOKIE.as_str(), cookie))
        };
        let request = request().map_err(|error| reason(&error))?;
        let response = self.client.send(request).await.map_err(|error| reason(&error))?;
        if response.is_success() { Ok(response) } else { Err(failing_status(response.status)) }
    }
}

/// The seed and the proof of the plug.
fn read_proof(body: &[u8]) -> Option<(Seed, Proof)> {
    let (remote, proof) = body.split_first_chunk()?;
    Some((*remote, proof.try_into().ok()?))
}

/// A member of what the plug hands out, which may stand in one line or several.
fn cookie<'l>(lines: &[&'l str], name: &str) -> Option<&'l str> {
    let mut members = lines.iter().flat_map(|line| line.split(';')).filter_map(|member| member.trim().split_once('='));
    members.find(|(known, _)| *known == name).map(|(_, value)| value).filter(|value| value.len() <= MAX_COOKIE)
}

/// How long a session is used: a little shorter than the plug says, because its clock may go faster.
fn cookie_seconds(lines: &[&str]) -> Duration {
    let seconds = cookie(lines, LASTS).and_then(|seconds| seconds.parse().ok()).unwrap_or(LONGEST_SESSION);
    Duration::from_secs(seconds.min(LONGEST_SESSION)).mul_f64(0.9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_plugs_hand_out_is_read_from_one_line_or_several() {
        for lines in [&["TP_SESSIONID=A1;TIMEOUT=100"][..], &["X=1; Path=/", "TP_SESSIONID=A1; HttpOnly", "TIMEOUT=100"]] {
            assert_eq!((cookie(lines, COOKIE), cookie_seconds(lines)), (Some("A1"), Duration::from_secs(90)));
        }
        let long = format!("TP_SESSIONID={}", "x".repeat(MAX_COOKIE + 1));
        assert_eq!(cookie(&[&long], COOKIE), None);
        assert_eq!(cookie_seconds(&["TIMEOUT=99999999999"]), Duration::from_secs(LONGEST_SESSION).mul_f64(0.9));
        assert_eq!(cookie_seconds(&["TIMEOUT=soon"]), cookie_seconds(&[]));
    }

    #[test]
    fn only_a_seed_and_a_proof_are_taken() {
        assert!(read_proof(&[7; 48]).is_some());
        assert!([0, 15, 16, 47, 49].iter().all(|&length| read_proof(&vec![7; length]).is_none()));
    }
}
