package evidence

import (
	"os"
	"path/filepath"
	"testing"
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
