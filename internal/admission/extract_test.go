package admission

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/policies"
)

// paths are host paths of every sort: guarded, not guarded, and none that could be allowed.
var paths = []string{
	csiPipe, `\\.\pipe\CSI-Proxy-disk-v1`, `//./pipe/csi-proxy-volume-v1`, `\\.\pipe\docker_engine`, `\\.\pipe\`, `\\.\`, `\\?\`,
	`\\.\PhysicalDrive0`, `\\server\share\x`, `C:\var\lib\kubelet`, `/var/log`, `C:\`, "", `\\.\pipe\..\x`, `\\server`, "\\\\.\\pipe\\csi-proxy\u202e",
}

// randomPod is a Pod of the given generator with every feature that is read, and some that are not.
func randomPod(g *rand.Rand) *corev1.Pod {
	p := testPod()
	truth := func() *bool {
		switch g.IntN(4) {
		case 0:
			return new(true)
		case 1:
			return new(false)
		}
		return nil
	}
	windows := func() *corev1.WindowsSecurityContextOptions {
		if g.IntN(4) > 0 {
			return nil
		}
		return &corev1.WindowsSecurityContextOptions{HostProcess: truth()}
	}
	for range g.IntN(4) {
		v := corev1.Volume{Name: fmt.Sprint("v", g.IntN(3))} // duplicates on purpose
		if g.IntN(3) > 0 {
			v.HostPath = &corev1.HostPathVolumeSource{Path: paths[g.IntN(len(paths))]}
		} else {
			v.EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
	}
	containers := func() (out []corev1.Container) {
		for range g.IntN(3) {
			c := corev1.Container{Name: fmt.Sprint("c", g.IntN(2)), Image: "i"}
			if g.IntN(2) == 0 {
				c.SecurityContext = &corev1.SecurityContext{Privileged: truth(), WindowsOptions: windows()}
			}
			for range g.IntN(3) {
				m := corev1.VolumeMount{Name: fmt.Sprint("v", g.IntN(4)), MountPath: `C:\x`}
				switch g.IntN(4) {
				case 0:
					m.SubPath = []string{`pipe\csi-proxy-disk-v1`, `csi-proxy-x`, "logs"}[g.IntN(3)]
				case 1:
					m.SubPathExpr = []string{`pipe\csi-proxy-$(NAME)`, "$(PIPE)", `logs\$(NAME)`}[g.IntN(3)]
				}
				c.VolumeMounts = append(c.VolumeMounts, m)
			}
			out = append(out, c)
		}
		return out
	}
	p.Spec.InitContainers, p.Spec.Containers = containers(), containers()
	for _, c := range containers() {
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: c.Name, Image: c.Image, SecurityContext: c.SecurityContext, VolumeMounts: c.VolumeMounts}})
	}
	if g.IntN(4) == 0 {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: windows()}
	}
	if g.IntN(6) == 0 {
		p.Annotations = map[string]string{"microsoft.com/hostprocess-container": "true"}
	}
	return p
}

// escapeLetters spells some letters of a JSON text's strings as escapes, which changes nothing for a JSON reader.
func escapeLetters(g *rand.Rand, raw []byte) []byte {
	var out []byte
	inString := false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c == '\\':
			out = append(out, c, raw[i+1])
			i++
			continue
		case c == '"':
			inString = !inString
		case inString && c >= 'A' && c <= 'z' && g.IntN(5) == 0:
			out = fmt.Appendf(out, `\u%04x`, c)
			continue
		}
		out = append(out, c)
	}
	return out
}

func TestExtractionIsThatOfKubernetesOwnDecoder(t *testing.T) {
	guard := newReviewer(t, DefaultParameters()).guard.Load()
	guarded := 0
	for seed := range uint64(3000) {
		g := rand.New(rand.NewPCG(seed, 1))
		raw := marshal(t, randomPod(g))
		if g.IntN(2) == 0 {
			raw = escapeLetters(g, raw)
		}
		want, annotations, err := reference(guard, raw)
		if err != nil {
			t.Fatal(err)
		}
		obj, err := readObject(raw, podKind)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, raw)
		}
		got, err := extract(guard, &obj)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(extraction{}), cmpopts.EquateEmpty(),
			cmpopts.IgnoreFields(extraction{}, "guard", "spec", "field", "mounted", "work")); diff != "" {
			t.Fatalf("seed %d: extraction differs (-reference +got):\n%s\n%s", seed, diff, raw)
		}
		if diff := cmp.Diff(annotations, obj.meta.annotations, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("seed %d: annotations differ:\n%s", seed, diff)
		}
		if got, want := isRelevant(&got, obj.meta.annotations), matters(&want, annotations); got != want {
			t.Fatalf("seed %d: relevant %t, want %t\n%s", seed, got, want, raw)
		}
		e, err := decodeReview([]byte(podReview(string(raw))))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if matters(&want, annotations) {
			guarded++
			if !e.mayMatter {
				t.Fatalf("seed %d: the envelope's reading skips what matters\n%s", seed, raw)
			}
		}
	}
	if guarded < 500 {
		t.Errorf("only %d of the Pods held something to decide", guarded)
	}
}

func TestEnvelopeSkipsWhatCannotMatter(t *testing.T) {
	for object, want := range map[string]bool{
		`{"spec":{"volumes":[{"emptyDir":{}}]}}`:                                      false,
		`{"spec":{"containers":[{"env":[{"name":"hostPath","value":"x"}]}]}}`:         false,
		`{"spec":{"containers":[{"args":["hostPath: microsoft.com hostProcess"]}]}}`:  false,
		`{"spec":{"HostPath":1,"hostpath":2,"f:hostPath":3}}`:                         false,
		`{"metadata":{"annotations":{"example.com/a":"b"}}}`:                          false,
		`{"spec":{"volumes":[{"hostPath":{"path":"/var/log"}}]}}`:                     true,
		`{"spec":{"volumes":[{"\u0068ostPath":{"path":"x"}}]}}`:                       true,
		`{"spec":{"volumes":[{"host\u0050\u0061th":{"path":"x"}}]}}`:                  true,
		`{"spec":{"securityContext":{"windowsOptions":{"hostProcess":true}}}}`:        true,
		`{"spec":{"securityContext":{"windowsOptions":{"hostProces\u0073":true}}}}`:   true,
		`{"metadata":{"annotations":{"microsoft.com/hostprocess-container":"true"}}}`: true,
		`{"metadata":{"annotations":{"MicroSoft.com/x":"true"}}}`:                     true,
		`{"metadata":{"annotations":{"m\u0069crosoft.com/x":"true"}}}`:                true,
		`{"metadata":{"annotations":{"mİcrosoft.com/x":"true"}}}`:                     true,
		`{"spec":null}`: false,
	} {
		e, err := decodeReview([]byte(podReview(object)))
		if err != nil {
			t.Fatalf("%s: %v", object, err)
		}
		if e.mayMatter != want {
			t.Errorf("%s: may matter %t, want %t", object, e.mayMatter, want)
		}
	}
}

// schemaOf returns the JSON schema that is shipped for the input.
func schemaOf(t *testing.T) map[string]any {
	t.Helper()
	var schema map[string]any
	if err := json.Unmarshal(policies.InputSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// conforms is as much of JSON Schema as says that the members of objects are those of the schema.
func conforms(t *testing.T, at string, schema map[string]any, v any) {
	t.Helper()
	if ref, ok := schema["$ref"].(string); ok {
		root := schemaOf(t)
		for _, key := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			root = root[key].(map[string]any)
		}
		schema = root
	}
	switch v := v.(type) {
	case map[string]any:
		members, ok := schema["properties"].(map[string]any)
		if !ok {
			return
		}
		for key, member := range v {
			s, ok := members[key].(map[string]any)
			if !ok {
				t.Errorf("%s.%s is not in the schema", at, key)
				continue
			}
			conforms(t, at+"."+key, s, member)
		}
		required, _ := schema["required"].([]any)
		for _, key := range required {
			if _, ok := v[key.(string)]; !ok {
				t.Errorf("%s.%s is required by the schema and missing", at, key)
			}
		}
	case []any:
		if items, ok := schema["items"].(map[string]any); ok {
			for i, e := range v {
				conforms(t, fmt.Sprintf("%s[%d]", at, i), items, e)
			}
		}
	}
}

func TestValueIsTheInputAsJSONAndConformsToTheSchema(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	for seed := range uint64(200) {
		p := randomPod(rand.New(rand.NewPCG(seed, 2)))
		req := createRequest(t, p)
		obj, err := readObject(req.Object.Raw, podKind)
		if err != nil {
			t.Fatal(err)
		}
		e, err := extract(r.guard.Load(), &obj)
		if err != nil {
			t.Fatal(err)
		}
		in := r.input(req, &obj, &e)
		got := in.value(nil)
		// Through JSON, absent maps and lists are null; a policy finds them empty.
		complete(in)
		want, err := policy.ToValue(in)
		if err != nil {
			t.Fatal(err)
		}
		if got.Compare(want) != 0 {
			t.Fatalf("seed %d: value\n%v\ndiffers from the input's JSON\n%v", seed, got, want)
		}
		var document any
		if err := json.Unmarshal(marshal(t, in), &document); err != nil {
			t.Fatal(err)
		}
		conforms(t, "input", schemaOf(t), document)
	}
}

// complete replaces the nil maps and slices of an input by empty ones.
func complete(in *Input) {
	v := reflect.ValueOf(in).Elem()
	for _, f := range v.Fields() {
		switch {
		case f.Kind() == reflect.Map && f.IsNil():
			f.Set(reflect.MakeMap(f.Type()))
		case f.Kind() == reflect.Slice && f.IsNil():
			f.Set(reflect.MakeSlice(f.Type(), 0, 0))
		}
	}
	if in.User.Groups == nil {
		in.User.Groups = []string{}
	}
}

func TestAServiceAccountThatIsNotNamedIsTheDefaultOne(t *testing.T) {
	for text, want := range map[string]string{
		"serviceAccountName: a\nserviceAccount: a": "a",
		"serviceAccountName: a\nserviceAccount: b": "a",
		"serviceAccount: b":                        "b",
		"hostNetwork: true":                        "default",
	} {
		spec, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		obj, err := readObject([]byte(`{"apiVersion":"v1","kind":"Pod","spec":`+string(spec)+`}`), podKind)
		if err != nil || obj.pod.serviceAccount != want {
			t.Errorf("%q: %q, %v; want %q", text, obj.pod.serviceAccount, err, want)
		}
	}
	if obj, err := readObject([]byte(emptyPod), podKind); err != nil || obj.pod.serviceAccount != "default" {
		t.Errorf("without spec: %q, %v", obj.pod.serviceAccount, err)
	}
}

func TestObjectsThatWouldKeepACoreBusyAreRefused(t *testing.T) {
	long := strings.Repeat(`\x`, 100_000)
	repeat := func(n int, entry string) string { return strings.TrimSuffix(strings.Repeat(entry+",", n), ",") }
	volumes := func(entries string) string { return `"volumes":[` + entries + `]` }
	mounts := func(entries string) string { return `"containers":[{"name":"c","volumeMounts":[` + entries + `]}]` }
	r := newReviewer(t, DefaultParameters())
	for name, spec := range map[string]string{
		"a long path, mounted ten thousand times": volumes(`{"name":"v","hostPath":{"path":`+string(marshal(t, long))+`}}`) + "," +
			mounts(repeat(9_999, `{"name":"v"}`)),
		"a long path, mounted with as many subPaths": volumes(`{"name":"v","hostPath":{"path":`+string(marshal(t, long))+`}}`) + "," +
			mounts(repeat(9_999, `{"name":"v","subPath":"s"}`)),
		"thousands of volumes and mounts of one name": volumes(repeat(9_999, `{"name":"v","hostPath":{"path":"\\\\.\\"}}`)) + "," +
			mounts(repeat(9_999, `{"name":"v"}`)),
		"thousands of volumes and mounts of other names": volumes(repeat(9_999, `{"name":"v","hostPath":{"path":"x"}}`)) + "," +
			mounts(repeat(9_999, `{"name":"w"}`)),
		"a hundred thousand containers": volumes(`{"name":"v","hostPath":{"path":"x"}}`) + `,"containers":[` + repeat(100_000, `{}`) + `]`,
		"a path of two million bytes":   volumes(`{"name":"v","hostPath":{"path":"` + strings.Repeat("x", 2_000_000) + `"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			_, answer := post(t, r, []byte(podReview(`{"apiVersion":"v1","kind":"Pod","spec":{`+spec+`}}`)))
			if answer == nil || answer.Allowed || !strings.HasPrefix(answer.Result.Message, CodeFailure) {
				t.Fatalf("answer %+v", answer)
			}
		})
	}
}
