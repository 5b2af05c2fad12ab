//! A single file at an address.

use windlass_kit::{
    Digest,
    classify::Listed,
    context::{Context, Links},
    web::{Address, Web},
};

use super::{
    super::{login::Secret, packing::Files, session::Session},
    Flags, Packed, Place, finish, given, kitfile, target, tell,
};

pub(super) async fn run(session: &Session, flags: &Flags, address: Address) -> anyhow::Result<()> {
    let file = address.name().to_owned();
    let name = name(&file).to_owned();
    let names = target(session, flags, &name)?;
    // Only one that was given for it: others are for the hub alone.
    let token = flags.token.as_ref().map(|Secret(token)| token.clone());
    let token = token.filter(|token| !token.is_empty());
    let web = Web::new(address.clone(), token, &flags.network.of_source())?;
    // A single file is what its name says, however large it is.
    let mut listed = [Listed { path: file.clone(), size: 0 }];
    let kitfile = kitfile(flags, &name, &listed, given(session, flags)?.as_ref())?;
    if flags.dry_run {
        listed[0].size = web.size().await?.unwrap_or(0);
        return tell(session, &kitfile, &listed);
    }
    session.out.info(format!("Importing {address}"));
    let place = Place::new(session, &name, Digest::of(address.as_str().as_bytes()).hex())?;
    let sha256 = flags.sha256.as_deref();
    let got = web.download(&place.files(), sha256, &session.out.progress).await?;
    session.out.progress.finish(&file);
    session.out.end();
    session.out.info(format!("Its SHA-256 is {}", got.sha256));
    let context = Context::read(&place.files(), Links::Skip)?.with_plain_modes();
    finish(session, flags, &kitfile, &context, names, Packed::all(Files::Ours)).await?;
    place.clear(&session.out);
    Ok(())
}

/// Without its ending.
fn name(file: &str) -> &str {
    let name = file.rsplit_once('.').map_or(file, |(name, _)| name);
    let name = name.strip_suffix(".tar").unwrap_or(name);
    if name.is_empty() { file } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gives_its_name_without_the_ending() {
        for (file, want) in [
            ("Llama-3.2-Q4.gguf", "Llama-3.2-Q4"),
            ("data.tar.gz", "data"),
            ("weights", "weights"),
            (".gguf", ".gguf"),
        ] {
            assert_eq!(name(file), want);
        }
    }
}
