package main

import (
	"strings"
	"testing"
)

func TestTextsDoNotLookLikeColumns(t *testing.T) {
	var out strings.Builder
	c := newColumns(&out, "PATH", "OUTCOME")
	c.add([]string{`C:\kubelet  ok   allow: me`, "denied"})
	c.add([]string{"  indented", "ok"})
	c.flush()
	const want = "PATH                              OUTCOME\n" + `C:\kubelet \x20ok \x20 allow: me  denied` + "\n" + "  indented                        ok\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
