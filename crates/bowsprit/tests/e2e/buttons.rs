//! Buttons within the whole server. Machines that run tests have no lines; what buttons do is tested with simulated ones in their crate.

use crate::harness::{TestServer, wait};

#[tokio::test]
async fn a_button_without_its_chip_is_shown_and_harms_nothing() {
    let section = "[button stop]\npin: ^!gpiochip250/gpio4\non_press: {send_notification()}\n[button idle]\npin: gpio5\n";
    let server = TestServer::builder().config(section).start().await;
    let look = || async { server.http().get("/server/info").await.result() };
    let info = wait::until("the warning", look, |info| info["warnings"].to_string().contains("[button stop]")).await;
    let warnings = info["warnings"].to_string();
    assert!(warnings.contains("[button stop] The line cannot be used: gpiochip250/gpio4: "), "{warnings}");
    assert!(warnings.contains("[button idle] on_press: expected a template here or in `on_release`"), "{warnings}");
    assert!(
        info["components"].as_array().unwrap().iter().any(|name| name == "button") && info["failed_components"] == serde_json::json!([])
    );
    let config = server.http().get("/server/config").await.result();
    assert_eq!(config["config"]["button stop"]["pin"], "^!gpiochip250/gpio4");
}
