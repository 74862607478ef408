package chart_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/configfile"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// served are the pipes of a node with what they serve.
func served(t *testing.T) []access.API {
	t.Helper()
	apis, err := apiserver.Load(apiserver.Groups()...)
	if err != nil {
		t.Fatal(err)
	}
	var known []access.API
	for _, api := range apis {
		entry := access.API{Group: api.GroupVersion().Group, Version: api.GroupVersion().Version}
		for _, operation := range api.Operations() {
			entry.Operations = append(entry.Operations, operation.Name)
		}
		known = append(known, entry)
	}
	return known
}

// proxyConfig reads the configuration of a rendering's nodes as proxy.exe does, its rules compared with what there is.
func proxyConfig(t *testing.T, all []object, name string) (config.Proxy, *acl.Policy) {
	t.Helper()
	content, _ := one(t, all, "ConfigMap", name).at("data", "proxy.yaml").(string)
	p, err := config.ParseProxy("proxy.yaml", []byte(content))
	if err != nil {
		t.Fatalf("%v\n%s", err, content)
	}
	known := served(t)
	for _, f := range p.Forward {
		known = append(known, access.API{Group: `\\.\pipe\` + f.Pipe})
	}
	policy, err := p.Policy(known)
	if err != nil {
		t.Fatalf("%v\n%s", err, content)
	}
	return p, policy
}

func TestWithoutRulesNodesDenyEveryCall(t *testing.T) {
	p, policy := proxyConfig(t, renderings(t)["nodes"], "pipeguard-node")
	if p.IsMissing() || policy.Revision() != acl.DenyAll().Revision() {
		t.Errorf("%d rules, %d modes", len(p.ACL.Rules), len(p.ACL.Pipes))
	}
	if p.Backend != "" || p.Audit.NoSync {
		t.Errorf("backend %q, records that are not waited for: %t", p.Backend, p.Audit.NoSync)
	}
}

func TestEveryProfileMakesRulesForAnAccountThatTheProxyTakes(t *testing.T) {
	for value, d := range drivers {
		args := set("node.enabled=true", "node.driverRules.user=S-1-5-93-2-1", "drivers."+value+".enabled=true")
		p, _ := proxyConfig(t, render(t, args...), "pipeguard-node")
		covered := map[string]bool{}
		for _, rule := range p.ACL.Rules {
			if !strings.HasPrefix(rule.Name, "driver-"+value) || len(rule.Permits) > 0 {
				t.Errorf("%s: %+v", value, rule)
			}
			if diff := cmp.Diff([]acl.CallerPattern{{User: "S-1-5-93-2-1", Assurance: "process"}}, rule.Callers); diff != "" {
				t.Errorf("%s: callers (-want +got):\n%s", value, diff)
			}
			for _, pipe := range rule.Pipes {
				covered[pipe] = true
				if isSystem := strings.HasPrefix(pipe, "system-"); isSystem && !slices.Equal(rule.Operations, []string{"GetBIOSSerialNumber"}) {
					t.Errorf("%s: %s with %v: it stops any service", value, pipe, rule.Operations)
				}
			}
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(d.pipes)), slices.Sorted(maps.Keys(covered))); diff != "" {
			t.Errorf("%s: pipes (-profile +rules):\n%s", value, diff)
		}
	}
}

func TestProfilesMakeNoRulesWithoutADriverOrAWayToKnowIt(t *testing.T) {
	for _, values := range [][]string{
		{"node.driverRules.enabled=true"},
		{"drivers.azuredisk.enabled=true", "node.driverRules.enabled=false"},
		{"drivers.azuredisk.enabled=true", "node.identity.enabled=false"},
		{"drivers.azuredisk.enabled=true", "drivers.azuredisk.modes={HostProcess}"},
	} {
		if p, _ := proxyConfig(t, render(t, set(append(values, "node.enabled=true")...)...), "pipeguard-node"); len(p.ACL.Rules)+len(p.ACL.Profiles) > 0 {
			t.Errorf("%q: %+v", values, p.ACL)
		}
	}
}

func TestEveryValueOfTheNodesConfigurationArrives(t *testing.T) {
	p, _ := proxyConfig(t, renderings(t)["everything"], "guard-node")
	if len(p.ACL.Rules) != 2+len(drivers)+1 || p.ACL.Rules[0].Name != "backup" { // each driver has one, and vsphere another for system
		t.Errorf("%d rules, the first is %q", len(p.ACL.Rules), p.ACL.Rules[0].Name)
	}
	for _, rule := range p.ACL.Rules[2:] {
		if rule.Callers[0].User != "S-1-5-93-2-2" {
			t.Errorf("%s is for %s", rule.Name, rule.Callers[0].User)
		}
	}
	var set struct {
		Node struct{ Config map[string]any }
	}
	if err := yaml.Unmarshal([]byte(read(t, "testdata", "everything.yaml")["everything.yaml"]), &set); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	content, _ := one(t, renderings(t)["everything"], "ConfigMap", "guard-node").at("data", "proxy.yaml").(string)
	if err := yaml.Unmarshal([]byte(content), &got); err != nil {
		t.Fatal(err)
	}
	set.Node.Config["apiVersion"], set.Node.Config["kind"] = configfile.APIVersion, config.ProxyKind
	for _, x := range []map[string]any{set.Node.Config, got} {
		delete(x, "acl") // compared above
	}
	if diff := cmp.Diff(set.Node.Config, got); diff != "" {
		t.Errorf("(-value +file):\n%s", diff)
	}
}

// keysOf returns the keys that a configuration may have, with those above them, as the program has them.
func keysOf(typ reflect.Type, prefix string) []string {
	for typ.Kind() == reflect.Slice || typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	var keys []string
	if typ.Kind() != reflect.Struct {
		return nil
	}
	for field := range typ.Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if key == "" || key == "-" || !field.IsExported() {
			continue
		}
		keys = append(append(keys, prefix+key), keysOf(field.Type, prefix+key+".")...)
	}
	return keys
}

// schemaKeys returns the same from a schema.
func schemaKeys(definitions map[string]schema, s schema, prefix string) []string {
	if name, ok := strings.CutPrefix(s.Ref, "#/definitions/"); ok {
		return schemaKeys(definitions, definitions[name], prefix)
	}
	if s.Items != nil {
		return schemaKeys(definitions, *s.Items, prefix)
	}
	var keys []string
	for key, below := range s.Properties {
		keys = append(append(keys, prefix+key), schemaKeys(definitions, below, prefix+key+".")...)
	}
	return keys
}

type schema struct {
	Ref         string            `json:"$ref"`
	Properties  map[string]schema `json:"properties"`
	Items       *schema           `json:"items"`
	Definitions map[string]schema `json:"definitions"`
}

func TestTheSchemaKnowsTheKeysOfTheNodesConfiguration(t *testing.T) {
	var s schema
	if err := json.Unmarshal([]byte(read(t, chart, "values.schema.json")["values.schema.json"]), &s); err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(keysOf(reflect.TypeFor[config.Proxy](), ""), func(key string) bool {
		return key == "apiVersion" || key == "kind" || key == "requestPolicy.named" // the last is a fault wherever it stands
	})
	got := schemaKeys(s.Definitions, s.Definitions["proxyConfig"], "")
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-program +schema):\n%s", diff)
	}
}
