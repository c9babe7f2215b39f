//! Being found in the local network, over the loopback interface alone.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use tokio::net::UdpSocket;

use crate::harness::{TestServer, within};

const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 255, 250), 1900);

const SECTION: &str = "[zeroconf]\nenable_ssdp: yes\ninterfaces: 127.0.0.1";

/// A socket that hears what is said to everybody on loopback, and speaks there.
fn neighbour() -> UdpSocket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.set_reuse_port(true).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket.bind(&SocketAddrV4::new(*GROUP.ip(), GROUP.port()).into()).unwrap();
    socket.join_multicast_v4(GROUP.ip(), &Ipv4Addr::LOCALHOST).unwrap();
    UdpSocket::from_std(socket.into()).unwrap()
}

fn asker() -> UdpSocket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket.bind(&SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
    UdpSocket::from_std(socket.into()).unwrap()
}

/// Waits for a message in which all of this stands; others on this machine may speak, too.
async fn hear(socket: &UdpSocket, words: &[&str]) -> String {
    let mut datagram = [0; 2048];
    let hearing = async {
        loop {
            let size = socket.recv(&mut datagram).await.unwrap();
            let text = String::from_utf8_lossy(&datagram[..size]).into_owned();
            if words.iter().all(|word| text.contains(word)) {
                return text;
            }
        }
    };
    within(&format!("a message with {words:?}"), hearing).await
}

#[tokio::test]
async fn questions_are_answered_and_lead_to_a_description() {
    let neighbour = neighbour();
    let mut server = TestServer::builder().without_printer().authorization("").config(SECTION).start().await;
    let location = format!("LOCATION: http://127.0.0.1:{}/server/zeroconf/ssdp", server.port);
    for _ in ["at once", "again, should one have been lost"] {
        hear(&neighbour, &["ssdp:alive", "NT: upnp:rootdevice\r\n", &location]).await;
    }

    let asker = asker();
    let question = "M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: \"ssdp:discover\"\r\nMX: 1\r\nST: upnp:rootdevice\r\n\r\n";
    asker.send_to(question.as_bytes(), GROUP).await.unwrap();
    let answer = hear(&asker, &["HTTP/1.1 200 OK", "ST: upnp:rootdevice", &location]).await;
    let id = answer.split("USN: ").nth(1).unwrap().split("::").next().unwrap().to_owned();

    let description = server.http().get("/server/zeroconf/ssdp").await;
    assert_eq!(description.status, 200, "for strangers, too");
    assert!(description.header("content-type").unwrap().starts_with("text/xml"));
    assert!(description.text().contains(&format!("<UDN>{id}</UDN>")), "{}", description.text());

    server.stop().await;
    hear(&neighbour, &["ssdp:byebye", &id]).await;
}

#[tokio::test]
async fn a_flood_of_questions_is_answered_within_limits() {
    let server = TestServer::builder().without_printer().config(SECTION).start().await;
    let asker = asker();
    let question = "M-SEARCH * HTTP/1.1\r\nMAN: \"ssdp:discover\"\r\nST: ssdp:all\r\n\r\n";
    for _ in 0..500 {
        asker.send_to(question.as_bytes(), GROUP).await.unwrap();
    }
    let location = format!(":{}/server/zeroconf/ssdp", server.port);
    let mut answers = 0;
    let mut datagram = [0; 2048];
    // Silence for a whole second ends it: a new second brings new answers only to new questions.
    while let Ok(size) = tokio::time::timeout(Duration::from_secs(1), asker.recv(&mut datagram)).await {
        answers += usize::from(String::from_utf8_lossy(&datagram[..size.unwrap()]).contains(&location));
    }
    assert!((3..=90).contains(&answers), "{answers} answers to 500 questions");
}

#[tokio::test]
async fn nothing_is_told_without_the_section() {
    let server = TestServer::without_printer().await;
    assert_eq!(server.http().get("/server/zeroconf/ssdp").await.error().0, 404);
    let components = server.info().await["components"].to_string();
    assert!(!components.contains("zeroconf"), "{components}");
}
