//! Progress, on a terminal and elsewhere.

use crate::{server::Server, terminal::Terminal, world::World};

#[test]
fn a_terminal_shows_bars_and_nothing_of_them_stays() {
    let world = World::new();
    let server = Server::start(&world.path("registry"), &[], "");
    world.write("model/model.safetensors", &vec![b'x'; 3 << 20]);
    let name = format!("{}/org/tiny:v1", server.address);
    world.kit(&["pack", "model", "-t", &name]).well();
    let terminal = Terminal::new(120, 30);
    let mut push = world.command(&["push", "--plain-http", &name]);
    push.stdout(terminal.line()).stderr(terminal.line());
    assert!(push.status().unwrap().success());
    let shown = crate::wait::blocking("its last line", || {
        let shown = terminal.written();
        if shown.contains("Pushed sha256:") { Ok(shown) } else { Err(shown) }
    });
    for text in ["model.safetensors", "total", " of 3.", "/s", " left"] {
        assert!(shown.contains(text), "{text:?} in {shown}");
    }
    let (bars, last) = shown.rsplit_once("Pushed sha256:").unwrap();
    // Whatever was drawn is wiped out before the last line.
    let (_, wiped) = bars.rsplit_once(" left").unwrap();
    assert!(wiped.contains("\x1b[2K"), "{shown:?}");
    assert_eq!(last.trim_end().len(), 64, "{shown:?}");
}

#[test]
fn who_wants_no_progress_sees_results_only() {
    let world = World::new();
    let server = Server::start(&world.path("registry"), &[], "");
    let name = format!("{}/org/tiny:v1", server.address);
    world.kit(&["pack", "model", "-t", &name]).well();
    let terminal = Terminal::new(120, 30);
    let quiet = ["--progress", "none", "--log-level", "warn", "push", "--plain-http", &name];
    let mut push = world.command(&quiet);
    push.stdout(terminal.line()).stderr(terminal.line());
    assert!(push.status().unwrap().success());
    let shown = crate::wait::blocking("its last line", || {
        let shown = terminal.written();
        if shown.contains("Pushed sha256:") { Ok(shown) } else { Err(shown) }
    });
    assert_eq!(shown.trim_end().lines().count(), 1, "{shown:?}");
}
