//! Writes what the gateway says of routes, gateways, classes and pools.
