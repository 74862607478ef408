package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestProgressOfALongReadIsShownAndErased(t *testing.T) {
	var out bytes.Buffer
	p := &Progress{w: &out, started: time.Now().Add(-time.Minute)}
	p.Bytes(64<<20, 128<<20)
	if !strings.HasSuffix(out.String(), "[###############...............] 64 of 128 MiB") {
		t.Errorf("shows %q", out.String())
	}
	out.Reset()
	p.Bytes(500<<20, 128<<20) // the log grew meanwhile
	if strings.Count(out.String(), "#") != 30 {
		t.Errorf("shows %q", out.String())
	}
	out.Reset()
	if p.Clear(); strings.TrimLeft(out.String(), " \r") != "" || out.Len() < 50 {
		t.Errorf("leaves %q", out.String())
	}
}

func TestProgressIsShownOnTerminalsOnly(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "errors.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for name, p := range map[string]*Progress{
		"a buffer": NewProgress(&out), "a file": NewProgress(file), "a short reading": {w: &out, started: time.Now()}, "nothing to read": {w: &out},
	} {
		total := int64(1 << 20)
		if name == "nothing to read" {
			total = 0
		}
		if p.Bytes(1<<19, total); p.isShown {
			t.Errorf("%s: it is shown", name)
		}
		p.Clear()
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file.Name()); err != nil || len(text) != 0 || out.Len() != 0 {
		t.Errorf("%v: %q and %q were written", err, text, out.String())
	}
}
