//! `[machine]`.

use template::Rendered;

config::choices! {
    /// Who manages the services of the machine.
    pub enum ProviderKind {
        /// systemd and logind over the system bus.
        SystemdDbus = "systemd_dbus",
        /// The program `systemctl`, under sudo when this is not root.
        SystemdCli = "systemd_cli",
        /// The program `supervisorctl`, as in containers.
        SupervisordCli = "supervisord_cli",
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
        /// Who manages the services: `systemd_dbus`, `systemd_cli`, `supervisord_cli`, or `none`.
        provider: ProviderKind = ProviderKind::SystemdDbus,
        /// What shutting down does: `poweroff` or `halt`.
        shutdown_action: ShutdownAction = ShutdownAction::Poweroff,
        /// Password for sudo, from the start on; best a template: `{secrets.sudo.password}`. Unset: sudo works without one, or people are asked for it.
        sudo_password: Option<Rendered> = None,
        /// Configuration file of supervisord that `supervisorctl` is told. Unset: it finds it itself.
        supervisord_config_path: String = "",
        /// Accepted and without effect: this server never rewrites the unit that starts it.
        validate_service: bool = true,
        /// Accepted and without effect, likewise.
        validate_config: bool = true,
        /// Accepted and without effect, likewise.
        force_validation: bool = false,
    }
}
