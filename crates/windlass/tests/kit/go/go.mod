module windlass.dev/kit-tests

go 1.24

require (
	github.com/klauspost/compress v1.17.9
	github.com/modelpack/model-spec v0.0.7
	github.com/opencontainers/go-digest v1.0.0
	github.com/opencontainers/image-spec v1.1.1
	gopkg.in/yaml.v3 v3.0.1
	oras.land/oras-go/v2 v2.6.0
)

require (
	github.com/santhosh-tekuri/jsonschema/v5 v5.3.1 // indirect
	golang.org/x/sync v0.14.0 // indirect
)
