//! Who may call what: trusted networks, proxies, cross-origin rules.
