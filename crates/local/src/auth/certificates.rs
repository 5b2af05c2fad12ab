//! The certificate authority of this machine, and the certificate that the API shows.

use std::{fmt, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{Timestamp, ToSpan, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};

use super::files;

/// What clients call the API.
const NAMES: &[&str] = &[
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "127.0.0.1",
    "::1",
];
const AUTHORITY: &str = "windlass-local";
const YEARS: i16 = 10;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot keep the certificate authority")]
    Files(#[source] files::Error),
    #[error("cannot make a certificate")]
    Make(#[source] rcgen::Error),
    #[error("the file of the certificate authority's key or certificate is damaged")]
    Damaged,
}

/// What a TLS listener needs, and what its clients do.
pub struct Certificates {
    /// The authority that clients trust, in PEM.
    pub authority: String,
    /// For the listener, in DER; the authority's own follows it.
    pub chain: Vec<Vec<u8>>,
    /// Of the listener, PKCS #8 in DER.
    pub key: Vec<u8>,
}

/// Keys have no place in a log.
impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl Certificates {
    /// Reads the authority from the directory, or makes it. The listener's certificate is made anew at
    /// every start, holds for a year and is never stored.
    pub fn load_or_create(dir: &Path, now: Timestamp) -> Result<Certificates, Error> {
        let key = files::keep(&dir.join("ca.key"), || -> Result<_, Error> {
            let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(Error::Make)?;
            Ok(pem("PRIVATE KEY", &key.serialize_der()).into_bytes())
        })?;
        let key = unpem(&key).ok_or(Error::Damaged)?;
        let key = KeyPair::try_from(key.as_slice()).map_err(Error::Make)?;
        let params = authority(now)?;
        let authority = files::keep(&dir.join("ca.crt"), || -> Result<_, Error> {
            let certificate = params.self_signed(&key).map_err(Error::Make)?;
            Ok(pem("CERTIFICATE", certificate.der()).into_bytes())
        })?;
        let authority_der = unpem(&authority).ok_or(Error::Damaged)?;
        let authority = String::from_utf8(authority).map_err(|_| Error::Damaged)?;
        // What signs is told apart by its name and key alone, so the parameters need not be read back.
        let issuer = Issuer::new(params, key);
        let leaf_key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(Error::Make)?;
        let leaf = leaf(now)?.signed_by(&leaf_key, &issuer).map_err(Error::Make)?;
        Ok(Certificates {
            authority,
            chain: vec![leaf.der().to_vec(), authority_der],
            key: leaf_key.serialize_der(),
        })
    }
}

impl From<files::Error> for Error {
    fn from(error: files::Error) -> Error {
        Error::Files(error)
    }
}

fn authority(now: Timestamp) -> Result<CertificateParams, Error> {
    let mut params = params(&[], AUTHORITY, now, YEARS)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

fn leaf(now: Timestamp) -> Result<CertificateParams, Error> {
    let mut params = params(NAMES, "kube-apiserver", now, 1)?;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

fn params(
    names: &[&str],
    common_name: &str,
    now: Timestamp,
    years: i16,
) -> Result<CertificateParams, Error> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).map_err(Error::Make)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    let today = now.to_zoned(TimeZone::UTC).date();
    // From the day before, as clocks of guests may lag.
    let from = today.checked_sub(1.day()).unwrap_or(today);
    let until = today.checked_add(years.years()).unwrap_or(today);
    let day = |date: jiff::civil::Date| {
        rcgen::date_time_ymd(date.year().into(), date.month() as u8, date.day() as u8)
    };
    params.not_before = day(from);
    params.not_after = day(until);
    Ok(params)
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned());
    let lines: Vec<String> = lines.collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn unpem(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let lines = text.lines().filter(|line| !line.starts_with("-----"));
    STANDARD.decode(lines.collect::<String>()).ok()
}
