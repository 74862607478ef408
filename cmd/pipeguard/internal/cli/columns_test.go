package cli

import (
	"fmt"
	"strings"
	"testing"
)

func TestTextsDoNotLookLikeColumns(t *testing.T) {
	var out strings.Builder
	c := NewColumns(NewPrinter(&out), "PATH", "OUTCOME")
	c.Add(`C:\kubelet  ok   allow: me`, "denied")
	c.Add("  indented", "ok")
	c.Flush()
	const want = "PATH                              OUTCOME\n" + `C:\kubelet \x20ok \x20 allow: me  denied` + "\n" + "  indented                        ok\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestALongCellMovesItsOwnRowAlone(t *testing.T) {
	var out strings.Builder
	c := NewColumns(NewPrinter(&out), "A", "B")
	long := strings.Repeat("x", maxWidth+1)
	c.Add(long, "1")
	c.Add("y", "2")
	c.Flush()
	if want := "A  B\n" + long + "  1\ny  2\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestColumnsStayTogetherOverBlocks(t *testing.T) {
	var out strings.Builder
	c := NewColumns(NewPrinter(&out), "A", "B")
	for i := range 3 * block {
		c.Add(strings.Repeat("x", i%7), fmt.Sprint(i))
	}
	c.Flush()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 3*block+1 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, line := range lines[1:] {
		if !strings.HasPrefix(line[8:], fmt.Sprint(i)) {
			t.Fatalf("line %d: %q", i, line)
		}
	}
}
