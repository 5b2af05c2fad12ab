//! The packer of models, with the commands that our Jobs and pods use.

use std::{fs, path::Path};

use crate::Outcome;

/// As long as a real one, and the same each time.
const DIGEST: &str = "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef";

pub(crate) fn run(words: &[String]) -> Outcome {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["unpack", rest @ ..] => {
            let at = rest.iter().position(|word| *word == "-d").and_then(|at| rest.get(at + 1));
            let folder = Path::new(at.ok_or("unpack needs -d")?);
            fs::create_dir_all(folder)?;
            fs::write(folder.join("config.json"), "{}")?;
        }
        ["push", .., target] => println!("Pushed {target}@{DIGEST}"),
        ["import" | "pack" | "tag" | "login", ..] => {}
        _ => return Err(format!("kit {words:?} cannot be played").into()),
    }
    Ok(())
}
