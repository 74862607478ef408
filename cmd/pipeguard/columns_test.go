package main

import (
	"strings"
	"testing"
)

func TestTextsDoNotLookLikeColumns(t *testing.T) {
	var out strings.Builder
	c := newColumns(newPrinter(&out), "PATH", "OUTCOME")
	c.add(`C:\kubelet  ok   allow: me`, "denied")
	c.add("  indented", "ok")
	c.flush()
	const want = "PATH                              OUTCOME\n" + `C:\kubelet \x20ok \x20 allow: me  denied` + "\n" + "  indented                        ok\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestALongCellMovesItsOwnRowAlone(t *testing.T) {
	var out strings.Builder
	c := newColumns(newPrinter(&out), "A", "B")
	long := strings.Repeat("x", maxWidth+1)
	c.add(long, "1")
	c.add("y", "2")
	c.flush()
	if want := "A  B\n" + long + "  1\ny  2\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
