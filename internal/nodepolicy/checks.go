package nodepolicy

import (
	"errors"
	"maps"

	"github.com/pipeguard/pipeguard/internal/policy"
)

// checks are the tests that every request policy must pass before it is activated: a service is not stopped for an unknown
// caller, a missing field names no caller, and an ordinary call gets an answer.
func checks() []policy.Check {
	stop := sample("system", "StopService", map[string]any{"name": "WinDefend", "force": true})
	start := sample("system", "StartService", map[string]any{"name": "WinDefend"})
	unsaid, text := maps.Clone(stop), maps.Clone(stop)
	delete(unsaid, "named")
	text["named"] = "true"
	return []policy.Check{
		{Name: "built-in: a service is not stopped for an unknown caller", Input: stop, Want: wantDenied},
		{Name: "built-in: a service is not started for an unknown caller", Input: start, Want: wantDenied},
		{Name: "built-in: nor where nothing says whether it is named", Input: unsaid, Want: wantDenied},
		{Name: "built-in: nor where a text says that it is", Input: text, Want: wantDenied},
		{Name: "built-in: an empty input is refused", Input: map[string]any{}, Want: wantDenied},
		{
			Name: "built-in: a question about a path gets an answer", Input: sample("filesystem", "PathExists", map[string]any{"path": `C:\x`}),
			Want: func(policy.Decision) error { return nil }, // which one is the author's business
		},
	}
}

func sample(group, operation string, request map[string]any) map[string]any {
	return map[string]any{
		"peer": map[string]any{
			"assurance": "none", "process": map[string]any{"pid": 0, "start": "", "exe": ""}, "user": map[string]any{"sid": "", "name": ""},
			"pod": nil, "container": nil, "token": false,
		},
		"named": false, "pipe": "csi-proxy-" + group + "-v1", "group": group, "version": "v1", "method": operation, "operation": operation,
		"request": request, "node": "", "now": "2001-02-03T04:05:06Z",
	}
}

func wantDenied(d policy.Decision) error {
	if d.Allowed {
		return errors.New("it was allowed")
	}
	return nil
}
