use super::*;

const UNKNOWN: [Way; 4] = [
    |_, _, _| Err(Errno::INVAL),
    |_, _, _| Err(Errno::NOSYS),
    |_, _, _| Err(Errno::NOTSUP),
    |_, _, _| Err(Errno::PERM),
];

#[test]
fn a_file_takes_its_place_whatever_the_file_system_knows() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::open(folder.path()).unwrap();
    let (from, into) = (folder.path().join("from"), folder.path().join("into"));
    for number in 0..WAYS.len() {
        let ways: Vec<Way> = UNKNOWN.iter().chain(&WAYS[number..]).copied().collect();
        fs::write(&from, "new").unwrap();
        without_replacing(&ways, &from, &target.root, "into").unwrap();
        assert_eq!(fs::read_to_string(&into).unwrap(), "new", "way {number}");
        assert!(!from.exists(), "way {number}");
        fs::write(&from, "other").unwrap();
        let refused = without_replacing(&ways, &from, &target.root, "into");
        assert_eq!(refused, Err(Errno::EXIST), "way {number}");
        assert_eq!(fs::read_to_string(&into).unwrap(), "new", "way {number}");
        fs::remove_file(&into).unwrap();
    }
    assert_eq!(without_replacing(&UNKNOWN, &from, &target.root, "into"), Err(Errno::PERM));
}

#[test]
fn what_a_killed_run_has_left_goes_with_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::open(folder.path()).unwrap();
    let own = target.stage().unwrap();
    let dead = folder.path().join(".windlass-unpack-dead");
    fs::create_dir(&dead).unwrap();
    for name in ["lock", "0"] {
        fs::write(dead.join(name), "").unwrap();
    }
    Target::open(folder.path()).unwrap();
    assert!(!dead.exists());
    assert!(own.path().exists(), "somebody is at work there");
}

#[test]
fn a_directory_is_closed_when_all_layers_are_in_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let target = Target::open(folder.path()).unwrap();
    let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
    for name in ["d", "d/e"] {
        assert!(target.make_directory(name, 0o700).unwrap());
        target.close_later(name, 0o500);
    }
    assert_eq!(mode("d/e") & 0o700, 0o700, "the next layer writes there");
    fs::write(folder.path().join("from"), "x").unwrap();
    target.move_in(&folder.path().join("from"), "d/e/f", Existing::Refuse).unwrap();
    drop(target);
    assert_eq!((mode("d") & 0o777, mode("d/e") & 0o777), (0o500, 0o500));
    // So that it can be removed by whoever runs this.
    for name in ["d", "d/e"] {
        let open = fs::Permissions::from_mode(0o700);
        fs::set_permissions(folder.path().join(name), open).unwrap();
    }
}
