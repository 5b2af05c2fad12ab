//! The steps of a run, for images that bring `kit` and a shell.

/// Everything large stays on the workspace: the tool's store and its scratch space too, which would
/// otherwise fill the node's disk. What is packed has a folder of its own, so that the store is not
/// packed with it.
pub(super) const SCRIPT: &str = r#"set -euo pipefail
export KITOPS_HOME=/workspace/.kitops TMPDIR=/workspace/.tmp
rm -rf /workspace/model
mkdir -p "$KITOPS_HOME" "$TMPDIR" /workspace/model
cd /workspace

if [ -n "${OCI_USER:-}" ]; then
  export DOCKER_CONFIG=/workspace/.docker
  mkdir -p "$DOCKER_CONFIG"
  printf '%s' "$OCI_PASS" | kit login "${OCI_TARGET%%/*}" ${PLAIN_HTTP:+--plain-http} \
    --username "$OCI_USER" --password-stdin
fi

kit import "$HF_REPO" ${HF_REVISION:+--ref "$HF_REVISION"} ${HF_TOKEN:+--token "$HF_TOKEN"} \
  --tag model:latest

if [ "$FORMAT" = ModelPack ]; then
  kit unpack -o model:latest -d /workspace/model
  kit pack /workspace/model --use-model-pack -t "$OCI_TARGET"
else
  kit tag model:latest "$OCI_TARGET"
fi

kit push ${PLAIN_HTTP:+--plain-http} "$OCI_TARGET" 2>&1 | tee "$TMPDIR/push.log" >&2

# A push that tells no digest has still succeeded.
digest=$(grep -oE 'sha256:[a-f0-9]{64}' "$TMPDIR/push.log" | tail -n 1 || true)
printf '%s' "$digest" > /dev/termination-log
"#;
