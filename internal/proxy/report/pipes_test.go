package report

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// A report that the schema refuses would make the node a silent one.
func TestTheBoundsOfPipesAreThoseOfTheSchema(t *testing.T) {
	text, err := os.ReadFile("../../../config/crd/pipeguard.dev_guardednodes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	pipes := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["pipes"]
	if *pipes.MaxItems != maxPipes || *pipes.Items.Schema.MaxLength != maxPipe || pipes.Items.Schema.Pattern != pipeName.String() {
		t.Errorf("the schema has %d of %d characters, %s", *pipes.MaxItems, *pipes.Items.Schema.MaxLength, pipes.Items.Schema.Pattern)
	}
}

func TestAReportNamesThePipesThatTheServiceServes(t *testing.T) {
	many := make([]string, maxPipes+1)
	for i := range many {
		many[i] = fmt.Sprintf("pipe-%02d", i)
	}
	for name, c := range map[string]struct {
		served  []string
		want    []string
		message string
	}{
		"some":                     {[]string{"csi-proxy-volume-v1", "csi-proxy-disk-v1", "csi-proxy-disk-v1"}, []string{"csi-proxy-disk-v1", "csi-proxy-volume-v1"}, ""},
		"none":                     {[]string{}, []string{}, ""},
		"an earlier release":       {nil, nil, ""},
		"names that no label has":  {[]string{"a", "b-", "_c", "D", strings.Repeat("x", maxPipe+1), "d e", "f\n", "\x1b[2J", ""}, []string{"a"}, ""},
		"as many as there is room": {many[1:], many[1:], ""},
		"too many":                 {many, nil, "pipes not reported: 65 are served, and a report has room for 64"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(map[string]any{"version": "v1.2.3", "pipes": c.served})
			if err != nil {
				t.Fatal(err)
			}
			api, service := newFakeAPI(t), newFakeService(t, nil)
			service.raw = string(text)
			newReporter(t, api, service.address()).steps(t, 0)
			got := api.objects["win-1"]
			if diff := cmp.Diff(c.want, got.Pipes); diff != "" || got.Message != c.message {
				t.Errorf("message %q, pipes (-want +got):\n%s", got.Message, diff)
			}
		})
	}
}

func TestOtherPipesAreNews(t *testing.T) {
	states := []node{{}, {Pipes: []string{}}, {Pipes: []string{"a"}}, {Pipes: []string{"a", "b"}}}
	for i, one := range states {
		for j, other := range states {
			if one.isAs(other) != (i == j) {
				t.Errorf("%q and %q", one.Pipes, other.Pipes)
			}
		}
	}
	s := status{Pipes: []string{"b", "a"}}
	if describe(s, nil, nil); !slices.Equal(s.Pipes, []string{"b", "a"}) {
		t.Error("the answer was changed")
	}
	if got := describe(status{Pipes: []string{"a"}}, errNoAddress, nil); got.Pipes != nil {
		t.Errorf("no answer, and it serves %q", got.Pipes)
	}
}
