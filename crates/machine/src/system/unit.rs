//! The service that a process belongs to (pure).

/// Name of the service in the text of `/proc/PID/cgroup`, without its ending: the innermost one.
pub(crate) fn of_cgroup(text: &str) -> Option<&str> {
    let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    paths.flat_map(|path| path.rsplit('/')).find_map(|part| part.strip_suffix(".service")).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_service_counts() {
        assert_eq!(of_cgroup("0::/system.slice/moonraker-2.service\n"), Some("moonraker-2"));
        assert_eq!(of_cgroup("12:cpu:/\n1:name=systemd:/user.slice/user@1000.service/app.slice/bowsprit.service/x\n"), Some("bowsprit"));
        assert_eq!((of_cgroup("0::/user.slice/session-1.scope"), of_cgroup(""), of_cgroup("0::/.service")), (None, None, None));
    }
}
