//! Whether the machine is a real one, a virtual one or a container.

use runtime::command::Command;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Roots;

/// What systemd calls containers; anything else that it names is a virtual machine.
const CONTAINERS: &[&str] = &["openvz", "lxc", "lxc-libvirt", "systemd-nspawn", "docker", "podman", "rkt", "wsl", "proot", "pouch"];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Virtualization {
    /// `none`, `container`, `vm` or `unknown`.
    virt_type: &'static str,
    virt_identifier: String,
}

impl Virtualization {
    /// From the name that systemd gives it; empty for a real machine.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "" | "none" => Self { virt_type: "none", virt_identifier: "none".to_owned() },
            name if CONTAINERS.contains(&name) => Self { virt_type: "container", virt_identifier: name.to_owned() },
            name => Self { virt_type: "vm", virt_identifier: name.to_owned() },
        }
    }

    pub(crate) fn unknown() -> Self {
        Self { virt_type: "unknown", virt_identifier: "unknown".to_owned() }
    }

    pub(crate) fn is_container(&self) -> bool {
        self.virt_type == "container"
    }

    /// As systemd's own tool sees it.
    pub(crate) async fn detected() -> Self {
        // It says "none" for a real machine, and ends with a code other than 0.
        match Command::new("systemd-detect-virt").output().await {
            Ok(output) if !output.stdout.trim().is_empty() => Self::named(output.stdout.trim()),
            _ => Self::unknown(),
        }
    }

    /// From what the first process is; none when it does not look like that of a container.
    pub(crate) fn container(roots: &Roots) -> Option<Self> {
        let cgroup = roots.text("/proc/1/cgroup").unwrap_or_default();
        if let Some(name) = ["docker", "lxc"].into_iter().find(|name| cgroup.contains(name)) {
            return Some(Self::named(name));
        }
        let sched = roots.text("/proc/1/sched")?;
        let first = sched.split_whitespace().next()?;
        let by_docker = || ["/.dockerenv", "/.dockerinit"].iter().any(|file| roots.path(file).exists());
        (!["init", "systemd"].contains(&first)).then(|| Self::named(if by_docker() { "docker" } else { "lxc" }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roots::tests::tree;

    #[test]
    fn containers_are_known_by_the_first_process() {
        let found = |files: &[(&str, &str)]| Virtualization::container(&tree(files).1).map(|found| found.virt_identifier);
        assert_eq!(found(&[("/proc/1/cgroup", "0::/docker/1234\n")]).as_deref(), Some("docker"));
        assert_eq!(found(&[("/proc/1/sched", "bash (1, #threads: 1)\n")]).as_deref(), Some("lxc"));
        assert_eq!(found(&[("/proc/1/sched", "bash (1, #threads: 1)\n"), ("/.dockerenv", "")]).as_deref(), Some("docker"));
        assert_eq!(found(&[("/proc/1/cgroup", "0::/init.scope\n"), ("/proc/1/sched", "systemd (1, #threads: 1)\n")]), None);
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn names_fall_into_kinds() {
        let kind = |name| Virtualization::named(name).virt_type;
        assert_eq!((kind(""), kind("none"), kind("podman"), kind("kvm")), ("none", "none", "container", "vm"));
    }
}
