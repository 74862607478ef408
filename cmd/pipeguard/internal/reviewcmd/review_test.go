package reviewcmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/test/clitest"
)

// Warnings are about the policies, so they do not change the report of the objects.
func TestReviewPrintsTheWarningsOfItsPolicies(t *testing.T) {
	params := filepath.Join(t.TempDir(), "parameters.yaml")
	if err := os.WriteFile(params, []byte("guardedPipes: [csi-proxy-dsk*]\nallowedNamespaces: {a: {}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := execute(t, "", "review", "-f", "testdata/review/ordinary.yaml", "--params", params)
	if got.Code != cli.ExitYes || strings.Count(got.ErrOut, "warning: ") != 2 || strings.Contains(got.Out, "warning: ") {
		t.Errorf("exit code %d, standard error %q, output %q", got.Code, got.ErrOut, got.Out)
	}
}

func TestReviewAnswersAsTheWebhookWould(t *testing.T) {
	for name, c := range map[string]struct {
		golden string
		args   []string
		code   int
	}{
		"an ordinary pod is allowed":                   {"ordinary", []string{"-f", "ordinary.yaml"}, cli.ExitYes},
		"a pod with a pipe is denied":                  {"web-with-pipe", []string{"-f", "web-with-pipe.yaml"}, cli.ExitNo},
		"a driver is denied where nobody is allowed":   {"driver-denied", []string{"-f", "driver.yaml"}, cli.ExitNo},
		"a driver is allowed where it is":              {"driver-allowed", []string{"-f", "driver.yaml", "--params", "testdata/review/parameters.yaml"}, cli.ExitYes},
		"a privileged pod is allowed with a warning":   {"privileged", []string{"-f", "privileged.yaml"}, cli.ExitYes},
		"several objects of several kinds":             {"mixed", []string{"-f", "mixed.yaml"}, cli.ExitNo},
		"an ephemeral container is denied":             {"ephemeral", []string{"-f", "ephemeral.json"}, cli.ExitNo},
		"one denied object of several files is enough": {"two-files", []string{"-f", "ordinary.yaml", "-f", "web-with-pipe.yaml"}, cli.ExitNo},
		"workloads are judged by their template":       {"workloads", []string{"-f", "workloads.yaml"}, cli.ExitNo},
		"a driver is allowed by a PipePolicy":          {"governed", []string{"-f", "driver.yaml", "-f", "workloads.yaml", "--policies", "testdata/review/policies.yaml"}, cli.ExitNo},
		"an own namespace for those that name none":    {"namespace", []string{"-f", "mixed.yaml", "-n", "ops"}, cli.ExitNo},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"review"}
			for _, arg := range c.args {
				if strings.Contains(arg, ".") && !strings.Contains(arg, "/") {
					arg = "testdata/review/" + arg
				}
				args = append(args, arg)
			}
			got := execute(t, "", append(args, "-o", "json")...)
			if got.Code != c.code || got.ErrOut != "" {
				t.Errorf("exit code %d, want %d; standard error %q", got.Code, c.code, got.ErrOut)
			}
			clitest.Golden(t, "review-"+c.golden+".json", got.Out)
			// Activating policies takes most of the time, so the text is made of the same report.
			clitest.Golden(t, "review-"+c.golden+".txt", textOf(t, got.Out))
		})
	}
}

func TestReviewRefusesWhatTheAPIServerRefuses(t *testing.T) {
	const head = "apiVersion: v1\nkind: Pod\nspec: "
	for spec, want := range map[string]string{
		`{volumes: [{name: v, hostpath: {path: 'C:\'}}]}`:                                   `unknown field "spec.volumes[0].hostpath"; did you mean "hostPath"?`,
		"{containers: [{name: c, volumeMounts: [{name: v, mountPath: x, subPath: ../x}]}]}": "volumeMounts[0].subPath: must not contain '..'",
	} {
		got := execute(t, head+spec+"\n", "review", "-f", "-")
		if got.Code != cli.ExitBadInput || !strings.Contains(got.Out, "bad input: the API server refuses this object: ") || !strings.Contains(got.Out, want) {
			t.Errorf("%s: exit code %d, %s", spec, got.Code, got.Out)
		}
	}
}

func TestReviewNamesFileAndDocumentOfBadInput(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}]}\n"
	const head = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":`
	for name, c := range map[string]struct {
		stdin, want string
		args        []string
	}{
		"nothing at all":                                      {want: "standard input: document 1 (line 1): bad input: no objects"},
		"a file that is missing":                              {args: []string{"-f", "missing.yaml"}, stdin: pod, want: "missing.yaml: document 1"},
		"a directory without manifests":                       {args: []string{"-f", "testdata"}, stdin: pod, want: "testdata: document 1 (line 1): bad input: no *.yaml"},
		"broken YAML in document 2":                           {stdin: pod + "---\na: [\n", want: "standard input: document 2 (line 6): bad input: lines counted"},
		"a key twice":                                         {stdin: pod + "spec: {}\n", want: `document 1 (line 1): bad input: lines counted within the document: yaml: unmarshal errors: line 5: key "spec" already set`},
		"a Deployment of a version that is gone":              {stdin: "apiVersion: apps/v1beta1\nkind: Deployment\n", want: "kind Deployment.apps is judged, but not as apps/v1beta1"},
		"a PersistentVolume of another version in a List":     {stdin: "apiVersion: v1\nkind: List\nitems: [{apiVersion: v2, kind: PersistentVolume}]\n", want: "document 1 (line 1) items[0]: bad input: kind PersistentVolume"},
		"a kind that nobody knows":                            {stdin: "apiVersion: example.org/v1\nkind: Widget\n", want: "kind Widget.example.org (example.org/v1) is not known here"},
		"a Pod of another version":                            {stdin: "apiVersion: v2\nkind: Pod\n", want: "kind Pod is judged, but not as v2"},
		"a Pod of another group":                              {stdin: "apiVersion: example.org/v1\nkind: Pod\n", want: "kind Pod.example.org"},
		"a pod in lower case":                                 {stdin: "apiVersion: v1\nkind: pod\n", want: "kind pod (v1) is not known here"},
		"volumes that are no list":                            {stdin: "apiVersion: v1\nkind: Pod\nspec: {volumes: 1}\n", want: "document 1 (line 1): bad input: review a Pod"},
		"a path that is a number":                             {stdin: "apiVersion: v1\nkind: Pod\nspec: {volumes: [{name: a, hostPath: {path: 1}}]}\n", want: "bad input: review a Pod"},
		"a namespace that is not --namespace":                 {stdin: "apiVersion: v1\nkind: Pod\nmetadata: {namespace: a}\n", args: []string{"-n", "b"}, want: `the object is in namespace "a", --namespace says "b"`},
		"an AdmissionReview of v1beta1":                       {stdin: strings.Replace(head, "/v1", "/v1beta1", 1) + `{"uid":"u"}}`, want: "not an admission.k8s.io/v1 AdmissionReview"},
		"an AdmissionReview without uid":                      {stdin: head + `{}}`, want: "no request.uid"},
		"an AdmissionReview of a Service":                     {stdin: head + `{"uid":"u","operation":"CREATE","kind":{"group":"","version":"v1","kind":"Service"},"object":{"apiVersion":"v1","kind":"Service"}}}`, want: "v1 Service"},
		"an AdmissionReview of a deletion":                    {stdin: head + `{"uid":"u","operation":"DELETE","kind":{"group":"","version":"v1","kind":"Pod"}}}`, want: "DELETE"},
		"an AdmissionReview that says Pod and holds a Secret": {stdin: head + `{"uid":"u","operation":"CREATE","kind":{"group":"","version":"v1","kind":"Pod"},"object":{"apiVersion":"v1","kind":"Secret"}}}`, want: "its object is"},
		"bytes that are no UTF-8":                             {stdin: "a: \xff", want: "not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, c.stdin, append([]string{"review", "-f", "-", "-o", "json"}, c.args...)...)
			if text := textOf(t, got.Out); got.Code != cli.ExitBadInput || !strings.Contains(text, c.want) || !strings.Contains(got.Out, `"verdict": "bad-input"`) {
				t.Errorf("exit code %d, want 2; output %q, want %q in it; standard error %q", got.Code, text, c.want, got.ErrOut)
			}
		})
	}
}

// textOf is what the command would have printed as text.
func textOf(t *testing.T, asJSON string) string {
	t.Helper()
	var report reviewReport
	if err := json.Unmarshal([]byte(asJSON), &report); err != nil {
		t.Fatalf("%v: %q", err, asJSON)
	}
	var text strings.Builder
	printReview(cli.NewPrinter(&text), report)
	return text.String()
}

func TestBadInputOutweighsADenialAndHidesNothing(t *testing.T) {
	const in = "a: 1\n---\napiVersion: v1\nkind: Pod\nspec: {volumes: [{name: p, hostPath: {path: '//./pipe/csi-proxy-disk-v1'}}]}\n"
	got := execute(t, in, "review", "-f", "-")
	if got.Code != cli.ExitBadInput || !strings.Contains(got.Out, "denied (PG002)") || !strings.Contains(got.Out, "0 allowed, 1 denied, 0 not judged, 1 faults") {
		t.Errorf("got %+v", got)
	}
}

func TestReviewRefusesAVolumeThatASubPathLeadsToAPipe(t *testing.T) {
	const in = "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\nspec: {hostPath: {path: '\\'}}\n"
	got := execute(t, in, "review", "-f", "-")
	if got.Code != cli.ExitNo || !strings.Contains(got.Out, "denied (PG003)") {
		t.Errorf("got %+v", got)
	}
}

func TestAnUnknownKindIsLeftAsideOnlyByName(t *testing.T) {
	const in = "apiVersion: example.org/v1\nkind: Widget\n"
	got := execute(t, in, "review", "-f", "-", "--ignore", "Widget.example.org")
	if got.Code != cli.ExitYes || !strings.Contains(got.Out, "Widget : not judged") {
		t.Errorf("got %+v", got)
	}
	if got := execute(t, in, "review", "-f", "-", "--ignore", "Widget"); got.Code != cli.ExitBadInput {
		t.Errorf("a kind of another group was left aside: %+v", got)
	}
}

func TestReviewShowsNamesInert(t *testing.T) {
	in := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a\u001b[2J\u202e"},"spec":{"volumes":[{"name":"\u001b]0;x\u0007","hostPath":{"path":"//./pipe/csi-proxy-\u001b"}}]}}`
	for _, format := range []string{"text", "json"} {
		got := execute(t, in, "review", "-f", "-", "-o", format)
		if got.Code != cli.ExitNo || strings.ContainsAny(got.Out, "\x1b\x07\u202e") {
			t.Errorf("exit code %d, output %q", got.Code, got.Out)
		}
	}
}

func TestReviewRefusesPoliciesThatTheWebhookWouldNotActivate(t *testing.T) {
	dir := clitest.Policies(t)
	clitest.Edit(t, dir, "mount.rego", `"effect": effect_of(mount)`, `"effect": "audit"`)
	got := execute(t, "", "review", "-f", "testdata/review/ordinary.yaml", "--policy-dir", dir)
	if got.Code != cli.ExitBadInput || got.Out != "" || !strings.Contains(got.ErrOut, "test") {
		t.Errorf("got %+v", got)
	}
}

// A rule on input.object sees fewer objects in a cluster than here: authors and reviewers are told.
func TestRulesOnTheObjectComeWithANote(t *testing.T) {
	dir := clitest.Policies(t)
	plain := execute(t, "", "policy", "check", dir)
	if plain.Code != cli.ExitYes || strings.Contains(plain.ErrOut, "note: ") {
		t.Fatalf("the built-in policies: %+v", plain)
	}
	clitest.Write(t, dir, "house.rego", `package pipeguard.admission

findings contains {"code": "H1", "effect": "deny", "field": "spec"} if input.object.spec.hostNetwork == true
`)
	if got := execute(t, "", "policy", "check", dir); got.Code != cli.ExitYes || !strings.Contains(got.ErrOut, "note: rules read input.object") {
		t.Errorf("policy check: %+v", got)
	}
	const pods = "apiVersion: v1\nkind: Pod\nmetadata: {name: plain}\nspec: {hostNetwork: true, containers: [{name: c, image: i}]}\n---\n" +
		"apiVersion: v1\nkind: Pod\nmetadata: {name: sent}\nspec:\n  hostNetwork: true\n  containers: [{name: c, image: i}]\n  volumes: [{name: v, hostPath: {path: '\\\\.\\pipe\\x'}}]\n"
	got := execute(t, pods, "review", "-f", "-", "--policy-dir", dir, "-o", "json")
	var report reviewReport
	if err := json.Unmarshal([]byte(got.Out), &report); err != nil || len(report.Objects) != 2 {
		t.Fatalf("%v: %+v", err, got)
	}
	if one, two := report.Objects[0], report.Objects[1]; one.Verdict != verdictDenied || one.Note == "" || two.Verdict != verdictDenied || two.Note != "" {
		t.Errorf("got %+v and %+v, want a note on the first", one, two)
	}
	if text := textOf(t, got.Out); strings.Count(text, "    Note: "+noteOnPlain) != 1 {
		t.Errorf("text: %s", text)
	}
}
