//! Files that wait beside the target until their layer is verified. There may be millions of them, so
//! their names wait on the disk too.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write},
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
};

use super::{Error, Target, cannot_write};
use crate::{Digest, left_over};

/// So long a folder is that all names of files in it begin alike.
const FAN: usize = 2;

pub(super) struct Staged {
    folder: left_over::Folder,
    /// Each once: its length and its bytes.
    names: BufWriter<File>,
}

impl Staged {
    pub(super) fn new(target: &Target) -> io::Result<Self> {
        let folder = target.stage()?;
        let names = File::options()
            .create_new(true)
            .read(true)
            .write(true)
            .open(folder.path().join("names"))?;
        Ok(Self { folder, names: BufWriter::new(names) })
    }

    /// Of several under one name the last counts.
    pub(super) fn create(&mut self, name: &str, mode: u32) -> io::Result<File> {
        let place = self.place(name);
        let make = || File::options().create_new(true).write(true).mode(mode).open(&place);
        let made = match make() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                crate::whole::make_parent(&place)?;
                make()
            }
            made => made,
        };
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&place)?;
                make()
            }
            Ok(file) => {
                let length = u32::try_from(name.len()).map_err(io::Error::other)?;
                self.names.write_all(&length.to_le_bytes())?;
                self.names.write_all(name.as_bytes())?;
                Ok(file)
            }
            Err(error) => Err(error),
        }
    }

    /// Names of files say nothing about where they are here, since they may be long or in each other's way.
    fn place(&self, name: &str) -> PathBuf {
        let digest = Digest::of(name.as_bytes());
        let (first, rest) = digest.hex().split_at(FAN);
        self.folder.path().join(first).join(rest)
    }

    /// All of them, in their order, with the places where they are.
    pub(super) fn each(
        &mut self,
        mut publish: impl FnMut(&str, PathBuf) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut names = self.read_names().map_err(cannot_write("."))?;
        while let Some(name) = next(&mut names).map_err(cannot_write("."))? {
            publish(&name, self.place(&name))?;
        }
        Ok(())
    }

    fn read_names(&mut self) -> io::Result<BufReader<File>> {
        self.names.flush()?;
        let mut names = self.names.get_ref().try_clone()?;
        names.rewind()?;
        Ok(BufReader::new(names))
    }
}

fn next(names: &mut BufReader<File>) -> io::Result<Option<String>> {
    if names.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let mut length = [0; 4];
    names.read_exact(&mut length)?;
    let mut name = vec![0; u32::from_le_bytes(length) as usize];
    names.read_exact(&mut name)?;
    String::from_utf8(name).map(Some).map_err(io::Error::other)
}
