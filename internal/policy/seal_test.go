package policy

import (
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/rego"
)

func TestSealedProcessReachesNothingEvenWithEveryBuiltin(t *testing.T) {
	SealProcess()
	for name, query := range map[string]string{
		"http.send":          `http.send({"method": "get", "url": "http://127.0.0.1:1/"})`,
		"net.lookup_ip_addr": `net.lookup_ip_addr("localhost")`,
		"opa.runtime":        `opa.runtime()`,
	} {
		_, err := rego.New(rego.Query(query), rego.StrictBuiltinErrors(true)).Eval(t.Context())
		if err == nil || !strings.Contains(err.Error(), errSealed.Error()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
