//go:build !windows

package integration

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

// The schema speaks before the webhook, and the check decides where there is no schema: in files, and at an author's desk.
func TestTheSchemaAndTheCheckTakeTheSameNames(t *testing.T) {
	site := at(t)
	for _, name := range []string{
		"a", "csi-driver", "csi.driver", "0", "a-b.c-d", "*", "csi-*", "?", "a*b", "[a]", "A", "a_b", "a.", ".a", "a..b", "-a", "a-", "a/b", " a", "ä",
		strings.Repeat("a", 63), strings.Repeat("a", 64),
	} {
		for field, set := range map[string]func(*v1alpha1.Subject){
			"namespace":       func(s *v1alpha1.Subject) { s.Namespace = name },
			"serviceAccounts": func(s *v1alpha1.Subject) { s.ServiceAccounts = []string{name} },
			"containers":      func(s *v1alpha1.Subject) { s.Containers = []string{name} },
		} {
			s := subject("default")
			set(&s)
			p := pipePolicy("names", []v1alpha1.PipePattern{"csi-proxy-disk-v1"}, s)
			faults := policyset.CheckPipePolicy(p)
			err := site.api.Client.Create(t.Context(), p, client.DryRunAll)
			if err != nil && !apierrors.IsInvalid(err) {
				t.Fatalf("%s %q: %v", field, name, err)
			}
			if (err == nil) != (len(faults) == 0) {
				t.Errorf("%s %q: the schema says %v, the check %v", field, name, err, faults)
			}
			if name == "*" && field != "namespace" && (err == nil || !strings.Contains(err.Error(), "leave the list out")) {
				t.Errorf("%s: no remedy: %v", field, err)
			}
		}
	}
}
