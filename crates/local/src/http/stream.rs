//! Watches as lines of JSON.

use axum::{
    body::{Body, Bytes},
    response::Response,
};
use futures::stream;
use http::StatusCode;
use serde_json::{Value, json};

use super::{
    answer::{self, Shape},
    negotiate::Form,
    status,
};
use crate::{
    registry::{Event, Served, Watch},
    store::Object,
};

struct Lines<G> {
    watch: Watch,
    shape: Shape,
    /// The columns of a table are told once.
    told_columns: bool,
    /// Held as long as the watch lasts.
    _guard: G,
}

/// Each event leaves at once. Dropping the answer ends the watch.
pub(super) fn watch<G: Send + 'static>(watch: Watch, shape: Shape, guard: G) -> Response {
    let lines = Lines { watch, shape, told_columns: false, _guard: guard };
    let stream = stream::unfold(lines, |mut lines| async move {
        let event = lines.watch.next().await?;
        let line = lines.line(event);
        Some((Ok::<_, std::convert::Infallible>(line), lines))
    });
    answer::json_bytes(StatusCode::OK, Body::from_stream(stream))
}

impl<G> Lines<G> {
    fn line(&mut self, event: Event) -> Bytes {
        let mut out = Vec::with_capacity(512);
        let mut start = |kind: &str| {
            out.extend_from_slice(br#"{"type":""#);
            out.extend_from_slice(kind.as_bytes());
            out.extend_from_slice(br#"","object":"#);
        };
        match event {
            Event::Added(object) => {
                start("ADDED");
                self.object(&object, object.version(), &mut out);
            }
            Event::Modified(object) => {
                start("MODIFIED");
                self.object(&object, object.version(), &mut out);
            }
            Event::Deleted(object, version) => {
                start("DELETED");
                self.object(&object, version, &mut out);
            }
            Event::Bookmark { version, initial_end } => {
                start("BOOKMARK");
                let bookmark = self.bookmark(version, initial_end);
                out.extend_from_slice(bookmark.to_string().as_bytes());
            }
            Event::Error(error) => {
                start("ERROR");
                out.extend_from_slice(status::status(&error).to_string().as_bytes());
            }
        }
        out.extend_from_slice(b"}\n");
        out.into()
    }

    fn object(&mut self, object: &Object, version: u64, out: &mut Vec<u8>) {
        let served = self.watch.served().clone();
        if self.shape.form == Form::Whole {
            return answer::print(&served, object, version, true, out);
        }
        let mut value = served.show(object);
        value["metadata"]["resourceVersion"] = version.to_string().into();
        let mut shaped = answer::shaped(&served, &value, self.shape);
        if self.shape.form == Form::Table {
            self.tell_columns_once(&mut shaped);
        }
        out.extend_from_slice(shaped.to_string().as_bytes());
    }

    fn tell_columns_once(&mut self, table: &mut Value) {
        if self.told_columns {
            table["columnDefinitions"] = Value::Null;
        }
        self.told_columns = true;
    }

    fn bookmark(&self, version: u64, initial_end: bool) -> Value {
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let served: &Served = self.watch.served();
        let (kind, api_version) = match self.shape.form {
            Form::Whole => (&*served.resource.kind, &*served.api_version),
            Form::Metadata => ("PartialObjectMetadata", "meta.k8s.io/v1"),
            Form::Table => ("Table", "meta.k8s.io/v1"),
        };
        let mut bookmark = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
        if self.shape.form == Form::Table {
            bookmark["columnDefinitions"] = Value::Null;
            bookmark["rows"] = json!([]);
        }
        bookmark
    }
}
