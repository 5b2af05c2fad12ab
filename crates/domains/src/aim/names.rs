//! Every name, label and label value of the AIM kinds and their children; nothing else makes them
//! up.

#[cfg(test)]
mod tests;

use windlass_engine::names::{MAX_LABEL, cased_label_value, hash};

/// Field managers; those of the templates are also the sources of their events.
pub(crate) const SERVICE_FIELD_MANAGER: &str = "aim-service-controller";
pub(crate) const NAMESPACE_TEMPLATE_FIELD_MANAGER: &str = "aim-namespace-template-controller";
pub(crate) const CLUSTER_TEMPLATE_FIELD_MANAGER: &str = "aim-cluster-template-controller";

/// Value of the `managed-by` label on all children, whichever controller made them.
pub(crate) const MANAGER: &str = "aim-controller";

/// Values of the `name` and `component` labels.
pub(crate) const DISCOVERY: &str = "aim-discovery";
pub(crate) const DISCOVERY_COMPONENT: &str = "discovery-job";
pub(crate) const RUNTIME: &str = "aim-runtime";
pub(crate) const RUNTIME_COMPONENT: &str = "serving-runtime";
pub(crate) const SERVICE: &str = "aim-service";
pub(crate) const SERVICE_COMPONENT: &str = "inference-service";

/// Names the template that a child was made from; goes through [`sanitize`].
pub(crate) const TEMPLATE_LABEL: &str = "aim.silogen.ai/template";
/// `true` on a template that was made from another one and a service's overrides.
pub(crate) const DERIVED_LABEL: &str = "aim.silogen.ai/derived-template";
pub(crate) const MODEL_ID_LABEL: &str = "aim.silogen.ai/model-id";
pub(crate) const IMAGE_LABEL: &str = "aim.silogen.ai/aim-image";
pub(crate) const METRIC_LABEL: &str = "aim.silogen.ai/template.metric";
pub(crate) const PRECISION_LABEL: &str = "aim.silogen.ai/template.precision";

/// On the pods of a Job; set by its controller since long before the prefixed form.
pub(crate) const JOB_NAME_LABEL: &str = "job-name";

const HASH_DIGITS: usize = 8;

/// What `discover-`, a dash and the hash leave of a name.
const MAX_JOB_STEM: usize = MAX_LABEL - "discover-".len() - 1 - HASH_DIGITS;

/// What `-ovr-` and the hash leave of a name.
const MAX_DERIVED_STEM: usize = MAX_LABEL - "-ovr-".len() - HASH_DIGITS;

/// A text as a label value; case is kept, and there always is a value.
pub(crate) fn sanitize(text: &str) -> String {
    cased_label_value(text).unwrap_or_else(|| "unknown".to_owned())
}

/// Tells the overrides of services apart. Existing templates carry it in their names, so the text
/// it is made of must stay as Go's JSON encoder would write it.
pub(crate) fn override_hash(
    metric: Option<&str>,
    precision: Option<&str>,
    gpu_selector: Option<(i32, &str)>,
) -> String {
    let text = |key: &str, value: &str| format!(r#""{key}":{}"#, go_string(value));
    let gpu =
        |(count, model)| format!(r#""gpuSelector":{{"count":{count},{}}}"#, text("model", model));
    let fields = [
        metric.map(|metric| text("metric", metric)),
        precision.map(|precision| text("precision", precision)),
        gpu_selector.map(gpu),
    ];
    let fields: Vec<String> = fields.into_iter().flatten().collect();
    hash(&format!("{{{}}}", fields.join(",")), HASH_DIGITS)
}

/// Name of the template made from `base` and the overrides behind the hash; empty without a base.
pub(crate) fn derived_template(base: &str, override_hash: &str) -> String {
    if base.is_empty() {
        return String::new();
    }
    format!("{}-ovr-{override_hash}", stem(base, MAX_DERIVED_STEM))
}

/// Whether other bases with the same overrides give the same name: of a long one only the beginning
/// fits.
pub(crate) fn is_shared_by_bases(base: &str) -> bool {
    base.len() > MAX_DERIVED_STEM
}

/// Name of the derived template where one of another base has that of [`derived_template`]. The hash
/// speaks for the whole of the base.
pub(crate) fn derived_template_beside(base: &str, override_hash: &str) -> String {
    derived_template(base, &hash(&format!("{base}\0{override_hash}"), HASH_DIGITS))
}

/// Name of the Job that asks an image what it holds.
///
/// Only the beginning of a long template name fits, so its hash speaks for the whole of it; for the
/// others the hash is the one that Jobs have always had.
pub(crate) fn discovery_job(template: &str, aim_image_name: &str, image: &str) -> String {
    let identity = if template.len() > MAX_JOB_STEM {
        format!("{template}\0{aim_image_name}\0{image}")
    } else {
        format!("{aim_image_name}{image}")
    };
    format!("discover-{}-{}", stem(template, MAX_JOB_STEM), hash(&identity, HASH_DIGITS))
}

/// Name of the Job where another has taken that of [`discovery_job`]: `kind` tells the two templates
/// apart that would have the same.
pub(crate) fn discovery_job_beside(
    kind: &str,
    template: &str,
    aim_image_name: &str,
    image: &str,
) -> String {
    let identity = format!("{kind}\0{template}\0{aim_image_name}\0{image}");
    format!("discover-{}-{}", stem(template, MAX_JOB_STEM), hash(&identity, HASH_DIGITS))
}

/// The beginning of a name; what is cut off must not leave a mark that no name may have there.
fn stem(name: &str, max: usize) -> &str {
    if name.len() <= max {
        return name;
    }
    let cut = &name[..name.floor_char_boundary(max)];
    match cut.trim_end_matches(['-', '.']) {
        "" => cut,
        kept => kept,
    }
}

/// A JSON string as Go writes it: safe inside HTML and JavaScript.
pub(crate) fn go_string(text: &str) -> String {
    serde_json::Value::from(text)
        .to_string()
        .replace('<', r"\u003c")
        .replace('>', r"\u003e")
        .replace('&', r"\u0026")
        .replace('\u{2028}', r"\u2028")
        .replace('\u{2029}', r"\u2029")
}
