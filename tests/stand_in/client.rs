//! Asks the API as a program in a pod does: by the file that `KUBECONFIG` names or, with `--account`, by
//! the token in that directory and the variables that every pod has.

use std::env;

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::{
    Api, Client, Config,
    api::PostParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;

use crate::{Outcome, arguments::Arguments};

/// Says who it is taken for, and what comes of each path.
pub(crate) async fn run(arguments: &Arguments) -> Outcome {
    let file = match arguments.get("account") {
        Some(dir) => account(dir)?,
        None => Kubeconfig::read_from(env::var("KUBECONFIG")?)?,
    };
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    let user = review.status.and_then(|status| status.user_info).unwrap_or_default();
    println!("{}", user.username.unwrap_or_default());
    for path in &arguments.others {
        let request = http::Request::get(path).body(Vec::new())?;
        match client.request_text(request).await {
            Ok(_) => println!("200 {path}"),
            Err(kube::Error::Api(status)) => println!("{} {path}", status.code),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn account(dir: &str) -> Result<Kubeconfig, Box<dyn std::error::Error + Send + Sync>> {
    let (host, port) = (env::var("KUBERNETES_SERVICE_HOST")?, env::var("KUBERNETES_SERVICE_PORT")?);
    let file = json!({
        "clusters": [{"name": "pod", "cluster": {
            "server": format!("https://{host}:{port}"),
            "certificate-authority": format!("{dir}/ca.crt"),
        }}],
        "users": [{"name": "pod", "user": {"tokenFile": format!("{dir}/token")}}],
        "contexts": [{"name": "pod", "context": {"cluster": "pod", "user": "pod"}}],
        "current-context": "pod",
    });
    Ok(serde_json::from_value(file)?)
}
