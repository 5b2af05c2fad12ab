package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	packschema "github.com/modelpack/model-spec/schema"
	pack "github.com/modelpack/model-spec/specs-go/v1"
	"github.com/opencontainers/go-digest"
	imageschema "github.com/opencontainers/image-spec/schema"
	image "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
)

type artifact struct {
	Digest       digest.Digest     `json:"digest"`
	MediaType    string            `json:"mediaType"`
	ArtifactType string            `json:"artifactType"`
	Annotations  map[string]string `json:"annotations"`
	Config       string            `json:"config"`
	Layers       []layer           `json:"layers"`
}

type layer struct {
	MediaType   string            `json:"mediaType"`
	Digest      digest.Digest     `json:"digest"`
	DiffID      digest.Digest     `json:"diffId"`
	Annotations map[string]string `json:"annotations"`
	Files       []file            `json:"files"`
}

// By way of an OCI layout, as `oras copy --to-oci-layout` does it.
func read(ctx context.Context, reference string) (*artifact, error) {
	from, err := repository(reference)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "kit-tests-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	into, err := oci.NewWithContext(ctx, folder)
	if err != nil {
		return nil, err
	}
	root, err := oras.Copy(ctx, from, from.Reference.Reference, into, "copy", oras.DefaultCopyOptions)
	if err != nil {
		return nil, fmt.Errorf("cannot copy %s: %w", reference, err)
	}
	text, err := fetch(ctx, into, root)
	if err != nil {
		return nil, err
	}
	if err := imageschema.ValidatorMediaTypeManifest.Validate(bytes.NewReader(text)); err != nil {
		return nil, fmt.Errorf("the manifest is no OCI manifest: %w", err)
	}
	var manifest image.Manifest
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, err
	}
	found := &artifact{
		Digest:       root.Digest,
		MediaType:    manifest.MediaType,
		ArtifactType: manifest.ArtifactType,
		Annotations:  manifest.Annotations,
		Config:       manifest.Config.MediaType,
	}
	for _, descriptor := range manifest.Layers {
		layer, err := readLayer(ctx, into, descriptor)
		if err != nil {
			return nil, fmt.Errorf("cannot read the layer %s: %w", descriptor.Digest, err)
		}
		found.Layers = append(found.Layers, *layer)
	}
	config, err := fetch(ctx, into, manifest.Config)
	if err != nil {
		return nil, err
	}
	switch found.Config {
	case modelKitConfig:
		return found, checkModelKit(found, config)
	case pack.MediaTypeModelConfig:
		return found, checkModelPack(found, config)
	default:
		return nil, fmt.Errorf("it is no model: its config is %s", found.Config)
	}
}

// The bytes of a descriptor, which must be as many and what it says.
func fetch(ctx context.Context, from content.Fetcher, descriptor image.Descriptor) ([]byte, error) {
	bytes, err := content.FetchAll(ctx, from, descriptor)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", descriptor.Digest, err)
	}
	if is := digest.FromBytes(bytes); is != descriptor.Digest || int64(len(bytes)) != descriptor.Size {
		return nil, fmt.Errorf("%s is %s of %d bytes", descriptor.Digest, is, len(bytes))
	}
	return bytes, nil
}

func readLayer(ctx context.Context, from content.Fetcher, descriptor image.Descriptor) (*layer, error) {
	stored, err := fetch(ctx, from, descriptor)
	if err != nil {
		return nil, err
	}
	expanded, err := expand(stored, descriptor.MediaType)
	if err != nil {
		return nil, err
	}
	found := &layer{
		MediaType:   descriptor.MediaType,
		Digest:      descriptor.Digest,
		DiffID:      digest.FromBytes(expanded),
		Annotations: descriptor.Annotations,
	}
	path := descriptor.Annotations[pack.AnnotationFilepath]
	if !strings.Contains(descriptor.MediaType, ".v1.raw") {
		found.Files, err = files(expanded)
		return found, err
	}
	var about pack.FileMetadata
	decoder := json.NewDecoder(strings.NewReader(descriptor.Annotations[pack.AnnotationFileMetadata]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&about); err != nil && err != io.EOF {
		return nil, fmt.Errorf("cannot read what is told of %s: %w", path, err)
	}
	if about.Name != path || about.Size != int64(len(expanded)) {
		return nil, fmt.Errorf("%+v is told of %s, which has %d bytes", about, path, len(expanded))
	}
	found.Files = []file{{path, int64(about.Mode), found.DiffID}}
	return found, nil
}

func checkModelKit(found *artifact, config []byte) error {
	if found.ArtifactType != modelKitManifest {
		return fmt.Errorf("a ModelKit of type %q", found.ArtifactType)
	}
	for _, layer := range found.Layers {
		if !strings.HasPrefix(layer.MediaType, "application/vnd.kitops.modelkit.") {
			return fmt.Errorf("a layer of type %s", layer.MediaType)
		}
	}
	kitfile, err := ofJSON(config)
	if err != nil {
		return err
	}
	if err := kitfile.tells(found.Layers); err != nil {
		return err
	}
	return isWritten(kitfile, config)
}

func checkModelPack(found *artifact, config []byte) error {
	if found.MediaType != image.MediaTypeImageManifest || found.ArtifactType != pack.ArtifactTypeModelManifest {
		return fmt.Errorf("a ModelPack of type %q and %q", found.MediaType, found.ArtifactType)
	}
	if err := packschema.ValidatorMediaTypeModelConfig.Validate(bytes.NewReader(config)); err != nil {
		return fmt.Errorf("the config is no ModelPack config: %w", err)
	}
	var model pack.Model
	decoder := json.NewDecoder(bytes.NewReader(config))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&model); err != nil {
		return fmt.Errorf("cannot read the config: %w", err)
	}
	if err := isWritten(model, config); err != nil {
		return err
	}
	var diffIDs []digest.Digest
	for _, layer := range found.Layers {
		if !strings.HasPrefix(layer.MediaType, "application/vnd.cncf.model.") {
			return fmt.Errorf("a layer of type %s", layer.MediaType)
		}
		diffIDs = append(diffIDs, layer.DiffID)
	}
	if !reflect.DeepEqual(model.ModelFS.DiffIDs, diffIDs) {
		return fmt.Errorf("the config has %v, and the layers %v", model.ModelFS.DiffIDs, diffIDs)
	}
	if text, ok := found.Annotations[kitfileAnnotation]; ok {
		kitfile, err := ofJSON([]byte(text))
		if err != nil {
			return err
		}
		return kitfile.tells(found.Layers)
	}
	return nil
}

// Whether Go writes the same bytes of what it has read.
func isWritten(what any, text []byte) error {
	again, err := json.Marshal(what)
	if err == nil && !bytes.Equal(again, text) {
		err = fmt.Errorf("Go would write\n%s\ninstead of\n%s", again, text)
	}
	return err
}
