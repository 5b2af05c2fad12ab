// Prints, as JSON, what OpenAPI leaves out of the Go types of the built-in kinds: which fields are
// pointers or left out when empty, their numbers in protobuf, and how strategic patches merge them.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"

	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kinds that are served, by apiVersion.
var kinds = map[string][]any{
	"v1": {
		core.Namespace{}, core.Pod{}, core.Service{}, core.ConfigMap{}, core.Secret{},
		core.ServiceAccount{}, core.PersistentVolumeClaim{}, core.PersistentVolume{}, core.Node{},
		core.Event{}, core.Endpoints{}, core.Binding{}, meta.Status{}, meta.DeleteOptions{},
	},
	"apps/v1":                      {apps.Deployment{}, apps.ReplicaSet{}},
	"batch/v1":                     {batch.Job{}},
	"autoscaling/v1":               {autoscalingv1.Scale{}},
	"autoscaling/v2":               {autoscaling.HorizontalPodAutoscaler{}},
	"discovery.k8s.io/v1":          {discovery.EndpointSlice{}},
	"coordination.k8s.io/v1":       {coordination.Lease{}},
	"events.k8s.io/v1":             {events.Event{}},
	"rbac.authorization.k8s.io/v1": {rbac.Role{}, rbac.RoleBinding{}, rbac.ClusterRole{}, rbac.ClusterRoleBinding{}},
	"apiextensions.k8s.io/v1":      {apiextensions.CustomResourceDefinition{}},
	"storage.k8s.io/v1":            {storage.StorageClass{}},
	"authentication.k8s.io/v1":     {authentication.TokenReview{}, authentication.TokenRequest{}, authentication.SelfSubjectReview{}},
	"authorization.k8s.io/v1": {
		authorization.SelfSubjectAccessReview{}, authorization.SubjectAccessReview{},
		authorization.LocalSubjectAccessReview{}, authorization.SelfSubjectRulesReview{},
	},
	"networking.k8s.io/v1": {networking.NetworkPolicy{}},
	"policy/v1":            {policy.PodDisruptionBudget{}, policy.Eviction{}},
	"scheduling.k8s.io/v1": {scheduling.PriorityClass{}},
}

type kind struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Type       string `json:"type"`
}

type field struct {
	Name      string `json:"name"`
	Go        string `json:"go"`
	Pointer   bool   `json:"pointer,omitempty"`
	OmitEmpty bool   `json:"omitEmpty,omitempty"`
	OmitZero  bool   `json:"omitZero,omitempty"`
	Number    int    `json:"number,omitempty"`
	Within    int    `json:"within,omitempty"`
	Strategy  string `json:"strategy,omitempty"`
	MergeKey  string `json:"mergeKey,omitempty"`
}

type dump struct {
	Kinds []kind             `json:"kinds"`
	Types map[string][]field `json:"types"`
}

// The name under which OpenAPI has a type.
func name(t reflect.Type) string {
	path := strings.TrimPrefix(t.PkgPath(), "k8s.io/")
	return "io.k8s." + strings.ReplaceAll(path, "/", ".") + "." + t.Name()
}

func number(tag reflect.StructTag) int {
	parts := strings.Split(tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(parts[1])
	return n
}

// Walks into everything a type is made of.
func (d *dump) visit(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		d.visit(t.Elem())
	case reflect.Struct:
		if !strings.HasPrefix(t.PkgPath(), "k8s.io/") {
			return
		}
		if _, seen := d.Types[name(t)]; seen {
			return
		}
		d.Types[name(t)] = nil
		d.Types[name(t)] = d.fields(t, 0)
	}
}

func (d *dump) fields(t reflect.Type, within int) []field {
	found := []field{}
	for i := range t.NumField() {
		f := t.Field(i)
		tags := strings.Split(f.Tag.Get("json"), ",")
		if !f.IsExported() || tags[0] == "-" {
			continue
		}
		if f.Anonymous && tags[0] == "" && f.Type.Kind() == reflect.Struct {
			found = append(found, d.fields(f.Type, number(f.Tag))...)
			continue
		}
		if tags[0] == "" {
			continue
		}
		entry := field{
			Name: tags[0], Go: f.Type.Kind().String(), Number: number(f.Tag), Within: within,
			Strategy: f.Tag.Get("patchStrategy"), MergeKey: f.Tag.Get("patchMergeKey"),
		}
		for _, option := range tags[1:] {
			entry.OmitEmpty = entry.OmitEmpty || option == "omitempty"
			entry.OmitZero = entry.OmitZero || option == "omitzero"
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			entry.Pointer = true
			inner = inner.Elem()
			entry.Go = inner.Kind().String()
		}
		if inner.Kind() == reflect.Struct {
			entry.Go = name(inner)
		}
		found = append(found, entry)
		d.visit(f.Type)
	}
	return found
}

func main() {
	d := dump{Types: map[string][]field{}}
	for version, objects := range kinds {
		for _, object := range objects {
			t := reflect.TypeOf(object)
			d.Kinds = append(d.Kinds, kind{version, t.Name(), name(t)})
			d.visit(t)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(d); err != nil {
		panic(err)
	}
}
