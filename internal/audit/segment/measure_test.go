package segment

import (
	"io"
	"strings"
	"testing"
)

// counting counts what is read.
type counting struct {
	io.Reader
	n int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// What stands behind a good opening costs a start little, however long it is: what no crash leaves is read no further.
func TestALongPlantedSegmentIsReadNoFurtherThanItIsClearThatNoCrashLeftIt(t *testing.T) {
	opening := `{"v":1,"seq":7,"type":"log","stage":"LogOpen","time":"2026-03-02T12:00:00Z","session":"s","id":"","log":{},"prev":"` + strings.Repeat("A", 43) + `="}` + "\n"
	for name, behind := range map[string]string{"newlines": strings.Repeat("\n", 8<<20), "short lines": strings.Repeat("junk\n", 2<<20)} {
		r := &counting{Reader: strings.NewReader(opening + behind)}
		size := int64(len(opening + behind))
		m, err := measure(7, size, r, false)
		if err != nil || m.good.seq != 7 || m.isCrashs(size) {
			t.Errorf("%s: it ends behind record %d: %v", name, m.good.seq, err)
		}
		if r.n > 1<<20 {
			t.Errorf("%s: %d bytes were read", name, r.n)
		}
	}
}
