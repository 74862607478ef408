package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/test/harness"
)

var (
	issued  = time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	expires = issued.Add(7 * 24 * time.Hour)
)

var schemas = []string{"pipeguard.dev/node-rules/v2", "pipeguard.dev/bundle/v2"}

// good is the status of a service that decides by a bundle.
func good() bundle.Status {
	return bundle.Status{Revision: 1767323045, PolicyRevision: "sha256:ab", Audience: "default", Key: "es256:cd", IssuedAt: issued, ExpiresAt: expires, Oldest: 5}
}

// fakeService answers at /status as the proxy does.
type fakeService struct {
	server *httptest.Server
	mu     sync.Mutex // guards the fields below
	bundle *bundle.Status
	raw    string // in the place of all else
	code   int
}

func newFakeService(t *testing.T, b *bundle.Status) *fakeService {
	t.Helper()
	f := &fakeService{bundle: b, code: http.StatusOK}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		w.WriteHeader(f.code)
		if f.raw != "" {
			fmt.Fprint(w, f.raw)
			return
		}
		answer := map[string]any{"node": "win-1", "version": "v1.2.3", "acl": map[string]string{"revision": "sha256:ac"}, "schemas": schemas}
		if f.bundle != nil {
			answer["bundle"] = f.bundle
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
	f.server = httptest.NewServer(mux)
	t.Cleanup(f.server.Close)
	return f
}

func (f *fakeService) address() string { return strings.TrimPrefix(f.server.URL, "http://") }

func (f *fakeService) is(change func(*bundle.Status)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f.bundle)
}

func newReporter(t *testing.T, api *fakeAPI, address string) *Reporter {
	t.Helper()
	r, err := New(Options{Node: "win-1", Server: api.server.URL, Credentials: api.dir, Service: address})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// steps lets a reporter look, as long after its last report as is said.
func (r *Reporter) steps(t *testing.T, after ...time.Duration) {
	t.Helper()
	for _, d := range after {
		if !r.stored.IsZero() {
			r.stored = time.Now().Add(-d)
		}
		if err := r.step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func (f *fakeAPI) took() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := f.asked
	f.asked = nil
	return asked
}

func TestAReportSaysWhatTheServiceDecidesBy(t *testing.T) {
	refused := &bundle.Refused{Reason: bundle.ReasonRollback, Message: "revision 5 is older than 7", At: issued}
	for name, c := range map[string]struct {
		change func(*bundle.Status)
		fault  error
		want   v1alpha1.NodeReport
	}{
		"a bundle decides": {nil, nil, v1alpha1.NodeReport{State: v1alpha1.NodeGuarding}},
		"the next one was refused": {func(s *bundle.Status) { s.Refused = refused }, nil, v1alpha1.NodeReport{
			State: v1alpha1.NodeGuarding, Message: "bundle refused: revision 5 is older than 7", Bundle: &v1alpha1.NodeBundle{Refused: "rollback"}}},
		"it has ended": {func(s *bundle.Status) { s.Invalid = bundle.ReasonExpired }, nil, v1alpha1.NodeReport{
			State: v1alpha1.NodeDenying, Message: "every call is denied: there is no valid bundle (expired)", Bundle: &v1alpha1.NodeBundle{Invalid: "expired"}}},
		"the installation has a fault": {nil, errors.New("no space\x80left"), v1alpha1.NodeReport{State: v1alpha1.NodeGuarding, Message: "installation: no space?left"}},
		"a fault without end":          {nil, errors.New(strings.Repeat("ä", 2000)), v1alpha1.NodeReport{State: v1alpha1.NodeGuarding, Message: "installation: " + strings.Repeat("ä", 505)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			if c.change != nil {
				c.change(&s)
			}
			api := newFakeAPI(t)
			r := newReporter(t, api, newFakeService(t, &s).address())
			r.o.Fault = func() error { return c.fault }
			r.steps(t, 0)
			got := api.objects["win-1"]
			if got == nil || time.Since(got.ReportedAt.Time) > time.Minute {
				t.Fatalf("got %+v", got)
			}
			want := c.want
			want.Version, want.ACLRevision, want.ReportedAt = "v1.2.3", "sha256:ac", got.ReportedAt
			want.Schemas = schemas
			b := v1alpha1.NodeBundle{Pool: "default", Revision: 1767323045, PolicyRevision: "sha256:ab", Key: "es256:cd"}
			if want.Bundle != nil {
				b.Invalid, b.Refused = want.Bundle.Invalid, want.Bundle.Refused
			}
			if got.Bundle == nil || !got.Bundle.IssuedAt.Time.Equal(issued) || !got.Bundle.ExpiresAt.Time.Equal(expires) {
				t.Fatalf("bundle %+v", got.Bundle)
			}
			b.IssuedAt, b.ExpiresAt = got.Bundle.IssuedAt, got.Bundle.ExpiresAt
			want.Bundle = &b
			if diff := cmp.Diff(want, got.NodeReport); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAServiceWithoutABundleDecidesLocally(t *testing.T) {
	api := newFakeAPI(t)
	r := newReporter(t, api, newFakeService(t, nil).address())
	r.steps(t, 0)
	if got := api.objects["win-1"]; got.State != v1alpha1.NodeLocal || got.Bundle != nil || got.Version == "" || got.Message != "" || !slices.Equal(got.Schemas, schemas) {
		t.Errorf("got %+v", got)
	}
}

func TestAServiceThatCannotBeAskedIsReportedSo(t *testing.T) {
	for name, c := range map[string]struct {
		address func(t *testing.T) string
		want    string
	}{
		"no address":   {func(*testing.T) string { return "" }, "it opens no address"},
		"nobody there": {func(t *testing.T) string { f := newFakeService(t, nil); f.server.Close(); return f.address() }, "127.0.0.1"},
		"an error":     {func(t *testing.T) string { f := newFakeService(t, nil); f.code = 500; return f.address() }, "500"},
		"an older one": {func(t *testing.T) string { f := newFakeService(t, nil); f.code = 404; return f.address() }, "404"},
		"no JSON":      {func(t *testing.T) string { f := newFakeService(t, nil); f.raw = "ok"; return f.address() }, "invalid character"},
		"a wrong shape": {func(t *testing.T) string {
			f := newFakeService(t, nil)
			f.raw = `{"bundle":{"revision":-1}}`
			return f.address()
		}, "revision"},
	} {
		t.Run(name, func(t *testing.T) {
			api := newFakeAPI(t)
			r := newReporter(t, api, c.address(t))
			r.steps(t, 0)
			got := api.objects["win-1"]
			if got.State != v1alpha1.NodeUnreachable || got.Bundle != nil || got.Version != "" || !strings.Contains(got.Message, "does not answer: ") || !strings.Contains(got.Message, c.want) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestReportsAreRepeatedSeldomAndMadeAtEachChange(t *testing.T) {
	s := good()
	api, service := newFakeAPI(t), newFakeService(t, &s)
	r := newReporter(t, api, service.address())
	var fault error
	r.o.Fault = func() error { return fault }
	for _, c := range []struct {
		what   string
		change func()
		after  time.Duration
		want   string // requests
	}{
		{"the first", func() {}, 0, "GET /win-1,POST "},
		{"nothing new", func() {}, 10 * time.Second, ""},
		{"nothing new for long", func() {}, 4 * time.Minute, ""},
		{"nothing new for longer", func() {}, 6 * time.Minute, "PUT /win-1"},
		{"a newer bundle", func() { service.is(func(s *bundle.Status) { s.Revision++ }) }, 10 * time.Second, "PUT /win-1"},
		{"one that is refused", func() {
			service.is(func(s *bundle.Status) { s.Refused = &bundle.Refused{Reason: bundle.ReasonKey, Message: "of 10:00"} })
		}, 10 * time.Second, "PUT /win-1"},
		{"and again", func() { service.is(func(s *bundle.Status) { s.Refused.At = s.Refused.At.Add(time.Minute) }) }, 2 * time.Minute, ""},
		{"in other words", func() { service.is(func(s *bundle.Status) { s.Refused.Message = "of 10:01" }) }, 10 * time.Second, ""},
		{"in other words, later", func() {}, time.Minute, "PUT /win-1"},
		{"a fault", func() { fault = errors.New("x") }, time.Minute, "PUT /win-1"},
		{"its end", func() { service.is(func(s *bundle.Status) { s.Invalid = bundle.ReasonExpired }) }, 10 * time.Second, "PUT /win-1"},
		{"no answer", service.server.Close, 10 * time.Second, "PUT /win-1"},
		{"a clock that went back", func() {}, -time.Hour, "PUT /win-1"},
	} {
		c.change()
		r.steps(t, c.after)
		if got := strings.Join(api.took(), ","); got != c.want {
			t.Errorf("%s: asked %q, want %q", c.what, got, c.want)
		}
	}
}

func TestAReportIsWrittenWhateverTheObjectHoldsNow(t *testing.T) {
	for name, c := range map[string]struct {
		other func(*fakeAPI)
		want  string
	}{
		"somebody changed it": {func(f *fakeAPI) { f.store(f.objects["win-1"].DeepCopy()) }, "PUT /win-1,GET /win-1,PUT /win-1"},
		"somebody deleted it": {func(f *fakeAPI) { delete(f.objects, "win-1") }, "PUT /win-1,GET /win-1,POST "},
		"conflicts twice":     {func(f *fakeAPI) { f.fail["PUT"] = []int{409, 409} }, "PUT /win-1,GET /win-1,PUT /win-1,GET /win-1,PUT /win-1"},
		"somebody labelled it": {func(f *fakeAPI) {
			o := f.objects["win-1"].DeepCopy()
			o.Labels = map[string]string{"a": "b"}
			f.store(o)
		}, "PUT /win-1,GET /win-1,PUT /win-1"},
		"nobody did a thing": {func(*fakeAPI) {}, "PUT /win-1"},
		"it came in the middle": {func(f *fakeAPI) {
			o := f.objects["win-1"]
			delete(f.objects, "win-1")
			f.before = func(m string) {
				if m == http.MethodPost && o != nil {
					f.store(o)
					o = nil
				}
			}
		}, "PUT /win-1,GET /win-1,POST ,GET /win-1,PUT /win-1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			api, service := newFakeAPI(t), newFakeService(t, &s)
			r := newReporter(t, api, service.address())
			r.steps(t, 0)
			api.took()
			c.other(api)
			var labels map[string]string
			if o := api.objects["win-1"]; o != nil {
				labels = o.Labels
			}
			service.is(func(s *bundle.Status) { s.Revision = 9 })
			r.steps(t, look)
			if got := strings.Join(api.took(), ","); got != c.want {
				t.Errorf("asked %q, want %q", got, c.want)
			}
			if o := api.objects["win-1"]; o.Bundle.Revision != 9 || !cmp.Equal(o.Labels, labels) {
				t.Errorf("stored %+v", o)
			}
		})
	}
}

func TestAReportThatFailsIsSaidOnceAndTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*fakeAPI)
		want  string
	}{
		"forbidden":             {func(f *fakeAPI) { f.fail["GET"] = []int{403} }, "403 Forbidden: because of 403"},
		"refused":               {func(f *fakeAPI) { f.fail["POST"] = []int{422} }, "because of 422"},
		"without the CRD":       {func(f *fakeAPI) { f.fail["POST"] = []int{404} }, "CustomResourceDefinition"},
		"a token of nobody":     {func(f *fakeAPI) { f.file("token", "other") }, "401"},
		"no token":              {func(f *fakeAPI) { f.dir += "/none" }, "ca.crt"},
		"another authority":     {func(f *fakeAPI) { f.file("ca.crt", harness.SelfSigned(f.t).PEM) }, "certificate"},
		"no authority":          {func(f *fakeAPI) { f.file("ca.crt", "x") }, "holds no certificate"},
		"somewhere else":        {func(f *fakeAPI) { f.fail["GET"] = []int{302} }, "302"},
		"conflicts without end": {func(f *fakeAPI) { f.fail["POST"] = []int{409, 409, 409, 409} }, "without end"},
	} {
		t.Run(name, func(t *testing.T) {
			api := newFakeAPI(t)
			good := api.dir
			c.spoil(api)
			var said []string
			r := newReporter(t, api, newFakeService(t, nil).address())
			r.o.Say = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
			err := r.step(t.Context())
			r.say(err)
			r.say(err)
			if err == nil || !strings.Contains(err.Error(), c.want) || len(said) != 1 || strings.Contains(said[0], goodToken) {
				t.Fatalf("%v, said %q", err, said)
			}
			if len(api.objects) > 0 || !r.stored.IsZero() {
				t.Error("it counts as reported")
			}
			api.dir, r.client.dir = good, good
			api.file("token", goodToken)
			api.file("ca.crt", harness.CertificatePEM(api.server.Certificate()))
			r.say(r.step(t.Context()))
			if len(api.objects) != 1 || len(said) != 2 {
				t.Errorf("afterwards: %d objects, said %q", len(api.objects), said)
			}
		})
	}
}

func TestOptionsOfReports(t *testing.T) {
	fine := Options{Node: "win-1.example.com", Server: "https://10.0.0.1:443", Credentials: "dir", Service: ":9187"}
	if _, err := New(fine); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Options){
		"no name": func(o *Options) { o.Node = "" }, "a name with a slash": func(o *Options) { o.Node = "a/b" }, "a name in capitals": func(o *Options) { o.Node = "WIN" },
		"a name that climbs": func(o *Options) { o.Node = ".." }, "a server without TLS": func(o *Options) { o.Server = "http://10.0.0.1" },
		"no server": func(o *Options) { o.Server = "" }, "no credentials": func(o *Options) { o.Credentials = "" }, "an address without a port": func(o *Options) { o.Service = "127.0.0.1" },
	} {
		o := fine
		spoil(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for address, want := range map[string]string{
		":9187": "http://127.0.0.1:9187/status", "0.0.0.0:9187": "http://127.0.0.1:9187/status", "[::]:9300": "http://127.0.0.1:9300/status",
		"127.0.0.1:9187": "http://127.0.0.1:9187/status", "[::1]:9187": "http://[::1]:9187/status", "10.1.2.3:80": "http://10.1.2.3:80/status",
	} {
		if s, err := newService(address); err != nil || s.url != want {
			t.Errorf("%s: %s, %v", address, s.url, err)
		}
	}
}

func TestRunReportsAtOnceAndEndsWhenAsked(t *testing.T) {
	s := good()
	api := newFakeAPI(t)
	stored := make(chan struct{}, 9)
	api.before = func(method string) {
		if method == http.MethodPost {
			stored <- struct{}{}
		}
	}
	r := newReporter(t, api, newFakeService(t, &s).address())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	<-stored
	cancel()
	<-done
}
