package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/query"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// Fields of the record itself, which has another value than those it stands for.
var ofTheRecord = []string{"conn", "id", "seq", "session", "stage"}

// Fields that all refusals of one summary have in common.
var ofTheSummary = []string{"decision", "effect", "group", "mode", "node", "pipe", "type", "version"}

// A filter and a count may answer for a summary only what they answer for each of its refusals.
func TestReadersTakeASummaryForWhatItsRefusalsShare(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	undecided := map[string]bool{}
	differ := slices.DeleteFunc(query.Keys(), func(key string) bool { return slices.Contains(ofTheRecord, key) || slices.Contains(ofTheSummary, key) })
	isMissing := func(key string) bool { return !undecided[key] }
	// Chance decides which fields differ in a summary of one round: another round asks again.
	for round := 0; round == 0 || round < 50 && slices.ContainsFunc(differ, isMissing); round++ {
		for _, s := range append(randomSummaries(t, r, 80, false), randomSummaries(t, r, 500, true)...) {
			checkFilters(t, r, s, undecided)
			checkCounts(t, s)
		}
	}
	for _, key := range query.Keys() {
		if undecided[key] != slices.Contains(differ, key) {
			t.Errorf("%s: a summary could not decide a filter: %t; does no refusal of this test differ in it?", key, undecided[key])
		}
	}
}

// summarised is a summary with the refusals that it stands for, as readers have them.
type summarised struct {
	summary audit.Event
	single  []audit.Event
}

// randomSummaries has a counter count random refusals. It may know too many kinds to tell these apart.
func randomSummaries(t *testing.T, r *rand.Rand, n int, isFull bool) (all []*summarised) {
	t.Helper()
	b := newRefusalCounter(refusalBudgets)
	if isFull {
		b.named.kinds, b.strangers.kinds = maxKinds, maxKinds
	}
	counted := map[string][]lastRecord{}
	for i := range n {
		e := randomRefusal(r, i)
		v := b.turnedAway(e.refusal(), false)
		counted[v.id] = append(counted[v.id], e)
	}
	list := b.take(true)
	alike := map[refusalKind]*summarised{} // those that stand for others too
	of := func(d due) refusalKind { return kindOfEvent(&counted[d.summary.id][0].Event).coarse() }
	for _, d := range list {
		s := &summarised{summary: asRead(t, d.summary.event())}
		for _, e := range counted[d.summary.id] {
			s.single = append(s.single, told(t, e, d.summary.id))
		}
		if all = append(all, s); d.summary.count > uint64(len(s.single)) {
			alike[of(d)] = s
		}
	}
	for id, refusals := range counted {
		if slices.ContainsFunc(list, func(d due) bool { return d.summary.id == id }) {
			continue
		}
		s := alike[kindOfEvent(&refusals[0].Event).coarse()]
		if s == nil {
			t.Fatalf("no summary stands for %d refusals", len(refusals))
		}
		for _, e := range refusals {
			s.single = append(s.single, told(t, e, s.summary.ID))
		}
	}
	for _, s := range all {
		if s.summary.Count() != uint64(len(s.single)) {
			t.Fatalf("a summary of %d stands for %d", s.summary.Count(), len(s.single))
		}
	}
	return all
}

// told is a refusal as it would be recorded by itself: its caller was told the audit id of the summary.
func told(t *testing.T, e lastRecord, id string) audit.Event {
	t.Helper()
	o := *e.Outcome
	o.Error = strings.ReplaceAll(o.Error, e.ID, id)
	e.Outcome = &o
	return asRead(t, e.Event)
}

// asRead is a record as it is in a log.
func asRead(t *testing.T, e audit.Event) (read audit.Event) {
	t.Helper()
	line, err := audit.Encode(nil, e)
	if err = errors.Join(err, json.Unmarshal(line, &read)); err != nil {
		t.Fatal(err)
	}
	return read
}

func oneOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// randomRefusal is one of those that calls can end with, with few values of each field, so that some are alike.
func randomRefusal(r *rand.Rand, n int) lastRecord {
	long := strings.Repeat("long", 80)
	i := caller.Caller{Assurance: caller.AssuranceProcess, User: caller.User{SID: oneOf(r, "S-1-5-18", "S-1-5-21-7"), Name: oneOf(r, "", `NT AUTHORITY\SYSTEM`)}}
	i.Process = caller.Process{PID: uint32(oneOf(r, 7, 8)), Exe: oneOf(r, `C:\a.exe`, `C:\dir\b.exe`, `C:\`+long+`\c.exe`, `C:\`+long+`\d.exe`)}
	i.IsHost, i.Doubt = r.IntN(2) == 0, oneOf(r, "", "the runtime does not answer")
	switch r.IntN(4) {
	case 0:
		i.Assurance, i.IsHost = caller.AssurancePod, false
		name := oneOf(r, "a", "b")
		i.Pod = caller.Pod{Namespace: oneOf(r, "kube-system", "evil"), Name: name, UID: "uid-" + name, ServiceAccount: oneOf(r, "", "driver", "default")}
		i.Container = caller.Container{ID: "container-" + name, Name: oneOf(r, "main", "side"), Image: oneOf(r, "registry/x", "registry/y")}
	case 1:
		i = caller.Caller{Assurance: caller.AssuranceNone}
	}
	p := oneOf(r, strangersPipe, anotherPipe)
	c := &conn{pipe: p, peer: &fakePeer{identity: i, peers: &fakePeers{}}, id: fmt.Sprint("CONN", n), corr: &audit.Corr{Conn: fmt.Sprint("CONN", n)}}
	e := p.record(c, audit.TypeRequest, audit.StageResponseComplete, fmt.Sprint("AUDIT-ID-", 1000+n))
	if who := *e.Who; r.IntN(2) == 0 {
		who.Token, who.TokenID, who.TokenState = true, oneOf(r, "token-id-1", "token-id-2"), oneOf(r, "", audit.TokenStale)
		e.Who = &who
	}
	e.Time = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * 20 * time.Second)
	e.Outcome = &audit.Outcome{Code: oneOf(r, "InvalidArgument", "ResourceExhausted"), Error: oneOf(r, "too large", "malformed", long+"1", long+"2", "refused (audit id "+e.ID+")")}
	if r.IntN(5) == 0 {
		e.Type, e.Stage, e.Outcome.Result = audit.TypeConnection, audit.StageConnectionClosed, oneOf(r, audit.ResultIdle, audit.ResultRejected)
		return lastRecord{e, c}
	}
	e.Outcome.Result = oneOf(r, audit.ResultRejected, audit.ResultPanic)
	if e.What.Method = oneOf(r, "Mkdir", "Rmdir", ""); e.What.Method != "" {
		e.What.FullMethod = "/v1.Filesystem/" + oneOf(r, e.What.Method, e.What.Method+"Path")
	} else {
		e.What.FullMethod = oneOf(r, "", "/made.Up/Method", "/made.Up/"+long)
	}
	if r.IntN(3) == 0 || e.What.Method == "" { // it was refused before it was read
		return lastRecord{e, c}
	}
	e.What.Verb, e.What.Params = oneOf(r, "read", "write"), json.RawMessage(`{"a":1}`)
	for range r.IntN(3) {
		e.What.Targets = append(e.What.Targets, audit.Target{Kind: "path", Value: oneOf(r, `C:\a`, `C:\a\b`, `D:\c`, `C:\`+long)})
	}
	if r.IntN(4) == 0 { // it was refused before it was decided
		return lastRecord{e, c}
	}
	e.Decision = &audit.Decision{Effect: audit.EffectAllow, Mode: "Enforce", Rule: oneOf(r, "", "one", "two"), Reason: oneOf(r, "said so", "not within its paths", long+"1", long+"2")}
	if r.IntN(3) > 0 {
		e.Decision.Policy = &audit.Policy{Name: oneOf(r, "acl", "bundle"), Revision: oneOf(r, "sha256:1", "sha256:2"), Bundle: oneOf[uint64](r, 0, 17, 18)}
	}
	switch r.IntN(3) {
	case 0:
		e.Decision.Effect, e.Outcome.Result = audit.EffectDeny, audit.ResultDenied
	case 1:
		e.Decision.Effect, e.Decision.Mode = audit.EffectDeny, "LogOnly"
	}
	return lastRecord{e, c}
}

// anotherPipe is of the same server as strangersPipe.
var anotherPipe = &pipe{
	name: "csi-proxy-volume-v1beta1", gv: apiserver.GroupVersion{Group: "volume", Version: "v1beta1"},
	methods: strangersPipe.methods, rules: strangersPipe.rules, where: &audit.Where{Node: "node-1"},
}

// answered is what a reader says of a record.
type answered int

const (
	fitsNone answered = iota
	perhaps
	fitsAll
)

// question asks about one term. It is nil if no record can have such a value.
func question(key, value string, isExcluded bool) func(e *audit.Event) answered {
	f := &query.Filter{}
	ask := func() error { return f.Want(key, value, time.Time{}) }
	if isExcluded {
		ask = func() error { return f.Exclude(key, value) }
	}
	if ask() != nil {
		return nil
	}
	return func(e *audit.Event) answered {
		before := doubts(f)
		switch isMatch := f.Match(e); {
		case !isMatch:
			return fitsNone
		case doubts(f) > before:
			return perhaps
		}
		return fitsAll
	}
}

func doubts(f *query.Filter) (n uint64) {
	for _, d := range f.Doubts() {
		n += d.Count
	}
	return n
}

// checkFilters asks each field for what the refusals have in it, and for some of what they have elsewhere.
func checkFilters(t *testing.T, r *rand.Rand, s *summarised, undecided map[string]bool) {
	t.Helper()
	some := []audit.Event{oneOf(r, s.single...), oneOf(r, s.single...), s.single[0], s.single[len(s.single)-1]}
	elsewhere := append(texts(t, some[0]), texts(t, some[1])...)
	for _, key := range query.Keys() {
		if slices.Contains(ofTheRecord, key) {
			continue
		}
		values := append(query.Words(key), "", "*", "yes", "no", "1-20", "nothing-has-this", oneOf(r, elsewhere...), oneOf(r, elsewhere...))
		for i := range some {
			values = append(values, some[i].Time.Format(time.RFC3339), said(t, key, &some[i]))
		}
		own := values[len(values)-1]
		values = append(values, query.Base(own), own[:len(own)/2]+"*", "*"+own[len(own)/2:])
		slices.Sort(values)
		for _, value := range slices.Compact(values) {
			for _, isExcluded := range []bool{false, true} {
				ask := question(key, value, isExcluded)
				if ask == nil {
					continue
				}
				of := ask(&s.summary)
				undecided[key] = undecided[key] || of == perhaps
				if of == perhaps {
					continue
				}
				for i := range s.single {
					if one := ask(&s.single[i]); one != of {
						t.Fatalf("%s=%q, excluded: %t, of a summary of %d: %d, and of one of its refusals %d\n%s\n%s",
							key, value, isExcluded, len(s.single), of, one, inJSON(t, s.summary), inJSON(t, s.single[i]))
					}
				}
			}
		}
	}
}

// texts are all values in a record, their last parts and patterns of them.
func texts(t *testing.T, e audit.Event) (found []string) {
	t.Helper()
	var fields any
	if err := json.Unmarshal([]byte(inJSON(t, e)), &fields); err != nil {
		t.Fatal(err)
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, value := range v {
				walk(value)
			}
		case []any:
			for _, value := range v {
				walk(value)
			}
		default:
			s := fmt.Sprint(v)
			found = append(found, s, query.Base(s), s[:len(s)/2]+"*", "*"+s[len(s)/2:])
		}
	}
	walk(fields)
	return found
}

// said is what a count by a field says of a record, if there is one.
func said(t *testing.T, key string, e *audit.Event) string {
	t.Helper()
	if !slices.Contains(query.TallyKeys(), key) {
		return ""
	}
	return tallied(t, key, *e)[0].Values[0]
}

func tallied(t *testing.T, key string, events ...audit.Event) []*query.Group {
	t.Helper()
	tally, err := query.NewTally([]string{key})
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		tally.Add(&events[i])
	}
	return tally.Groups()
}

func inJSON(t *testing.T, e audit.Event) string {
	t.Helper()
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// checkCounts counts the refusals by every key, one by one and as a summary.
func checkCounts(t *testing.T, s *summarised) {
	t.Helper()
	for _, key := range query.TallyKeys() {
		if slices.Contains(ofTheRecord, key) {
			continue
		}
		got, want := tallied(t, key, s.summary)[0], tallied(t, key, s.single...)
		var sum query.Group
		for _, g := range want {
			sum.Records, sum.Allowed, sum.Denied, sum.LogOnly, sum.Failed = sum.Records+g.Records, sum.Allowed+g.Allowed, sum.Denied+g.Denied, sum.LogOnly+g.LogOnly, sum.Failed+g.Failed
		}
		if got.Records != sum.Records || got.Allowed != sum.Allowed || got.Denied != sum.Denied || got.LogOnly != sum.LogOnly || got.Failed != sum.Failed {
			t.Fatalf("by %s: a summary counts as %+v, its refusals as %+v\n%s", key, got, sum, inJSON(t, s.summary))
		}
		name := got.Values[0]
		text, isCut := strings.CutSuffix(name, audit.CutMark)
		isBegin := func(g *query.Group) bool { return strings.HasPrefix(g.Values[0], text) }
		if !isCut {
			text, isCut = strings.CutPrefix(name, audit.CutMark)
			isBegin = func(g *query.Group) bool { return strings.HasSuffix(g.Values[0], text) }
		}
		switch {
		case strings.Contains(name, "(several)"), key == "minute" || key == "hour" || key == "day": // of which both ends are told
		case len(want) == 1 && want[0].Values[0] == name:
		case isCut && !slices.ContainsFunc(want, func(g *query.Group) bool { return !isBegin(g) }):
		default:
			t.Fatalf("by %s: a summary is one of %q, its refusals are of %d groups, such as %q\n%s\n%s", key, name, len(want), want[0].Values[0], inJSON(t, s.summary), inJSON(t, s.single[0]))
		}
	}
}

// A container whose processes have several accounts is not hidden by that.
func TestASummaryOfSeveralAccountsOfAContainerNamesTheContainer(t *testing.T) {
	of := func(uid, namespace string) *audit.Who {
		return &audit.Who{
			Assurance: "pod", User: &audit.WhoUser{SID: uid}, Process: &audit.WhoProcess{PID: 7},
			Pod: &audit.WhoPod{Namespace: namespace, Name: "driver"}, Container: &audit.WhoContainer{Name: "main"},
		}
	}
	who := of("uid:1", "storage")
	for _, uid := range []string{"uid:2", "uid:1", "uid:3"} {
		who = commonWho(who, of(uid, "storage"))
		if who.Doubt != audit.DoubtSeveral || who.Assurance != "pod" || who.Pod == nil || who.Pod.Namespace != "storage" || who.Container == nil || who.User != nil || who.Process != nil {
			t.Fatalf("with %s: %+v", uid, who)
		}
	}
	if who = commonWho(who, of("uid:3", "other")); who.Pod != nil || who.Container != nil || who.Assurance != "none" {
		t.Errorf("of two pods: %+v", who)
	}
	if who = commonWho(who, of("uid:3", "other")); who.Pod != nil {
		t.Errorf("what was lost came back: %+v", who)
	}
}

// A record without a doubt is of a process that is known to be in no container, or of a node without a runtime: no summary says that of one in doubt.
func TestASummaryOfCallersInDoubtIsInDoubt(t *testing.T) {
	of := func(doubt string) *audit.Who {
		return &audit.Who{Assurance: "process", User: &audit.WhoUser{SID: "S-1-5-18"}, Process: &audit.WhoProcess{PID: 7}, Doubt: doubt}
	}
	for _, doubts := range [][2]string{{"", "x"}, {"x", ""}, {"x", "y"}, {"x", "x"}} {
		if who := commonWho(of(doubts[0]), of(doubts[1])); who.Doubt == "" || who.User == nil {
			t.Errorf("of %q: %+v", doubts, who)
		}
	}
	if who := commonWho(of(""), of("")); who.Doubt != "" {
		t.Errorf("without a doubt: %+v", who)
	}
}
