//! The golden bytes.

use std::{fs, os::unix::fs::PermissionsExt};

use tempfile::TempDir;

use super::*;
use crate::{
    context::{Context, Links},
    layer,
};

const KITFILE: &str = "
manifestVersion: 1.0.0
package:
  name: tiny
  version: 0.1.0
  authors: ['A <a@example.com>']
model:
  name: tiny
  path: model.safetensors
  framework: pytorch
  parameters: {temp: 0.5, big: 1e21, hex: 0xFF, list: [b, a]}
  parts:
    - path: config.json
code:
  - path: run.py
datasets:
  - name: conf
    path: conf
docs:
  - path: docs
  - path: README.md
    description: Readme file
";
const TWO: &str = "{manifestVersion: 1.0.0, package: {name: tiny}, model: {path: model.safetensors, parts: [{path: config.json}]}}";

fn directory(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        let parent = path.parent().unwrap();
        fs::create_dir_all(parent).unwrap();
        if parent != folder.path() {
            fs::set_permissions(parent, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    folder
}

fn g() -> TempDir {
    directory(&[
        ("model.safetensors", "weights-0123456789\n"),
        ("config.json", "{\"a\":1}\n"),
        ("README.md", "# Readme\n"),
        ("run.py", "print(1)\n"),
        ("conf/a.yaml", "x\n"),
        ("docs/guide.md", "doc\n"),
    ])
}

fn layers(folder: &TempDir, kitfile: &Kitfile, format: Format) -> Vec<Stored> {
    let context = Context::read(folder.path(), Links::Skip).unwrap();
    let layers = layer::split(&context, &kitfile.entries().unwrap(), format).unwrap();
    layers.iter().map(|layer| stored(layer, hash(layer).unwrap())).collect()
}

fn only_layer(files: &[(&str, &str)], path: &str) -> (u64, String) {
    let kitfile = Kitfile::from_yaml(&format!("code: [{{path: {path:?}}}]")).unwrap();
    let layer = layers(&directory(files), &kitfile, Format::Tar).remove(0);
    (layer.size, layer.digest.hex().to_owned())
}

const OURS: Profile = Profile::Default { created: None };

#[test]
fn k1_the_layers_have_their_known_digests() {
    let kitfile = Kitfile::from_yaml(KITFILE).unwrap();
    let layers = layers(&g(), &kitfile, Format::Tar);
    let known: Vec<_> = layers.iter().map(|layer| (layer.size, layer.digest.hex())).collect();
    assert_eq!(
        known,
        [
            (2048, "fad64cc0c57283d16fb7efcda3cff63ea824e90137d2c8d8dbc90b97228950cf"),
            (2048, "34e168c6557b0cf82dd6903211d4b8b15afdee3f9aa5940f82ee480175689ef7"),
            (2048, "d45b26be0158a06c69c0ef14aa035a38051d8caa596edc825b3dcb700ba8cc4d"),
            (2560, "e584b73b06e59c545992bd90544154f0b9b2ec89dde6d75665b128f4d0209530"),
            (2560, "76241b34ab155701ac98bb1a7b7f844dde84df527265319985afee84e77e867c"),
            (2048, "3d6cdb070cacbed6af16857504801e4e20e16dcbfdb47bf881cef2c88eb590cb"),
        ]
    );
}

#[test]
fn k1_configs_and_manifests_have_their_known_digests() {
    let epoch = Profile::Default { created: Some("1970-01-01T00:00:00Z".to_owned()) };
    for (kitfile, form, profile, config, manifest) in [
        (
            KITFILE,
            Form::ModelKit,
            &OURS,
            (1424, "4f81c515d41fe51eabefc8763fca37c46e16f213405a9d192aff3596da6ad3df"),
            (1640, "baa19e77c5b2dcec5e0f2acbdbf239840f518e6fd414c57156d010542e46ff3a"),
        ),
        (
            KITFILE,
            Form::ModelKit,
            &Profile::Kit111,
            (1424, "4f81c515d41fe51eabefc8763fca37c46e16f213405a9d192aff3596da6ad3df"),
            (1581, "9209c51eb2fe5d2e7e4f323763440c4f9745e83a3ab2066a1815f3b738d14400"),
        ),
        (
            KITFILE,
            Form::ModelPack,
            &OURS,
            (601, "9aaa33c1661fc9c2e24dab782939a53c7f0740f4fb213487be28720fb2fc42e9"),
            (3190, "f46058017c4a5d72c2e2c9a26d754a7279f34c3365ae644d2ecd8ede6862a251"),
        ),
        (
            KITFILE,
            Form::ModelPack,
            &epoch,
            (636, "52f02307aaacae71e9ab02335fca35096ba893d4da33f705633d05cd9dd83a03"),
            (3248, "a1fe213fd9296e4ae08ce682426076fea4fed3d4121d3007897ceb5176ec88b3"),
        ),
        (
            TWO,
            Form::ModelPack,
            &OURS,
            (245, "c4cfb13d099253e9aba5beb88e7f77fdeb1df67b797fefd2c1118805df581047"),
            (1323, "66cc73f9c84929c497bd656d4b1113cdf1389aac99b5e521240cbda38e0a8d8d"),
        ),
    ] {
        let kitfile = Kitfile::from_yaml(kitfile).unwrap();
        let artifact =
            assemble(&kitfile, &layers(&g(), &kitfile, Format::Tar), form, profile).unwrap();
        let digest = Digest::of(&artifact.config);
        assert_eq!((artifact.config.len(), digest.hex()), config, "{form:?} {profile:?}");
        let digest = artifact.digest();
        assert_eq!((artifact.manifest.len(), digest.hex()), manifest, "{form:?} {profile:?}");
    }
}

#[test]
fn k1_raw_layers_are_the_files_themselves() {
    let kitfile = Kitfile::from_yaml(TWO).unwrap();
    let layers = layers(&g(), &kitfile, Format::Raw);
    assert!(layers[0].digest.hex().starts_with("3196a67198b0"));
    assert!(layers[1].digest.hex().starts_with("e346432021b0"));
    let artifact = assemble(&kitfile, &layers, Form::ModelPack, &OURS).unwrap();
    let (config, manifest) = (Digest::of(&artifact.config), artifact.digest());
    assert_eq!(
        (artifact.config.len(), config.hex()),
        (245, "14e9de37a9ecb74634916b6559475346acd424ada73dedaaa9a5402e776c59af")
    );
    assert_eq!(
        (artifact.manifest.len(), manifest.hex()),
        (1643, "ab8f07ff48161fdb3d0a3e20cb87ae61b5ba2ef334a250a024b2196041476e27")
    );
}

#[test]
fn k2_k3_k4_names_that_do_not_fit_a_plain_header() {
    let long = "n".repeat(120);
    let (a, b) = ("a".repeat(60), "b".repeat(60));
    let deep = format!("{a}/{b}");
    for (name, want) in [
        (long.as_str(), (3072, "052b8f27ef7db45f044b76e3e7262947fb4b366d2288005bde64d9e806bf7412")),
        ("é.txt", (3072, "f4a02d9f352d38664438ce2c5d106d780db59078d79b32e2b93b7fe4c88e400d")),
        (deep.as_str(), (2560, "63ed75773f1022c524b246b1023537c08e988cb604d0c4f2f52806bb2f3e13ca")),
    ] {
        let (size, digest) = only_layer(&[(name, "x\n")], name);
        assert_eq!((size, digest.as_str()), want, "{name}");
    }
}

#[test]
fn k6_a_directory_comes_before_what_sorts_after_its_name() {
    let (_, digest) = only_layer(&[("a/z", "x\n"), ("a-b", "x\n")], ".");
    assert_eq!(digest, "f71f2ac3f5cc7cdb1ee999f95dc8183aeabee93e6fb04267a5dadddaa9792f9d");
}

#[test]
fn k8_a_compressed_layer_holds_the_same() {
    let folder = directory(&[("a/z", &"x\n".repeat(10_000)), ("a-b", "x\n")]);
    let kitfile = Kitfile::from_yaml("code: [{path: .}]").unwrap();
    let context = Context::read(folder.path(), Links::Skip).unwrap();
    let layer = layer::split(&context, &kitfile.entries().unwrap(), Format::Tar).unwrap().remove(0);
    let plain = hash(&layer).unwrap();
    for compression in
        [Compression::None, Compression::Gzip, Compression::GzipFastest, Compression::Zstd]
    {
        let mut bytes = Vec::new();
        let stored = write(&layer, compression, 1, &mut bytes).unwrap();
        assert_eq!(stored.diff_id, plain, "{compression:?}");
        assert_eq!((&stored.digest, stored.size), (&Digest::of(&bytes), bytes.len() as u64));
        let mut again = Vec::new();
        write(&layer, compression, 1, &mut again).unwrap();
        assert_eq!(bytes, again, "{compression:?}");
        if matches!(compression, Compression::Gzip) {
            assert_eq!(bytes[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
        }
        for threads in [1, 4, 16] {
            let written = std::thread::scope(|scope| {
                let write = || {
                    let mut bytes = Vec::new();
                    write(&layer, compression, threads, &mut bytes).unwrap();
                    bytes
                };
                let all: Vec<_> = (0..threads).map(|_| scope.spawn(write)).collect();
                all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
            });
            assert!(written.iter().all(|one| *one == bytes), "{compression:?} {threads}");
        }
        let ending = match compression {
            Compression::None => "",
            Compression::Gzip | Compression::GzipFastest => "+gzip",
            Compression::Zstd => "+zstd",
        };
        for (form, kind) in
            [(Form::ModelKit, "kitops.modelkit.code"), (Form::ModelPack, "cncf.model.code")]
        {
            let artifact = assemble(&kitfile, std::slice::from_ref(&stored), form, &OURS).unwrap();
            let manifest: manifest::Manifest = serde_json::from_slice(&artifact.manifest).unwrap();
            let want = format!("application/vnd.{kind}.v1.tar{ending}");
            assert_eq!(manifest.layers[0].media_type, want);
            assert_eq!(manifest.layers[0].digest, stored.digest);
        }
    }
}

/// Lines of words and numbers, in which nothing long repeats.
fn text(size: usize) -> String {
    let words = ["weights", "of", "the", "model", "are", "read", "in", "blocks"];
    let (mut text, mut state) = (String::new(), 0x1234_5678_9ABC_DEF1_u64);
    while text.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text += &format!("{} {:x} ", words[(state & 7) as usize], state >> 52);
        if state & 56 == 0 {
            text.push('\n');
        }
    }
    text
}

#[test]
fn text_is_smaller_by_zstd_than_by_gzip_whatever_the_threads() {
    let folder = directory(&[("corpus.txt", &text(5_000_000))]);
    let kitfile = Kitfile::from_yaml("datasets: [{path: corpus.txt}]").unwrap();
    let context = Context::read(folder.path(), Links::Skip).unwrap();
    let layer = layer::split(&context, &kitfile.entries().unwrap(), Format::Tar).unwrap().remove(0);
    assert!(shrinks(&layer).unwrap());
    let packed = |compression, threads| {
        let mut bytes = Vec::new();
        write(&layer, compression, threads, &mut bytes).unwrap();
        bytes
    };
    let zstd = packed(Compression::Zstd, 1);
    let gzip = packed(Compression::Gzip, 1);
    assert!(zstd.len() < gzip.len() / 100 * 99, "{} {}", zstd.len(), gzip.len());
    for threads in [0, 2, 3, 8] {
        assert!(packed(Compression::Zstd, threads) == zstd, "{threads}");
    }
    // As others read it, who have a limit for what it takes.
    let mut decoder = zstd::stream::read::Decoder::new(zstd.as_slice()).unwrap();
    decoder.window_log_max(21).unwrap();
    assert_eq!(io::copy(&mut decoder, &mut io::sink()).unwrap(), layer.size());
}

#[test]
fn k16_a_manifest_that_no_registry_takes_is_not_made() {
    let digest = Digest::of(b"x");
    let layer = |number: usize| Stored {
        kind: crate::kitfile::Kind::Code,
        path: format!("file-{number}"),
        format: Format::Tar,
        compression: Compression::None,
        diff_id: digest.clone(),
        digest: digest.clone(),
        size: 1024,
        file: None,
    };
    let layers: Vec<Stored> = (0..50_000).map(layer).collect();
    let kitfile = Kitfile::from_yaml("code: [{path: a}]").unwrap();
    let profile = Profile::Default { created: None };
    for form in [Form::ModelKit, Form::ModelPack] {
        let error = assemble(&kitfile, &layers, form, &profile).unwrap_err().to_string();
        assert!(error.contains("registries take 4194304"), "{error}");
    }
}
