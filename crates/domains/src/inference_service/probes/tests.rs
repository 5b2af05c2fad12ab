use super::*;

const SECOND: i64 = NANOSECONDS_PER_SECOND;

fn probes(path: &str, liveness_path: Option<&str>, times: Times) -> Probes {
    let health_check = HealthCheck {
        path: path.to_owned(),
        liveness_path: liveness_path.map(str::to_owned),
        ..HealthCheck::default()
    };
    Probes::new(&health_check, times)
}

#[test]
fn k02_durations_round_up_to_whole_seconds() {
    let startup = 1_800 * SECOND;
    for (interval, timeout, want) in [
        (10 * SECOND, 5 * SECOND, (10, 5, 180)),
        (SECOND * 3 / 2, SECOND / 2, (2, 1, 900)),
        (1, 1, (1, 1, 1_800)),
        (7 * SECOND, SECOND + 1, (7, 2, 258)),
        (3_600 * SECOND, SECOND, (3_600, 1, 1)),
    ] {
        let probes = probes("/healthz", None, Times { interval, timeout, startup });
        let got = (probes.period_seconds, probes.timeout_seconds, probes.startup_failures);
        assert_eq!(got, want, "interval {interval}, timeout {timeout}");
    }
}

#[test]
fn the_progress_deadline_leaves_room_for_scheduling() {
    for (startup, want) in [(1_800 * SECOND, 2_400), (1, 601), (i64::MAX, i32::MAX)] {
        let times = Times { interval: SECOND, timeout: SECOND, startup };
        assert_eq!(probes("/", None, times).progress_deadline_seconds, want, "{startup}");
    }
}

#[test]
fn k04_only_liveness_avoids_the_readiness_path() {
    let times = Times { interval: SECOND, timeout: SECOND, startup: SECOND };
    for (path, own, want) in [
        ("/readyz", None, "/healthz"),
        ("/healthz", None, "/healthz"),
        ("/custom", None, "/custom"),
        ("/readyz", Some("/live"), "/live"),
        ("/custom", Some("/live"), "/live"),
    ] {
        let probes = probes(path, own, times);
        assert_eq!(probes.path, path);
        assert_eq!(probes.liveness_path, want, "{path} {own:?}");
    }
}
