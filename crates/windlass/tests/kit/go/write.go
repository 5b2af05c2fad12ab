package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	pack "github.com/modelpack/model-spec/specs-go/v1"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	image "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
)

const (
	modelKitManifest  = "application/vnd.kitops.modelkit.manifest.v1+json"
	modelKitConfig    = "application/vnd.kitops.modelkit.config.v1+json"
	versionAnnotation = "ml.kitops.modelkit.cli-version"
	kitfileAnnotation = "ml.kitops.modelkit.kitfile"
)

// An artifact on its way to a registry.
type made struct {
	store    *memory.Store
	manifest image.Manifest
	diffIDs  []digest.Digest
}

// FORM is the tool that would have made it.
func write(ctx context.Context, form, compression, reference, folder string) (any, error) {
	into, err := repository(reference)
	if err != nil {
		return nil, err
	}
	artifact := &made{store: memory.New()}
	artifact.manifest.Versioned = specs.Versioned{SchemaVersion: 2}
	switch form {
	case "kit-1.7", "kit-1.11", "kit-1.15":
		err = artifact.modelKit(ctx, strings.TrimPrefix(form, "kit-"), compression, folder)
	case "kit-1.11-pack":
		err = artifact.kitModelPack(ctx, compression, folder)
	case "modctl", "modctl-cnai":
		err = artifact.modctl(ctx, form == "modctl-cnai", folder)
	default:
		err = fmt.Errorf("nobody makes %s", form)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make %s of %s: %w", form, folder, err)
	}
	root, err := artifact.push(ctx, image.MediaTypeImageManifest, artifact.manifest)
	if err != nil {
		return nil, err
	}
	name := into.Reference.Reference
	if err := artifact.store.Tag(ctx, root, name); err != nil {
		return nil, err
	}
	if _, err := oras.Copy(ctx, artifact.store, name, into, name, oras.DefaultCopyOptions); err != nil {
		return nil, fmt.Errorf("cannot push %s: %w", reference, err)
	}
	return map[string]any{"digest": root.Digest, "layers": artifact.manifest.Layers}, nil
}

func (m *made) modelKit(ctx context.Context, version, compression, folder string) error {
	m.manifest.ArtifactType = modelKitManifest
	m.manifest.Annotations = map[string]string{versionAnnotation: version + ".0"}
	switch version {
	case "1.7":
		// It was built by hand, and knew no types of artifacts.
		m.manifest.ArtifactType = ""
		m.manifest.Annotations[versionAnnotation] = "unknown"
	case "1.15":
		m.manifest.MediaType = image.MediaTypeImageManifest
		m.manifest.Annotations[image.AnnotationCreated] = time.Now().UTC().Format(time.RFC3339)
	}
	kitfile, err := m.kitLayers(ctx, compression, folder, func(entry entry, suffix string) image.Descriptor {
		descriptor := image.Descriptor{MediaType: "application/vnd.kitops.modelkit." + entry.kind + ".v1.tar" + suffix}
		if version != "1.7" {
			descriptor.Annotations = map[string]string{pack.AnnotationFilepath: filepath.Clean(entry.path)}
		}
		return descriptor
	})
	if err != nil {
		return err
	}
	m.manifest.Config, err = m.push(ctx, modelKitConfig, kitfile)
	return err
}

func (m *made) kitModelPack(ctx context.Context, compression, folder string) error {
	names := map[string]string{"model": "weight", "modelpart": "weight.config", "docs": "doc"}
	kitfile, err := m.kitLayers(ctx, compression, folder, func(entry entry, suffix string) image.Descriptor {
		name, ok := names[entry.kind]
		if !ok {
			name = entry.kind
		}
		return image.Descriptor{
			MediaType:   "application/vnd.cncf.model." + name + ".v1.tar" + suffix,
			Annotations: map[string]string{pack.AnnotationFilepath: filepath.Clean(entry.path)},
		}
	})
	if err != nil {
		return err
	}
	text, err := json.Marshal(kitfile)
	if err != nil {
		return err
	}
	now := time.Now()
	about := kitfile.Package
	config := pack.Model{
		Descriptor: pack.ModelDescriptor{
			CreatedAt: &now, Authors: about.Authors, Name: about.Name, Version: about.Version,
			Title: about.Name, Description: about.Description,
		},
		ModelFS: pack.ModelFS{Type: "layers"},
	}
	for _, diffID := range m.diffIDs {
		// Its mistake until 1.14.
		config.ModelFS.DiffIDs = append(config.ModelFS.DiffIDs, digest.FromString(diffID.String()))
	}
	m.manifest.ArtifactType = pack.ArtifactTypeModelManifest
	m.manifest.Annotations = map[string]string{versionAnnotation: "1.11.0", kitfileAnnotation: string(text)}
	m.manifest.Config, err = m.push(ctx, pack.MediaTypeModelConfig, config)
	return err
}

// One archive for each entry of the Kitfile, which learns of it.
func (m *made) kitLayers(
	ctx context.Context, compression, folder string, describe func(entry, string) image.Descriptor,
) (*kitfile, error) {
	suffix, _, _ := strings.Cut("+"+compression, "-")
	if compression == "none" {
		suffix = ""
	}
	kitfile, err := ofFolder(folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range kitfile.entries() {
		archive, err := kitTar(folder, filepath.Clean(entry.path))
		if err != nil {
			return nil, err
		}
		layer, err := compress(archive, compression)
		if err != nil {
			return nil, err
		}
		diffID := digest.FromBytes(archive)
		if err := m.layer(ctx, describe(entry, suffix), layer, diffID); err != nil {
			return nil, err
		}
		entry.stored.Digest, entry.stored.DiffID = digest.FromBytes(layer).String(), diffID.String()
	}
	return kitfile, nil
}

// One layer for each file: configs, weights, code and docs, without a Kitfile. The first ones of it had
// another prefix, and archives.
func (m *made) modctl(ctx context.Context, isOld bool, folder string) error {
	order := []struct{ kind, path string }{
		{"weight.config", "config.json"}, {"weight.config", "conf/a.yaml"}, {"weight", "model.safetensors"},
		{"code", "run.py"}, {"doc", "README.md"}, {"doc", "docs/guide.md"},
	}
	for _, file := range order {
		content, err := os.ReadFile(filepath.Join(folder, file.path))
		if err != nil {
			return err
		}
		annotations, err := told(folder, file.path)
		if err != nil {
			return err
		}
		mediaType := "application/vnd.cncf.model." + file.kind + ".v1.raw"
		if isOld {
			if content, err = modctlTar(folder, file.path); err != nil {
				return err
			}
			mediaType = "application/vnd.cnai.model." + file.kind + ".v1.tar"
			annotations = map[string]string{"org.cnai.model.filepath": file.path}
		}
		descriptor := image.Descriptor{MediaType: mediaType, Annotations: annotations}
		if err := m.layer(ctx, descriptor, content, digest.FromBytes(content)); err != nil {
			return err
		}
	}
	now := time.Now()
	m.manifest.MediaType = image.MediaTypeImageManifest
	m.manifest.ArtifactType = pack.ArtifactTypeModelManifest
	configType := pack.MediaTypeModelConfig
	config := any(pack.Model{
		Descriptor: pack.ModelDescriptor{CreatedAt: &now, Name: "tiny", Family: "tiny"},
		ModelFS:    pack.ModelFS{Type: "layers", DiffIDs: m.diffIDs},
		Config:     pack.ModelConfig{Architecture: "transformer", Format: "safetensors"},
	})
	if isOld {
		m.manifest.ArtifactType = old(m.manifest.ArtifactType)
		configType = old(configType)
		config = map[string]any{
			"descriptor": map[string]any{"createdAt": now, "name": "tiny"},
			"modelfs":    map[string]any{"type": "layers", "diff_ids": m.diffIDs},
			"config":     map[string]any{},
		}
	}
	var err error
	m.manifest.Config, err = m.push(ctx, configType, config)
	return err
}

func old(mediaType string) string {
	return strings.Replace(mediaType, "vnd.cncf.", "vnd.cnai.", 1)
}

// What modctl tells of a file whose layer is no archive.
func told(folder, path string) (map[string]string, error) {
	info, err := os.Stat(filepath.Join(folder, path))
	if err != nil {
		return nil, err
	}
	metadata, err := json.Marshal(pack.FileMetadata{
		Name: path, Mode: uint32(info.Mode().Perm()), Size: info.Size(), ModTime: info.ModTime(),
	})
	return map[string]string{
		pack.AnnotationFilepath:          path,
		pack.AnnotationFileMetadata:      string(metadata),
		pack.AnnotationMediaTypeUntested: "true",
	}, err
}

func (m *made) layer(ctx context.Context, descriptor image.Descriptor, content []byte, diffID digest.Digest) error {
	descriptor.Digest, descriptor.Size = digest.FromBytes(content), int64(len(content))
	m.manifest.Layers = append(m.manifest.Layers, descriptor)
	m.diffIDs = append(m.diffIDs, diffID)
	return m.keep(ctx, descriptor, content)
}

func (m *made) push(ctx context.Context, mediaType string, what any) (image.Descriptor, error) {
	content, err := json.Marshal(what)
	if err != nil {
		return image.Descriptor{}, err
	}
	descriptor := image.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
	return descriptor, m.keep(ctx, descriptor, content)
}

func (m *made) keep(ctx context.Context, descriptor image.Descriptor, content []byte) error {
	if has, err := m.store.Exists(ctx, descriptor); has || err != nil {
		return err
	}
	return m.store.Push(ctx, descriptor, strings.NewReader(string(content)))
}
