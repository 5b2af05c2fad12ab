//! A pseudo-terminal, and what would be seen on it.

use std::{
    fs::{File, OpenOptions},
    io::Read,
    os::fd::OwnedFd,
    sync::{Arc, Mutex},
    thread,
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

pub(crate) struct Terminal {
    /// The side of the program. Held, so that the other side never sees an end.
    line: File,
    written: Arc<Mutex<Vec<u8>>>,
    width: usize,
}

impl Terminal {
    pub(crate) fn new(width: u16, height: u16) -> Self {
        let own: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&own).unwrap();
        unlockpt(&own).unwrap();
        let path = ptsname(&own, Vec::new()).unwrap().into_string().unwrap();
        let line = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let size = Winsize { ws_col: width, ws_row: height, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&line, size).unwrap();
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let (mut from, to) = (File::from(own), written.clone());
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                to.lock().unwrap().extend(&bytes[..count]);
            }
        });
        Self { line, written, width: width.into() }
    }

    pub(crate) fn line(&self) -> File {
        self.line.try_clone().unwrap()
    }

    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// Its rows, those that have been scrolled away too.
    pub(crate) fn rows(&self) -> Vec<String> {
        let mut screen = Rows { rows: vec![Vec::new()], row: 0, column: 0, width: self.width };
        let text = self.written();
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                '\x1b' => screen.obey(&mut rest),
                c => screen.put(c),
            }
        }
        screen.rows.into_iter().map(|row| row.into_iter().collect::<String>()).collect()
    }
}

struct Rows {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    width: usize,
}

impl Rows {
    /// As much as is used.
    fn obey(&mut self, rest: &mut impl Iterator<Item = char>) {
        assert_eq!(rest.next(), Some('['));
        let mut number = String::new();
        let end = loop {
            match rest.next() {
                Some(c) if c.is_ascii_digit() || c == ';' => number.push(c),
                Some(c) => break c,
                // The rest is on its way.
                None => return,
            }
        };
        match end {
            'A' => self.row = self.row.checked_sub(number.parse().unwrap()).unwrap(),
            'K' => self.rows[self.row].truncate(self.column),
            'J' => {
                self.rows[self.row].truncate(self.column);
                self.rows.truncate(self.row + 1);
            }
            'm' => {}
            other => panic!("{other:?} after {number:?}"),
        }
    }

    fn put(&mut self, c: char) {
        match c {
            '\r' => self.column = 0,
            '\n' => self.down(),
            c => {
                if self.column == self.width {
                    self.column = 0;
                    self.down();
                }
                let row = &mut self.rows[self.row];
                row.resize(row.len().max(self.column + 1), ' ');
                row[self.column] = c;
                self.column += 1;
            }
        }
    }

    fn down(&mut self) {
        self.row += 1;
        if self.row == self.rows.len() {
            self.rows.push(Vec::new());
        }
    }
}
