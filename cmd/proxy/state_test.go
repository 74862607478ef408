package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/proxy/activerules"
)

func TestTheStatusSaysWhichSchemasAreReadWithoutABundleToo(t *testing.T) {
	mux := http.NewServeMux()
	serveState(mux, "win-1", activerules.New(nil), &auditLog{}, func() []string { return []string{} })
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/status", nil))
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"pipeguard.dev/node-rules/v2", "pipeguard.dev/bundle/v2"}, got["schemas"]); diff != "" || got["bundle"] != nil || got["pipes"] == nil {
		t.Errorf("%v\n%s", got, diff)
	}
}
