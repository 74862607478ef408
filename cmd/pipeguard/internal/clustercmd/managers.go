package clustercmd

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownManagers are the field managers by which the webhook writes entries (internal/hooks and internal/certs), with what each writes beside the
// caBundle.
func ownManagers() map[string]string {
	return map[string]string{"pipeguard-rules": "f:rules", "pipeguard-certificates": ""}
}

// managersOf are the field managers that wrote more of webhooks than the caBundle and what the webhook itself writes by that name, sorted.
func managersOf(fields []metav1.ManagedFieldsEntry) []string {
	names := map[string]bool{}
	for _, f := range fields {
		if f.FieldsV1 == nil {
			continue
		}
		var owned struct {
			Webhooks map[string]json.RawMessage `json:"f:webhooks"`
		}
		if err := json.Unmarshal(f.FieldsV1.GetRawBytes(), &owned); err != nil {
			names[f.Manager] = true // what is not understood may be anything
			continue
		}
		for key, raw := range owned.Webhooks {
			if key != "." && writesMore(raw, ownManagers()[f.Manager]) {
				names[f.Manager] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// writesMore reports whether owned fields of a webhook are more than its name, its caBundle and the field that the manager may own.
func writesMore(raw json.RawMessage, own string) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return true
	}
	for key, value := range fields {
		switch key {
		case ".", "f:name", own:
		case "f:clientConfig":
			var config map[string]json.RawMessage
			if json.Unmarshal(value, &config) != nil {
				return true
			}
			for key := range config {
				if key != "." && key != "f:caBundle" {
					return true
				}
			}
		default:
			return true
		}
	}
	return false
}
