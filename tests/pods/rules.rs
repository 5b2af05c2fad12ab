//! Which programs the images of the tests stand for.

/// As a user would write them for programs of their own.
pub(crate) const RULES: &str = r#"
[[image]]
match = "ghcr.io/kitops-ml/kitops:*"
command = ["/bin/sh"]
argv = ["/bin/bash"] # the shell of the image knows `pipefail`, others may not
env = { PATH = "{bin}:/usr/bin:/bin" }

[[image]]
match = "ghcr.io/llm-d/llm-d-inference-scheduler:*"
argv = ["{bin}/stand-in", "picker", "--host", "{podIP}"]

[[image]]
match = "ghcr.io/llm-d/llm-d-routing-sidecar:*"
argv = ["{bin}/stand-in", "sidecar", "--host", "{podIP}"]

[[image]]
match = "local/server:*"
argv = ["{bin}/stand-in", "server", "--host", "{podIP}"]

[[image]]
match = "local/client:*"
argv = ["{bin}/stand-in", "client", "--host", "{podIP}"]

[[image]]
match = "local/missing:*"
argv = ["{bin}/no-such-program"]

[[image]]
match = "local/shell:*"
argv = ["/bin/bash", "-c"]

[[image]]
match = "*"
command = ["vllm", "serve"]
argv = ["{bin}/stand-in", "server", "--host", "{podIP}"]

[[image]]
match = "*zerfoo:*"
argv = ["{bin}/stand-in", "server", "--host", "{podIP}"]

[[image]]
match = "ghcr.io/windlass/aim:*"
argv = ["{bin}/stand-in", "server", "--host", "{podIP}"]

[[image]]
match = "registry.example.com/aim/*"
argv = ["{bin}/stand-in", "server", "--host", "{podIP}"]
"#;
