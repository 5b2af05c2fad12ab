//! Files from elsewhere: asked for again where that may help, and kept in parts until they are whole.

use std::path::PathBuf;

use http::{HeaderMap, HeaderValue, header};
use reqwest::{RequestBuilder, Response};
use tokio::time::sleep;

use crate::remote::retry;

mod part;

pub(crate) use part::{Hash, Part};

/// Nobody has answered, or only that it does not work now.
pub(crate) struct GaveUp {
    pub(crate) attempts: u32,
    pub(crate) told: String,
    pub(crate) source: Option<reqwest::Error>,
}

/// Something of ours that cannot be written or read.
pub(crate) struct Unkept {
    pub(crate) path: PathBuf,
    pub(crate) source: std::io::Error,
}

/// The first answer that would be the same the next time. It is asked for so often at most.
pub(crate) async fn ask(
    attempts: u32,
    request: impl Fn() -> RequestBuilder,
) -> Result<Response, GaveUp> {
    let mut failures = 0;
    loop {
        let (told, source, asked) = match request().send().await {
            Ok(response) if !retry::is_passing(response.status()) => return Ok(response),
            Ok(response) => {
                let header = response.headers().get(header::RETRY_AFTER);
                let asked = retry::asked(header.and_then(|value| value.to_str().ok()));
                (format!(": {}", response.status()), None, asked)
            }
            // Addresses may have secrets in their query.
            Err(error) => (String::new(), Some(error.without_url()), None),
        };
        failures += 1;
        match retry::wait(failures, asked, 0).filter(|_| failures < attempts) {
            Some(wait) => sleep(wait).await,
            None => return Err(GaveUp { attempts: failures, told, source }),
        }
    }
}

/// From this byte on.
pub(crate) fn range(from: u64) -> HeaderMap {
    let range = HeaderValue::from_str(&format!("bytes={from}-")).ok().filter(|_| from > 0);
    range.map(|range| (header::RANGE, range)).into_iter().collect()
}
