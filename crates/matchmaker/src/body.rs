//! The body of a request, with a limit.

use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use hyper::body::Body as _;
use std::future::poll_fn;
use std::pin::Pin;

/// Most bytes of a body: a report with 1024 arrivals has 25,000.
const BODY_MAX: usize = 32_768;

/// The bytes in one piece. Kept as they come, chunks of a byte would take many times that.
pub(crate) struct Body(pub(crate) Vec<u8>);

impl<S: Sync> FromRequest<S> for Body {
    type Rejection = StatusCode;

    async fn from_request(request: Request, _: &S) -> Result<Self, StatusCode> {
        let (mut body, mut bytes) = (request.into_body(), Vec::new());
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let Ok(data) = frame.map_err(|_| StatusCode::BAD_REQUEST)?.into_data() else { continue };
            if data.len() > BODY_MAX - bytes.len() {
                return Err(StatusCode::PAYLOAD_TOO_LARGE);
            }
            bytes.extend_from_slice(&data);
        }
        Ok(Self(bytes))
    }
}
