package certs

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAPatchTouchesNothingButBundlesThatDiffer(t *testing.T) {
	c := Configuration{Name: "n", Version: "17", Webhooks: []Webhook{{Name: "a", Bundle: []byte("new")}, {Name: "b", Bundle: []byte("old")}, {Name: "c"}}}
	text, err := c.patch([]byte("new"))
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := []any{
		map[string]any{"op": "replace", "path": "/metadata/resourceVersion", "value": "17"},
		map[string]any{"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": "bmV3"},
		map[string]any{"op": "add", "path": "/webhooks/2/clientConfig/caBundle", "value": "bmV3"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
}
