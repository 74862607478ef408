//go:build !windows

package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/routes"
)

func TestATemplateIsJudgedAsItsPodsWillBe(t *testing.T) {
	guarded(t)
	others := namespace(t, "others", driver)
	for _, w := range routes.Workloads() {
		for name, c := range inside() {
			t.Run(w.Kind+"/"+name, func(t *testing.T) {
				guilty := template(driver, pipe)
				c.change(&guilty.Spec)
				status := refused(t, at(t).api.Client.Create(t.Context(), named(w.Make(guilty), others)), c.code)
				if diff := cmp.Diff([]string{c.code + " " + w.Field + "." + c.field}, causes(status)); diff != "" {
					t.Errorf("causes (-want +got):\n%s", diff)
				}
				created(t, named(w.Make(guilty), drivers))
				guilty.Spec.ServiceAccountName = ""
				refused(t, at(t).api.Client.Create(t.Context(), named(w.Make(guilty), drivers)), c.code)
			})
		}
	}
}

func TestATemplateCannotGetAPipeLater(t *testing.T) {
	guarded(t)
	others := namespace(t, "others", driver)
	for _, w := range routes.Workloads() {
		if w.Template == nil {
			continue // the API server refuses any change of it
		}
		t.Run(w.Kind, func(t *testing.T) {
			bad, good := named(w.Make(template(driver)), others), named(w.Make(template(driver)), drivers)
			created(t, bad, good)
			for _, o := range []client.Object{bad, good} {
				w.Template(o).Spec.Volumes = spec(driver, pipe).Volumes
				w.Template(o).Spec.Containers = spec(driver, pipe).Containers
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
		for _, w := range routes.Workloads() {
			older[w.Kind] = named(w.Make(template("", pipe)), others)
			created(t, older[w.Kind])
		}
	})
	for _, w := range routes.Workloads() {
		t.Run(w.Kind, func(t *testing.T) {
			o := older[w.Kind]
			o.SetAnnotations(map[string]string{"example.com/note": "kept"})
			if err := at(t).api.Client.Update(t.Context(), o); err != nil {
				t.Fatalf("an annotation: %v", err)
			}
			if w.Template == nil {
				return
			}
			w.Template(o).Spec.Containers[0].VolumeMounts[0].SubPath = "sub"
			refused(t, at(t).api.Client.Update(t.Context(), o))
		})
	}
}
