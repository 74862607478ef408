package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sort"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
	"github.com/pipeguard/pipeguard/internal/turns"
	"github.com/pipeguard/pipeguard/test/pods"
)

// repeated is a JSON list of n entries; each %d is the number of the entry.
func repeated(n int, entry string) string {
	entries := make([]string, n)
	for i := range entries {
		entries[i] = strings.ReplaceAll(entry, "%d", fmt.Sprint(i))
	}
	return strings.Join(entries, ",")
}

// bulky are pod specs that n makes large, each in another way.
var bulky = map[string]func(n int) string{
	"mounts of a pipe": func(n int) string {
		return `"volumes":[{"name":"v","hostPath":{"path":"\\\\.\\pipe\\csi-proxy-x"}}],"containers":[{"volumeMounts":[` + repeated(n, `{"name":"v"}`) + `]}]`
	},
	"mounts of a directory of power": func(n int) string {
		return `"volumes":[{"name":"v","hostPath":{"path":"C:\\"}}],"ephemeralContainers":[{"volumeMounts":[` + repeated(n, `{"name":"v"}`) + `]}]`
	},
	"a mount in each container": func(n int) string {
		return `"volumes":[{"name":"v","hostPath":{"path":"C:\\"}}],"ephemeralContainers":[` + repeated(n, `{"name":"c%d","image":"i%d","volumeMounts":[{"name":"v"}]}`) + `]`
	},
	"mounts of volumes of one name": func(n int) string {
		some := 1
		for some*some < n {
			some++
		}
		return `"volumes":[` + repeated(some, `{"name":"","hostPath":{"path":"\\\\.\\pipe"}}`) + `],"initContainers":[{"volumeMounts":[` + repeated(some, `{}`) + `]}]`
	},
	"mounts with a subPath": func(n int) string {
		return `"volumes":[{"name":"v","hostPath":{"path":"//./pipe/"}}],"containers":[{"volumeMounts":[` + repeated(n, `{"name":"v","subPath":"CSI-PROXY-%d"}`) + `]}]`
	},
	"mounts with a subPath that folds to longer letters": func(n int) string {
		return `"volumes":[{"name":"v","hostPath":{"path":"//./pipe/"}}],"containers":[{"volumeMounts":[` + repeated(n, `{"name":"v","subPath":"csi-proxy-`+strings.Repeat("Ⱥ", 40)+`"}`) + `]}]`
	},
	"mounts with a variable": func(n int) string {
		return `"volumes":[{"name":"v","hostPath":{"path":"\\\\.\\pipe"}}],"containers":[{"volumeMounts":[` + repeated(n, `{"name":"v","subPathExpr":"$(X)%d"}`) + `]}]`
	},
	"mounts of a long path": func(n int) string {
		return `"volumes":[{"name":"v","hostPath":{"path":"//./PIPE/CSI-PROXY-` + strings.Repeat("X", 1000) + `"}}],"containers":[{"volumeMounts":[` + repeated(n/10, `{"name":"v"}`) + `]}]`
	},
	"mounts of nothing": func(n int) string {
		return `"volumes":[{"name":"v","hostPath":{"path":"C:\\"}}],"containers":[{"volumeMounts":[` + repeated(n, `{}`) + `]}]`
	},
	"volumes that nothing mounts": func(n int) string {
		return `"volumes":[` + repeated(n, `{"hostPath":{"path":"\\\\.\\pipe\\csi-proxy-%d"}}`) + `]`
	},
	"volumes that lead to nothing": func(n int) string {
		return `"volumes":[` + repeated(n, `{"hostPath":{}}`) + `]`
	},
	"containers": func(n int) string {
		return `"securityContext":{"windowsOptions":{"hostProcess":true}},"ephemeralContainers":[` + repeated(n, `{}`) + `]`
	},
	"containers with names and settings": func(n int) string {
		return `"containers":[` + repeated(n, `{"name":"container-%d","image":"image:%d","securityContext":{"windowsOptions":{"hostProcess":true,"runAsUserName":"account-%d"}}}`) + `]`
	},
	"pipes that several policies govern": func(n int) string {
		return `"volumes":[{"name":"v","hostPath":{"path":"\\\\.\\pipe\\csi-proxy-disk-v1"}}],"containers":[{"volumeMounts":[` + repeated(n/4, `{"name":"v"}`) + `]}]`
	},
}

// bulkyMeta are the members of a metadata.
func bulkyMeta(n int) string {
	return `"labels":{` + repeated(n, `"l%d":""`) + `},"annotations":{` + repeated(n, `"microsoft.com/%d":"value-%d"`) + `}`
}

// nestedSpec is a body with an object whose pod spec has the given members, and whose metadata, and the template's, have others.
func nestedSpec(kind metav1.GroupVersionKind, meta, spec string) string {
	k, _ := judgedKindOf(kind)
	text := `{` + spec + `}`
	for i := len(k.path) - 1; i >= 0; i-- {
		if i == len(k.path)-1 && i > 0 {
			text = `{"metadata":{` + meta + `},"` + k.path[i] + `":` + text + `}`
			continue
		}
		text = `{"` + k.path[i] + `":` + text + `}`
	}
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{%s},%s`, apiVersionOf(kind), kind.Kind, meta, text[1:])
}

// made is all that is made of a review before a policy is asked.
type made struct {
	envelope *envelope
	object   object
	found    extraction
	input    *Input
	value    ast.Value
}

func makeAll(t *testing.T, r *Reviewer, scope *Scope, body []byte, whole bool, a *jsonscan.Allowance) (m made) {
	t.Helper()
	var err error
	if m.envelope, err = decodeReview(body, a); err != nil {
		t.Fatal(err)
	}
	q := &m.envelope.request
	if m.object, err = readObject(q.Object.Raw, q.Kind, a); err != nil {
		t.Fatal(err)
	}
	if m.found, err = extract(scope, &m.object, a); err != nil {
		t.Fatal(err)
	}
	if m.input, err = scope.input(q, &m.object, &m.found, r.o.Namespaces, clock, a); err != nil {
		t.Fatal(err)
	}
	var object ast.Value
	if err := a.Take(inputWeight(m.input, q.Object.Raw, whole)); err != nil {
		t.Fatal(err)
	}
	if whole {
		if object, err = objectValue(q.Object.Raw); err != nil {
			t.Fatal(err)
		}
	}
	m.value = m.input.value(object, everyField)
	m.value.Compare(ast.NewObject()) // sorts keys, as an evaluation does
	return m
}

func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// weighed holds the weight of reviews against the memory that is made of them, and returns both.
func weighed(t *testing.T, r *Reviewer, scope *Scope, whole bool, bodies ...[]byte) (weight, bytes int64) {
	t.Helper()
	kept := make([]made, len(bodies))
	before := heap()
	for i, body := range bodies {
		a := jsonscan.Allow(1 << 40)
		kept[i] = makeAll(t, r, scope, body, whole, a)
		weight += int64(1<<40 - left(a))
	}
	bytes = heap() - before
	runtime.KeepAlive(kept)
	runtime.KeepAlive(bodies)
	if bytes > weight+int64(len(bodies))*fixedPart {
		t.Errorf("%d bytes of memory, and a weight of %d", bytes, weight)
	}
	return weight, bytes
}

// fixedPart is what any review takes, however little is in it, and what a measurement may be wrong by.
const fixedPart = 6 << 10

func TestTheWeightOfAReviewBoundsItsInput(t *testing.T) {
	labels := map[string]string{}
	for i := range 500 {
		labels[fmt.Sprint("label", i)] = "x"
	}
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Namespaces = namespaceLabels{"team-a": labels} })
	p := overlapping()
	p.PipePolicies = maps.Clone(p.PipePolicies)
	for i := range 100 {
		p.PipePolicies[fmt.Sprint("one-", i)] = PipePolicy{Pipes: []string{"csi-proxy-disk*"}}
		p.PipePolicies[fmt.Sprint("two-", i)] = PipePolicy{Pipes: []string{"csi-proxy-disk-v1"}}
	}
	scope, governed := testScope(t, overlapping()), testScope(t, p)
	kinds := []metav1.GroupVersionKind{podKind, {Group: "batch", Version: "v1", Kind: "CronJob"}} // the others have shorter paths
	for _, name := range slices.Sorted(maps.Keys(bulky)) {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1, 20, 1500} {
				for _, kind := range kinds {
					s := scope
					if strings.Contains(name, "policies") {
						if s = governed; n > 20 {
							continue
						}
					}
					body := []byte(reviewOf(kind, nestedSpec(kind, bulkyMeta(1+n%50), bulky[name](n))))
					weight, bytes := weighed(t, r, s, false, body)
					t.Logf("%d %s: %d bytes of body, %d of memory, weight %d", n, kind.Kind, len(body), bytes, weight)
				}
			}
		})
	}
	t.Run("labels and annotations", func(t *testing.T) {
		for _, n := range []int{1, 10, 100, 1000, 9000} {
			for _, kind := range kinds {
				weight, bytes := weighed(t, r, scope, false, []byte(reviewOf(kind, nestedSpec(kind, bulkyMeta(n), ""))))
				t.Logf("%d of %s: %d of memory, weight %d", n, kind.Kind, bytes, weight)
			}
		}
	})
	t.Run("groups of the user", func(t *testing.T) {
		for _, n := range []int{1, 10, 1000, 9999} {
			body := strings.Replace(podReview(nestedSpec(podKind, "", bulky["mounts of a pipe"](1))), `"operation"`, `"userInfo":{"username":"u","groups":[`+repeated(n, `"g%d"`)+`]},"operation"`, 1)
			weight, bytes := weighed(t, r, scope, false, []byte(body))
			t.Logf("%d: %d of memory, weight %d", n, bytes, weight)
		}
	})
	t.Run("PersistentVolumes", func(t *testing.T) {
		kind := metav1.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"}
		for _, n := range []int{1, 1000, 10_000} {
			path := strings.Repeat(`\\\\.`, n)
			object := fmt.Sprintf(`{"apiVersion":"v1","kind":"PersistentVolume","metadata":{%s},"spec":{"hostPath":{"path":"%s"},"local":{"path":"%s"},"claimRef":{"name":"%s"}}}`, bulkyMeta(1+n/10), path, path, path)
			weighed(t, r, scope, false, []byte(reviewOf(kind, object)))
		}
	})
	t.Run("whole objects", func(t *testing.T) {
		for name, entry := range map[string]string{
			"numbers": `0`, "lists": `[]`, "objects": `{}`, "texts": `""`, "members": `{"a":0}`, "booleans": `true`, "nested": `[[[]]]`, "objects in objects": `{"a":{"b":{}}}`, "long numbers": `1234567890123456`,
		} {
			for _, n := range []int{10, 5000} {
				weight, bytes := weighed(t, r, scope, true, []byte(podReview(nestedSpec(podKind, "", bulky["mounts of a pipe"](1)+`,"x":[`+repeated(n, entry)+`]`))))
				t.Logf("%d %s: %d of memory, weight %d", n, name, bytes, weight)
			}
		}
		weight, bytes := weighed(t, r, scope, true, []byte(podReview(nestedSpec(podKind, "", bulky["mounts of a pipe"](1)+`,"x":{`+repeated(5000, `"k%d":0`)+`}`))))
		t.Logf("keys: %d of memory, weight %d", bytes, weight)
	})
	t.Run("any", func(t *testing.T) {
		for seed := range uint64(10) {
			g := rand.New(rand.NewPCG(seed, 7))
			var bodies [][]byte
			for range 100 {
				kind, raw := randomObject(t, g)
				bodies = append(bodies, []byte(reviewOf(kind, string(raw))))
			}
			weighed(t, r, scope, seed%2 == 0, bodies...)
		}
	})
}

// namespaceLabels are labels of namespaces by name.
type namespaceLabels map[string]map[string]string

func (n namespaceLabels) Labels(namespace string) map[string]string { return n[namespace] }

func TestReviewsOfDriversAreLight(t *testing.T) {
	r := newReviewer(t, allowing())
	for name, body := range map[string][]byte{
		"a driver":              reviewBody(t, createRequest(t, pods.Driver(t))),
		"an update of it":       reviewBody(t, updateRequest(t, pods.Driver(t), pods.Driver(t))),
		"a pod with no mounts":  reviewBody(t, createRequest(t, pods.Plain(t))),
		"an update of a breach": reviewBody(t, updateRequest(t, testPod(csiPipe), testPod(csiPipe))),
	} {
		a := jsonscan.Allow(lightReview)
		e, err := decodeReview(body, a)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := r.judged(t.Context(), e, a, true); !ok || left(a) < lightReview/2 {
			t.Errorf("%s: judged %t, and of %d bytes %d are left", name, ok, lightReview, left(a))
		}
	}
}

// heavyBody is a review of a pod with some thousand mounts of pipes: 15 KiB that become several megabytes.
func heavyBody() []byte {
	return []byte(podReview(nestedSpec(podKind, "", bulky["mounts of a pipe"](1000))))
}

// asked is a review that was sent to a reviewer.
type asked struct {
	w    *httptest.ResponseRecorder
	over bool
}

func ask(t *testing.T, r *Reviewer, address string, body []byte) *asked {
	return askUntil(t.Context(), r, address, body)
}

// askUntil sends a review whose client leaves when ctx is done.
func askUntil(ctx context.Context, r *Reviewer, address string, body []byte) *asked {
	a := &asked{w: httptest.NewRecorder()}
	req := httptest.NewRequestWithContext(ctx, "POST", "/", strings.NewReader(string(body)))
	req.Header.Set("Content-Type", "application/json")
	req.RemoteAddr = address + ":40000"
	go func() {
		r.ServeHTTP(a.w, req)
		a.over = true
	}()
	synctest.Wait()
	return a
}

// says returns the code and the reason of a refusal.
func (a *asked) says(t *testing.T) (codes, message string) {
	t.Helper()
	var answer struct {
		Response struct {
			Allowed bool
			Status  struct{ Message string }
			Codes   map[string]string `json:"auditAnnotations"`
		}
	}
	if err := json.Unmarshal(a.w.Body.Bytes(), &answer); err != nil || a.w.Code != 200 || answer.Response.Allowed {
		t.Fatalf("status %d, %v: %s", a.w.Code, err, a.w.Body)
	}
	return answer.Response.Codes[annotationCodes], answer.Response.Status.Message
}

func TestHeavyReviewsWaitForTheirTurnAndLightOnesDoNot(t *testing.T) {
	kept, reg := &ledger{}, prometheus.NewRegistry()
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Audit, o.Metrics = kept, NewMetrics(reg) })
	light := reviewBody(t, createRequest(t, testPod(csiPipe)))
	synctest.Test(t, func(t *testing.T) {
		r.turns = turns.NewGroups(1, 1, waitForTurn)
		done, err := r.turns.Take(t.Context(), "10.0.0.9", turns.Sender{"eve"})
		if err != nil {
			t.Fatal(err)
		}
		first, second := ask(t, r, "10.0.0.1", heavyBody()), ask(t, r, "10.0.0.1", heavyBody())
		if first.over || second.over {
			t.Fatal("a heavy review did not wait")
		}
		if a := ask(t, r, "10.0.0.1", light); !a.over {
			t.Fatal("a light review waited")
		} else if codes, _ := a.says(t); codes != "PG001" {
			t.Errorf("a light review was refused with %s", codes)
		}
		third := ask(t, r, "10.0.0.1", heavyBody())
		if !third.over {
			t.Fatal("one that is too many was not refused at once")
		}
		if codes, message := third.says(t); codes != CodeFailure || !strings.Contains(message, "("+ReasonOverload+")") {
			t.Errorf("refused with %s: %s", codes, message)
		}
		done()
		synctest.Wait()
		for i, a := range []*asked{first, second} {
			if !a.over {
				t.Fatalf("review %d did not have its turn", i)
			}
			if codes, _ := a.says(t); codes != "PG001" {
				t.Errorf("review %d was refused with %s", i, codes)
			}
		}

		if done, err = r.turns.Take(t.Context(), "10.0.0.9", turns.Sender{"eve"}); err != nil {
			t.Fatal(err)
		}
		late := ask(t, r, "10.0.0.1", heavyBody())
		later(waitForTurn)
		if !late.over {
			t.Fatal("its wait does not end")
		}
		if codes, message := late.says(t); codes != CodeFailure || !strings.Contains(message, "("+ReasonOverload+")") {
			t.Errorf("refused with %s: %s", codes, message)
		}
		done()
	})
	if got := counter(t, reg, "pipeguard_admission_decisions_total", "code=PG999 effect=deny"); got != 2 || len(kept.events) != 5 {
		t.Errorf("%v refusals without a decision are counted, and there are %d records; want 2 and 5", got, len(kept.events))
	}
}

// An API server sends the reviews of all tenants.
func TestHeavyReviewsOfOneTenantHoldUpNoOtherOfTheSameAddress(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	of := func(user, namespace string) []byte {
		review := strings.Replace(string(heavyBody()), `"namespace":"team-a"`, fmt.Sprintf(`"namespace":%q,"userInfo":{"username":%q}`, namespace, user), 1)
		return []byte(review)
	}
	synctest.Test(t, func(t *testing.T) {
		const room = 4
		r.turns = turns.NewGroups(1, room, waitForTurn)
		done, err := r.turns.Take(t.Context(), "10.0.0.9", turns.Sender{"another"})
		if err != nil {
			t.Fatal(err)
		}
		var flood []*asked
		for i := range 2 * room {
			flood = append(flood, ask(t, r, "10.0.0.1", of("eve", fmt.Sprint("evil-", i))))
		}
		other := ask(t, r, "10.0.0.1", of("bob", "shop"))
		if other.over {
			t.Fatal("a tenant with one review was refused for another's many")
		}
		refused := 0
		for _, a := range flood {
			if a.over {
				refused++
				if codes, message := a.says(t); codes != CodeFailure || !strings.Contains(message, "("+ReasonOverload+")") {
					t.Errorf("refused with %s: %s", codes, message)
				}
			}
		}
		if refused != room { // one waits for other addresses, and one gave way
			t.Errorf("%d of %d gave way", refused, len(flood))
		}
		done()
		synctest.Wait()
		if codes, _ := other.says(t); codes != "PG001" {
			t.Errorf("%s, want its verdict", codes)
		}
	})
}

func TestAReviewWhoseClientHasLeftTakesNoTurn(t *testing.T) {
	kept := &ledger{}
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Audit = kept })
	synctest.Test(t, func(t *testing.T) {
		r.turns = turns.NewGroups(1, 2, waitForTurn)
		done, err := r.turns.Take(t.Context(), "10.0.0.9", turns.Sender{"another"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		var gone []*asked
		for range 3 {
			gone = append(gone, askUntil(ctx, r, "10.0.0.1", heavyBody()))
		}
		leave()
		synctest.Wait()
		stays := ask(t, r, "10.0.0.1", heavyBody())
		for _, a := range gone {
			if !a.over || a.w.Code != http.StatusServiceUnavailable {
				t.Errorf("over %t, status %d", a.over, a.w.Code)
			}
		}
		if stays.over || len(kept.events) != 0 {
			t.Fatalf("over %t, %d records", stays.over, len(kept.events))
		}
		done()
		synctest.Wait()
		if codes, _ := stays.says(t); codes != "PG001" {
			t.Errorf("refused with %s", codes)
		}
	})
}

func TestWhatWaitsForItsTurnHoldsItsBodyAlone(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	synctest.Test(t, func(t *testing.T) {
		const many = 16
		r.turns = turns.NewGroups(1, many, waitForTurn)
		done, err := r.turns.Take(t.Context(), "10.0.0.9", turns.Sender{"eve"})
		if err != nil {
			t.Fatal(err)
		}
		body := heavyBody()
		var waiting []*asked
		before := heap()
		for range many {
			waiting = append(waiting, ask(t, r, "10.0.0.1", body))
		}
		each := (heap() - before) / many
		if most := int64(2*len(body) + 64<<10); each > most {
			t.Errorf("a review of %d bytes that waits holds %d", len(body), each)
		}
		done()
		synctest.Wait()
		for _, a := range waiting {
			if !a.over {
				t.Fatal("a review did not have its turn")
			}
		}
	})
}

func TestAReviewThatWouldTakeTooMuchMemoryIsRefusedByVerdict(t *testing.T) {
	kept := &ledger{}
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Audit = kept })
	for name, object := range map[string]string{
		"labels":             nestedSpec(podKind, `"annotations":{"microsoft.com/x":""},"labels":{`+repeated(170_000, `"%d":""`)+`}`, ""),
		"mounts in the list": nestedSpec(podKind, "", bulky["mounts of a pipe"](9_999)+`,"initContainers":[{"volumeMounts":[`+repeated(9_999, `{"name":"v"}`)+`]}]`),
	} {
		status, answer := post(t, r, []byte(podReview(object)))
		if status != 200 || answer.Allowed || answer.UID != "review-uid" || !strings.Contains(answer.Result.Message, "("+ReasonSize+")") {
			t.Errorf("%s: status %d, %+v", name, status, answer)
		}
	}
	if len(kept.events) != 2 {
		t.Errorf("%d records, want 2", len(kept.events))
	}
}

func later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// left is how many bytes can still be taken.
func left(a *jsonscan.Allowance) int {
	return sort.Search(1<<41, func(n int) bool {
		probe := *a
		return probe.Take(n) != nil
	}) - 1
}
