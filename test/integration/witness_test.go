//go:build !windows

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/controller/witness"
	"github.com/pipeguard/pipeguard/test/audit/witnesstest"
	"github.com/pipeguard/pipeguard/test/harness"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// watched is the shared release while it is a witness of some logs, with two replicas.
type watched struct {
	*cluster.Release
	t    *testing.T
	key  *evidence.Key
	args []string
	at   cluster.Chart
}

// witnesses upgrades the shared release to one that knows the logs of these nodes, and no others unless it trusts on first use.
func witnesses(t *testing.T, trust bool, nodes ...*witnesstest.Node) *watched {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	var keys []string
	for _, n := range nodes {
		keys = append(keys, n.Key.LogKey())
	}
	values := []string{"witness.enabled=true", fmt.Sprintf("witness.trustFirstUse=%t", trust)}
	w := &watched{Release: guarded(t), t: t, key: witnesstest.NewKey(t, "example.com/witness")}
	dir := t.TempDir()
	fields := fmt.Sprintf("witness:\n  key: %s\n  trustFirstUse: %t\n", filepath.Join(dir, "key"), trust)
	if len(keys) > 0 {
		values = append(values, "witness.nodeKeys={"+strings.Join(keys, ",")+"}")
		fields += "  nodeKeys: " + filepath.Join(dir, "keys")
	}
	config := filepath.Join(dir, "webhook.yaml")
	if err := cluster.WriteWebhookConfig(config, fields); err != nil {
		t.Fatal(err)
	}
	w.args = []string{"--config", config}
	for name, text := range map[string]string{"key": string(w.key.Secret()), "keys": strings.Join(keys, "\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.at = rendered(t, values...)
	t.Cleanup(func() {
		for _, replica := range w.Replicas {
			if strings.Contains(replica.Faults(), "is forbidden: User") {
				t.Errorf("the chart's rights do not suffice:\n%s", replica.Faults())
			}
		}
		if err := w.Upgrade(ctx, nil, 1); err != nil {
			t.Error(err)
		}
		for _, o := range w.at.Kinds("Role", "RoleBinding") {
			if strings.HasSuffix(o.GetName(), "-witness") {
				if err := at(t).api.Delete(ctx, o.DeepCopy()); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for _, o := range w.at.Kinds("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding") {
		created(t, o)
		deleted(t, o)
	}
	w.restart()
	for _, n := range nodes {
		w.forgets(n)
	}
	return w
}

// restart replaces all replicas.
func (w *watched) restart() {
	w.t.Helper()
	if err := w.Upgrade(context.WithoutCancel(w.t.Context()), w.at, 2, w.args...); err != nil {
		w.t.Fatal(err)
	}
}

// in is the same for a subtest.
func (w *watched) in(t *testing.T) *watched {
	c := *w
	c.t = t
	return &c
}

// forgets removes what is remembered of a log when the test is over.
func (w *watched) forgets(n *witnesstest.Node) { w.t.Helper(); deleted(w.t, remembered(n.Origin())) }

func remembered(origin string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: witness.ConfigMapName(origin)}}
}

// memory is what is remembered of a log; no checkpoint if there is none.
func (w *watched) memory(n *witnesstest.Node) witness.Entry {
	w.t.Helper()
	return begun(w.t, memory(w.t), n.Origin()).Entry()
}

// memory is that of one more replica.
func memory(t *testing.T) *witness.ConfigMaps {
	t.Helper()
	m, err := witness.NewConfigMaps(at(t).api.Config, cluster.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// begun is a turn of a log, which has ended when the test is over.
func begun(t *testing.T, m *witness.ConfigMaps, origin string) witness.Turn {
	t.Helper()
	turn, err := m.Begin(t.Context(), origin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(turn.End)
	return turn
}

// client asks one replica, as a node does that knows nothing of what was before.
func (w *watched) client(replica *cluster.Replica) *evidence.Client {
	w.t.Helper()
	return witnesstest.Client(w.t, "https://"+cluster.ServiceHost+"/witness", w.key, asker(w.t, replica))
}

// tells waits until a replica's metrics have a line, and its log a word.
func tells(t *testing.T, replica *cluster.Replica, series, word string) {
	t.Helper()
	eventually(t, series, func(ctx context.Context) error {
		text, err := replica.Metrics(ctx)
		if err == nil && !strings.Contains(text, series+"\n") {
			err = errors.New("no such series")
		}
		return err
	})
	if !strings.Contains(replica.Faults(), word) {
		t.Errorf("the log does not say %q:\n%s", word, replica.Faults())
	}
}

// toldOf waits for an Event about a node.
func toldOf(t *testing.T, node, reason, note string) {
	t.Helper()
	eventually(t, "an Event "+reason, func(ctx context.Context) error {
		var all eventsv1.EventList
		if err := at(t).api.Client.List(ctx, &all, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		for _, e := range all.Items {
			if e.Regarding.Kind == "Node" && e.Regarding.Name == node && e.Reason == reason && strings.Contains(e.Note, note) && e.Type == corev1.EventTypeWarning {
				return nil
			}
		}
		return fmt.Errorf("%d others", len(all.Items))
	})
}

func TestAWitnessOfTheLogsThatItIsGiven(t *testing.T) {
	rolled, honest, known := witnesstest.NewNode(t, "win-rolled"), witnesstest.NewNode(t, "win-honest"), witnesstest.NewNode(t, "win-known")
	w := witnesses(t, false, rolled, honest, known)
	t.Run("finds one that was rolled back on its node", func(t *testing.T) { findsRollback(t, w.in(t), rolled) })
	t.Run("remembers what verifies an honest one", func(t *testing.T) { remembersForVerification(t, w.in(t), honest) })
	t.Run("gives strangers nothing", func(t *testing.T) { givesStrangersNothing(t, w.in(t), known) })
}

func findsRollback(t *testing.T, w *watched, n *witnesstest.Node) {
	t.Helper()
	first := w.client(w.Replicas[0])
	if err := first.Send(t.Context(), n.Grow(3)); err != nil {
		t.Fatal(err)
	}
	before := n.Files()
	if err := w.client(w.Replicas[1]).Send(t.Context(), n.Grow(40)); err != nil {
		t.Fatal(err)
	}
	known := w.memory(n)
	if !strings.HasPrefix(string(known.Checkpoint), n.Origin()+"\n") || known.Pinned != "" {
		t.Errorf("%q", known)
	}
	n.RollBack(before)
	if err := first.Send(t.Context(), n.Grow(1)); !errors.Is(err, evidence.ErrWitnessAhead) {
		t.Errorf("rolled back: %v", err)
	}
	tells(t, w.Replicas[0], `pipeguard_witness_refused_total{reason="rollback"} 1`, "it was rolled back")
	toldOf(t, "win-rolled", "AuditLogChanged", "it was rolled back")
	w.restart()
	if err := w.client(w.Replicas[1]).Send(t.Context(), n.Grow(80)); !errors.Is(err, evidence.ErrWitnessRefuses) {
		t.Errorf("grown past what was cosigned, after a restart of the witness: %v", err)
	}
	tells(t, w.Replicas[1], `pipeguard_witness_refused_total{reason="proof"} 1`, "no proof shows")
	if diff := cmp.Diff(known, w.memory(n)); diff != "" {
		t.Errorf("something was stored:\n%s", diff)
	}
}

func remembersForVerification(t *testing.T, w *watched, n *witnesstest.Node) {
	t.Helper()
	var running sync.WaitGroup
	for i := range 8 { // all replicas at once
		sent := n.Grow(2)
		running.Go(func() {
			err := w.client(w.Replicas[i%2]).Send(t.Context(), sent)
			if err != nil && !errors.Is(err, evidence.ErrWitnessAhead) && !strings.Contains(err.Error(), "witness") {
				t.Error(err)
			}
		})
	}
	running.Wait()
	last := n.Grow(1)
	if err := w.client(w.Replicas[0]).Send(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	n.Close()
	dir := t.TempDir()
	asTheGuideSays(t, "witness.md", "Verify a log with it", dir, "pipeguard.dev/audit/win-1", n.Origin())
	outside := filepath.Join(dir, "outside")
	if text, err := os.ReadFile(outside); err != nil || strings.Count(string(text), n.Origin()+"\n") != 2 {
		t.Errorf("the first checkpoint and the last one are %q: %v", text, err)
	}
	keys, err := evidence.ParseKeys(n.Key.LogKey() + "\n" + w.key.WitnessKey())
	if err != nil {
		t.Fatal(err)
	}
	r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: n.Dir, Keys: keys, Outside: []string{outside}, RequireWitness: true})
	if err != nil || r.Fault != nil || r.Witnessed != last.Size {
		t.Errorf("%+v, fault %v: %v", r, r.Fault, err)
	}
	for _, replica := range w.Replicas {
		for line := range strings.Lines(replica.Faults()) { // to be late in a race is no fault of the log
			if strings.Contains(line, n.Origin()) && strings.Contains(line, "was changed") {
				t.Errorf("an honest log was called changed: %s", line)
			}
		}
	}
}

func givesStrangersNothing(t *testing.T, w *watched, n *witnesstest.Node) {
	t.Helper()
	stranger, forged := witnesstest.NewNode(t, "win-stranger"), witnesstest.NewNode(t, "win-known")
	c := asker(t, w.Replicas[0])
	good := witnesstest.Request(t, 0, n.Grow(2))
	for name, r := range map[string]struct {
		method, body string
		want         int
	}{
		"an unknown log": {http.MethodPost, witnesstest.Request(t, 0, stranger.Grow(2)), http.StatusNotFound},
		"another key":    {http.MethodPost, witnesstest.Request(t, 0, forged.Grow(2)), http.StatusForbidden},
		"too much":       {http.MethodPost, good + strings.Repeat("x", 30<<10), http.StatusRequestEntityTooLarge},
		"nothing":        {http.MethodPost, "", http.StatusBadRequest},
		"a question":     {http.MethodGet, "", http.StatusMethodNotAllowed},
	} {
		request, err := http.NewRequestWithContext(t.Context(), r.method, "https://"+cluster.ServiceHost+"/witness/add-checkpoint", strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil || answer.StatusCode != r.want {
			t.Errorf("%s: %d, want %d: %v", name, answer.StatusCode, r.want, err)
		}
	}
	for _, log := range []*witnesstest.Node{n, stranger} {
		if e := w.memory(log); e.Checkpoint != nil {
			t.Errorf("stored: %q", e.Checkpoint)
		}
	}
}

func TestAWitnessThatTrustsOnFirstUse(t *testing.T) {
	reporting(t)
	w := witnesses(t, true)
	t.Run("pins the key that a node names", func(t *testing.T) { pinsFirst(t, w.in(t)) })
	t.Run("writes no other ConfigMap", func(t *testing.T) { writesNoOther(t, w.in(t)) })
}

func pinsFirst(t *testing.T, w *watched) {
	t.Helper()
	m := newMember(t)
	n, next := witnesstest.NewNode(t, m.name), witnesstest.NewNode(t, m.name)
	w.forgets(n)
	if err := w.client(w.Replicas[0]).Send(t.Context(), n.Grow(2)); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("before it has reported: %v", err)
	}
	report := said(m.name)
	report.AuditKey = n.Key.LogKey()
	if err := m.client(t).Create(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	if err := w.client(w.Replicas[0]).Send(t.Context(), n.Grow(2)); err != nil {
		t.Fatal(err)
	}
	if got := w.memory(n).Pinned; got != n.Key.LogKey()+"\n" {
		t.Errorf("pinned %q", got)
	}
	report.AuditKey = next.Key.LogKey()
	if err := m.client(t).Update(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	known := w.memory(n)
	if err := w.client(w.Replicas[1]).Send(t.Context(), next.Grow(9)); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("another key: %v", err)
	}
	tells(t, w.Replicas[1], `pipeguard_witness_refused_total{reason="pin"} 1`, "another key is pinned")
	toldOf(t, m.name, "AuditKeyChanged", witness.ConfigMapName(n.Origin()))
	if diff := cmp.Diff(known, w.memory(n)); diff != "" {
		t.Errorf("something was stored:\n%s", diff)
	}
	if err := at(t).api.Delete(t.Context(), remembered(n.Origin())); err != nil {
		t.Fatal(err)
	}
	if err := w.client(w.Replicas[1]).Send(t.Context(), next.Grow(1)); err != nil {
		t.Errorf("after the pin was removed: %v", err)
	}
}

func writesNoOther(t *testing.T, w *watched) {
	t.Helper()
	c := newClient(t, w.Config)
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "proxy-configuration"}, Data: map[string]string{"a": "b"}}
	created(t, other)
	deleted(t, other)
	eventually(t, "the API server judges ConfigMaps", func(ctx context.Context) error {
		o := other.DeepCopy()
		o.Data["a"] = "c"
		if err := c.Update(ctx, o, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "the webhook writes no other ConfigMap") {
			return fmt.Errorf("it may change it: %w", err)
		}
		return nil
	})
	mine := remembered("example.com/x")
	for name, do := range map[string]func() error{
		"makes another": func() error {
			o := other.DeepCopy()
			o.Name, o.ResourceVersion = "pipeguard-witness-x", ""
			return c.Create(t.Context(), o)
		},
		"removes one": func() error { return c.Delete(t.Context(), other.DeepCopy()) },
		"lists them": func() error {
			return c.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(cluster.Namespace))
		},
		"makes one elsewhere": func() error {
			o := mine.DeepCopy()
			o.Namespace = "default"
			return c.Create(t.Context(), o)
		},
	} {
		if err := do(); err == nil || !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Create(t.Context(), mine.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("its own: %v", err)
	}
}

func TestOfTwoWritersOfOneMemoryOneIsTold(t *testing.T) {
	if err := at(t).api.EnsureNamespace(t.Context(), cluster.Namespace); err != nil {
		t.Fatal(err)
	}
	const origin = evidence.OriginPrefix + "win-raced"
	deleted(t, remembered(origin))
	replicas := []*witness.ConfigMaps{memory(t), memory(t)}
	for round := range 5 { // the first makes the log's own ConfigMap, the others write the one that it shares
		turns := []witness.Turn{begun(t, replicas[0], origin), begun(t, replicas[1], origin)}
		before := turns[0].Entry()
		results := make(chan error, 2)
		for i, turn := range turns {
			go func() {
				results <- turn.Write(t.Context(), witness.Entry{Checkpoint: fmt.Appendf(nil, "%d of %d\n", i, round), Pinned: "k\n"})
			}()
		}
		a, b := <-results, <-results
		if (a == nil) == (b == nil) || !errors.Is(errors.Join(a, b), evidence.ErrChanged) {
			t.Errorf("round %d: %v and %v", round, a, b)
		}
		now := begun(t, memory(t), origin).Entry()
		if !strings.HasSuffix(string(now.Checkpoint), fmt.Sprintf("of %d\n", round)) || string(now.Checkpoint) == string(before.Checkpoint) || now.Pinned != "k\n" {
			t.Errorf("round %d: %q", round, now)
		}
	}
	o := remembered(origin)
	if err := at(t).api.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.Labels["app.kubernetes.io/component"] != "witness" {
		t.Fatalf("labels %v: %v", o.Labels, err)
	}
	shared := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: witness.ShardName(origin)}}
	if err := at(t).api.Client.Get(t.Context(), client.ObjectKeyFromObject(shared), shared); err != nil {
		t.Fatal(err)
	}
	turn := begun(t, replicas[0], origin)
	changed(t, shared, func() { shared.Labels["team"] = "storage" })
	if err := turn.Write(t.Context(), witness.Entry{Checkpoint: []byte("x\n"), Pinned: "k\n"}); err != nil {
		t.Errorf("a change by somebody else that is about no log: %v", err)
	}
	if err := at(t).api.Client.Get(t.Context(), client.ObjectKeyFromObject(shared), shared); err != nil || shared.Labels["team"] != "storage" {
		t.Errorf("labels of others: %v: %v", shared.Labels, err)
	}
	for name, data := range map[string]map[string]string{
		"another log's":     {"origin": "example.com/x", "first-checkpoint": "x\n"},
		"nobody's":          {"first-checkpoint": "x\n"},
		"emptied":           {},
		"a pin alone":       {"origin": origin, "keys": "k\n"},
		"more than is kept": {"origin": origin, "first-checkpoint": strings.Repeat("x", 40<<10)},
	} {
		changed(t, o, func() { o.Data = data })
		if _, err := replicas[0].Begin(t.Context(), origin); !errors.Is(err, witness.ErrMemory) {
			t.Errorf("%s: %v", name, err)
		}
	}
	changed(t, o, func() { o.Data = map[string]string{"origin": origin, "checkpoint": "x\n"} }) // of the release before
	turn = begun(t, replicas[0], origin)
	if err := at(t).api.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := turn.Write(t.Context(), witness.Entry{Checkpoint: []byte("y\n")}); !errors.Is(err, evidence.ErrChanged) {
		t.Errorf("over what was removed: %v", err)
	}
	if err := begun(t, replicas[0], origin).Write(t.Context(), witness.Entry{Checkpoint: make([]byte, 40<<10)}); err == nil {
		t.Error("too much is stored")
	}
}

// After a rollback, the release before goes on from what this one cosigned last.
func TestTheLogsOfAWitnessAreHandedBack(t *testing.T) {
	if err := at(t).api.EnsureNamespace(t.Context(), cluster.Namespace); err != nil {
		t.Fatal(err)
	}
	m, want := memory(t), map[string]string{}
	for i := range 4 { // some with later checkpoints, some without
		origin := fmt.Sprintf("%swin-back-%d", evidence.OriginPrefix, i)
		deleted(t, remembered(origin))
		for n := range 1 + i%2 {
			want[origin] = fmt.Sprintf("%s\n%d\n", origin, n)
			if err := begun(t, m, origin).Write(t.Context(), witness.Entry{Checkpoint: []byte(want[origin]), Pinned: "k\n"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	asTheGuideSays(t, "versions.md", "The witness keeps later checkpoints", t.TempDir())
	for origin, checkpoint := range want {
		o := remembered(origin)
		if err := at(t).api.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"origin": origin, "checkpoint": checkpoint, "keys": "k\n"}, o.Data); diff != "" {
			t.Errorf("as the release before writes it (-want +got):\n%s", diff)
		}
	}
}

// asTheGuideSays runs the first block of commands behind a text of a document, in a directory, with words of it replaced.
func asTheGuideSays(t *testing.T, document, behind, dir string, replaced ...string) {
	t.Helper()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("NOT RUN: there is no jq")
	}
	text, err := os.ReadFile(filepath.Join(harness.Root(), "docs", document))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), behind)
	_, rest, _ = strings.Cut(rest, "```sh\n")
	block, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatalf("%s has no commands behind %q", document, behind)
	}
	file := filepath.Join(dir, "kubeconfig")
	if err := cluster.WriteKubeconfig(file, at(t).api.Config, ""); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", strings.NewReplacer(replaced...).Replace(block)) // #nosec G204 -- of our document
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "KUBECONFIG="+file, "HOME="+dir, "PATH="+filepath.Dir(shared.tools.Path("kubectl"))+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestAReportNamesTheKeyOfTheAuditLog(t *testing.T) {
	o := said("keyed")
	o.AuditKey = witnesstest.NewKey(t, evidence.Origin("keyed")).LogKey()
	if err := at(t).api.Client.Create(t.Context(), o, client.DryRunAll); err != nil || o.AuditKey == "" {
		t.Errorf("%v", err)
	}
	o = said("keyed")
	o.AuditKey = strings.Repeat("x", 385)
	if err := at(t).api.Client.Create(t.Context(), o, client.DryRunAll); !apierrors.IsInvalid(err) {
		t.Errorf("without end: %v", err)
	}
}
