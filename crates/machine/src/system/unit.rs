//! The service that a process belongs to.

use crate::Roots;

/// Name of the service of a process (`self` for this one), without its ending.
pub(crate) fn of_process(roots: &Roots, process: &str) -> Option<String> {
    of_cgroup(&roots.text(&format!("/proc/{process}/cgroup"))?).map(str::to_owned)
}

/// Name of the service in the text of `/proc/PID/cgroup`, without its ending; none for processes of a login.
fn of_cgroup(text: &str) -> Option<&str> {
    let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let mut names = paths.filter_map(|path| path.rsplit('/').next()?.strip_suffix(".service"));
    // The manager of a user's services is not one of them.
    names.find(|name| !name.is_empty() && !name.starts_with("user@"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_service_counts() {
        assert_eq!(of_cgroup("0::/system.slice/moonraker-2.service\n"), Some("moonraker-2"));
        assert_eq!(of_cgroup("12:cpu:/\n1:name=systemd:/user.slice/user@1000.service/app.slice/bowsprit.service\n"), Some("bowsprit"));
        assert_eq!(
            (of_cgroup("0::/user.slice/user@1000.service/session-1.scope"), of_cgroup(""), of_cgroup("0::/user@1.service")),
            (None, None, None)
        );
    }
}
