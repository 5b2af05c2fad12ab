//! Where the definition of the kind is one of before, and drops the record of the asking.

use futures::executor::block_on;
use windlass_api::aim::template::AimServiceTemplate;
use windlass_engine::fetch::{Documents, Serves};

use super::predecessor::{Stored, newer, runtime_of};
use crate::aim::settings::Settings;
use crate::aim::template::fetch::fetch;
use crate::aim::template::fixture::{
    Cluster, IMAGE, OUTPUT, Seen, after, answered, image, is_available, later, look, pass, pruned,
    template,
};

/// A template whose image has answered, and what runs by it. Then the catalogue goes on to another image.
fn overtaken(output: &str) -> (AimServiceTemplate, Cluster) {
    let template = pruned(&template(), &look(&answered(&template()), &Cluster::of([image()])));
    (template, Cluster::of([newer(), runtime_of(IMAGE)]).printing(output))
}

fn tells(seen: &Seen, event: &str) -> bool {
    seen.events().iter().any(|told| told.contains(event))
}

/// What runs by the old answer may go, and then nothing tells whose it is but that another was asked.
#[test]
fn w05_an_answer_is_not_that_of_an_image_which_is_being_asked() {
    for (end, reason) in [
        (None, "DiscoveryRunning"),
        (Some("Failed"), "DiscoveryFailed"),
        (Some("Complete"), "DiscoveryParseFailed"),
    ] {
        let (mut template, mut cluster) = overtaken("nonsense");
        template = pruned(&template, &pass(&template, &mut cluster, later(0)));
        if let Some(end) = end {
            cluster.end(end);
            template = pruned(&template, &pass(&template, &mut cluster, later(1)));
        }
        // Nor does it become so while nothing can be read.
        cluster.unread = Some("ServingRuntime");
        template = pruned(&template, &pass(&template, &mut cluster, later(2)));
        cluster.unread = None;
        cluster.objects.retain(|object| object["kind"] != "ServingRuntime");
        let seen = pass(&template, &mut cluster, later(3));
        assert!(is_available(&seen));
        assert_eq!(seen.condition("Progressing").unwrap().1, reason);
        // The words of an output that makes no sense were in the place of which the failed read has spoken.
        let again = usize::from(reason == "DiscoveryParseFailed");
        assert_eq!(seen.events().len(), again, "{:?}", seen.events());
    }
}

/// The runtime may be refused for a while.
#[test]
fn w23_an_answer_is_told_once_while_its_job_is_there_until_it_is_served() {
    let (mut template, mut cluster) = overtaken(OUTPUT);
    template = pruned(&template, &pass(&template, &mut cluster, later(0)));
    cluster.end("Complete");
    let seen = look(&template, &cluster);
    assert!(tells(&seen, "DiscoverySucceeded"));
    template = pruned(&template, &seen);
    for _ in 0..2 {
        let seen = look(&template, &cluster);
        assert_eq!(seen.applied(), ["ServingRuntime tiny-lm-latency"]);
        assert_eq!(seen.events(), [""; 0]);
        template = pruned(&template, &seen);
    }
}

/// Nobody could tell from the answer alone that there is a new one.
#[test]
fn w23_an_answer_that_equals_the_one_before_is_told() {
    for stored in [after as Stored, pruned] {
        let template = stored(&template(), &look(&answered(&template()), &Cluster::of([image()])));
        let (mut template, mut cluster) = (template, overtaken(OUTPUT).1);
        template = stored(&template, &pass(&template, &mut cluster, later(0)));
        cluster.end("Complete");
        for at in [1, 2, 3] {
            let seen = pass(&template, &mut cluster, later(at));
            assert!(is_available(&seen));
            assert_eq!(tells(&seen, "DiscoverySucceeded"), at == 1, "{at}");
            template = stored(&template, &seen);
        }
        let runtime = &cluster.find("ServingRuntime").unwrap()["spec"]["containers"][0];
        assert_eq!(runtime["image"], newer()["spec"]["image"]);
    }
}

/// The conditions are all that remembers why, and a failed read speaks in the same one.
#[test]
fn why_an_output_makes_no_sense_is_known_again_after_a_read_has_failed() {
    let first = Cluster::of([newer()]).printing("nonsense");
    let (answered, second) = overtaken("nonsense");
    for (mut template, mut cluster) in [(template(), first), (answered, second)] {
        template = pruned(&template, &pass(&template, &mut cluster, later(0)));
        cluster.end("Complete");
        let told = pass(&template, &mut cluster, later(1));
        template = pruned(&template, &told);
        cluster.unread = Some("AIMImage");
        template = pruned(&template, &pass(&template, &mut cluster, later(2)));
        cluster.unread = None;
        let again = pass(&template, &mut cluster, later(3));
        assert_eq!(again.condition("Failure"), told.condition("Failure"));
        assert_eq!(again.phase(), told.phase());
    }
}

#[test]
fn what_a_job_had_to_tell_is_not_read_again() {
    for end in ["Complete", "Failed"] {
        let (mut template, mut cluster) = overtaken("nonsense");
        template = pruned(&template, &pass(&template, &mut cluster, later(0)));
        cluster.end(end);
        template = pruned(&template, &pass(&template, &mut cluster, later(1)));
        let documents = Documents { objects: cluster.objects, serves: Serves::Everything };
        let answers = block_on(fetch(&Settings::default(), &documents, &template));
        assert!(answers.pods.is_none() && answers.output.is_none(), "{end}");
    }
}

#[test]
fn w05_an_image_that_goes_back_keeps_its_answer_and_ends_the_asking_of_the_other() {
    let (mut template, mut cluster) = overtaken(OUTPUT);
    template = pruned(&template, &pass(&template, &mut cluster, later(0)));
    assert!(cluster.find("Job").is_some());
    cluster.objects[0] = image();
    let seen = pass(&template, &mut cluster, later(1));
    assert!(is_available(&seen));
    assert_eq!(seen.condition("Progressing").unwrap().1, "Available");
    assert!(cluster.find("Job").is_none());
    let runtime = &cluster.find("ServingRuntime").unwrap()["spec"]["containers"][0];
    assert_eq!(runtime["image"], IMAGE);
}
