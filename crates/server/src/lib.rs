//! Server administration: info, configuration, restart, logs, connection identity, database namespaces.
