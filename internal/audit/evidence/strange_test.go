package evidence

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a search shows and a verification skips must not pass for a part of the log.
func TestFilesThatNoSegmentOfTheLogNamesAreNotIgnored(t *testing.T) {
	for name, lines := range map[string]string{
		"its first line has a NUL": "\x00\n" + `{"v":1,"seq":2,"type":"request","stage":"ResponseComplete"}` + "\n",
		"it has half a line":       `{"v":1,"seq":`,
	} {
		t.Run(name, func(t *testing.T) {
			m := sample(t)
			writeFile(t, filepath.Join(m.dir, m.name()), []byte(lines))
			r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{m.outside()}})
			if r.Verdict == VerdictOK {
				t.Errorf("%s, %d bytes ignored", r.Verdict, r.IgnoredBytes)
			}
		})
	}
	t.Run("two call each other void", func(t *testing.T) {
		m := sample(t)
		one, other := m.name(), m.name()
		for name, void := range map[string]string{one: other, other: one} {
			writeFile(t, filepath.Join(m.dir, name), append(m.line("log", "LogOpen", fmt.Sprintf(`,"log":{"void":["%s"]}`, void)), '\n'))
		}
		r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{m.outside()}})
		if r.Verdict == VerdictOK {
			t.Errorf("%s, %d bytes ignored", r.Verdict, r.IgnoredBytes)
		}
	})
}

// A file that is all hole takes nothing of the disk and years to read.
func TestHolesAreNotRead(t *testing.T) {
	m := sample(t)
	segments, _ := paths(t, m)
	for name, c := range map[string]struct {
		file string
		want Verdict
	}{
		"behind the last record":     {segments[2], VerdictIncomplete},
		"in the middle of the log":   {segments[1], VerdictTampered},
		"in a segment of its own":    {filepath.Join(m.dir, m.name()), VerdictIncomplete},
		"in place of the tree":       {filepath.Join(m.dir, StartFile), VerdictTampered},
		"behind the checkpoints":     {filepath.Join(m.dir, CheckpointFile), VerdictTampered},
		"a segment of another night": {filepath.Join(m.dir, strings.Replace(m.name(), "-0000-", "-0001-", 1)), VerdictIncomplete},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := os.ReadFile(c.file)
			isNew := os.IsNotExist(err)
			if err != nil && !isNew {
				t.Fatal(err)
			}
			writeFile(t, c.file, before)
			if err := os.Truncate(c.file, 1<<42); err != nil {
				t.Skipf("no holes here: %v", err)
			}
			r, err := Verify(t.Context(), VerifyOptions{Dir: m.dir, Keys: m.keys()})
			if err != nil || r.Verdict != c.want {
				t.Errorf("%s, %v, %v", r.Verdict, r.Fault, err)
			}
			if err := os.Remove(c.file); err != nil {
				t.Fatal(err)
			}
			if !isNew {
				writeFile(t, c.file, before)
			}
		})
	}
}

// The length of a file of the log is the log's own, like all that is in it: no fault of its reader.
func TestAStartThatIsTooLongIsAFaultOfTheLog(t *testing.T) {
	m := sample(t)
	file := filepath.Join(m.dir, StartFile)
	writeFile(t, file, make([]byte, maxStart+1))
	r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{m.outside()}})
	if r.Verdict != VerdictTampered || r.Fault.File != file {
		t.Errorf("%s, fault %v", r.Verdict, r.Fault)
	}
	if _, err := Open(t.Context(), Options{Dir: m.dir, Keys: []*Key{m.key}}); !IsFault(err) {
		t.Errorf("the log is continued: %v", err)
	}
}

func TestALockThatHoldsSomethingIsNotPassedOver(t *testing.T) {
	m := sample(t)
	for name, change := range map[string]struct {
		text string
		want Verdict
	}{"as the writer leaves it": {"", VerdictOK}, "a record": {`{"v":1,"seq":2}` + "\n", VerdictIncomplete}} {
		writeFile(t, filepath.Join(m.dir, "lock"), []byte(change.text))
		if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{m.outside()}}); r.Verdict != change.want {
			t.Errorf("%s: %s, %q", name, r.Verdict, r.Incomplete)
		}
	}
}
