//go:build !windows

package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/pipeguard/pipeguard/test/routes"
)

func sources() map[string]struct {
	make  func(string) corev1.PersistentVolumeSource
	field string
} {
	return map[string]struct {
		make  func(string) corev1.PersistentVolumeSource
		field string
	}{
		"hostPath": {routes.OnHost, "spec.hostPath.path"},
		"local":    {routes.Local, "spec.local.path"},
	}
}

func TestAPersistentVolumeLeadsNobodyToAPipe(t *testing.T) {
	guarded(t)
	for name, source := range sources() {
		t.Run(name, func(t *testing.T) {
			free := volume(source.make(pipe))
			status := refused(t, at(t).api.Client.Create(t.Context(), free), "PG007")
			if diff := cmp.Diff([]string{"PG007 " + source.field}, causes(status)); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
			// The claim's namespace does not help: whoever may edit the claim decides which pod gets the volume.
			bound := volume(source.make(pipe))
			bound.Spec.ClaimRef = &corev1.ObjectReference{Namespace: drivers, Name: "claim"}
			refused(t, at(t).api.Client.Create(t.Context(), bound), "PG007")
			refused(t, at(t).api.Client.Create(t.Context(), volume(source.make(`\\.\pipe`))), "PG003")
			refused(t, at(t).api.Client.Create(t.Context(), volume(source.make(`\`))), "PG003") // with the subPath \.\pipe\x
			harmless := volume(source.make("/mnt/disk"))
			deleted(t, harmless)
			created(t, harmless)
		})
	}
}

func TestAnOlderPersistentVolumeCannotBeBound(t *testing.T) {
	others := namespace(t, "others")
	older := map[string]*corev1.PersistentVolume{}
	guarded(t)
	before(t, func() {
		for name, source := range sources() {
			older[name] = volume(source.make(pipe))
			created(t, older[name])
			deleted(t, older[name])
		}
	})
	for name, v := range older {
		t.Run(name, func(t *testing.T) {
			v.Labels = map[string]string{"example.com/note": "kept"}
			if err := at(t).api.Client.Update(t.Context(), v); err != nil {
				t.Fatalf("a label: %v", err)
			}
			v.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: others, Name: "claim"}
			refused(t, at(t).api.Client.Update(t.Context(), v), "PG007")
		})
	}
}
