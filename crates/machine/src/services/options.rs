//! `[machine]`.

config::choices! {
    /// Who manages the services of the machine.
    pub enum ProviderKind {
        /// systemd and logind over the system bus.
        SystemdDbus = "systemd_dbus",
        /// The program `systemctl`, under sudo when this is not root.
        SystemdCli = "systemd_cli",
        /// Nobody: services and power are left alone.
        None = "none",
    }
}

config::choices! {
    /// What "shut down" does.
    pub enum ShutdownAction {
        /// Switches the power off.
        Poweroff = "poweroff",
        /// Stops the system and leaves the power on.
        Halt = "halt",
    }
}

config::options! {
    /// The host machine: its services and its power.
    pub struct MachineOptions: "machine" {
        /// Who manages the services: `systemd_dbus`, `systemd_cli`, or `none`.
        provider: ProviderKind = ProviderKind::SystemdDbus,
        /// What shutting down does: `poweroff` or `halt`.
        shutdown_action: ShutdownAction = ShutdownAction::Poweroff,
    }
}
