//go:build !windows

package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestATemplateIsJudgedAsItsPodsWillBe(t *testing.T) {
	guarded(t)
	others := namespace(t, "others", driver)
	for _, w := range workloads() {
		for name, c := range inside() {
			t.Run(w.kind+"/"+name, func(t *testing.T) {
				guilty := template(driver, pipe)
				c.change(&guilty.Spec)
				status := refused(t, at(t).api.Client.Create(t.Context(), named(w.make(guilty), others)), c.code)
				if diff := cmp.Diff([]string{c.code + " " + w.field + "." + c.field}, causes(status)); diff != "" {
					t.Errorf("causes (-want +got):\n%s", diff)
				}
				created(t, named(w.make(guilty), drivers))
				guilty.Spec.ServiceAccountName = ""
				refused(t, at(t).api.Client.Create(t.Context(), named(w.make(guilty), drivers)), c.code)
			})
		}
	}
}

func TestATemplateCannotGetAPipeLater(t *testing.T) {
	guarded(t)
	others := namespace(t, "others", driver)
	for _, w := range workloads() {
		if w.template == nil {
			continue // the API server refuses any change of it
		}
		t.Run(w.kind, func(t *testing.T) {
			bad, good := named(w.make(template(driver)), others), named(w.make(template(driver)), drivers)
			created(t, bad, good)
			for _, o := range []client.Object{bad, good} {
				w.template(o).Spec.Volumes = spec(driver, pipe).Volumes
				w.template(o).Spec.Containers = spec(driver, pipe).Containers
			}
			refused(t, at(t).api.Client.Update(t.Context(), bad), "PG001")
			if err := at(t).api.Client.Update(t.Context(), good); err != nil {
				t.Errorf("the driver's: %v", err)
			}
		})
	}
}

// A workload that has a pipe since before it was refused must stay manageable: scaled, annotated, given another image.
func TestAnOlderTemplateMayChangeInWhatDoesNotMatter(t *testing.T) {
	others := namespace(t, "others")
	older := map[string]client.Object{}
	guarded(t)
	before(t, func() {
		for _, w := range workloads() {
			older[w.kind] = named(w.make(template("", pipe)), others)
			created(t, older[w.kind])
		}
	})
	for _, w := range workloads() {
		t.Run(w.kind, func(t *testing.T) {
			o := older[w.kind]
			o.SetAnnotations(map[string]string{"example.com/note": "kept"})
			if err := at(t).api.Client.Update(t.Context(), o); err != nil {
				t.Fatalf("an annotation: %v", err)
			}
			if w.template == nil {
				return
			}
			w.template(o).Spec.Containers[0].VolumeMounts[0].SubPath = "sub"
			refused(t, at(t).api.Client.Update(t.Context(), o))
		})
	}
}
