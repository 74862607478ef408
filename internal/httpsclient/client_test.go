package httpsclient

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/test/harness"
)

// server answers each request with the credentials that came with it.
func server(t *testing.T, change func(*tls.Config), answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(answer)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{}
	if change != nil {
		change(s.TLS)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func credentials(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, r.Header.Get("Authorization"))
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	rewrite(t, name, text)
	return name
}

func rewrite(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, c *http.Client, url string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := Do(c, r, 100)
	return string(answer.Body), err
}

// fails gets url, and wants an error that says a word.
func fails(t *testing.T, c *http.Client, url, want string) {
	t.Helper()
	if body, err := get(t, c, url); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %q, %v; want an error that says %q", body, err, want)
	}
}

func TestFilesAreReadAgain(t *testing.T) {
	s := server(t, nil, credentials)
	o := Options{CAFile: file(t, harness.CertificatePEM(s.Certificate())), CADecides: true, TokenFile: file(t, " secret.one\n")}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	succeeds := func(want string) {
		t.Helper()
		if got, err := get(t, c, s.URL); got != want || err != nil {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	succeeds("Bearer secret.one")
	rewrite(t, o.TokenFile, "secret.two")
	succeeds("Bearer secret.two")
	for text, want := range map[string]string{
		"": "is empty", " \n": "is empty", "secret\nX-Other: a": "more than one token", "secret two": "more than one token",
		"secret\x7f": "more than one token", "secreté": "more than one token", strings.Repeat("a", maxToken+1): "more than 16384 bytes",
	} {
		rewrite(t, o.TokenFile, text)
		fails(t, c, s.URL, "token file: ")
		fails(t, c, s.URL, o.TokenFile)
		fails(t, c, s.URL, want)
	}
	rewrite(t, o.TokenFile, "secret.two")
	for text, want := range map[string]string{harness.SelfSigned(t).PEM: "certificate", "garbage": "holds no certificate", "": "is empty", strings.Repeat("a", maxFile+1): "more than"} {
		rewrite(t, o.CAFile, text)
		fails(t, c, s.URL, want)
	}
	rewrite(t, o.CAFile, harness.CertificatePEM(s.Certificate()))
	succeeds("Bearer secret.two")
	if runtime.GOOS != "windows" {
		if err := os.Chmod(o.CAFile, 0o666); err != nil {
			t.Fatal(err)
		}
		fails(t, c, s.URL, o.CAFile)
	}
}

func TestOnlyTheServerIsAsked(t *testing.T) {
	var asked atomic.Int32
	other := server(t, nil, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	plain := httptest.NewServer(other.Config.Handler)
	defer plain.Close()
	s := server(t, nil, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	t.Setenv("HTTPS_PROXY", plain.URL)
	c, err := New(Options{CAFile: file(t, harness.CertificatePEM(s.Certificate())+harness.CertificatePEM(other.Certificate())), TokenFile: file(t, "secret")})
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusTemporaryRedirect {
		t.Errorf("got %s", response.Status)
	}
	fails(t, c, plain.URL, "over TLS alone")
	if asked.Load() > 0 {
		t.Error("another server was asked")
	}
}

func TestAnswersAreBounded(t *testing.T) {
	long := make(chan struct{})
	s := server(t, nil, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/head":
			w.Header().Set("X-Long", strings.Repeat("a", maxHead))
		case "/body":
			_, _ = io.WriteString(w, strings.Repeat("a", 101))
		case "/half":
			w.Header().Set("Content-Length", "100")
		case "/never":
			<-long
		default:
			_, _ = io.WriteString(w, strings.Repeat("a", 100))
		}
	})
	defer close(long)
	c, err := New(Options{CAFile: file(t, harness.CertificatePEM(s.Certificate())), Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	fails(t, c, s.URL+"/head", "headers exceeded")
	fails(t, c, s.URL+"/body", "200 OK: more than 100 bytes")
	fails(t, c, s.URL+"/half", "read the answer")
	fails(t, c, s.URL+"/never", "exceeded")
	if body, err := get(t, c, s.URL); len(body) != 100 || err != nil {
		t.Errorf("got %d bytes, %v", len(body), err)
	}
}

func TestServersAreBelievedByTheFileAlone(t *testing.T) {
	s := server(t, nil, credentials)
	old := server(t, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }, credentials) //nolint:gosec // which is what is refused
	for name, test := range map[string]struct {
		o         Options
		url, want string
	}{
		"the system's authorities": {Options{}, s.URL, "certificate"},
		"another name":             {Options{CAFile: file(t, harness.CertificatePEM(s.Certificate())), ServerName: "other.test"}, s.URL, "other.test"},
		"an old version of TLS":    {Options{CAFile: file(t, harness.CertificatePEM(old.Certificate()))}, old.URL, "protocol version"},
	} {
		c, err := New(test.o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		fails(t, c, test.url, test.want)
	}
}

func TestNewReportsAllThatIsWrong(t *testing.T) {
	certificate, other := harness.SelfSigned(t), harness.SelfSigned(t)
	missing := filepath.Join(t.TempDir(), "missing")
	_, err := New(Options{CAFile: missing, CertFile: missing + "3", KeyFile: missing + "4"})
	for _, want := range []string{"CA file: ", "client certificate: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := New(Options{CertFile: file(t, certificate.PEM), KeyFile: file(t, other.KeyPEM)}); err == nil || !strings.Contains(err.Error(), "client certificate") {
		t.Errorf("a key of another certificate: %v", err)
	}
	if c, err := New(Options{CADecides: true}); c != nil || err == nil || !strings.Contains(err.Error(), "CA file: want one") {
		t.Errorf("the system's authorities decide: %v", err)
	}
	if _, err := New(Options{CertFile: file(t, certificate.PEM), KeyFile: file(t, certificate.KeyPEM)}); err != nil {
		t.Error(err)
	}
}

func TestCertPool(t *testing.T) {
	if pool, err := CertPool(""); pool != nil || err != nil {
		t.Errorf("the system's: %v, %v", pool, err)
	}
	if pool, err := CertPool(file(t, harness.SelfSigned(t).PEM)); pool == nil || err != nil {
		t.Error(err)
	}
	if pool, err := CertPool(file(t, "garbage")); pool != nil || err == nil || !strings.Contains(err.Error(), "holds no certificate") {
		t.Errorf("garbage: %v, %v", pool, err)
	}
}
