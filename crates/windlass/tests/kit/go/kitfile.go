package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	"gopkg.in/yaml.v3"
)

// The order of the fields is the order of the bytes.
type kitfile struct {
	ManifestVersion string    `json:"manifestVersion" yaml:"manifestVersion"`
	Package         pkg       `json:"package" yaml:"package"`
	Model           *model    `json:"model,omitempty" yaml:"model"`
	Code            []code    `json:"code,omitempty" yaml:"code"`
	Datasets        []dataset `json:"datasets,omitempty" yaml:"datasets"`
	Docs            []docs    `json:"docs,omitempty" yaml:"docs"`
}

type pkg struct {
	Name        string   `json:"name,omitempty" yaml:"name"`
	Version     string   `json:"version,omitempty" yaml:"version"`
	Description string   `json:"description,omitempty" yaml:"description"`
	License     string   `json:"license,omitempty" yaml:"license"`
	Authors     []string `json:"authors,omitempty" yaml:"authors"`
}

type model struct {
	Name        string `json:"name,omitempty" yaml:"name"`
	Path        string `json:"path,omitempty" yaml:"path"`
	License     string `json:"license,omitempty" yaml:"license"`
	Framework   string `json:"framework,omitempty" yaml:"framework"`
	Format      string `json:"format,omitempty" yaml:"format"`
	Version     string `json:"version,omitempty" yaml:"version"`
	Description string `json:"description,omitempty" yaml:"description"`
	Parts       []part `json:"parts,omitempty" yaml:"parts"`
	Parameters  any    `json:"parameters,omitempty" yaml:"parameters"`
	stored      `yaml:"-"`
}

type part struct {
	Name    string `json:"name,omitempty" yaml:"name"`
	Path    string `json:"path,omitempty" yaml:"path"`
	License string `json:"license,omitempty" yaml:"license"`
	Type    string `json:"type,omitempty" yaml:"type"`
	stored  `yaml:"-"`
}

type code struct {
	Path        string `json:"path,omitempty" yaml:"path"`
	Description string `json:"description,omitempty" yaml:"description"`
	License     string `json:"license,omitempty" yaml:"license"`
	stored      `yaml:"-"`
}

type dataset struct {
	Name        string `json:"name,omitempty" yaml:"name"`
	Path        string `json:"path,omitempty" yaml:"path"`
	Description string `json:"description,omitempty" yaml:"description"`
	License     string `json:"license,omitempty" yaml:"license"`
	Parameters  any    `json:"parameters,omitempty" yaml:"parameters"`
	stored      `yaml:"-"`
}

type docs struct {
	Path        string `json:"path" yaml:"path"`
	Description string `json:"description,omitempty" yaml:"description"`
	stored      `yaml:"-"`
}

// Of the layer of an entry.
type stored struct {
	Digest string `json:"digest,omitempty"`
	DiffID string `json:"diffId,omitempty"`
}

type entry struct {
	kind   string
	path   string
	stored *stored
}

// In the order of the layers.
func (k *kitfile) entries() []entry {
	var found []entry
	if k.Model != nil {
		found = append(found, entry{"model", k.Model.Path, &k.Model.stored})
		for i := range k.Model.Parts {
			part := &k.Model.Parts[i]
			found = append(found, entry{"modelpart", part.Path, &part.stored})
		}
	}
	for i := range k.Code {
		found = append(found, entry{"code", k.Code[i].Path, &k.Code[i].stored})
	}
	for i := range k.Datasets {
		found = append(found, entry{"dataset", k.Datasets[i].Path, &k.Datasets[i].stored})
	}
	for i := range k.Docs {
		found = append(found, entry{"docs", k.Docs[i].Path, &k.Docs[i].stored})
	}
	return found
}

func ofFolder(folder string) (*kitfile, error) {
	text, err := os.ReadFile(filepath.Join(folder, "Kitfile"))
	if err != nil {
		return nil, err
	}
	found := &kitfile{}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	return found, decoder.Decode(found)
}

func ofJSON(text []byte) (*kitfile, error) {
	found := &kitfile{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(found); err != nil {
		return nil, fmt.Errorf("cannot read the Kitfile: %w", err)
	}
	return found, nil
}

// Whether it tells of each layer what is in it.
func (k *kitfile) tells(layers []layer) error {
	known := map[string]digest.Digest{}
	for _, layer := range layers {
		known[layer.Digest.String()] = layer.DiffID
	}
	for _, entry := range k.entries() {
		diffID, ok := known[entry.stored.Digest]
		if !ok || diffID.String() != entry.stored.DiffID {
			return fmt.Errorf("the Kitfile has %+v for %s", *entry.stored, entry.path)
		}
	}
	return nil
}
