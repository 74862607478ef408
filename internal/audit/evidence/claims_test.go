package evidence

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyClaimsSignedByTheirOwnProcessCount(t *testing.T) {
	prune := func(at, last uint64) claim { return claim{at, Range{1, last}} }
	took := func(at, first, last uint64) claim { return claim{at, Range{first, last}} }
	for name, c := range map[string]struct {
		claims    claims
		covered   uint64
		pruned    uint64
		takenOver []Range
	}{
		"nothing":                       {claims{}, 9, 0, nil},
		"under a checkpoint":            {claims{prunes: []claim{prune(8, 3), prune(20, 6)}}, 9, 3, nil},
		"without keys":                  {claims{prunes: []claim{prune(20, 6)}}, anyone, 6, nil},
		"taken over":                    {claims{prunes: []claim{prune(8, 3), prune(19, 14)}, takeOvers: []claim{took(20, 19, 19)}}, 25, 3, []Range{{19, 19}}},
		"taken over by nobody":          {claims{prunes: []claim{prune(8, 3)}, takeOvers: []claim{took(20, 8, 19)}}, 19, 3, nil},
		"a start that was taken over":   {claims{prunes: []claim{prune(8, 3), prune(11, 6)}, takeOvers: []claim{took(12, 2, 11), took(20, 11, 19)}}, 25, 3, []Range{{11, 19}}},
		"a start that was killed early": {claims{takeOvers: []claim{took(12, 11, 11), took(14, 11, 13), took(30, 29, 29)}}, 40, 0, []Range{{11, 13}, {29, 29}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.claims.pruned(c.covered); got != c.pruned {
				t.Errorf("pruned up to %d, want %d", got, c.pruned)
			}
			if diff := cmp.Diff(c.takenOver, c.claims.takenOver(c.covered)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A record that was added behind a kill is signed by the next start with the rest of what it takes over. It removes nothing all the same, and a
// verification names the record by which that start ends an intent that was added.
func TestWhatIsTakenOverRemovesNothingAndIsNamed(t *testing.T) {
	m := newLog(t, Options{})
	m.begin(0)
	m.records(4)
	m.end() // the sixth record
	m.checkpoint()
	m.begin(0)
	m.records(3)
	m.checkpoint()
	m.write(m.line("request", "RequestReceived", `,"what":{"method":"FormatVolume"}`))
	m.write(m.line("log", "LogPrune", prunesSix)) // the twelfth
	before := m.file
	m.file = filepath.Join(m.dir, m.name())
	m.write(m.line("log", "LogOpen", fmt.Sprintf(`,"log":{"previous_seq":12,"previous_segment":%q,"previous_bytes":%d,"unsigned":2,"cause":"start"}`, filepath.Base(before), m.bytes)))
	m.write(m.line("request", "Orphaned", `,"intent_seq":11,"what":{"method":"FormatVolume"}`))
	m.checkpoint()
	m.close()
	outside := m.outside()
	r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{outside}})
	limits := strings.Join(r.Limits, "\n")
	if r.Verdict != VerdictOK || !strings.Contains(limits, "Changes to 2 records, from 11 to 12,") || !strings.Contains(limits, "1 Orphaned records tell of, the first of them record 14:") {
		t.Errorf("%s %v, not detected:\n%s", r.Verdict, r.Fault, limits)
	}
	segments, _ := paths(t, m)
	writeFile(t, filepath.Join(m.dir, StartFile), formatStart(treeAt(t, m.dir, 6)))
	if err := os.Remove(segments[0]); err != nil {
		t.Fatal(err)
	}
	for _, allow := range []bool{false, true} {
		if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{outside}, AllowPruned: allow}); r.Verdict != VerdictTampered {
			t.Errorf("removed, allowed %v: %s %v", allow, r.Verdict, r.Incomplete)
		}
	}
	if _, err := Open(context.Background(), Options{Dir: m.dir, Keys: []*Key{m.key}}); !IsFault(err) {
		t.Errorf("the log is continued: %v", err)
	}
}
