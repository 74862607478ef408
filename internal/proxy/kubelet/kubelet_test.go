package kubelet

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/test/harness"
	"github.com/pipeguard/pipeguard/test/memnet"
)

var csi = caller.Pod{Namespace: "storage", Name: "csi-a", UID: "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"}

// item is a pod as the kubelet prints it, with a part of what nobody here reads.
func item(p caller.Pod, account string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":%q,"uid":%q,"annotations":{"serviceAccountName":"admin","UID":"x"}},
	"spec":{"serviceAccountName":%q,"serviceAccount":"old","nodeName":"n","containers":[{"name":"c"}]},"status":{"phase":"Running"}}`,
		p.Name, p.Namespace, p.UID, account)
}

func podsOf(items ...string) string {
	return `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[` + strings.Join(items, ",") + `]}`
}

// fakeKubelet serves /pods over HTTPS to whoever has the token or a certificate.
type fakeKubelet struct {
	url, ca, token string // the address, and the files for a client

	mu     sync.Mutex // guards the fields below
	body   string
	status int
	hold   chan struct{}
	asked  int
}

func (f *fakeKubelet) change(how func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	how()
}

func (f *fakeKubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked++
	body, status, hold := f.body, f.status, f.hold
	f.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler) // an answer could still arrive: the connection is closed in steps
		}
	}
	switch {
	case r.URL.Path == "/elsewhere":
		_, _ = w.Write([]byte(body))
	case r.Header.Get("Authorization") != "Bearer secret" && len(r.TLS.PeerCertificates) == 0:
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
	case r.URL.Path != "/pods" || r.Method != http.MethodGet:
		http.NotFound(w, r)
	case status != 0:
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	default:
		_, _ = w.Write([]byte(body))
	}
}

func write(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// certificate writes a certificate that is its own authority, and its key.
func certificate(t testing.TB) (certificate, key string) {
	t.Helper()
	c := harness.SelfSigned(t, "node-1", "127.0.0.1")
	return write(t, c.PEM), write(t, c.KeyPEM)
}

func start(t testing.TB) *fakeKubelet {
	t.Helper()
	f := &fakeKubelet{body: podsOf(item(csi, "csi-node")), token: write(t, "secret\n")}
	server := httptest.NewUnstartedServer(f)
	cert, key := certificate(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	f.url, f.ca = server.URL, cert
	return f
}

func (f *fakeKubelet) client(t testing.TB, change ...func(*Options)) *Client {
	t.Helper()
	o := Options{URL: f.url, CAFile: f.ca, TokenFile: f.token, Timeout: time.Minute} // on a machine that may be busy
	for _, how := range change {
		how(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestServiceAccountIsThePods(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"with a token":       func(*Options) {},
		"by the name":        func(o *Options) { o.ServerName = "node-1" },
		"by its certificate": func(o *Options) { o.Node = "node-2" },
		"with a certificate": func(o *Options) { o.TokenFile = ""; o.CertFile, o.KeyFile = certificate(t) },
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t)
			c := f.client(t, change)
			for range 3 {
				if account, err := c.ServiceAccount(t.Context(), csi); err != nil || account != "csi-node" {
					t.Fatalf("got %q, %v", account, err)
				}
			}
			if f.asked != 1 {
				t.Errorf("the kubelet was asked %d times", f.asked)
			}
		})
	}
}

func TestTheNameOfTheKubeletIsThatOfTheNodeOnThisMachine(t *testing.T) {
	for _, test := range []struct{ host, set, node, want string }{
		{"127.0.0.1", "", "win-1", "win-1"},
		{"::1", "", "win-1", "win-1"},
		{"localhost", "", "win-1", "win-1"},
		{"127.0.0.1", "", "", "127.0.0.1"},
		{"127.0.0.1", "win-2", "win-1", "win-2"},
		{"10.0.0.1", "", "win-1", "10.0.0.1"},
		{"win-2.example", "", "win-1", "win-2.example"},
	} {
		if got := (Options{ServerName: test.set, Node: test.node}).serverName(test.host); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
}

func TestServiceAccountIsNeverAnotherPods(t *testing.T) {
	other := caller.Pod{Namespace: "storage", Name: "csi-b", UID: "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"}
	with := func(change func(*caller.Pod)) string {
		p := csi
		change(&p)
		return podsOf(item(p, "csi-node"))
	}
	tests := []struct{ name, body string }{
		{"another pod", podsOf(item(other, "csi-node"))},
		{"a pod of the same name and another uid", with(func(p *caller.Pod) { p.UID = other.UID })},
		{"a pod of the same uid and another name", with(func(p *caller.Pod) { p.Name = "csi-b" })},
		{"a pod of the same uid and another namespace", with(func(p *caller.Pod) { p.Namespace = "kube-system" })},
		{"a pod without a uid", with(func(p *caller.Pod) { p.UID = "" })},
		{"a uid in capital letters", with(func(p *caller.Pod) { p.UID = strings.ToUpper(p.UID) })},
		{"two pods of one uid", podsOf(item(csi, "csi-node"), item(csi, "csi-node"))},
		{"two pods of one uid and two names", podsOf(item(csi, "csi-node"), item(caller.Pod{Namespace: "x", Name: "y", UID: csi.UID}, "z"))},
		{"no service account", podsOf(item(csi, ""))},
		{"a service account with a slash", podsOf(item(csi, "kube-system/admin"))},
		{"a service account with a colon", podsOf(item(csi, "system:admin"))},
		{"a service account in capital letters", podsOf(item(csi, "Admin"))},
		{"a service account without end", podsOf(item(csi, strings.Repeat("a", 254)))},
		{"keys in capital letters", podsOf(strings.ReplaceAll(item(csi, "csi-node"), `"serviceAccountName"`, `"ServiceAccountName"`))},
		{"no pods", podsOf()},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := start(t)
			f.body = test.body
			if account, err := f.client(t).ServiceAccount(t.Context(), csi); err != nil || account != "" {
				t.Errorf("got %q, %v", account, err)
			}
		})
	}
}

func TestServiceAccountIsUnknownWhenTheKubeletCannotBeBelieved(t *testing.T) {
	tests := []struct {
		name   string
		change func(*fakeKubelet, *Options)
		want   string
	}{
		{"another authority", func(_ *fakeKubelet, o *Options) { o.CAFile, _ = certificate(t) }, "certificate"},
		{"another name", func(_ *fakeKubelet, o *Options) { o.ServerName = "node-2" }, "node-2"},
		{"another token", func(_ *fakeKubelet, o *Options) { o.TokenFile = write(t, "guess") }, "401"},
		{"no token in the file", func(_ *fakeKubelet, o *Options) { o.TokenFile = write(t, "") }, "empty"},
		{"a token of two lines", func(_ *fakeKubelet, o *Options) { o.TokenFile = write(t, "a\r\nHost: b") }, "more than one token"},
		{"a token without end", func(_ *fakeKubelet, o *Options) { o.TokenFile = write(t, strings.Repeat("a", 1<<20)) }, "more than"},
		{"a token file that is gone", func(_ *fakeKubelet, o *Options) { o.TokenFile += "x" }, "token file: "},
		{"nobody there", func(_ *fakeKubelet, o *Options) { o.URL = "https://127.0.0.1:1" }, "refused"},
		{"a kubelet that forbids", func(f *fakeKubelet, _ *Options) { f.status = http.StatusForbidden }, "403"},
		{"a kubelet that is broken", func(f *fakeKubelet, _ *Options) { f.status = http.StatusInternalServerError }, "500"},
		{"a kubelet that sends us elsewhere", func(f *fakeKubelet, _ *Options) { f.status = http.StatusFound }, "302"},
		{"a kubelet that does not answer", func(f *fakeKubelet, o *Options) { f.hold, o.Timeout = make(chan struct{}), 50*time.Millisecond }, "deadline"},
		{"no list", func(f *fakeKubelet, _ *Options) { f.body = "404 page not found" }, "invalid"},
		{"half a list", func(f *fakeKubelet, _ *Options) { f.body = f.body[:len(f.body)-1] }, "unexpected end"},
		{"two lists", func(f *fakeKubelet, _ *Options) { f.body += f.body }, "after top-level"},
		{"a list of something else", func(f *fakeKubelet, _ *Options) { f.body = strings.Replace(f.body, "PodList", "SecretList", 1) }, "SecretList"},
		{"a list of another version", func(f *fakeKubelet, _ *Options) { f.body = strings.Replace(f.body, `"v1"`, `"v2"`, 1) }, "v2"},
		{"a uid that is no string", func(f *fakeKubelet, _ *Options) { f.body = podsOf(`{"metadata":{"uid":7}}`) }, "cannot unmarshal"},
		{"more pods than there can be", func(f *fakeKubelet, _ *Options) { f.body = podsOf("{}" + strings.Repeat(",{}", maxPods)) }, "are the bound"},
		{"a list without end", func(f *fakeKubelet, _ *Options) { f.body = strings.Repeat(" ", maxList+1) }, "more than"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := start(t)
			c := f.client(t, func(o *Options) { test.change(f, o) })
			account, err := c.ServiceAccount(t.Context(), csi)
			if account != "" || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, %v; want an error that says %q", account, err, test.want)
			}
		})
	}
}

func TestKubeletThatGoesAwayLeavesWhatIsKnown(t *testing.T) {
	f := start(t)
	c := f.client(t)
	if _, err := c.ServiceAccount(t.Context(), csi); err != nil {
		t.Fatal(err)
	}
	f.status = http.StatusInternalServerError
	if account, err := c.ServiceAccount(t.Context(), csi); err != nil || account != "csi-node" {
		t.Errorf("a known pod: %q, %v", account, err)
	}
	young := csi
	young.UID = "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"
	if account, err := c.ServiceAccount(t.Context(), young); err == nil || account != "" {
		t.Errorf("a new pod of the same name: %q, %v", account, err)
	}
}

func TestServiceAccountEndsWithItsCaller(t *testing.T) {
	f := start(t)
	f.hold = make(chan struct{})
	c := f.client(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if account, err := c.ServiceAccount(ctx, csi); err == nil || account != "" {
		t.Errorf("got %q, %v", account, err)
	}
	close(f.hold)
}

func TestPodThatIsNewerThanTheListUnderWayIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeKubelet{body: podsOf(), token: write(t, "secret"), hold: make(chan struct{})}
		c := f.inMemory(t)
		answers := [2]string{}
		var asking sync.WaitGroup
		for i := range answers {
			asking.Go(func() { answers[i], _ = c.ServiceAccount(t.Context(), csi) })
			synctest.Wait()              // the first list is under way
			time.Sleep(time.Millisecond) // the second question comes after it
		}
		f.change(func() {
			f.body = podsOf(item(csi, "csi-node"))
			close(f.hold)
			f.hold = nil
		})
		asking.Wait()
		if answers != [2]string{"", "csi-node"} || f.asked != 2 {
			t.Errorf("got %q after %d lists", answers, f.asked)
		}
	})
}

func TestCrowdSharesOneList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeKubelet{body: podsOf(item(csi, "csi-node")), token: write(t, "secret"), hold: make(chan struct{})}
		c := f.inMemory(t)
		var asking sync.WaitGroup
		for range 100 {
			asking.Go(func() {
				if account, err := c.ServiceAccount(t.Context(), csi); err != nil || account != "csi-node" {
					t.Errorf("got %q, %v", account, err)
				}
			})
		}
		synctest.Wait()
		close(f.hold)
		asking.Wait()
		if f.asked != 1 {
			t.Errorf("the kubelet was asked %d times", f.asked)
		}
	})
}

// inMemory serves the kubelet without a network, and returns a client of it.
func (f *fakeKubelet) inMemory(t *testing.T) *Client {
	t.Helper()
	cert, key := certificate(t)
	listener := memnet.Listen()
	server := &http.Server{Handler: f, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, cert, key) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	f.url, f.ca = "https://node-1", cert
	return f.client(t, func(o *Options) {
		o.dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
	})
}

func TestNewReportsAllThatIsWrong(t *testing.T) {
	f := start(t)
	good := Options{URL: f.url, CAFile: f.ca, TokenFile: f.token}
	tests := []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"no url", func(o *Options) { o.URL = "" }, "https://HOST"},
		{"plain http", func(o *Options) { o.URL = "http://127.0.0.1:10255" }, "https://HOST"},
		{"a path", func(o *Options) { o.URL += "/exec" }, "https://HOST"},
		{"a user", func(o *Options) { o.URL = "https://a:b@127.0.0.1" }, "https://HOST"},
		{"a query", func(o *Options) { o.URL += "?a" }, "https://HOST"},
		{"no authority", func(o *Options) { o.CAFile = "" }, "no authority"},
		{"an authority that is gone", func(o *Options) { o.CAFile += "x" }, "filex"},
		{"an authority that is none", func(o *Options) { o.CAFile = f.token }, "no certificate"},
		{"no proof of ours", func(o *Options) { o.TokenFile = "" }, "either a token"},
		{"two proofs of ours", func(o *Options) { o.CertFile, o.KeyFile = "a", "b" }, "either a token"},
		{"a certificate without its key", func(o *Options) { o.TokenFile, o.CertFile = "", "a" }, "come together"},
		{"a key of another certificate", func(o *Options) { o.TokenFile = ""; o.CertFile, _ = certificate(t); _, o.KeyFile = certificate(t) }, "client certificate"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := good
			test.change(&o)
			if c, err := New(o); err == nil || c != nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v; want it to say %q", err, test.want)
			}
		})
	}
	if _, err := New(Options{}); err == nil || !strings.Contains(err.Error(), "HOST") || !strings.Contains(err.Error(), "authority") || !strings.Contains(err.Error(), "token") {
		t.Errorf("not all faults at once: %v", err)
	}
}

func TestRegisterShowsTheLists(t *testing.T) {
	f := start(t)
	c := f.client(t)
	r := prometheus.NewPedanticRegistry()
	if err := c.Register(r); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ServiceAccount(t.Context(), csi); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
	}
	if diff := cmp.Diff(map[string]float64{"good": 1, "failed": 0}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzDecodeList(f *testing.F) {
	f.Add([]byte(podsOf(item(csi, "csi-node"))))
	f.Add([]byte(`{"kind":"PodList","apiVersion":"v1","items":null}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		found, err := decodeList(content)
		if err != nil {
			return
		}
		for pod, account := range found {
			if pod.UID == "" || pod.ServiceAccount != "" || !caller.IsSubdomain(account) || found.find(pod) != account {
				t.Errorf("%+v has %q", pod, account)
			}
		}
	})
}
