package evidence

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// Whole records that a segment declares torn are named. Whose word that is tells the signature of the process that wrote the segment: the writer of the log declares what a
// write that failed has left, of which nobody was told; whoever can write to the directory says the same of records that were acknowledged.
func TestWholeRecordsThatAreDeclaredTornAreNamed(t *testing.T) {
	const failed, half = 3, `{"v":1,"seq":`
	// whole is a log with records behind the end of its first segment that continue it, up to the segment that declares them torn.
	whole := func(t *testing.T, records int, behind string) (m *madeLog, first string) {
		m = newLog(t, Options{})
		m.begin(0)
		m.records(2)
		m.checkpoint()
		first = m.file
		text, seq, prev := "", m.seq, m.prev
		for range records {
			line := m.line("request", "ResponseComplete", "")
			text += string(line) + "\n"
			m.seq, m.prev = m.seq+1, Leaf(line)
		}
		m.seq, m.prev = seq, prev
		m.raw([]byte(text + behind))
		m.begin(int64(len(text + behind)))
		return m, first
	}
	// restart is what a start that takes over so many records writes first.
	restart := func(m *madeLog, unsigned int) {
		rest := fmt.Sprintf(`"previous_seq":%d,"previous_segment":"%s","previous_bytes":%d,`, m.seq, filepath.Base(m.file), m.bytes)
		m.file, m.bytes = filepath.Join(m.dir, m.name()), 0
		m.write(m.line("log", "LogOpen", fmt.Sprintf(`,"log":{%s"unsigned":%d,"cause":"start"}`, rest, unsigned)))
	}
	for name, c := range map[string]struct {
		records  int
		behind   string
		goOn     func(m *madeLog)
		noKeys   bool
		verdict  Verdict
		whole    uint64
		unsigned bool
	}{
		"by the process that signed it":        {records: failed, goOn: func(*madeLog) {}, verdict: VerdictOK, whole: failed},
		"and half of one":                      {records: failed, behind: half, goOn: func(*madeLog) {}, verdict: VerdictOK, whole: failed},
		"one":                                  {records: 1, goOn: func(*madeLog) {}, verdict: VerdictOK, whole: 1},
		"half of one alone":                    {behind: half, goOn: func(*madeLog) {}, verdict: VerdictOK},
		"a line that is no record, and others": {behind: "x\n" + half, goOn: func(*madeLog) {}, verdict: VerdictOK},
		"by a segment that a start took over":  {records: failed, goOn: func(m *madeLog) { restart(m, 1) }, verdict: VerdictIncomplete, whole: failed, unsigned: true},
		"before records that were taken over":  {records: failed, goOn: func(m *madeLog) { m.checkpoint(); m.records(2); restart(m, 2) }, verdict: VerdictOK, whole: failed},
		"without keys":                         {records: failed, goOn: func(*madeLog) {}, noKeys: true, verdict: VerdictIncomplete, whole: failed, unsigned: true},
	} {
		t.Run(name, func(t *testing.T) {
			m, first := whole(t, c.records, c.behind)
			c.goOn(m)
			m.records(2)
			m.checkpoint()
			m.end()
			m.close()
			o := VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{m.outside()}}
			if c.noKeys {
				o = VerifyOptions{Dir: m.dir}
			}
			r := verify(t, o)
			if r.Verdict != c.verdict || r.Fault != nil {
				t.Errorf("%s %v, incomplete %q", r.Verdict, r.Fault, r.Incomplete)
			}
			if c.whole == 0 {
				if len(r.Overruled) > 0 {
					t.Errorf("overruled: %v", r.Overruled)
				}
				return
			}
			if len(r.Overruled) != 1 || r.Overruled[0].File != first || r.Overruled[0].First != 4 || r.Overruled[0].Last != 3+c.whole || r.Overruled[0].Unsigned != c.unsigned {
				t.Fatalf("overruled: %+v", r.Overruled)
			}
			text := r.Overruled[0].String()
			if !strings.HasPrefix(text, fmt.Sprintf("%d whole record", c.whole)) {
				t.Errorf("%q", text)
			}
			if isReason := strings.Contains(strings.Join(r.Incomplete, "\n"), text); isReason != c.unsigned {
				t.Errorf("%q is a reason: %t", text, isReason)
			}
		})
	}
	t.Run("by a segment that nothing signed", func(t *testing.T) {
		m, _ := whole(t, failed, "")
		if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys()}); len(r.Overruled) != 1 || !r.Overruled[0].Unsigned {
			t.Errorf("overruled: %+v", r.Overruled)
		}
	})
}
