//! The Kitfile as people read it.

use serde::Serialize;
use serde_saphyr::FlowSeq;

use super::{Code, Dataset, Docs, Kitfile, Model, Package, Prompt};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Written<'a> {
    manifest_version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    package: Option<About<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a Model>,
    #[serde(skip_serializing_if = "<[Code]>::is_empty")]
    code: &'a [Code],
    #[serde(skip_serializing_if = "<[Dataset]>::is_empty")]
    datasets: &'a [Dataset],
    #[serde(skip_serializing_if = "<[Docs]>::is_empty")]
    docs: &'a [Docs],
    #[serde(skip_serializing_if = "<[Prompt]>::is_empty")]
    prompts: &'a [Prompt],
}

#[derive(Serialize)]
struct About<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    license: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    authors: Option<FlowSeq<&'a [String]>>,
}

impl<'a> From<&'a Kitfile> for Written<'a> {
    fn from(kitfile: &'a Kitfile) -> Self {
        let package = &kitfile.package;
        let authors = Some(package.authors.as_slice()).filter(|authors| !authors.is_empty());
        let about = About {
            name: &package.name,
            version: &package.version,
            description: &package.description,
            license: &package.license,
            authors: authors.map(FlowSeq),
        };
        Self {
            manifest_version: &kitfile.manifest_version,
            package: (*package != Package::default()).then_some(about),
            model: kitfile.model.as_ref(),
            code: &kitfile.code,
            datasets: &kitfile.datasets,
            docs: &kitfile.docs,
            prompts: &kitfile.prompts,
        }
    }
}
