package token

import (
	"context"
	"crypto/tls"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/pipeguard/pipeguard/test/harness"
)

func TestReviewAcceptsTheCallersOwnToken(t *testing.T) {
	c, a := newClock(), startAPI(t)
	g := guard(t, online(t, c, a), Required)
	md := bearer(sign(t, rsaHeader(), claimsAt(c.Now()), clusterRSA()))
	if got := wantDriver(t, g, md, driver()); got.Method != ByReview || got.Cached || got.Stale || got.ID != "JTI=4f1c" {
		t.Errorf("got %+v", got)
	}
	for range 5 {
		if got := wantDriver(t, g, md, driver()); !got.Cached {
			t.Error("asked again")
		}
	}
	c.pass(2*time.Minute - time.Second)
	wantDriver(t, g, md, driver())
	if n := a.questions(tokenReviewKind); n != 1 {
		t.Errorf("%d questions, want one within two minutes", n)
	}
	c.pass(time.Second)
	if got := wantDriver(t, g, md, driver()); got.Cached || a.questions(tokenReviewKind) != 2 {
		t.Error("not asked again after two minutes")
	}
}

func TestReviewAsksNobodyAboutTokensThatSayTheyAreNotTheCallers(t *testing.T) {
	c, a := newClock(), startAPI(t)
	g := guard(t, online(t, c, a), Required)
	for reason, changes := range map[Reason]fields{
		WrongPod:     {"kubernetes.io/pod/uid": "pod-2"},
		WrongNode:    {"kubernetes.io/node/name": "win-2"},
		WrongTarget:  {"aud": "vault"},
		WrongTime:    {"exp": c.Now().Unix() - 60},
		WrongIssuer:  {"iss": "x"},
		WrongAccount: {"kubernetes.io/serviceaccount/name": "admin", "sub": "system:serviceaccount:storage:admin"},
		Malformed:    {"kubernetes.io": nil},
	} {
		wantRefusal(t, g, bearer(sign(t, rsaHeader(), with(claimsAt(c.Now()), changes), clusterRSA())), driver(), reason)
	}
	if n := a.questions(tokenReviewKind); n != 0 {
		t.Errorf("%d questions, want none", n)
	}
}

func TestReviewRefusesWhatTheAPIServerDoes(t *testing.T) {
	c, a := newClock(), startAPI(t)
	g := guard(t, online(t, c, a), IfPresent)
	spoofed := bearer(sign(t, rsaHeader(), claimsAt(c.Now()), strangerRSA()))
	wantRefusal(t, g, spoofed, driver(), Rejected)
	wantRefusal(t, g, spoofed, driver(), Rejected)
	if n := a.questions(tokenReviewKind); n != 1 {
		t.Errorf("%d questions, want one within ten seconds", n)
	}
	c.pass(10 * time.Second)
	wantRefusal(t, g, spoofed, driver(), Rejected)
	if n := a.questions(tokenReviewKind); n != 2 {
		t.Errorf("%d questions, want another after ten seconds", n)
	}
}

func TestReviewForgetsAnAllowWhenTheTokenIsRevoked(t *testing.T) {
	c, a := newClock(), startAPI(t)
	g := guard(t, online(t, c, a), Required)
	text := sign(t, rsaHeader(), claimsAt(c.Now()), clusterRSA())
	wantDriver(t, g, bearer(text), driver())
	a.mu.Lock()
	a.revoked[text] = true // its pod was deleted
	a.mu.Unlock()
	c.pass(2 * time.Minute)
	wantRefusal(t, g, bearer(text), driver(), Rejected)
	a.answers(away)
	c.pass(11 * time.Second)
	wantRefusal(t, g, bearer(text), driver(), Unavailable) // the older answer does not come back
}

func TestReviewRefusesAnswersThatDoNotFit(t *testing.T) {
	user := func(status fields) fields { u, _ := status["user"].(fields); return u }
	extra := func(status fields) fields { e, _ := user(status)["extra"].(fields); return e }
	for _, tt := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request, []byte)
		reason Reason
	}{
		{"authenticated without audiences", says(func(_, s fields) { delete(s, "audiences") }), WrongTarget},
		{"authenticated for the API server's audience", says(func(_, s fields) { s["audiences"] = []string{ourIssuer} }), WrongTarget},
		{"authenticated with an error", says(func(_, s fields) { s["error"] = "something" }), Rejected},
		{"authenticated as a person", says(func(_, s fields) { user(s)["username"] = "admin" }), Rejected},
		{"authenticated as another account", says(func(_, s fields) { user(s)["username"] = "system:serviceaccount:storage:admin" }), Rejected},
		{"authenticated as nobody", says(func(_, s fields) { delete(s, "user") }), Rejected},
		{"authenticated without a pod", says(func(_, s fields) { delete(user(s), "extra") }), Rejected},
		{"authenticated for another pod", says(func(_, s fields) { extra(s)[extraPodUID] = []string{"pod-2"} }), Rejected},
		{"authenticated for two pods", says(func(_, s fields) { extra(s)[extraPodUID] = []string{"pod-1", "pod-2"} }), Rejected},
		{"authenticated for another pod's name", says(func(_, s fields) { extra(s)[extraPodName] = []string{"x"} }), Rejected},
		{"authenticated for another node", says(func(_, s fields) { extra(s)[extraNode] = []string{"win-2"} }), Rejected},
		{"authenticated without a node", says(func(_, s fields) { delete(extra(s), extraNode) }), Rejected},
		{"not authenticated, with a user", says(func(_, s fields) { s["authenticated"] = false }), Rejected},
		{"no status", says(func(r, _ fields) { delete(r, "status") }), Rejected},
		{"authenticated in text", says(func(_, s fields) { s["authenticated"] = "true" }), Unavailable},
		{"another kind", says(func(r, _ fields) { r["kind"] = "SubjectAccessReview" }), Unavailable},
		{"another version", says(func(r, _ fields) { r["apiVersion"] = "authentication.k8s.io/v1beta1" }), Unavailable},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request, _ []byte) { _, _ = w.Write([]byte("<html>")) }, Unavailable},
		{"nothing", func(http.ResponseWriter, *http.Request, []byte) {}, Unavailable},
		{"too much", func(w http.ResponseWriter, _ *http.Request, usual []byte) {
			_, _ = w.Write(append(usual, strings.Repeat(" ", maxAnswer)...))
		}, Unavailable},
		{"a review with the status of an error", func(w http.ResponseWriter, _ *http.Request, usual []byte) {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write(usual)
		}, Unavailable},
		{"forbidden to the proxy", func(w http.ResponseWriter, _ *http.Request, _ []byte) { w.WriteHeader(http.StatusForbidden) }, Unavailable},
		{"a fault, with the token in its text", func(w http.ResponseWriter, r *http.Request, usual []byte) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write(usual)
		}, Unavailable},
		{"half an answer", func(w http.ResponseWriter, _ *http.Request, usual []byte) {
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write(usual)
			panic(http.ErrAbortHandler)
		}, Unavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, a := newClock(), startAPI(t)
			a.answers(tt.answer)
			wantRefusal(t, guard(t, online(t, c, a), Required), bearer(sign(t, rsaHeader(), claimsAt(c.Now()), clusterRSA())), driver(), tt.reason)
		})
	}
}

func TestTokensAreNotSentElsewhere(t *testing.T) {
	var got atomic.Int32
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	defer other.Close()
	c, a := newClock(), startAPI(t)
	md := bearer(sign(t, rsaHeader(), claimsAt(c.Now()), clusterRSA()))
	t.Run("where a redirect leads", func(t *testing.T) {
		a.answers(func(w http.ResponseWriter, r *http.Request, _ []byte) {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		})
		wantRefusal(t, guard(t, online(t, c, a), Required), md, driver(), Unavailable)
	})
	t.Run("through a proxy of the environment", func(t *testing.T) {
		t.Setenv("HTTPS_PROXY", other.URL)
		a.answers(nil)
		wantDriver(t, guard(t, online(t, c, a), Required), md, driver())
	})
	t.Run("to a server of another authority", func(t *testing.T) {
		config := a.config(t)
		stranger := httptest.NewUnstartedServer(a)
		stranger.TLS = &tls.Config{Certificates: []tls.Certificate{harness.SelfSigned(t, "127.0.0.1").Certificate}}
		stranger.Config.ErrorLog = a.Config.ErrorLog
		stranger.StartTLS()
		defer stranger.Close()
		config.API.Server = stranger.URL
		before := a.questions(tokenReviewKind)
		v, err := New(config, Metrics{})
		if err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, guard(t, v.withClock(c), Required), md, driver(), Unavailable)
		if a.questions(tokenReviewKind) != before {
			t.Error("the token was sent")
		}
		// The authority's file is read again when it changes.
		writeFile(t, config.API.CAFile, []byte(harness.CertificatePEM(stranger.Certificate())))
		wantDriver(t, guard(t, v, Required), md, driver())
	})
	if got.Load() != 0 {
		t.Error("another server was asked")
	}
}

func TestLastAllowStandsInWhileTheAPIServerIsAway(t *testing.T) {
	c, a := newClock(), startAPI(t)
	v := online(t, c, a)
	g := guard(t, v, Required)
	md := bearer(sign(t, rsaHeader(), claimsAt(c.Now()), clusterRSA()))
	wantDriver(t, g, md, driver())
	a.answers(away)
	c.pass(2 * time.Minute)
	for i := range 10 {
		if got := wantDriver(t, g, md, driver()); !got.Stale || got.Cached != (i > 0) {
			t.Errorf("call %d: got %+v, want a stale answer", i, got)
		}
	}
	if n := a.questions(tokenReviewKind); n != 2 {
		t.Errorf("%d questions, want a pause of ten seconds between them", n)
	}

	t.Run("not for a process that has ended", func(t *testing.T) {
		f := driver()
		f.Alive = func() error { return errors.New("ended") }
		wantRefusal(t, g, md, f, Ended)
		c.pass(11 * time.Second)
		wantRefusal(t, g, md, f, Ended)
	})
	t.Run("not if nobody can say whether the process runs", func(t *testing.T) {
		f := driver()
		f.Alive = nil
		wantRefusal(t, g, md, f, Unavailable)
	})
	t.Run("not for another process of the same pod", func(t *testing.T) {
		f := driver()
		f.Process.PID = 777
		wantRefusal(t, g, md, f, Unavailable)
	})
	t.Run("not for another token", func(t *testing.T) {
		other := bearer(sign(t, rsaHeader(), with(claimsAt(c.Now()), fields{"jti": "other"}), clusterRSA()))
		wantRefusal(t, g, other, driver(), Unavailable)
	})
	t.Run("not for longer than ten minutes", func(t *testing.T) {
		c.pass(8*time.Minute - 12*time.Second)
		if got := wantDriver(t, g, md, driver()); !got.Stale {
			t.Error("not said to be stale")
		}
		c.pass(time.Second)
		wantRefusal(t, g, md, driver(), Unavailable)
		wantRefusal(t, g, md, driver(), Unavailable)
	})
	t.Run("and the API server's return ends it", func(t *testing.T) {
		a.answers(nil)
		if got := wantDriver(t, g, md, driver()); got.Stale {
			t.Error("said to be stale")
		}
	})
}

func TestStaleEndsWithTheToken(t *testing.T) {
	c, a := newClock(), startAPI(t)
	g := guard(t, online(t, c, a), Required)
	md := bearer(sign(t, rsaHeader(), with(claimsAt(c.Now()), fields{"exp": c.Now().Unix() + 180}), clusterRSA()))
	wantDriver(t, g, md, driver())
	a.answers(away)
	c.pass(179 * time.Second)
	if got := wantDriver(t, g, md, driver()); !got.Stale {
		t.Error("not said to be stale")
	}
	c.pass(time.Second) // within the leeway, where a token is still reviewed, but nothing stands in
	wantRefusal(t, g, md, driver(), Unavailable)
	c.pass(10 * time.Second)
	wantRefusal(t, g, md, driver(), WrongTime)
}

func TestASlowAPIServerIsGivenUp(t *testing.T) {
	a := startAPI(t)
	release := make(chan struct{})
	defer close(release)
	a.answers(func(_ http.ResponseWriter, r *http.Request, _ []byte) {
		select {
		case <-release:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler) // an answer could still arrive: the connection is closed in steps
		}
	})
	config := a.config(t)
	config.Timeout = 50 * time.Millisecond
	v, err := New(config, Metrics{})
	if err != nil {
		t.Fatal(err)
	}
	c := newClock()
	wantRefusal(t, guard(t, v.withClock(c), Required), bearer(sign(t, rsaHeader(), claimsAt(c.Now()), clusterRSA())), driver(), Unavailable)
}

// held is an API server that answers when it is told to.
func held(a *apiServer) (arrived chan struct{}, release chan struct{}) {
	arrived, release = make(chan struct{}, 100), make(chan struct{})
	a.answers(func(w http.ResponseWriter, _ *http.Request, usual []byte) {
		arrived <- struct{}{}
		<-release
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(usual)
	})
	return arrived, release
}

func TestManyCallsAskOnce(t *testing.T) {
	c, a := newClock(), startAPI(t)
	g := guard(t, online(t, c, a), Required)
	md := bearer(sign(t, rsaHeader(), claimsAt(c.Now()), clusterRSA()))
	arrived, release := held(a)
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			if _, _, err := g.Check(t.Context(), md, driver()); err != nil {
				t.Error(err)
			}
		})
	}
	<-arrived
	close(release)
	calls.Wait()
	if n := a.questions(tokenReviewKind); n != 1 {
		t.Errorf("%d questions, want one", n)
	}
}

func TestACallerThatLeavesEndsNobodyElsesQuestion(t *testing.T) {
	c, a := newClock(), startAPI(t)
	g := guard(t, online(t, c, a), Required)
	md := bearer(sign(t, rsaHeader(), claimsAt(c.Now()), clusterRSA()))
	arrived, release := held(a)
	leaves, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	calls.Go(func() {
		if _, _, err := g.Check(leaves, md, driver()); err != nil {
			t.Error(err)
		}
	})
	<-arrived
	cancel()
	if _, _, err := g.Check(leaves, md, driver()); ReasonOf(err) != Unavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the call is over", err)
	}
	close(release)
	calls.Wait()
	if got := wantDriver(t, g, md, driver()); !got.Cached {
		t.Error("the answer was lost")
	}
}

func TestOpenQuestionsAreDividedAmongPodsAndNamespaces(t *testing.T) {
	c, a := newClock(), startAPI(t)
	g := guard(t, online(t, c, a), Required)
	arrived, release := held(a)
	end := sync.OnceFunc(func() { close(release) })
	defer end()
	var calls sync.WaitGroup
	n := 0
	made := func(caller Facts) metadata.MD { // each is another token, for the caller's pod
		n++
		claims := with(claimsAt(c.Now()), fields{
			"jti": strconv.Itoa(n), "sub": "system:serviceaccount:" + caller.Pod.Namespace + ":driver",
			"kubernetes.io/namespace": caller.Pod.Namespace, "kubernetes.io/pod/uid": caller.Pod.UID,
		})
		return bearer(sign(t, rsaHeader(), claims, strangerRSA()))
	}
	asks := func(caller Facts) bool {
		t.Helper()
		md, busy := made(caller), make(chan bool, 1)
		calls.Go(func() {
			_, _, err := g.Check(t.Context(), md, caller)
			busy <- ReasonOf(err) == Busy
		})
		select {
		case <-arrived:
			return true
		case is := <-busy:
			if !is {
				t.Error("refused for another reason than that too many questions are open")
			}
			return false
		}
	}
	of := func(namespace, uid string, process int) Facts {
		f := driver()
		f.Pod.Namespace, f.Pod.UID, f.Process.PID = namespace, namespace+uid, uint32(process+1)
		return f
	}
	most := func(count int, caller func(i int) Facts) {
		t.Helper()
		for i := range count {
			if !asks(caller(i)) {
				t.Fatalf("question %d is refused, want %d", i, count)
			}
		}
		if asks(caller(count)) {
			t.Fatalf("a question beyond %d is asked", count)
		}
	}
	most(4, func(i int) Facts { return of("a", "pod-1", i) }) // whatever process asks
	each := func(namespace string) func(int) Facts {
		return func(i int) Facts { return of(namespace, strconv.Itoa(i), i) }
	}
	most(12, each("a"))
	most(8, each("b"))
	most(4, func(i int) Facts {
		f := each(strconv.Itoa(i))(i)
		f.Stranger = true
		return f
	})
	most(2, each("c"))
	most(1, each("d"))
	most(1, each("e"))
	most(0, each("f"))
	end()
	calls.Wait()
	a.answers(nil)
	wantDriver(t, g, bearer(sign(t, rsaHeader(), claimsAt(c.Now()), clusterRSA())), driver())
	if v := g.verifier.tokens; v.open != 0 || len(v.pods) != 0 || len(v.spaces) != 0 || len(v.flights) != 0 {
		t.Error("questions that have ended are counted as open")
	}
}

func TestGuessingPushesOutNoAllow(t *testing.T) {
	m := newMemo[int](Config{AllowFor: time.Minute, DenyFor: time.Minute, StaleFor: time.Minute, Timeout: time.Minute}, true)
	ask := func(n int, r *Refusal) (found[int], *Refusal) {
		q := question[int]{
			key: key{subject: string(rune(n))}, expires: time.Now().Add(time.Hour),
			ask: func(context.Context) (int, *Refusal) { return n, r },
		}
		return m.find(t.Context(), q)
	}
	if _, r := ask(1, nil); r != nil {
		t.Fatal(r)
	}
	for n := range 2 * maxDenies {
		if _, r := ask(n+2, refuse(Rejected, "no")); r == nil {
			t.Fatal("allowed")
		}
	}
	if len(m.denies.at) != maxDenies || m.denies.order.Len() != maxDenies {
		t.Errorf("%d refusals are remembered, want at most %d", len(m.denies.at), maxDenies)
	}
	if f, r := ask(1, refuse(Rejected, "no")); r != nil || !f.cached {
		t.Error("the allow was forgotten")
	}
	for n := range 2 * maxAllows {
		ask(n+2, nil)
	}
	if len(m.allows.at) > maxAllows || m.allows.order.Len() != len(m.allows.at) {
		t.Errorf("%d allows are remembered, want at most %d", len(m.allows.at), maxAllows)
	}
}

func TestTheProxysOwnFilesAreReadAgain(t *testing.T) {
	c, a := newClock(), startAPI(t)
	config := a.config(t)
	v, err := New(config, Metrics{})
	if err != nil {
		t.Fatal(err)
	}
	g := guard(t, v.withClock(c), Required)
	md := bearer(sign(t, rsaHeader(), claimsAt(c.Now()), clusterRSA()))
	for name, text := range map[string]string{"another token": "old.own.token", "nothing": "", "two lines": "a\nb"} {
		t.Run(name, func(t *testing.T) {
			writeFile(t, config.API.TokenFile, []byte(text))
			wantRefusal(t, g, md, driver(), Unavailable)
		})
	}
	if err := os.Remove(config.API.TokenFile); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, g, md, driver(), Unavailable)
	writeFile(t, config.API.TokenFile, []byte(proxyToken))
	wantDriver(t, g, md, driver())
}

func TestANewClientCertificateIsUsed(t *testing.T) {
	c, a := newClock(), startAPI(t)
	config := a.config(t)
	dir := t.TempDir()
	config.API.TokenFile, config.API.CertFile, config.API.KeyFile = "", filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	rotate := func() (serial *big.Int) {
		cert := harness.SelfSigned(t)
		writeFile(t, config.API.CertFile, []byte(cert.PEM))
		writeFile(t, config.API.KeyFile, []byte(cert.KeyPEM))
		return cert.Leaf.SerialNumber
	}
	know := func(serial *big.Int) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.serial = serial
	}
	know(rotate())
	v, err := New(config, Metrics{})
	if err != nil {
		t.Fatal(err)
	}
	g := guard(t, v.withClock(c), Required)
	made := func(id string) metadata.MD {
		return bearer(sign(t, rsaHeader(), with(claimsAt(c.Now()), fields{"jti": id}), clusterRSA()))
	}
	wantDriver(t, g, made("1"), driver())
	next := rotate()
	wantDriver(t, g, made("2"), driver()) // over the connection of the old certificate, which is still good
	know(next)
	wantRefusal(t, g, made("3"), driver(), Unavailable) // and now is not
	wantDriver(t, g, made("4"), driver())
}
