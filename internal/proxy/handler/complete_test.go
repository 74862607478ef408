package handler

import (
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

func TestOperationsWithoutAHandlerAndHandlersWithoutAnOperationAreFaults(t *testing.T) {
	apis, err := apiserver.Load("system")
	if err != nil {
		t.Fatal(err)
	}
	h := &Handlers{operations: map[key]operation{}}
	h.offer("system", system{}.operations())
	if err := h.complete(apis); err != nil {
		t.Fatal(err)
	}
	delete(h.operations, key{"system", "GetService"})
	h.operations[key{"system", "Reboot"}] = typed(system{}.serialNumber)
	err = h.complete(apis)
	for _, want := range []string{"system GetService has no handler", "system Reboot is handled but not published"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %q", err, want)
		}
	}
}
