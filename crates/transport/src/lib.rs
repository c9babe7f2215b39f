//! HTTP, websocket, bridge, unix socket: connection loops and codecs, no business rule.
