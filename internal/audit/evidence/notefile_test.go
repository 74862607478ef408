package evidence

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAWriteOfACheckpointThatFailedIsMendedBeforeTheNext(t *testing.T) {
	m := newLog(t, Options{})
	m.begin(0)
	m.records(1)
	m.checkpoint()
	f, err := os.OpenFile(filepath.Join(m.dir, CheckpointFile), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(origin + "\n3\n"); err != nil { // as a full disk leaves it
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	m.records(1)
	m.checkpoint()
	m.close()
	if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{m.outside()}}); r.Verdict != VerdictOK || r.Checkpoints != 3 { // two beside the log, one of them elsewhere too
		t.Errorf("%s %v %v, %d checkpoints", r.Verdict, r.Fault, r.Incomplete, r.Checkpoints)
	}
}

func TestALinkInPlaceOfTheCheckpointsIsRefused(t *testing.T) {
	m := sample(t)
	file := filepath.Join(m.dir, CheckpointFile)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(t.TempDir(), "elsewhere"), file); err != nil {
		t.Skip("no links here")
	}
	if info, err := os.Lstat(file); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Skip("what is made here is no link")
	}
	if l, err := Open(t.Context(), Options{Dir: m.dir, Keys: []*Key{m.key}}); err == nil {
		_ = l.Close(t.Context())
		t.Error("it was followed")
	}
}

// A start wrote the file anew without a genuine checkpoint, when the end of the one before was cut off and its beginning stood in the same line.
func TestAStartLeavesOutNothingThatWasChanged(t *testing.T) {
	m := newLog(t, Options{})
	m.begin(0)
	for range 6 {
		m.records(1)
		m.checkpoint()
	}
	m.close()
	file := filepath.Join(m.dir, CheckpointFile)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var ends []int64
	for n, err := range Notes(bytes.NewReader(text)) {
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, n.End)
	}
	tried := 0
	for cut := ends[2] - 2; cut > ends[1]; cut-- {
		if !IsTried(int(cut), 3) {
			continue
		}
		torn := append(text[:cut:cut], text[ends[2]:]...)
		if err := os.WriteFile(file, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		var told []error
		l, err := Open(t.Context(), Options{Dir: m.dir, Keys: []*Key{m.key}, Now: func() time.Time { return m.clock }, OnFault: func(err error) { told = append(told, err) }})
		if err == nil {
			err = l.Close(t.Context())
		}
		if err != nil {
			continue // it is refused as it stands
		}
		after, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(after, torn) { // all are of the last day
			t.Errorf("cut at %d: %d bytes of %d are left", cut, len(after), len(torn))
		}
		tried++
		if len(told) == 0 {
			t.Errorf("cut at %d: nobody is told", cut)
		}
	}
	if tried < 3 {
		t.Errorf("only %d starts went on", tried)
	}
}
