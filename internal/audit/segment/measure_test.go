package segment

import (
	"crypto/sha256"
	"fmt"
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
		if err != nil || m.good.seq != 7 || m.isLeftByCrash(size) {
			t.Errorf("%s: it ends behind record %d: %v", name, m.good.seq, err)
		}
		if r.n > 1<<20 {
			t.Errorf("%s: %d bytes were read", name, r.n)
		}
	}
}

// A chain of added segments, each with bytes behind it that the next one declares, is read a few times, however long it is.
func TestALongChainOfPlantedSegmentsIsReadAFewTimes(t *testing.T) {
	const chain = 60
	var texts []string
	var links []Link
	behind := strings.Repeat("junk\n", 2000)
	prev := strings.Repeat("A", 43) + "="
	for i := range uint64(chain) {
		line := fmt.Sprintf(`{"v":1,"seq":%d,"type":"log","stage":"LogOpen","time":"2026-03-02T12:00:00Z","session":"s","id":"","log":{},"prev":"%s"}`, i+1, prev)
		text := line + "\n" + behind
		l := Link{Given: Name(i + 1), First: i + 1, Size: int64(len(text)), Counts: true, Prev: prev}
		if i > 0 {
			before := links[i-1]
			l.Previous, l.Bytes = before.Given, before.Size-int64(len(behind))
			l.Torn, l.TornHash = int64(len(behind)), fmt.Sprintf("%x", sha256.Sum256([]byte(behind)))
		}
		texts, links, prev = append(texts, text), append(links, l), encodeLeaf(Leaf([]byte(line)))
	}
	var read, all int64
	for _, text := range texts {
		all += int64(len(text))
	}
	chained, err := Chain(links, Signed{Size: 1}, func(i int) (io.ReadCloser, error) {
		read += int64(len(texts[i])) // at most
		return io.NopCloser(strings.NewReader(texts[i])), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, keep := range chained.Keep {
		if !keep {
			t.Fatalf("segment %d is not kept", i+1)
		}
	}
	if read > 5*all {
		t.Errorf("%d bytes were read of %d", read, all)
	}
}
