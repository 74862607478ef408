package publish

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/controller/configmaps"
	"github.com/pipeguard/pipeguard/test/bundletest"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// desk is a publisher whose clock and content a test sets.
type desk struct {
	t       *testing.T
	api     *api
	store   Store
	key     *bundle.Key
	now     time.Time
	content bundle.Bundle
	err     error
	noKey   error
	life    time.Duration
	pools   []string
	unread  func(Result) ([]string, error)
	log     *zap.Logger
}

func (d *desk) signer() (*bundle.Key, error) { return d.key, d.noKey }

func newDesk(t *testing.T) *desk {
	key := bundletest.NewKey(t)
	a, store := newAPI(t)
	return &desk{t: t, api: a, store: store, key: key, now: begin, pools: []string{"windows"}, content: bundle.Bundle{ACL: []byte(`{"policies":[]}`), PolicyRevision: "one"}}
}

func (d *desk) publisher() *Publisher {
	d.t.Helper()
	p, err := New(Options{
		Store: d.store, Key: d.signer, Pools: d.pools, Life: d.life, Now: func() time.Time { return d.now },
		Source: func(context.Context) (bundle.Bundle, error) { return d.content, d.err }, Log: d.log,
		Unread: func(_ context.Context, r Result) ([]string, error) {
			if d.unread == nil {
				return nil, nil
			}
			return d.unread(r)
		},
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

// publish is what a leader does that starts now.
func (d *desk) publish() Result {
	d.t.Helper()
	p := d.publisher()
	p.publish(d.t.Context())
	results := p.Results()
	if len(results) != len(d.pools) {
		d.t.Fatalf("results %+v", results)
	}
	return results[0]
}

// published is the bundle that a node would find.
func (d *desk) published() bundle.Bundle {
	d.t.Helper()
	keys, err := bundle.ParseKeys(d.key.PublicPEM())
	if err != nil {
		d.t.Fatal(err)
	}
	b, _, err := keys.Verify(d.api.get("pipeguard-bundle-windows").BinaryData[File])
	if err != nil {
		d.t.Fatal(err)
	}
	return b
}

func TestABundleIsWrittenOnceForEachContent(t *testing.T) {
	d := newDesk(t)
	first := d.publish()
	b := d.published()
	if first.Err != nil || !first.Written || b.Revision != uint64(begin.Unix()) || b.Audience != "windows" || b.ExpiresAt.Sub(b.IssuedAt) != defaultLife {
		t.Fatalf("%+v\n%+v", first, b)
	}
	o := d.api.get("pipeguard-bundle-windows")
	if o.Namespace != "pipeguard-system" || o.Annotations[v1alpha1.AnnotationBundleRevision] != "1767323045" || o.Labels[v1alpha1.LabelNodePool] != "windows" {
		t.Errorf("object %+v", o.ObjectMeta)
	}
	d.now = begin.Add(time.Hour)
	if again := d.publish(); again.Written || again.Revision != first.Revision || again.Err != nil || d.api.written() != 1 {
		t.Errorf("unchanged: %+v, %d writes", again, d.api.written())
	}
	d.content.PolicyRevision = "two"
	if next := d.publish(); !next.Written || next.Revision <= first.Revision || d.published().PolicyRevision != "two" {
		t.Errorf("changed: %+v", next)
	}
}

func TestRevisionsRiseWhateverHappens(t *testing.T) {
	d := newDesk(t)
	last := d.publish().Revision
	rises := func(what string) {
		t.Helper()
		r := d.publish()
		if r.Err != nil || !r.Written || r.Revision <= last {
			t.Errorf("%s: %+v after revision %d", what, r, last)
		}
		last = r.Revision
	}
	for _, content := range []string{"a", "b", "c"} { // within one second
		d.content.PolicyRevision = content
		rises("another content")
	}
	d.now = begin.Add(-24 * time.Hour)
	rises("the clock was set back, so that the bundle is of the future")
	d.now = begin.Add(defaultLife/2 + time.Minute)
	rises("half of its life is over")
	d.now = d.now.Add(time.Minute)
	d.api.remove("pipeguard-bundle-windows")
	rises("the object was deleted")
	d.api.change("pipeguard-bundle-windows", func(o *corev1.ConfigMap) { o.BinaryData[File] = o.BinaryData[File][:50] })
	d.now = d.now.Add(time.Second)
	rises("the bundle was damaged")
	d.now = d.now.Add(time.Second)
	d.api.change("pipeguard-bundle-windows", func(o *corev1.ConfigMap) { o.BinaryData = nil })
	rises("the bundle was taken out")
	key := bundletest.NewKey(t)
	d.key = key
	rises("another key signs")
	d.life = time.Hour
	rises("another life is asked for")
}

// Somebody who may write ConfigMaps can put back what we signed. Its content may even be the right one again.
func TestAnOlderBundleOfOursIsReplaced(t *testing.T) {
	d := newDesk(t)
	p := d.publisher()
	p.publish(t.Context())
	old := d.api.get("pipeguard-bundle-windows").BinaryData[File]
	for _, content := range []string{"two", "one"} {
		d.now, d.content.PolicyRevision = d.now.Add(time.Minute), content
		p.publish(t.Context())
	}
	last := d.published().Revision
	d.api.change("pipeguard-bundle-windows", func(o *corev1.ConfigMap) { o.BinaryData[File] = old })
	d.now = begin // and the clock was set back
	p.publish(t.Context())
	if now := d.published(); now.Revision != last+1 || now.PolicyRevision != "one" {
		t.Errorf("revision %d follows %d", now.Revision, last)
	}
}

// Whoever may write ConfigMaps must not be able to bring nodes to a revision that nothing can follow.
func TestARevisionThatNobodySignedIsNotBelieved(t *testing.T) {
	d := newDesk(t)
	d.publish()
	stranger := bundletest.NewKey(t)
	raw, err := bundle.Build(bundle.Bundle{Revision: bundle.LatestRevision(begin), Audience: "windows", IssuedAt: begin, ExpiresAt: begin.Add(time.Hour), ACL: []byte(`{}`)}, stranger)
	if err != nil {
		t.Fatal(err)
	}
	d.api.change("pipeguard-bundle-windows", func(o *corev1.ConfigMap) {
		o.BinaryData[File], o.Annotations[v1alpha1.AnnotationBundleRevision] = raw, "18446744073709551615"
	})
	d.now = begin.Add(time.Minute)
	if r := d.publish(); r.Err != nil || r.Revision != uint64(d.now.Unix()) || d.published().Revision != r.Revision {
		t.Errorf("%+v", r)
	}
	// A bundle of another pool, signed with the right key, is none of this one.
	other, err := bundle.Build(bundle.Bundle{Revision: uint64(d.now.Unix()) + 5, Audience: "linux", IssuedAt: begin, ExpiresAt: begin.Add(bundle.MaxLife), ACL: d.content.ACL, PolicyRevision: "one"}, d.key)
	if err != nil {
		t.Fatal(err)
	}
	d.api.change("pipeguard-bundle-windows", func(o *corev1.ConfigMap) { o.BinaryData[File] = other })
	if r := d.publish(); r.Err != nil || !r.Written || d.published().Audience != "windows" {
		t.Errorf("%+v", r)
	}
}

// No node takes a revision that is too far ahead, so one that only a wrong clock explains is not counted on from.
func TestAClockThatWasYearsAheadIsNotFollowed(t *testing.T) {
	d := newDesk(t)
	p := d.publisher()
	d.now = begin.AddDate(3, 0, 0)
	p.publish(t.Context())
	for i := range 2 {
		d.now = begin.Add(time.Duration(i) * time.Minute)
		d.content.PolicyRevision = fmt.Sprint(i)
		p.publish(t.Context())
		if r := p.Results()[0]; r.Err != nil || !r.Written || r.Revision != uint64(d.now.Unix()) || d.published().Revision != r.Revision {
			t.Errorf("%+v", r)
		}
	}
	d.now = begin.AddDate(0, 11, 0)
	p.publish(t.Context())
	ahead := p.Results()[0].Revision
	d.now, d.content.PolicyRevision = begin.Add(time.Hour), "x"
	p.publish(t.Context())
	if r := p.Results()[0]; r.Err != nil || r.Revision != ahead+1 { // nodes may have taken it
		t.Errorf("after %d: %+v", ahead, r)
	}
}

func TestOthersWhoWriteAreNotOverwritten(t *testing.T) {
	d := newDesk(t)
	d.publish()
	d.content.PolicyRevision = "two"
	times := 2
	d.api.before = func(method string) {
		if method == http.MethodPut && times > 0 {
			times--
			d.api.change("pipeguard-bundle-windows", func(o *corev1.ConfigMap) { o.Annotations["other"] = "kept" })
		}
	}
	if r := d.publish(); r.Err != nil || !r.Written || d.api.get("pipeguard-bundle-windows").Annotations["other"] != "kept" {
		t.Errorf("%+v", r)
	}
	d.content.PolicyRevision, times = "three", 1000
	if r := d.publish(); r.Reason != ReasonConflict || !errors.Is(r.Err, configmaps.ErrChanged) {
		t.Errorf("without end: %+v", r)
	}
}

func TestTwoLeadersDoNotMakeTheSameObject(t *testing.T) {
	d := newDesk(t)
	d.api.before = func(method string) {
		if method == http.MethodPost {
			d.api.before = func(string) {}
			d.api.mu.Lock()
			d.api.put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "pipeguard-system", Name: "pipeguard-bundle-windows"}})
			d.api.mu.Unlock()
		}
	}
	if r := d.publish(); r.Err != nil || !r.Written || d.published().Revision == 0 {
		t.Errorf("%+v", r)
	}
}

func TestWhatCannotBePublishedIsSaid(t *testing.T) {
	d := newDesk(t)
	d.publish()
	before := d.published()
	noise := make([]byte, bundle.MaxCompressed)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	good := d.content
	d.content.Modules = map[string]string{"x.rego": hex.EncodeToString(noise)}
	if r := d.publish(); r.Reason != ReasonTooLarge || !strings.Contains(r.Err.Error(), "at most 1024000") {
		t.Errorf("too large: %+v", r)
	}
	d.content = bundle.Bundle{ACL: []byte("x")}
	if r := d.publish(); r.Reason != ReasonUnfit || r.Err == nil {
		t.Errorf("no JSON: %+v", r)
	}
	d.err = errors.New(`PipePolicy "p": no`)
	if r := d.publish(); r.Reason != ReasonUnfit || !errors.Is(r.Err, d.err) {
		t.Errorf("unfit: %+v", r)
	}
	ok, reason, message := Condition([]Result{d.publish(), {Pool: "linux", Revision: 7}})
	if ok || reason != ReasonUnfit || !strings.Contains(message, `PipePolicy "p"`) {
		t.Errorf("condition %t %s %s", ok, reason, message)
	}
	d.err, d.content = nil, good
	d.noKey = errors.New("open bundle.key: no such file")
	if r := d.publish(); r.Reason != ReasonKey || !errors.Is(r.Err, d.noKey) || r.Revision != 0 {
		t.Errorf("no key: %+v", r)
	}
	d.noKey = nil
	d.api.refuse = http.StatusForbidden
	if r := d.publish(); r.Reason != ReasonStore || r.Err == nil {
		t.Errorf("forbidden: %+v", r)
	}
	d.api.refuse = 0
	if b := d.published(); b.Revision != before.Revision {
		t.Errorf("revision %d is published, and was %d", b.Revision, before.Revision)
	}
	if ok, reason, message := Condition([]Result{d.publish()}); !ok || reason != ReasonPublished || !strings.Contains(message, "windows at revision") {
		t.Errorf("condition %t %s %s", ok, reason, message)
	}
	if ok, _, _ := Condition(nil); ok {
		t.Error("nothing is published, and that is called well")
	}
}

// A lying node delays no bundle, and every bundle that some node cannot read is reported.
func TestNodesThatCannotReadABundleAreSaid(t *testing.T) {
	d := newDesk(t)
	core, logs := observer.New(zap.WarnLevel)
	d.log, d.pools, d.content.ACL = zap.New(core), []string{"gpu", "windows"}, []byte(`{"schema":"rules/v9"}`)
	cannot, unknown, asked := []string{"a", "b", "c", "d"}, error(nil), 0
	d.unread = func(r Result) ([]string, error) {
		asked++
		if r.Pool == "gpu" || !slices.Equal(r.Schemas, []string{bundle.Schema, "rules/v9"}) || r.Revision == 0 {
			return nil, nil
		}
		return cannot, unknown
	}
	p := d.publisher()
	is := func(what, want string, is Reason, lines int) []Result {
		t.Helper()
		p.publish(t.Context())
		results := p.Results()
		ok, reason, message := Condition(results)
		if !ok || reason != is || !strings.Contains(message, want) || !strings.Contains(message, "gpu at revision") || logs.Len() != lines {
			t.Errorf("%s: %t %s %q, %d lines", what, ok, reason, message, logs.Len())
		}
		return results
	}
	first := is("four cannot", "windows at revision 1767323045 (4 of its nodes cannot read pipeguard.dev/bundle/v2 and rules/v9, and keep the bundle before until it ends: a, b, c, …), gpu", ReasonUnreadable, 1)
	if d.published().Revision != first[1].Revision || !first[1].Written {
		t.Errorf("it was held back: %+v", first)
	}
	is("still", "(4 of its nodes", ReasonUnreadable, 1)
	cannot = cannot[:1]
	mixed := is("one cannot", "until it ends: a)", ReasonUnreadable, 2)
	cannot = nil
	is("all can", "windows at revision 1767323045", ReasonPublished, 2)
	unknown = errors.New("no such kind")
	is("nobody knows", "(which of its nodes read pipeguard.dev/bundle/v2 and rules/v9 is unknown: no such kind)", ReasonPublished, 3)

	fault := Result{Pool: "linux", Reason: ReasonStore, Err: errors.New("away")}
	for _, results := range [][]Result{append(mixed, fault), {fault, mixed[1]}} {
		if ok, reason, message := Condition(results); ok || reason != ReasonStore || !strings.HasPrefix(message, "pool linux: away\nwindows at revision") || !strings.HasSuffix(message, ": a)") {
			t.Errorf("beside a fault: %t %s %q", ok, reason, message)
		}
	}
	asked = 0
	for _, refuse := range []func(){func() { d.api.refuse = http.StatusForbidden }, func() { d.err = errors.New("unfit") }} {
		refuse()
		if p.publish(t.Context()); asked != 0 || p.Results()[1].Schemas != nil {
			t.Errorf("asked %d times about what is not published", asked)
		}
	}
}

// memory is a Store without a network, which a bubble of synctest can wait for.
type memory struct {
	mu     sync.Mutex
	stored Stored
	err    error // of each reading
}

func (m *memory) Get(context.Context, string) (Stored, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stored, m.err
}

func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func (m *memory) Put(_ context.Context, _ string, s Stored) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Version += "x"
	m.stored = s
	return nil
}

func (m *memory) remove() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stored = Stored{}
}

func TestALeaderRenewsAndFollowsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := bundletest.NewKey(t)
		var mu sync.Mutex
		content := bundle.Bundle{ACL: []byte(`{}`)}
		store, told := &memory{}, 0
		p, err := New(Options{
			Store: store, Key: func() (*bundle.Key, error) { return key, nil }, Pools: []string{"windows"}, Life: time.Hour,
			Source: func(context.Context) (bundle.Bundle, error) { mu.Lock(); defer mu.Unlock(); return content, nil },
			Tell:   func([]Result) { told++ },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { _ = p.Start(ctx) })
		synctest.Wait()
		first := p.Results()[0]
		mu.Lock()
		content.PolicyRevision = "two"
		mu.Unlock()
		p.Changed()
		p.Changed()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		second := p.Results()[0]
		if second.Revision <= first.Revision || second.PolicyRevision != "two" {
			t.Errorf("first %+v, second %+v", first, second)
		}
		time.Sleep(32 * time.Minute)
		synctest.Wait()
		if third := p.Results()[0]; third.Revision <= second.Revision || told < 30 {
			t.Errorf("second %+v, third %+v, told %d times", second, third, told)
		}
		stop()
		group.Wait()
		if results := p.Results(); len(results) != 0 {
			t.Errorf("after the term: %+v", results)
		}
		store.remove() // somebody does while another replica leads, or none
		ctx, stop = context.WithCancel(t.Context())
		group.Go(func() { _ = p.Start(ctx) })
		synctest.Wait()
		if again := p.Results(); len(again) != 1 || !again[0].Written {
			t.Errorf("in the next term: %+v", again)
		}
		stop()
		group.Wait()
	})
}

func TestAPublisherNeedsAllItsParts(t *testing.T) {
	d := newDesk(t)
	source := func(context.Context) (bundle.Bundle, error) { return d.content, nil }
	for name, o := range map[string]Options{
		"nothing":           {},
		"no key":            {Store: d.store, Pools: d.pools, Source: source},
		"no pools":          {Store: d.store, Key: d.signer, Source: source},
		"a pool twice":      {Store: d.store, Key: d.signer, Source: source, Pools: []string{"a", "a"}},
		"a pool of dots":    {Store: d.store, Key: d.signer, Source: source, Pools: []string{"../a"}},
		"a short life":      {Store: d.store, Key: d.signer, Source: source, Pools: d.pools, Life: time.Second},
		"parts of a second": {Store: d.store, Key: d.signer, Source: source, Pools: d.pools, Life: time.Hour + time.Millisecond},
		"a long life":       {Store: d.store, Key: d.signer, Source: source, Pools: d.pools, Life: 2 * bundle.MaxLife},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
