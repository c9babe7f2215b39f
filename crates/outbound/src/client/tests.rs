use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers each request by its target: `answer` gives the bytes; `None` keeps the connection open and silent.
async fn server(answer: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut head = vec![0; 16 * 1024];
                let mut length = 0;
                while !head[..length].windows(4).any(|end| end == b"\r\n\r\n") {
                    match socket.read(&mut head[length..]).await {
                        Ok(read) if read > 0 => length += read,
                        _ => return,
                    }
                }
                let head = String::from_utf8_lossy(&head[..length]).into_owned();
                match answer(&head) {
                    Some(bytes) => {
                        let _ = socket.write_all(&bytes).await;
                    }
                    None => std::future::pending().await,
                }
            });
        }
    });
    port
}

fn page(status: &str, headers: &str, body: &str) -> Option<Vec<u8>> {
    Some(format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()).into_bytes())
}

fn get(port: u16, target: &str) -> Request {
    Request::get(&format!("http://127.0.0.1:{port}{target}")).unwrap().timeout(Duration::from_secs(5))
}

#[tokio::test]
async fn an_answer_comes_whole_with_its_validators_and_304_has_no_body() {
    let port = server(|head| match head.to_ascii_lowercase().contains("if-none-match: \"7\"") {
        true => Some(b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n".to_vec()),
        false => page("200 OK", "ETag: \"7\"\r\nLast-Modified: Sat, 21 Nov 2026 10:00:00 GMT\r\n", "hello"),
    })
    .await;
    let client = Client::new("Test/1");
    let answer = client.send(get(port, "/")).await.unwrap();
    assert_eq!((answer.status, &answer.body[..]), (200, &b"hello"[..]));
    let known = answer.validators();
    assert_eq!(known.etag.as_deref(), Some("\"7\""));
    let again = client.send(get(port, "/").unless_unchanged(&known)).await.unwrap();
    assert_eq!((again.status, again.body.len()), (304, 0));
}

#[tokio::test]
async fn redirects_are_followed_but_not_in_circles() {
    let port = server(|head| match head.split(' ').nth(1).unwrap() {
        "/a" => page("302 Found", "Location: /b\r\n", ""),
        "/b" => page("307 Temporary Redirect", "Location: ./c?x=1\r\n", ""),
        "/c?x=1" => page("200 OK", "", "there"),
        "/round" => page("301 Moved", "Location: /round/2\r\n", ""),
        "/round/2" => page("301 Moved", "Location: /round\r\n", ""),
        other => page("302 Found", &format!("Location: {other}x\r\n"), ""),
    })
    .await;
    let client = Client::new("Test/1");
    assert_eq!(&client.send(get(port, "/a")).await.unwrap().body[..], b"there");
    assert_eq!(client.send(get(port, "/round")).await.unwrap_err(), OutboundError::Redirect(redirect::RedirectError::Loop));
    let endless = client.send(get(port, "/x").max_redirects(3)).await.unwrap_err();
    assert_eq!(endless, OutboundError::Redirect(redirect::RedirectError::TooMany(3)));
}

#[tokio::test]
async fn credentials_do_not_travel_to_another_server() {
    let other =
        server(|head| page("200 OK", "", if head.to_ascii_lowercase().contains("authorization") { "leaked" } else { "clean" })).await;
    let port = server(move |_| page("302 Found", &format!("Location: http://127.0.0.1:{other}/\r\n"), "")).await;
    let request = get(port, "/").header("Authorization", "Bearer secret").unwrap();
    assert_eq!(&Client::new("Test/1").send(request).await.unwrap().body[..], b"clean");
}

#[tokio::test]
async fn sizes_are_limited_whether_announced_or_not() {
    let port = server(|head| match head.split(' ').nth(1).unwrap() {
        "/announced" => Some(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n".to_vec()),
        _ => Some([&b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"[..], &[b'x'; 100_000]].concat()),
    })
    .await;
    let client = Client::new("Test/1");
    for target in ["/announced", "/endless"] {
        assert_eq!(client.send(get(port, target).max_body(50_000)).await.unwrap_err(), OutboundError::TooLarge(50_000), "{target}");
    }
    assert_eq!(client.send(get(port, "/endless").max_body(100_000)).await.unwrap().body.len(), 100_000);
}

#[tokio::test]
async fn silence_and_rubbish_are_errors() {
    let port = server(|head| if head.starts_with("GET /silent") { None } else { Some(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec()) }).await;
    let client = Client::new("Test/1");
    let short = Duration::from_millis(200);
    assert_eq!(client.send(get(port, "/silent").timeout(short)).await.unwrap_err(), OutboundError::Timeout(short));
    assert!(matches!(client.send(get(port, "/rubbish")).await.unwrap_err(), OutboundError::Broken(_)));
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let refused = client.send(get(free, "/")).await.unwrap_err();
    assert!(matches!(refused, OutboundError::Connect(_)) && refused.is_passing(), "{refused}");
}

#[tokio::test]
async fn our_own_address_is_refused_where_asked_also_behind_a_redirect() {
    let own = server(|_| page("200 OK", "", "ourselves")).await;
    let port = server(move |_| page("302 Found", &format!("Location: http://localhost:{own}/\r\n"), "")).await;
    let client = Client::new("Test/1");
    client.set_own_ports(vec![own]);
    for (port, target) in [(own, "/"), (port, "/")] {
        let refused = client.send(get(port, target).reach(Reach::NotOurselves)).await;
        assert_eq!(refused.unwrap_err(), OutboundError::Ourselves);
    }
    assert_eq!(client.send(get(own, "/")).await.unwrap().status, 200);
}

#[tokio::test]
async fn no_more_than_a_few_exchanges_are_under_way() {
    let port = server(|head| if head.starts_with("GET /silent") { None } else { page("200 OK", "", "") }).await;
    let client = Client::new("Test/1");
    let silent: Vec<_> = (0..MAX_EXCHANGES)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.send(get(port, "/silent").timeout(Duration::from_secs(60))).await })
        })
        .collect();
    let taken = async {
        while client.inner.turns.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), taken).await.unwrap();
    let short = Duration::from_millis(100);
    assert_eq!(client.send(get(port, "/").timeout(short)).await.unwrap_err(), OutboundError::Timeout(short));
    silent.iter().for_each(tokio::task::JoinHandle::abort);
    assert_eq!(client.send(get(port, "/")).await.unwrap().status, 200);
}
