package chart_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/pipeguard/pipeguard/test/harness"
)

const (
	root      = "../.."
	chart     = root + "/charts/pipeguard"
	namespace = "pipeguard-system"
)

// tool returns the path of a program that test/tools builds. Without it nothing is tested, which must not go unseen.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(harness.Tools(), name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is missing: run test/tools/build cluster", path)
		}
		t.Skipf("THE CHART IS NOT TESTED: %s is missing; run test/tools/build cluster", path)
	}
	return path
}

// helm runs helm without the settings of whoever runs the test.
func helm(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), tool(t, "helm"), args...)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("helm %q: %w\n%s", args, err, errOut.String())
	}
	return out.String(), nil
}

// rendered keeps what template returned, by its arguments: many tests look at one rendering, and helm takes its time.
var rendered sync.Map

// template renders the chart as the release "pipeguard".
func template(t *testing.T, args ...string) (string, error) {
	t.Helper()
	key := strings.Join(args, "\x00")
	if stream, ok := rendered.Load(key); ok {
		return stream.(string), nil
	}
	stream, err := helm(t, append([]string{"template", "pipeguard", chart, "--namespace", namespace}, args...)...)
	if err == nil {
		rendered.Store(key, stream)
	}
	return stream, err
}

// set makes a --set of each value.
func set(values ...string) []string {
	var args []string
	for _, v := range values {
		args = append(args, "--set", v)
	}
	return args
}

// object is any object as it was rendered.
type object map[string]any

func (o object) kind() string { return fmt.Sprint(o["kind"]) }
func (o object) name() string { return fmt.Sprint(o.at("metadata", "name")) }
func (o object) id() string   { return o.kind() + "/" + o.name() }

// at returns what is at a path of keys, or nil.
func (o object) at(path ...string) any {
	var v any = map[string]any(o)
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

// decode reads the object as a value of the type T; a field that T does not have is an error.
func decode[T any](t *testing.T, o object) T {
	t.Helper()
	text, err := yaml.Marshal(map[string]any(o))
	if err != nil {
		t.Fatal(err)
	}
	var v T
	if err := yaml.UnmarshalStrict(text, &v); err != nil {
		t.Errorf("%s: %v", o.id(), err)
	}
	return v
}

var separator = regexp.MustCompile(`(?m)^---\s*$`)

// parsed keeps the objects of a stream: reading YAML takes longer than anything else here.
var parsed sync.Map

// objects reads a stream of YAML documents. The caller may change what it gets.
func objects(t *testing.T, stream string) []object {
	t.Helper()
	known, ok := parsed.Load(stream)
	if !ok {
		known = parse(t, stream)
		parsed.Store(stream, known)
	}
	var all []object
	for _, o := range known.([]object) {
		all = append(all, runtime.DeepCopyJSON(o))
	}
	return all
}

func parse(t *testing.T, stream string) []object {
	t.Helper()
	var all []object
	for _, document := range separator.Split(stream, -1) {
		var o map[string]any
		if err := yaml.UnmarshalStrict([]byte(document), &o); err != nil {
			t.Fatalf("not valid YAML: %v\n%s", err, document)
		}
		if o != nil {
			all = append(all, o)
		}
	}
	return all
}

// render renders the chart, which must succeed.
func render(t *testing.T, args ...string) []object {
	t.Helper()
	stream, err := template(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, stream)
}

// one returns the only object with the kind and name.
func one(t *testing.T, all []object, kind, name string) object {
	t.Helper()
	var found []object
	for _, o := range all {
		if o.kind() == kind && o.name() == name {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		var ids []string
		for _, o := range all {
			ids = append(ids, o.id())
		}
		t.Fatalf("%d objects are %s/%s, among %s", len(found), kind, name, strings.Join(ids, " "))
	}
	return found[0]
}

// text is the object as YAML.
func text(t *testing.T, o object) string {
	t.Helper()
	out, err := yaml.Marshal(map[string]any(o))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
