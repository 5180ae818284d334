//! Who may ask: a request must name this server as its host, must not come from a page of another origin, and must carry
//! the token of this run as the first part of its path. Also the headers that keep a page to itself.

use crate::error::Refusal;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use std::sync::Arc;

/// What only this run knows, and where it listens.
#[derive(Debug)]
pub(crate) struct Guard {
    token: String,
    hosts: [String; 3],
}

impl Guard {
    /// A fresh token of 128 bits.
    pub fn new(port: u16) -> Result<Self, getrandom::Error> {
        let mut bytes = [0u8; 16];
        getrandom::fill(&mut bytes)?;
        let token = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}"));
        Ok(Self { token, hosts })
    }

    /// The first part of every path.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Why a request must not be answered.
    fn refuses(&self, headers: &HeaderMap, path: &str) -> Option<&'static str> {
        // A name that somebody else's DNS points here would make our pages theirs.
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        if !host.is_some_and(|host| self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host))) {
            return Some("the request names another host");
        }
        if let Some(origin) = headers.get(header::ORIGIN) {
            let own = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
            if !own.is_some_and(|own| self.hosts.iter().any(|host| host.eq_ignore_ascii_case(own))) {
                return Some("the request comes from another page");
            }
        }
        let given = path.strip_prefix('/').unwrap_or(path).split('/').next().unwrap_or_default();
        if !same(given.as_bytes(), self.token.as_bytes()) {
            return Some("the address lacks the token: open the one that `understudy studio` printed");
        }
        None
    }
}

/// Compares in a time that does not depend on where two texts differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (x, y)| differ | (x ^ y)) == 0
}

/// The page runs its own scripts and WebAssembly, and talks to its own server.
const POLICY: &str = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; \
img-src 'self' blob: data:; media-src 'self' blob:; connect-src 'self'; frame-src 'self'; object-src 'none'; base-uri 'none'; \
form-action 'none'; frame-ancestors 'self'";

/// Answers refused requests, and adds headers to every answer.
pub(crate) async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let refused = guard.refuses(request.headers(), request.uri().path());
    let mut response = match refused {
        Some(why) => Refusal::new(StatusCode::FORBIDDEN, why).into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // The address holds the token: no other server may hear of it.
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &str, origin: Option<&str>) -> HeaderMap {
        let mut map = HeaderMap::new();
        map.insert(header::HOST, host.parse().expect("a value"));
        if let Some(origin) = origin {
            map.insert(header::ORIGIN, origin.parse().expect("a value"));
        }
        map
    }

    #[test]
    fn only_our_own_page_with_the_token_is_answered() {
        let guard = Guard::new(8000).expect("the system has random bytes");
        let path = format!("/{}/api/project", guard.token());
        let own = headers("127.0.0.1:8000", Some("http://127.0.0.1:8000"));
        assert_eq!(guard.refuses(&own, &path), None);
        assert_eq!(guard.refuses(&headers("localhost:8000", None), &path), None);
        for bad in [
            headers("127.0.0.1:8001", None),
            headers("evil.example:8000", None),
            headers("127.0.0.1:8000", Some("http://evil.example")),
            headers("127.0.0.1:8000", Some("https://127.0.0.1:8000")),
            headers("127.0.0.1:8000", Some("null")),
            HeaderMap::new(),
        ] {
            assert!(guard.refuses(&bad, &path).is_some(), "{bad:?}");
        }
        for path in ["/", "/api/project", "//api", &path[..20], &format!("{path}x").replacen('/', "/x", 1)] {
            assert!(guard.refuses(&own, path).is_some(), "{path}");
        }
        assert_ne!(guard.token(), Guard::new(8000).expect("random bytes").token());
    }
}
