package query

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Group is what records with the same values have in common.
type Group struct {
	Values  []string // one for each key
	Records int      // those that a summary counts included
	Allowed int
	Denied  int // refused by a rule
	LogOnly int // should have been refused, and was not
	Failed  int // ended with an error, a panic, or were rejected before any rule was asked
	First   time.Time
	Last    time.Time
	Longest time.Duration // from arrival to answer
	Timed   int           // of how many requests Longest and Mean are: those that have a record of their own
	total   time.Duration
}

// Mean is the mean time from arrival to answer, 0 if no record tells one.
func (g *Group) Mean() time.Duration {
	if g.Timed == 0 {
		return 0
	}
	return g.total / time.Duration(g.Timed)
}

// MaxGroups bounds the memory of a Tally: callers choose names of methods and paths.
const MaxGroups = 10_000

// maxTook is the longest time that counts, so that sums stay within range whatever a record claims.
const maxTook = 24 * time.Hour

// Tally counts records by the values of keys. What comes after MaxGroups counts as one group, Rest.
type Tally struct {
	// Parts are the parts of records that it looks at.
	Parts  audit.Parts
	keys   []string
	of     []func(*audit.Event) string
	groups map[string]*Group
	values []string // of the record that was added last
	key    []byte
	Rest   Group
}

// NewTally returns an empty Tally. Keys are those of filters but path, since and until, and caller, minute, hour, day.
func NewTally(keys []string) (*Tally, error) {
	t := &Tally{Parts: audit.PartDecision, keys: keys, groups: map[string]*Group{}}
	for _, key := range keys {
		t.Parts |= countsBy(key)
		of, ok := labels[key]
		if !ok && texts[key] != nil {
			of, ok = func(e *audit.Event) string { return cmp.Or(texts[key](e)...) }, true
		}
		if !ok {
			return nil, fault(key, 0, "nothing to count by: there are %s", strings.Join(TallyKeys(), ", "))
		}
		t.of = append(t.of, func(e *audit.Event) string {
			value := of(e)
			if isUnsaid(key, e) && (value == "" || !isPartly(key)) {
				return several
			}
			return value
		})
	}
	if len(keys) == 0 {
		return nil, fault("", 0, "name what to count by: %s", strings.Join(TallyKeys(), ", "))
	}
	return t, nil
}

// several stands for values of a summary's refusals that differ.
const several = "(several)"

// labels are keys that no filter has, or whose first value is not the best name.
var labels = map[string]func(*audit.Event) string{
	"caller": Caller,
	"minute": during("2006-01-02T15:04Z"),
	"hour":   during("2006-01-02T15Z"),
	"day":    during(time.DateOnly),
	"user":   of(user, func(u *audit.WhoUser) string { return cmp.Or(u.Name, u.SID) }),
	"pod":    of(pod, func(p *audit.WhoPod) string { return p.Namespace + "/" + p.Name }),
	"sa": of(pod, func(p *audit.WhoPod) string {
		if p.ServiceAccount == "" {
			return ""
		}
		return p.Namespace + "/" + p.ServiceAccount
	}),
	"method": of(what, func(w *audit.What) string { return cmp.Or(w.Method, w.FullMethod) }),
	"pipe":   of(what, func(w *audit.What) string { return w.Pipe }),
	"target": func(e *audit.Event) string {
		values := texts["target"](e)
		if e.What != nil && (e.What.MoreTargets > 0 || e.Count() > 1 && len(e.What.Targets) > 1) && e.Type != audit.TypeAdmission {
			return several // an admission names first what decided
		}
		return cmp.Or(values...)
	},
	"bundle": of(policy, bundle),
}

// countsBy are the parts that a Tally looks at for a key.
func countsBy(key string) audit.Parts {
	switch key {
	case "caller":
		return audit.PartWho
	case "minute", "hour", "day":
		return 0
	}
	return looksAt(key)
}

// during names the span of time that a record lies in. A summary that reaches over several has both ends: BEGIN/END.
func during(layout string) func(*audit.Event) string {
	return func(e *audit.Event) string {
		begin, end := e.Begin().UTC().Format(layout), e.Time.UTC().Format(layout)
		if begin != end {
			return begin + "/" + end
		}
		return end
	}
}

// TallyKeys are what can be counted by.
func TallyKeys() []string {
	names := append(slices.Collect(maps.Keys(texts)), slices.Collect(maps.Keys(labels))...)
	slices.Sort(names)
	return slices.Compact(names)
}

// Caller names who asked by the most that was proven: pod and container, or account and program.
func Caller(e *audit.Event) string {
	w := e.Who
	if w == nil {
		return ""
	}
	if isUnsaid("user", e) {
		return several
	}
	if w.Pod != nil && e.Type != audit.TypeAdmission { // the pod of an admission did not ask, it was asked for
		name := w.Pod.Namespace + "/" + w.Pod.Name
		if w.Container != nil {
			name += "/" + cmp.Or(w.Container.Name, w.Container.ID)
		}
		return name
	}
	var parts []string
	if w.User != nil {
		parts = append(parts, cmp.Or(w.User.Name, w.User.SID))
	}
	if w.Process != nil && w.Process.Exe != "" {
		parts = append(parts, Named(Base(w.Process.Exe)))
	} else if isUnsaid("program", e) {
		parts = append(parts, several)
	}
	if len(parts) == 0 {
		return "assurance:" + w.Assurance
	}
	name := strings.Join(parts, " ")
	if w.Host {
		name = "host:" + name
	}
	return name
}

// Add counts a record.
func (t *Tally) Add(e *audit.Event) {
	t.values, t.key = t.values[:0], t.key[:0]
	for _, of := range t.of {
		value := of(e)
		t.values, t.key = append(t.values, value), AppendKey(t.key, value)
	}
	g := t.groups[string(t.key)]
	switch {
	case g != nil:
	case len(t.groups) < MaxGroups:
		g = &Group{}
		for _, v := range t.values {
			g.Values = append(g.Values, strings.Clone(v)) // rather than keep the whole line of the record
		}
		t.groups[string(t.key)] = g
	default:
		g = &t.Rest
	}
	g.add(e)
}

// AppendKey appends a value of a group to the key of that, so that no value runs into its neighbour.
func AppendKey(key []byte, value string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(value))), value...)
}

func (g *Group) add(e *audit.Event) {
	n := int(e.Count()) // #nosec G115 -- bounded
	g.Records += n
	switch Decision(e) {
	case DecisionAllow:
		g.Allowed += n
	case DecisionDeny:
		g.Denied += n
	case DecisionLogOnly:
		g.LogOnly += n
	}
	if o := e.Outcome; o != nil {
		switch o.Result {
		case audit.ResultError, audit.ResultPanic, audit.ResultRejected, audit.ResultOrphaned:
			g.Failed += n
		}
		// a summary has the time of its last refusal alone, and a connection's is how long it was open
		if e.Type != audit.TypeConnection && e.Stage != audit.StageSummary && o.LatencyUS >= 0 && o.LatencyUS <= int64(maxTook/time.Microsecond) {
			took := time.Duration(o.LatencyUS) * time.Microsecond
			g.total, g.Timed, g.Longest = g.total+took, g.Timed+1, max(g.Longest, took)
		}
	}
	if begin := e.Begin(); g.First.IsZero() || begin.Before(g.First) {
		g.First = begin
	}
	if e.Time.After(g.Last) {
		g.Last = e.Time
	}
}

// Groups are all groups, the largest first, or by their values if times are counted by.
func (t *Tally) Groups() []*Group {
	byTime := slices.ContainsFunc(t.keys, func(k string) bool { return k == "minute" || k == "hour" || k == "day" })
	return slices.SortedFunc(maps.Values(t.groups), func(a, b *Group) int {
		if byTime {
			return slices.Compare(a.Values, b.Values)
		}
		return cmp.Or(cmp.Compare(b.Records, a.Records), slices.Compare(a.Values, b.Values))
	})
}
