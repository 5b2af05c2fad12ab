//! Objects without a `spec`, which the definitions of the group allow.

/// Reads a spec that is not there as the default one.
///
/// The derived object has no default for its spec, so the spec itself answers for its absence. The
/// type derives serde's traits with `remote = "Self"`: as functions of its own, which the traits
/// implemented here call.
macro_rules! read_absent_as_default {
    ($spec:ty) => {
        impl<'de> serde::Deserialize<'de> for $spec {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Visitor;

                impl<'de> serde::de::Visitor<'de> for Visitor {
                    type Value = $spec;

                    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        to.write_str("a spec or nothing")
                    }

                    fn visit_none<E: serde::de::Error>(self) -> Result<$spec, E> {
                        Ok(<$spec>::default())
                    }

                    fn visit_unit<E: serde::de::Error>(self) -> Result<$spec, E> {
                        Ok(<$spec>::default())
                    }

                    fn visit_some<D: serde::Deserializer<'de>>(
                        self,
                        from: D,
                    ) -> Result<$spec, D::Error> {
                        <$spec>::deserialize(from)
                    }
                }

                from.deserialize_option(Visitor)
            }
        }

        impl serde::Serialize for $spec {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                <$spec>::serialize(self, to)
            }
        }
    };
}

pub(super) use read_absent_as_default;
