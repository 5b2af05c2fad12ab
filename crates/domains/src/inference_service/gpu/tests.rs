use super::*;

const GIB: i128 = 1024 * 1024 * 1024;

fn gpu(vendor: GpuVendor, count: i32, memory_tolerance_percent: i32) -> Gpu {
    Gpu { vendor, count, memory_tolerance_percent, runtime_class_name: None }
}

#[test]
fn k01_device_memory_becomes_devices_and_a_node_constraint() {
    for (bytes, count, tolerance, want) in [
        (24 * GIB, 1, 8, "22608"),
        (24 * GIB, 1, 0, "24575"),
        (48 * GIB, 2, 8, "22608"),
        (24 * GIB + 1, 1, 0, "24576"),
        (80 * GIB, 3, 8, "25121"),
        (1, 1, 8, "0"),
    ] {
        let demand =
            demand(bytes, &gpu(GpuVendor::Nvidia, count, tolerance), &Mapping::Devices).unwrap();
        assert_eq!((demand.resource.as_str(), demand.amount), ("nvidia.com/gpu", i64::from(count)));
        let node = demand.node.unwrap();
        assert_eq!((node.key.as_str(), node.operator.as_str()), ("nvidia.com/gpu.memory", "Gt"));
        assert_eq!(node.values, Some(vec![want.to_owned()]), "{bytes} on {count}");
    }
}

#[test]
fn amd_devices_are_chosen_by_their_nominal_size() {
    for (gibibytes, count, want) in [
        (192, 1, &["192G", "256G", "288G"][..]),
        (193, 1, &["256G", "288G"]),
        (384, 2, &["192G", "256G", "288G"]),
        (24, 1, &["24G", "32G", "48G", "64G", "128G", "192G", "256G", "288G"]),
    ] {
        let demand =
            demand(gibibytes * GIB, &gpu(GpuVendor::Amd, count, 8), &Mapping::Devices).unwrap();
        assert_eq!((demand.resource.as_str(), demand.amount), ("amd.com/gpu", i64::from(count)));
        let node = demand.node.unwrap();
        assert_eq!((node.key.as_str(), node.operator.as_str()), ("amd.com/gpu.vram", "In"));
        assert_eq!(node.values.unwrap(), want, "{gibibytes} on {count}");
    }
    let too_large = demand(300 * GIB, &gpu(GpuVendor::Amd, 1, 8), &Mapping::Devices);
    assert_eq!(too_large, Err(TooLarge { mebibytes: 300 * 1024 }));
}

#[test]
fn a_shared_device_is_one_resource_in_mebibytes() {
    let mapping = Mapping::Memory { resource: "example.com/gpu-memory".to_owned() };
    let demand = demand(24 * GIB, &gpu(GpuVendor::Nvidia, 2, 8), &mapping).unwrap();
    assert_eq!((demand.resource.as_str(), demand.amount), ("example.com/gpu-memory", 24_576));
    assert_eq!(demand.node, None);
    assert_eq!(demand.taint, "nvidia.com/gpu");
}
